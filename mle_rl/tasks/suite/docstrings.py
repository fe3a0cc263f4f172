"""Paragraphs of prose from the docstrings of installed libraries, read from their source files.

Nothing is imported: modules are parsed, so the text is that of the wheel and does not depend on
what the library does when it starts.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from mle_rl.errors import MleRlError

_SKIPPED_FOLDERS = frozenset(
    {
        "tests",
        "testing",
        "_testing",
        "externals",
        "_vendored",
        "_external",
        "array_api_compat",
        "array_api_extra",
        "sandbox",
    }
)
_SKIPPED_FILES = frozenset(
    {
        "_distributor_init.py",
        "_distributor_init_local.py",
        "__config__.py",
        "_version.py",
        "version.py",
    }
)
"""Written when a wheel is built, so not the same on every platform."""
_NAMES = re.compile(
    r"\b(numpy|np|scipy|sp|pandas|pd|scikit-learn|scikit|sklearn|statsmodels|sm|smf|"
    r"matplotlib|mpl|pyplot|plt|pylab)\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"-{4}|={4}|\.\. |\||>>>")

MASK = "LIB"
"""What stands in the text where a library was named."""


def module_files(package: str) -> list[tuple[str, Path]]:
    """The package's own source files as (path below the package's parent, file), sorted.

    Raises:
        MleRlError: When the package is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MleRlError(f"The package {package} is not installed; install mle_rl again.")
    root = Path(spec.submodule_search_locations[0])
    named = ((p.relative_to(root.parent).as_posix(), p) for p in root.rglob("*.py"))
    return sorted(
        (name, path)
        for name, path in named
        if path.name not in _SKIPPED_FILES and not _SKIPPED_FOLDERS & set(name.split("/"))
    )


def parse(path: Path) -> ast.Module:
    """The syntax tree of a source file, without the warnings that its author should have seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return ast.parse(path.read_bytes())


def paragraphs(
    package: str, *, per_file: int, min_chars: int, max_chars: int, min_words: int
) -> Iterator[tuple[str, str]]:
    """Anonymised prose paragraphs of a package as (module file, text).

    Code, tables, directives and section headings are left out. Of one file at most ``per_file``
    paragraphs are taken, chosen by hash, so that no module dominates.
    """
    for name, path in module_files(package):
        found = {
            text
            for doc in _docstrings(parse(path))
            for block in re.split(r"\n\s*\n", doc)
            if not _MARKUP.search(block)
            and min_chars <= len(text := anonymise(block)) <= max_chars
            and len(text.split()) >= min_words
        }
        by_hash = sorted(found, key=lambda text: hashlib.sha256(text.encode()).hexdigest())
        for text in by_hash[:per_file]:
            yield name, text


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node, clean=False)
            if doc:
                yield doc


def anonymise(text: str) -> str:
    """Text on one line with the names and usual aliases of the libraries masked."""
    return _NAMES.sub(MASK, " ".join(text.split()))
