"""Programs with every construct, plain and instrumented: same behaviour, the expected stages."""

import tokenize
from pathlib import Path

import pytest

from mle_rl.instrumentation import anchor_target, insert_by_syntax, render, strip_magics, verify
from mle_rl.instrumentation.anchors import WORDS, read_anchors
from mle_rl.instrumentation.insertions import VALUED_STAGES
from mle_rl.instrumentation.syntax import read_sites
from mle_rl.records import STAGES

PROGRAMS = sorted((Path(__file__).parent.parent / "fixtures" / "programs").glob("*.py"))


def read(path: Path) -> tuple[str, str]:
    """A program as its completion was parsed, and its encoding."""
    with path.open("rb") as file:
        try:
            encoding, _ = tokenize.detect_encoding(file.readline)
        except SyntaxError:
            encoding = "utf-8"
    return strip_magics(path.read_bytes().decode(encoding)), encoding


def header(code: str, key: str) -> str:
    """What a program's comments say of it, for example ``# expect: packages data``."""
    lines = [line for line in code.splitlines()[:3] if line.startswith(f"# {key}:")]
    return lines[0].partition(":")[2].strip() if lines else ""


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_same_behaviour_and_expected_stages(path, interpreter):
    code, encoding = read(path)
    plain = interpreter.run(code, encoding=encoding)
    instrumented = insert_by_syntax(code)
    woven = interpreter.run(code, instrumented.insertions, encoding)

    assert woven.status == plain.status == int(header(code, "exit") or 0), plain.stderr
    assert woven.stdout == plain.stdout
    assert woven.stderr == plain.stderr
    assert woven.files == plain.files
    assert plain.marks == []
    expected = [WORDS[word] for word in header(code, "expect").split()]
    assert sorted(woven.stages, key=STAGES.index) == sorted(expected, key=STAGES.index)
    for stage, value in woven.values.items():
        assert (value is not None) == (stage in VALUED_STAGES)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_both_formats_carry_the_same_stages(path, interpreter):
    """What the syntax tree finds survives the way through either format of the language model."""
    code, _ = read(path)
    instrumented = insert_by_syntax(code)
    if instrumented.refused:
        assert anchor_target(code) == "none"
        return
    rewritten = render(code, instrumented.insertions)
    verified = verify(code, rewritten)
    assert verified.refused is None
    assert set(verified.insertions) == set(instrumented.insertions)

    answer = anchor_target(code)
    reading = read_anchors(read_sites(code)[0], answer, len(code.splitlines()))
    assert (reading.refused, reading.unsupported) == (None, ())
    assert {i.stage for i in reading.insertions} == set(instrumented.stages)
