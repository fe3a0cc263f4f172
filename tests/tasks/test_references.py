"""Every reference program stands alone; the quick ones give the score that the board records."""

import ast
import subprocess
import sys

import pytest

from mle_rl import tasks
from mle_rl.tasks.references import REFERENCES
from mle_rl.tasks.suite import COMPETITIONS

ALLOWED = {"numpy", "pandas", "scipy", "sklearn"}


def test_every_competition_has_about_thirty():
    assert set(REFERENCES) == set(COMPETITIONS)
    for name, programs in REFERENCES.items():
        assert 30 <= len(programs) <= 35, name
        assert len({r.name for r in programs}) == len(programs)
        assert len({r.program.code for r in programs}) == len(programs)


@pytest.mark.parametrize("name", REFERENCES)
def test_programs_stand_alone(name):
    for r in REFERENCES[name]:
        tree = ast.parse(r.program.code)
        imported = {
            (alias.name if isinstance(node, ast.Import) else node.module).split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert imported <= ALLOWED
        paths = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.endswith((".csv", ".npy"))
        ]
        assert all(p.startswith("input/") or p == "submission.csv" for p in paths)
        assert "submission.csv" in paths
        assert r.program.plan.endswith(".")
        assert "\n" not in r.program.plan


def run_and_grade(task, code, folder):
    (folder / "input").symlink_to(task.public_dir)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=folder, check=True, capture_output=True
    )
    return tasks.grade(task, (folder / "submission.csv").read_bytes())


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("doctor-visits", "shrunk-last-year"),
        ("terrain-height", "slopes-linear"),
        ("raising-functions", "log-logistic"),
        ("handwritten-digits", "naive-bayes-smoothed"),
    ],
)
def test_a_quick_program_scores_as_recorded(name, program, data_dir, tmp_path):
    task = tasks.load(name, data_dir)
    entry = next(e for e in tasks.leaderboard(task).entries if e.program == program)
    code = next(r.program.code for r in tasks.references(task) if r.name == program)
    result = run_and_grade(task, code, tmp_path)
    assert result.reward_score == pytest.approx(entry.reward_score, abs=1e-5)
    assert result.final_score == pytest.approx(entry.final_score, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_all_programs_score_as_recorded(name, data_dir, tmp_path):
    """Tolerant of the last digits, which depend on the numerical libraries' kernels."""
    task = tasks.load(name, data_dir)
    entries = {e.program: e for e in tasks.leaderboard(task).entries}
    for r in tasks.references(task):
        folder = tmp_path / r.name
        folder.mkdir()
        result = run_and_grade(task, r.program.code, folder)
        assert result.reward_score == pytest.approx(entries[r.name].reward_score, rel=0.02), r.name
