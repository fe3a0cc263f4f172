"""Python that nobody wrote for this, modules of installed libraries: read and woven soundly."""

import random
import sysconfig
import warnings
from pathlib import Path

import pytest

from mle_rl.instrumentation import insert_by_syntax, render, syntax, verify, weave

LIBRARIES = ("sklearn", "statsmodels", "pandas", "torch", "transformers", "scipy", "matplotlib")


def modules(count: int) -> list[Path]:
    """Some modules of installed libraries, always the same on one installation."""
    folder = Path(sysconfig.get_path("purelib"))
    paths = sorted(path for name in LIBRARIES for path in (folder / name).rglob("*.py"))
    return random.Random(0).sample(paths, min(count, len(paths)))


def check(paths: list[Path], monkeypatch) -> None:
    monkeypatch.setattr(syntax, "screen", lambda tree, finder: None)
    woven = 0
    for path in paths:
        code = path.read_text(encoding="utf-8")
        instrumented = insert_by_syntax(code)
        if instrumented.refused:
            assert instrumented.refused == "too deeply nested to read", path
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weave(code, instrumented.insertions, "p.py", print, tripwire=False)
            if instrumented.insertions:
                woven += 1
                reading = verify(code, render(code, instrumented.insertions))
                assert reading.refused is None, path
                assert set(reading.insertions) == set(instrumented.insertions), path
    assert woven


def test_some_modules(monkeypatch):
    check(modules(15), monkeypatch)


@pytest.mark.slow
def test_many_modules(monkeypatch):
    check(modules(600), monkeypatch)
