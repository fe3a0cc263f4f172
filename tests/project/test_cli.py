"""The command line: exit codes, and one sentence instead of a traceback."""

import os
import signal
import subprocess
import sys

import pytest

from mle_rl import MleRlError, __main__
from mle_rl.__main__ import main
from mle_rl.records import Limits


def _fails(monkeypatch, error: BaseException) -> None:
    def command(options):
        raise error

    monkeypatch.setattr(__main__, "_check", command)


def test_a_mistake_of_the_users_is_one_sentence_and_exit_code_2(monkeypatch, capsys):
    _fails(monkeypatch, MleRlError("The task is missing: build it."))
    assert main(["check"]) == 2
    assert capsys.readouterr().err == "mle_rl: The task is missing: build it.\n"


def test_ctrl_c_is_one_sentence_and_exit_code_130(monkeypatch, capsys):
    _fails(monkeypatch, KeyboardInterrupt())
    assert main(["check"]) == 130
    assert capsys.readouterr().err.strip() == "mle_rl: Interrupted."


def test_a_bug_keeps_its_traceback(monkeypatch):
    _fails(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["check"])


def test_an_unknown_command_or_profile_shows_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["notebook"])
    assert stopped.value.code == 2
    with pytest.raises(SystemExit):
        main(["notebooks", "--profile", "fast"])
    shown = capsys.readouterr().err
    known = ("tasks", "check", "notebooks", "outputs", "quick", "full")
    assert all(word in shown for word in known)


def test_tasks_are_listed_with_metric_and_direction(capsys):
    from mle_rl import tasks

    assert main(["tasks"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in tasks.names())
    assert "log loss" in shown
    assert "lower" in shown


def test_an_unknown_notebook_lists_those_that_exist(capsys):
    assert main(["notebooks", "--only", "77"]) == 2
    shown = capsys.readouterr().err
    assert "'77'" in shown
    assert "00_start_here" in shown


def test_what_is_built_on_first_use_is_named_while_it_is_built(tmp_path, monkeypatch, capsys):
    from mle_rl.tasks import loading

    monkeypatch.setattr(loading, "default_data_dir", lambda: tmp_path)
    monkeypatch.setattr("mle_rl.tasks.names", lambda: ("terrain-height",))
    for said in ("building terrain-height\n", ""):
        main(["tasks"])
        assert capsys.readouterr().err == said


@pytest.mark.parametrize("option", ["--samples", "--workers"])
def test_nothing_is_loaded_for_a_number_that_cannot_be_meant(option, capsys, monkeypatch):
    monkeypatch.setattr("mle_rl.tasks.load", None)
    assert main(["headroom", option, "0"]) == 2
    assert f"{option} is 0; give at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["steps", "=3", "a-b=3"])
def test_a_malformed_parameter_is_one_sentence(text, capsys):
    assert main(["notebooks", "--only", "00", "-p", text]) == 2
    assert "is not NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=3", 3),
        ("a=0.5", 0.5),
        ("a=paper", "paper"),
        ("a='3'", "3"),
        ("a=['b', 'c']", ["b", "c"]),
        ("a=('b', 'c')", ["b", "c"]),
    ],
)
def test_parameters_are_what_they_look_like(text, value):
    assert __main__._parameter(text) == ("a", value)


def test_an_unwritable_results_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    shown = subprocess.run(
        [sys.executable, "-m", "mle_rl", "notebooks", "--only", "00"],
        env=os.environ | {"MLE_RL_RESULTS": str(tmp_path / "file" / "below")},
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 2
    assert "cannot be written" in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "command", ["notebooks", "outputs", "compare --task doctor-visits --seconds 5"]
)
def test_an_unknown_profile_is_named_before_anything_heavy_is_imported(command):
    code = f"""import sys
from mle_rl import __main__
code = __main__.main({command.split()!r})
print(*set(sys.modules) & {{"torch", "pandas", "nbformat", "nbclient"}})
sys.exit(code)"""
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"MLE_RL_PROFILE": "qiuck"},
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 2
    assert "There is no profile (MLE_RL_PROFILE) 'qiuck'" in shown.stderr
    assert shown.stdout.strip() == ""


def test_ctrl_c_in_a_cell_lets_it_clean_up_and_leaves_no_kernel(tmp_path):
    import nbformat

    started, closed = tmp_path / "started", tmp_path / "closed"
    cell = f"""import os, time
from pathlib import Path
try:
    Path({str(started)!r}).write_text(str(os.getpid()))
    time.sleep(600)
finally:
    Path({str(closed)!r}).write_text("")"""
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbformat.write(content, tmp_path / "01_sleeps.ipynb")
    code = f"""import sys
from pathlib import Path
from mle_rl import __main__, notebook_runner
find = notebook_runner.find
notebook_runner.find = lambda only: find(Path({str(tmp_path)!r}))
sys.exit(__main__.main(["notebooks"]))"""
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    try:
        while not (started.exists() and started.read_text()):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        shown = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Interrupted in notebook 01_sleeps, cell 1" in shown
    assert "Traceback" not in shown
    assert closed.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--task", "no-task"], "There is no task 'no-task'"),
        (["--seconds", "0"], "give a positive number"),
        (["--seconds", "-3"], "give a positive number"),
        (["--seconds", "nan"], "give a positive number"),
        (["--workers", "0"], "workers is 0; give at least 1"),
        (["--seed", "0", "-1"], "give whole numbers from 0 on"),
        (["--methods", "default", "magic"], "There is no method 'magic'. Known:"),
    ],
)
def test_a_comparison_that_cannot_be_is_one_sentence(changes, message, tmp_path, capsys):
    given = {"--task": ["doctor-visits"], "--seconds": ["5"], "--out": [str(tmp_path / "out")]}
    given[changes[0]] = changes[1:]
    arguments = [word for name, values in given.items() for word in (name, *values)]
    assert main(["compare", *arguments]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert len(shown.splitlines()) == 1


def test_a_comparison_writes_rows_table_and_figure_and_is_not_repeated(
    tmp_path, capsys, monkeypatch
):
    # The limit of comparisons is seconds, which other work on the machine can use up.
    patient = Limits(timeout_s=50.0)
    monkeypatch.setattr("mle_rl.search.settings.Limits", lambda timeout_s: patient)
    out = tmp_path / "out"
    command = ["compare", "--task", "doctor-visits", "--seconds", "60", "--methods", "default"]
    command += ["--out", str(out)]
    assert main(command) == 0
    assert "default, seed 0: 1 programs, 100% valid" in capsys.readouterr().out
    for name in ("searches/default-0.csv", "equal_time.csv", "score_by_time.png"):
        assert (out / name).stat().st_size > 0, name
    assert main(command) == 0
    assert "finished before, not repeated" in capsys.readouterr().out
    command[command.index("60")] = "50"
    assert main(command) == 2
    assert "seconds 60.0 there, 50.0 here" in capsys.readouterr().err


def test_a_comparison_in_a_folder_that_cannot_be_written_is_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    command = ["compare", "--task", "doctor-visits", "--seconds", "5", "--methods", "default"]
    assert main([*command, "--out", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err
