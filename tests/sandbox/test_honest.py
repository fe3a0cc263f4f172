"""An honest program must not notice the sandbox: output and end as of ``python program.py``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mle_rl.records import Limits
from mle_rl.sandbox import Job
from mle_rl.sandbox.environment import environment

SECTIONS = (Path(__file__).parents[1] / "fixtures" / "honest.py").read_text().split("\n# %% ")[1:]
PROGRAMS = {name: code for name, _, code in (section.partition("\n") for section in SECTIONS)}
COLD_IS_SLOW = {"joblib", "scikit-learn in parallel", "threads of numerical libraries"}


def cold_run(code: str, folder: Path, public: Path) -> subprocess.CompletedProcess:
    (folder / "program.py").write_text(code)
    (folder / "input").symlink_to(public)
    result = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=environment(str(folder), 1),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    for name in ("stdout", "stderr"):
        setattr(result, name, getattr(result, name).replace(f"{folder}/", ""))
    return result


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in COLD_IS_SLOW else n for n in PROGRAMS],
)
def test_a_program_behaves_as_without_the_sandbox(pool, world, tmp_path, name):
    cold = cold_run(PROGRAMS[name], tmp_path, world.public)
    warm = pool.run(Job(PROGRAMS[name], world.public, limits=Limits(timeout_s=60.0)))
    assert warm.stdout.replace("/home/agent/", "") == cold.stdout
    assert warm.stderr.replace("/home/agent/", "") == cold.stderr
    assert warm.status == ("ok" if cold.returncode == 0 else "error")
