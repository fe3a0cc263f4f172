"""The start of every notebook: profile, results folder, sentences for what goes wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mle_rl import MleRlError
from mle_rl.notebook import (
    PROFILES,
    Run,
    profile,
    project_root,
    results_folder,
    setup,
    shown_path,
)


def _run(name: str) -> Run:
    return Run("00_a", name, Path("unused"))


def test_the_profile_is_quick_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.delenv("MLE_RL_PROFILE")
    assert profile() == "quick"
    monkeypatch.setenv("MLE_RL_PROFILE", "")
    assert profile() == "quick"
    monkeypatch.setenv("MLE_RL_PROFILE", "full")
    assert profile() == "full"


def test_an_unknown_profile_lists_the_known_ones(monkeypatch):
    monkeypatch.setenv("MLE_RL_PROFILE", "fast")
    with pytest.raises(MleRlError, match=r"'fast'.*full, quick, smoke"):
        profile()


def test_pick_takes_the_value_of_its_profile():
    values = {"smoke": 1, "quick": 2, "full": 3}
    assert [_run(name).pick(**values) for name in PROFILES] == [1, 2, 3]


def test_what_is_not_said_for_a_profile_is_that_of_the_next_smaller_one():
    assert [_run(name).pick(smoke=1, full=3) for name in PROFILES] == [1, 1, 3]
    assert _run("full").pick(smoke=1, quick=None) is None  # None is a value


def test_setup_makes_a_folder_says_versions_once_and_records_them(capsys, tmp_path):
    run = setup("03_async_rollout_queue")
    assert run.results == tmp_path / "results" / "03_async_rollout_queue"
    assert "03_async_rollout_queue, profile smoke, 1 thread(s)" in capsys.readouterr().out
    record = json.loads((run.results / "run.json").read_text())
    assert record["profile"] == "smoke"
    assert set(record["versions"]) >= {"mle_rl", "python", "torch", "trl"}


def test_setup_prints_nothing_that_names_this_machine(capsys):
    setup("03_async_rollout_queue")
    printed = capsys.readouterr().out
    assert str(Path.home()) not in printed
    assert not any(word.startswith("/") for word in printed.split())


@pytest.mark.parametrize("name", ["queue", "3_queue", "03", "03-queue", "03_Queue", "../03_queue"])
def test_a_malformed_notebook_name_is_refused(name):
    with pytest.raises(MleRlError, match="no notebook name"):
        setup(name)


def test_results_lie_by_profile_in_the_checkout_and_smoke_leaves_it_alone(monkeypatch):
    monkeypatch.delenv("MLE_RL_RESULTS")
    assert results_folder("quick") == project_root() / "results" / "quick"
    smoke = results_folder("smoke")
    assert not smoke.is_relative_to(project_root())
    smoke.rmdir()


def test_a_results_folder_that_cannot_be_written_is_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MLE_RL_RESULTS", str(tmp_path / "file" / "below"))
    with pytest.raises(MleRlError, match="cannot be written.*MLE_RL_RESULTS"):
        setup("03_async_rollout_queue")


def test_what_to_do_about_a_folder_fits_one_that_no_permission_would_make(monkeypatch):
    monkeypatch.setenv("MLE_RL_RESULTS", "/proc/nope")
    with pytest.raises(MleRlError, match=r"\(No such file or directory\): set MLE_RL_RESULTS to"):
        setup("03_async_rollout_queue")


def test_paths_are_shown_from_the_checkout_on():
    assert shown_path(project_root() / "results" / "quick") == "results/quick"
    assert shown_path(Path("/somewhere/else")) == ".../else"


def test_records_are_saved_with_sorted_keys(tmp_path):
    run = Run("00_a", "quick", tmp_path)
    path = run.save_json("settings", {"b": 1, "a": (0.5, "x")})
    assert path.read_text() == '{\n "a": [\n  0.5,\n  "x"\n ],\n "b": 1\n}\n'
    assert json.loads(run.save_json("run", run).read_text())["profile"] == "quick"


def test_threads_are_set_for_libraries_loaded_before_and_after():
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    count = """
from concurrent.futures import ThreadPoolExecutor
import threadpoolctl, torch
with ThreadPoolExecutor(1) as thread:  # libraries keep a count for each thread
    print(torch.get_num_threads(), thread.submit(torch.get_num_threads).result())
print(max(pool["num_threads"] for pool in threadpoolctl.threadpool_info()))
"""
    limit = "from mle_rl.notebook import limit_threads\nlimit_threads(1)\n"
    for code in (f"import numpy\n{limit}{count}", f"import torch\n{limit}{count}"):
        command = [sys.executable, "-c", code]
        shown = subprocess.run(command, env=free, capture_output=True, check=True)
        assert shown.stdout.split() == [b"1", b"1", b"1"]


def test_importing_the_package_imports_no_heavy_library():
    code = "import mle_rl, mle_rl.notebook, mle_rl.__main__, sys; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = set(shown.stdout.split())
    assert not loaded & {"torch", "trl", "transformers", "pandas", "numpy", "sklearn", "matplotlib"}
