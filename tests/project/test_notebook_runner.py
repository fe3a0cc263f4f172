"""Running notebooks: order, fresh kernels, one clear sentence at the first failure, resuming."""

import ast
import io

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from mle_rl import MleRlError
from mle_rl.notebook_outputs import MARK
from mle_rl.notebook_parameters import check
from mle_rl.notebook_runner import Progress, Settings, clock, execute, find, fingerprint, run


def _notebook(folder, name: str, *cells: str, tags=()):
    code = [new_code_cell(source) for source in cells]
    for tag in tags:
        code[0].metadata.tags = [tag]
    path = folder / f"{name}.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=[new_markdown_cell("# A"), *code], metadata=kernel), path)
    return path


def _execute(path, tmp_path, **settings):
    chosen = Settings("smoke", tmp_path / "results", **settings)
    log = io.StringIO()
    execute(path, chosen, Progress(path.stem, log))
    return nbformat.read(chosen.executed(path), as_version=4), log.getvalue()


def test_notebooks_are_found_in_order_of_their_numbers(tmp_path):
    for name in ("10_c", "02_b", "90_d", "notes", "00_a"):
        _notebook(tmp_path, name)
    assert [path.stem for path in find(tmp_path)] == ["00_a", "02_b", "10_c", "90_d"]
    assert [path.stem for path in find(tmp_path, ["90", "02"])] == ["02_b", "90_d"]
    with pytest.raises(MleRlError, match=r"'03'.*00_a, 02_b"):
        find(tmp_path, ["02", "03"])


def test_a_folder_without_notebooks_is_one_sentence(tmp_path):
    with pytest.raises(MleRlError, match="no numbered notebooks"):
        find(tmp_path / "absent")


def test_the_kernel_is_fresh_and_knows_profile_results_and_folder(tmp_path):
    cell = (
        "import os; print(os.environ['MLE_RL_PROFILE'], os.environ['MLE_RL_RESULTS'], os.getcwd())"
    )
    content, log = _execute(_notebook(tmp_path, "01_a", cell), tmp_path)
    assert content.cells[1].outputs[0].text.split() == [
        "smoke",
        str(tmp_path / "results"),
        str(tmp_path),
    ]
    assert log == "01_a: 1 cells in 0:0" + log[-2:]


def test_the_first_failing_cell_stops_the_run_and_is_named(tmp_path, capsys):
    bad = "# Divide\n1 / 0"
    paths = [
        _notebook(tmp_path, "01_a", "x = 1", bad, "print('never')"),
        _notebook(tmp_path, "02_b", "print('never')"),
    ]
    with pytest.raises(MleRlError) as failure:
        run(paths, "smoke")
    copy = tmp_path / "results" / "executed" / "01_a.ipynb"
    assert str(failure.value) == (
        "Notebook 01_a failed in code cell 2 ('# Divide'): ZeroDivisionError: division by zero. "
        f"The executed copy with the whole traceback is {copy}."
    )
    outputs = nbformat.read(copy, as_version=4).cells[2].outputs
    assert outputs[-1].ename == "ZeroDivisionError"
    assert not copy.with_name("02_b.ipynb").exists()


def test_a_mistake_of_the_users_fails_the_run_and_shows_no_traceback(tmp_path):
    cell = (
        "from mle_rl import MleRlError\ndef f():\n    raise MleRlError('No task: build it.')\nf()"
    )
    with pytest.raises(MleRlError, match="MleRlError: No task: build it"):
        _execute(_notebook(tmp_path, "01_a", cell), tmp_path)
    copy = tmp_path / "results" / "executed" / "01_a.ipynb"
    (error,) = nbformat.read(copy, as_version=4).cells[1].outputs
    assert error.traceback == ["MleRlError: No task: build it."]


def test_a_dead_kernel_is_one_sentence(tmp_path):
    with pytest.raises(MleRlError, match="code cell 1.*kernel died"):
        _execute(_notebook(tmp_path, "01_a", "import os; os._exit(1)"), tmp_path)


def test_an_error_inside_a_slider_fails_the_run(tmp_path):
    cell = "from ipywidgets import interact\n@interact(k=(1, 3))\ndef draw(k=2):\n    1 / {}"
    content, _ = _execute(_notebook(tmp_path, "01_a", cell.format(1)), tmp_path)
    assert content.cells[1].execution_count == 1
    with pytest.raises(MleRlError, match="inside a widget: ZeroDivisionError"):
        _execute(_notebook(tmp_path, "02_b", cell.format(0)), tmp_path)


def test_parameters_replace_the_tagged_cell(tmp_path):
    path = _notebook(tmp_path, "01_a", "steps = 3", "print(steps)", tags=["parameters"])
    content, _ = _execute(path, tmp_path, parameters={"steps": 7})
    assert content.cells[-1].outputs[0].text == "7\n"


def test_a_parameter_that_any_notebook_lacks_is_refused_before_the_first_one_runs(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("MLE_RL_RESULTS")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    ran = "from pathlib import Path\nPath('ran').touch()"
    paths = [
        _notebook(tmp_path, "01_a", "steps = 3\nseed = 0", ran, tags=["parameters"]),
        _notebook(tmp_path, "02_b", "seed = 0", ran, tags=["parameters"]),
    ]
    sentence = r"^There is no parameter of notebook 02_b 'steps'. Known: seed.$"
    with pytest.raises(MleRlError, match=sentence):
        run(paths, "smoke", parameters=[("steps", 7)])
    assert not (tmp_path / "ran").exists()
    assert not list((tmp_path / "temporary").iterdir())
    run(paths, "smoke", parameters=[("seed", 7)])
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("default", "value", "message"),
    [
        ("32", "abc", "'n' of notebook 02_b is 'abc'; give a whole number, like its default 32."),
        ("32", 4.5, "give a whole number"),
        ("32", True, "give a whole number"),
        ("32", None, "give a whole number"),
        ("32", -4, "is -4; give 0 or more."),
        ("0", -1, "give 0 or more"),
        ("None", -1, "give 0 or more"),
        ("1.2", "abc", "give a number, like its default 1.2"),
        ("1.2", -0.1, "give 0 or more"),
        ("'tiny'", 3, "give a text"),
        ("False", 1, "give True or False"),
        ("[]", "nope", "give a list, like its default \\[]"),
        ("None", "nope", r"give a number or a list, as in \['nope'], or None"),
    ],
)
def test_a_value_of_another_kind_than_the_default_is_refused_before_the_first_one_runs(
    default, value, message, tmp_path
):
    ran = "from pathlib import Path\nPath('ran').touch()"
    first = _notebook(tmp_path, "01_a", f"n = {value!r}", ran, tags=["parameters"])
    second = _notebook(tmp_path, "02_b", f"n = {default}", tags=["parameters"])
    with pytest.raises(MleRlError, match=message):
        run([first, second], "smoke", parameters=[("n", value)])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("default", "value"),
    [
        ("32", 0),
        ("1.2", 3),
        ("-1", -2),
        ("None", 0.5),
        ("None", ["a"]),
        ("None", None),
        ("[]", ["a"]),
        ("'none'", "paper"),
        ("False", True),
    ],
)
def test_a_value_of_the_same_kind_as_the_default_will_do(default, value, tmp_path):
    check({"n": value}, _notebook(tmp_path, "01_a", f"n = {default}", tags=["parameters"]))


@pytest.mark.parametrize("path", find(), ids=lambda path: path.stem)
def test_defaults_of_the_notebooks_will_do(path):
    defaults = papermill.inspect_notebook(str(path))
    check({name: ast.literal_eval(each["default"]) for name, each in defaults.items()}, path)


def test_resume_leaves_out_what_is_unchanged_and_only_that(tmp_path):
    count = "from pathlib import Path\nwith Path('ran').open('a') as log:\n    log.write('x')"
    path = _notebook(tmp_path, "01_a", count)
    ran = tmp_path / "ran"
    _execute(path, tmp_path)
    _, log = _execute(path, tmp_path, resume=True)
    assert (len(ran.read_text()), "left out" in log) == (1, True)
    _execute(path, tmp_path)  # not asked to resume
    assert len(ran.read_text()) == 2
    _execute(_notebook(tmp_path, "01_a", count + "\n"), tmp_path, resume=True)
    assert len(ran.read_text()) == 3


def test_resume_executes_again_what_a_kill_has_cut_off(tmp_path):
    path = _notebook(tmp_path, "01_a", "print(1)")
    _execute(path, tmp_path)
    copy = tmp_path / "results" / "executed" / "01_a.ipynb"
    copy.write_bytes(copy.read_bytes()[:-40])
    content, log = _execute(path, tmp_path, resume=True)
    assert content.cells[1].outputs[0].text == "1\n"
    assert "left out" not in log


def test_only_a_run_that_ended_well_is_marked(tmp_path):
    """Also where an executed copy has become the notebook, with its mark."""
    content, _ = _execute(_notebook(tmp_path, "01_a", "x = 1"), tmp_path)
    assert set(content.metadata[MARK]) == {"fingerprint", "profile"}
    content.cells[1].source = "1 / 0"
    nbformat.write(content, tmp_path / "01_a.ipynb")
    with pytest.raises(MleRlError, match="ZeroDivisionError"):
        _execute(tmp_path / "01_a.ipynb", tmp_path)
    copy = tmp_path / "results" / "executed" / "01_a.ipynb"
    assert MARK not in nbformat.read(copy, as_version=4).metadata


def test_a_failed_notebook_is_not_resumed_as_done(tmp_path):
    path = _notebook(tmp_path, "01_a", "1 / 0")
    for _ in range(2):
        with pytest.raises(MleRlError, match="ZeroDivisionError"):
            _execute(path, tmp_path, resume=True)


def test_the_fingerprint_follows_the_sources_and_not_the_outputs(tmp_path):
    content = nbformat.read(_notebook(tmp_path, "01_a", "x = 1"), as_version=4)
    before = fingerprint(content)
    content.cells[1].execution_count = 3
    assert fingerprint(content) == before
    content.cells[1].source = "x = 2"
    assert fingerprint(content) != before


def test_the_fingerprint_follows_every_file_of_the_library(tmp_path, monkeypatch):
    """Weights, leaderboards and tables too; not what Python compiled of it."""
    content = nbformat.read(_notebook(tmp_path, "01_a", "x = 1"), as_version=4)
    library = tmp_path / "library"
    for name in ("a.py", "weights/model.safetensors", "tasks/board.csv", "__pycache__/a.pyc"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_bytes(b"before")
    monkeypatch.setattr("mle_rl.notebook_runner._LIBRARY", library)
    seen = [fingerprint(content)]
    for name in ("a.py", "weights/model.safetensors", "tasks/board.csv"):
        (library / name).write_bytes(b"after")
        seen.append(fingerprint(content))
    assert len(set(seen)) == 4
    (library / "__pycache__/a.pyc").write_bytes(b"after")
    assert fingerprint(content) == seen[-1]
    (library / "a.py").rename(library / "b.py")
    assert fingerprint(content) not in seen


@pytest.mark.parametrize("file", ["07_a/equal_time.csv", "compare/a/searches/rl-0.json"])
def test_resume_executes_again_what_reads_changed_records(file, tmp_path, monkeypatch):
    """Those of results/full; a run that writes there itself would else never be done."""
    monkeypatch.setattr("mle_rl.notebook.project_root", lambda: tmp_path)
    recorded = tmp_path / "results/full" / file
    recorded.parent.mkdir(parents=True)
    recorded.write_text("score 0.5")
    path = _notebook(tmp_path, "01_a", "x = 1")

    def left_out(profile):
        log = io.StringIO()
        settings = Settings(profile, tmp_path / "results" / profile, resume=True)
        execute(path, settings, Progress("01_a", log))
        return "left out" in log.getvalue()

    assert [left_out("quick"), left_out("quick")] == [False, True]
    assert [left_out("full"), left_out("full")] == [False, True]
    recorded.write_text("score 0.6")
    assert not left_out("quick")
    assert left_out("full")


@pytest.mark.parametrize("unset", [None, ""])
def test_smoke_cleans_up_after_itself_and_quick_says_where_the_figures_are(
    tmp_path, monkeypatch, capsys, unset
):
    draw = (
        "import pandas as pd, matplotlib.pyplot as plt\n"
        "from mle_rl.analysis import save_figure\nfrom mle_rl.notebook import setup\n"
        "run = setup('01_a')\nfig, axes = plt.subplots()\n"
        "save_figure(fig, 'a', pd.DataFrame({'x': [1]}), run, kind='exact')"
    )
    path = _notebook(tmp_path, "01_a", draw)
    run([path], "quick")
    assert f"1 figures are in {tmp_path / 'results'}" in capsys.readouterr().out
    assert (tmp_path / "results" / "01_a" / "a.png").exists()

    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.delenv("MLE_RL_RESULTS")
    if unset is not None:
        monkeypatch.setenv("MLE_RL_RESULTS", unset)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    run([path], "smoke")
    assert "1 figures were made and removed" in capsys.readouterr().out
    assert not list(temporary.iterdir())


def test_a_failed_smoke_run_leaves_the_executed_copy_that_it_names(tmp_path, monkeypatch):
    monkeypatch.delenv("MLE_RL_RESULTS")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(MleRlError) as failure:
        run([_notebook(tmp_path, "01_a", "1 / 0")], "smoke")
    (copy,) = tmp_path.glob("mle_rl_smoke_*/executed/01_a.ipynb")
    assert f"traceback is {copy}." in str(failure.value)


@pytest.mark.parametrize("chosen", [True, False])
def test_an_interrupted_run_says_what_is_kept_and_leaves_nothing_else(
    chosen, tmp_path, monkeypatch
):
    def interrupted(path, settings, progress):
        settings.results.mkdir(exist_ok=True)
        raise KeyboardInterrupt("Interrupted in notebook 01_a, cell 1")

    monkeypatch.setattr("mle_rl.notebook_runner.execute", interrupted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if not chosen:
        monkeypatch.delenv("MLE_RL_RESULTS")
    with pytest.raises(KeyboardInterrupt) as interrupt:
        run([tmp_path / "01_a.ipynb"], "smoke")
    assert str(interrupt.value).startswith("Interrupted in notebook 01_a, cell 1; ")
    assert ("--resume" in str(interrupt.value)) == chosen
    assert ("nothing is kept" in str(interrupt.value)) != chosen
    assert (tmp_path / "results").exists() == chosen
    assert not list(tmp_path.glob("mle_rl_smoke_*"))


def test_results_stay_when_the_checkout_itself_lies_in_a_temporary_folder(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.delenv("MLE_RL_RESULTS")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("mle_rl.notebook.project_root", lambda: tmp_path / "checkout")
    run([_notebook(tmp_path, "01_a", "x = 1")], "quick")
    assert "removed" not in capsys.readouterr().out
    assert (tmp_path / "checkout" / "results" / "quick" / "executed" / "01_a.ipynb").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_the_running_cell_and_a_log_does_not_drown():
    for stream, lines in ((Terminal(), "\r01_a: cell 2/5, 0:00: step 3"), (io.StringIO(), "")):
        progress = Progress("01_a", stream)
        progress.cells, progress.cell, progress.last_line = 5, 2, "step 3"
        progress.tick()
        assert stream.getvalue().rstrip() == lines


def test_times_are_read_at_a_glance():
    assert [clock(seconds) for seconds in (0.4, 61, 3599.6, 7325)] == [
        "0:00",
        "1:01",
        "1:00:00",
        "2:02:05",
    ]


def test_the_last_line_of_a_running_cell_reaches_the_progress(tmp_path):
    path = _notebook(tmp_path, "01_a", "print('first')\nprint('10%\\r20%', end='')")
    progress = Progress("01_a", io.StringIO())
    execute(path, Settings("smoke", tmp_path / "results"), progress)
    assert progress.last_line == "20%"
