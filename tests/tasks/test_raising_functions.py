"""What is counted in a function, and that nothing of what is asked is among it."""

import ast

from mle_rl.tasks.suite.raising_functions import _COLUMNS, _functions

CODE = '''
class Model:
    @cached
    def _check(self, x, *rest, n=None, **options):
        """First line.

        Third line.
        """
        if not x and n is not None:
            raise ValueError(f"{x} is {n} of {len(x)}" + "and more")
        for key in options:
            if key == 3:
                x[key] = key.real + 1.5
        name = f"{x:>{n}}" + "end"
        return name


def short(x):
    if x:
        raise ValueError("a")
    return x


def plain(x):
    a = 1
    b = 2
    c = 3
    return [a, b, c]
'''


def counted():
    found = list(_functions(ast.parse(CODE)))
    return [(dict(zip(_COLUMNS, map(int, f), strict=True)), target) for f, target in found]


def test_every_column_by_hand():
    _, (row, raises) = counted()
    assert raises == "1"
    assert row == {
        "method": 1,
        "private": 1,
        "name_length": 6,
        "decorators": 1,
        "arguments": 3,
        "defaults": 1,
        "starred": 2,
        "doc_lines": 4,
        "statements": 6,
        "ifs": 2,
        "loops": 1,
        "returns": 1,
        "assignments": 2,
        "calls": 0,
        "attributes": 1,
        "names": 5,
        "comparisons": 2,
        "connectives": 1,
        "negations": 1,
        "strings": 2,
        "numbers": 2,
        "nones": 1,
        "subscripts": 1,
        "depth": 2,
    }


def test_functions_of_fewer_than_four_statements_are_left_out():
    """What raises does not count, or it would be told by the length."""
    assert [(row["name_length"], raises) for row, raises in counted()] == [(5, "0"), (6, "1")]


def test_what_stands_in_a_raise_is_not_counted():
    longer = CODE.replace('"and more"', '"a" if x else (1, 2, [f(y) for y in z])')
    assert [f for f, _ in _functions(ast.parse(longer))] == [
        f for f, _ in _functions(ast.parse(CODE))
    ]
