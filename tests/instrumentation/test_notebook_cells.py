"""Magics leave, lines stay."""

import pytest

from mle_rl.instrumentation import strip_magics


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("%matplotlib inline\nx = 1\n", "pass\nx = 1\n"),
        ("!pip install x\r\nx = 1", "pass\r\nx = 1"),
        ("files = !ls\n", "pass\n"),
        ("if x:\n    %time y\n", "if x:\n    pass\n"),
        ("%%time\nx = 1\n", "pass\nx = 1\n"),
        ("df?\n??df.head\n", "pass\npass\n"),
        ("x = 5 \\\n% 3\n", "x = 5 \\\n% 3\n"),
        ("s = '''\n%time\n!ls\n'''\n", "s = '''\n%time\n!ls\n'''\n"),
        ("%time\ns = '''\n!ls\n'''\n", "pass\ns = '''\n!ls\n'''\n"),
        ("def f(:\n%time\n", "def f(:\n%time\n"),
        ("", ""),
    ],
)
def test_magics(code, expected):
    assert strip_magics(code) == expected


def test_lines_are_those_of_the_compiler():
    """A form feed and its like end no line: the magic below them is still found."""
    code = "a = 'x\u2028y'\r\n\x0cb = 1\n%matplotlib inline\nc = 2\n"
    assert strip_magics(code) == code.replace("%matplotlib inline", "pass")
