"""Docstrings are read from source files, without importing, and freed of the libraries' names."""

import sys

import pytest

from mle_rl import MleRlError
from mle_rl.tasks.suite import COMPETITIONS, docstrings, function_length
from mle_rl.tasks.suite.sources import package_file

MODULE = '''
"""The module's own paragraph of prose, about NumPy arrays, which is long enough to be kept here.

>>> this is code, not prose, although it is rather long and has more than ten words in it

short
"""

raise RuntimeError("nobody may import this")


def function():
    """The function's own paragraph of prose, made with np.array and pandas.DataFrame, long
    enough to be kept and to be read from the tree."""
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "odd_package"
    (root / "tests").mkdir(parents=True)
    for name in ("__init__.py", "core.py", "version.py", "tests/test_core.py"):
        (root / name).write_text(MODULE if name != "__init__.py" else "")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "odd_package"


def test_prose_is_read_without_importing(package):
    options = {"per_file": 5, "min_chars": 60, "max_chars": 400, "min_words": 8}
    found = dict.fromkeys(text for _, text in docstrings.paragraphs(package, **options))
    assert sorted(found) == [
        "The function's own paragraph of prose, made with LIB.array and LIB.DataFrame, long enough "
        "to be kept and to be read from the tree.",
        "The module's own paragraph of prose, about LIB arrays, which is long enough to be kept "
        "here.",
    ]
    assert package not in sys.modules


def test_test_folders_and_generated_files_are_left_out(package):
    names = [name for name, _ in docstrings.module_files(package)]
    assert names == ["odd_package/__init__.py", "odd_package/core.py"]


@pytest.mark.parametrize("library", ["NumPy", "np", "scikit-learn", "sklearn", "plt", "pd"])
def test_names_and_aliases_are_masked_as_words_only(library):
    assert docstrings.anonymise(f"with {library}.f and\n  more") == "with LIB.f and more"
    assert docstrings.anonymise(f"x{library}x") == f"x{library}x"


@pytest.mark.parametrize(
    ("statements", "grade"), [(1, 1), (3, 1), (4, 2), (8, 2), (9, 3), (15, 3), (16, 4), (31, 5)]
)
def test_grades_count_statements(statements, grade):
    lines = ["def f():", '    """' + "A docstring that is long. " * 10 + '"""']
    tree = docstrings.ast.parse("\n".join(lines + ["    pass"] * statements))
    assert [g for _, g in function_length._graded_docstrings(tree)] == [grade]


def test_missing_sources_say_what_to_install():
    with pytest.raises(MleRlError, match="does not ship data/none"):
        package_file("sklearn", "data/none.csv")
    with pytest.raises(MleRlError, match="no_such_package is not installed"):
        package_file("no_such_package", "x")
    with pytest.raises(MleRlError, match="no_such_package is not installed"):
        docstrings.module_files("no_such_package")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["library-docstrings", "function-length"])
def test_no_library_is_named_in_a_text(name):
    for example in COMPETITIONS[name].examples():
        assert not docstrings._NAMES.search(example.features[0])
