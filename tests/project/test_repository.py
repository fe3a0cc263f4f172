"""What is committed: the permitted entries, no large files, nothing that names a machine."""

import fnmatch
import platform
import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from mle_rl.notebook import project_root

ROOT = project_root()
TOP = {
    ".ci",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "README.md",
    "constraints.txt",
    "data",
    "environment.yml",
    "mle_rl",
    "notebooks",
    "pyproject.toml",
    "results",
    "tests",
}
LARGE_MB = 1
# Pattern: why it is committed although it is large.
LARGE = {
    "mle_rl/agent/weights/*/model.safetensors": "the shipped policy; notebook 90 makes it",
    "data/executions/*": "recorded executions, from which committed figures are redrawn",
}
MACHINE_FOLDERS = re.compile(r"(?<![\w.~/-])/(home|Users|root|tmp|var|private|opt|mnt|srv)/\w")

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a git checkout"
)


def _committed() -> list[str]:
    shown = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [name for name in shown.stdout.decode().split("\0") if name and (ROOT / name).exists()]


def _notebooks() -> list[Path]:
    return [ROOT / name for name in _committed() if name.endswith(".ipynb")]


def test_the_top_level_holds_the_permitted_entries_only():
    assert {name.split("/")[0] for name in _committed()} <= TOP


def test_large_files_have_a_reason():
    for name in _committed():
        if (ROOT / name).stat().st_size > LARGE_MB * 1e6:
            assert any(fnmatch.fnmatch(name, pattern) for pattern in LARGE), name


def test_no_file_names_this_machine():
    """Neither where the checkout lies, nor a home folder, nor the machine's name."""
    marks = [str(ROOT), str(Path.home()), platform.node()]
    marks = [mark.encode() for mark in marks if len(mark) > 5]  # "/root" is anybody's
    for name in _committed():
        content = (ROOT / name).read_bytes()
        assert not [mark for mark in marks if mark in content], name


def test_results_and_notebook_outputs_hold_no_absolute_path():
    for name in _committed():
        if name.startswith("results/") and name.endswith((".csv", ".json", ".md")):
            assert not MACHINE_FOLDERS.search((ROOT / name).read_text()), name
    for path in _notebooks():
        for cell in nbformat.read(path, as_version=4).cells:
            assert not MACHINE_FOLDERS.search(str(cell.get("outputs", ""))), path.name


def test_notebooks_are_valid_with_stable_ids_and_without_traces_of_a_run():
    for path in _notebooks():
        content = nbformat.read(path, as_version=4)
        nbformat.validate(content)
        assert (content.nbformat, content.nbformat_minor) == (4, 5), path.name
        ids = [cell.id for cell in content.cells]
        assert len(set(ids)) == len(ids), path.name
        assert set(content.metadata) <= {"kernelspec", "language_info"}, path.name
        for cell in content.cells:
            assert set(cell.metadata) <= {"tags"}, (path.name, cell.id)
            if cell.cell_type != "code":
                continue
            assert cell.execution_count is None, (path.name, cell.id)
            for output in cell.outputs:
                assert output.output_type != "error", (path.name, cell.id)
                assert output.get("execution_count") is None, (path.name, cell.id)
                assert not any("widget" in kind for kind in output.get("data", ())), path.name


def test_links_between_files_lead_somewhere():
    pages = [ROOT / name for name in _committed() if name.endswith(".md")]
    texts = [(page, page.read_text()) for page in pages]
    for path in _notebooks():
        cells = nbformat.read(path, as_version=4).cells
        texts += [(path, cell.source) for cell in cells if cell.cell_type == "markdown"]
    for page, text in texts:
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_git_ignores_what_runs_leave_behind_and_keeps_what_is_published():
    def ignored(name: str) -> bool:
        command = ["git", "check-ignore", "--quiet", "--no-index", name]
        return subprocess.run(command, cwd=ROOT).returncode == 0

    for left in (".venv/x", "results/quick/a.png", "results/full/executed/a.ipynb", "data/tasks/x"):
        assert ignored(left), left
    assert ignored("results/full/compare/a-task/work/rl-0/rollouts.sqlite")
    for kept in ("results/full/03_a/box.png", "results/README.md", "data/executions/a.parquet"):
        assert not ignored(kept), kept
    assert not ignored("results/full/compare/a-task/searches/rl-0.csv")
