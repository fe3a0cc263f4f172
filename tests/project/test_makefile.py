"""The Makefile on machines that lack something: one clear sentence each; installing only once."""

import os
import shutil
import subprocess

import pytest

from mle_rl.notebook import project_root

ROOT = project_root()
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

FAKE = """#!/bin/sh
case "$*" in
    *version_info*) exit {old} ;;
    -V) echo "Python {version}" ;;
    *ensurepip*) echo "No module named ensurepip" >&2; exit {no_venv} ;;
    *) echo "went on: $*" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def python(tmp_path):
    def make(old=0, version="3.12.1", no_venv=0):
        path = tmp_path / "python"
        path.write_text(FAKE.format(old=old, version=version, no_venv=no_venv))
        path.chmod(0o755)
        return path

    return make


def _make(*arguments, folder=ROOT) -> subprocess.CompletedProcess:
    command = ["make", "--no-print-directory", *map(str, arguments)]
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def _only_sentence(result: subprocess.CompletedProcess) -> str:
    assert result.returncode != 0
    assert result.stdout == ""
    sentence, made = result.stderr.splitlines()  # the second line is make's own
    assert made.startswith("make:")
    return sentence


def test_no_python(tmp_path):
    result = _make("test", "PYTHON=python9.9", f"VENV={tmp_path / 'venv'}")
    assert "python9.9 was not found" in _only_sentence(result)


def test_an_old_python(python, tmp_path):
    old = python(old=1, version="3.9.2")
    result = _make("reproduce", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert "is Python 3.9.2, but 3.11 or newer is needed" in _only_sentence(result)


def test_no_venv_package(python, tmp_path):
    result = _make("test", f"PYTHON={python(no_venv=1)}", f"VENV={tmp_path / 'venv'}")
    assert "cannot make virtual environments" in _only_sentence(result)
    assert "python3-venv" in result.stderr


def test_a_good_python_makes_the_environment(python, tmp_path):
    result = _make("install", f"PYTHON={python()}", f"VENV={tmp_path / 'venv'}")
    assert f"went on: -m venv --clear {tmp_path / 'venv'}" in result.stderr


def _stamp(folder, venv) -> str:
    shown = _make("-n", "install", f"VENV={venv}", folder=folder).stdout
    (line,) = [line for line in shown.splitlines() if "touch" in line]
    return line.split("touch ")[1].strip('"')


def test_installing_is_left_out_when_nothing_that_is_installed_changed(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    venv = tmp_path / "venv"
    venv.mkdir()
    stamp = _stamp(tmp_path, venv)
    (tmp_path / stamp).write_text("")
    assert "Nothing to be done" in _make("install", f"VENV={venv}", folder=tmp_path).stdout
    with (tmp_path / "constraints.txt").open("a") as constraints:
        constraints.write("six==1.17.0\n")
    assert _stamp(tmp_path, venv) != stamp


def test_continuous_integration_runs_make_test_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    code = [line for line in lines if line and not line.startswith("#")]
    assert code == ["set -eu", 'cd "$(dirname "$0")/.."', "exec make test"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_target_of_the_help_exists():
    for line in _make("help").stdout.splitlines():
        if line.startswith("make "):
            assert _make("-n", line.split()[1]).returncode == 0
