"""Outputs fit to be committed: results stay, traces of the run and of the machine go."""

import os
import platform
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from mle_rl import MleRlError
from mle_rl.notebook import project_root
from mle_rl.notebook_outputs import (
    MARK,
    WIDGET_STATE,
    WIDGET_VIEW,
    adopt,
    first_widget_error,
    stripped,
    write_notebook,
)
from mle_rl.notebook_runner import _save

PNG = "iVBORw0KGgo="


def _executed(*outputs, source="x"):
    cell = new_code_cell(source, execution_count=3, outputs=list(outputs))
    cell.metadata = {"tags": ["parameters"], "execution": {"shell.execute_reply": "2026-01-01"}}
    return new_notebook(cells=[cell], metadata={"papermill": {"duration": 3.1}})


def _completed(*outputs, source="x", profile="quick"):
    content = _executed(*outputs, source=source)
    content.metadata[MARK] = {"fingerprint": "0", "profile": profile}
    return content


def _texts(content) -> list[str]:
    return [output.text for output in content.cells[0].outputs]


def test_counts_timings_and_metadata_go_and_tags_stay():
    shown = new_output("execute_result", {"text/plain": "3"}, execution_count=3)
    content = stripped(_executed(shown))
    (cell,) = content.cells
    assert cell.execution_count is None
    assert cell.metadata == {"tags": ["parameters"]}
    assert cell.outputs[0].execution_count is None
    assert set(content.metadata) == {"kernelspec", "language_info"}


def test_figures_and_tables_stay_and_widgets_go():
    content = stripped(
        _executed(
            new_output("display_data", {"image/png": PNG, "text/plain": "<Figure>"}),
            new_output("display_data", {"text/html": "<table/>", "application/x": "?"}),
            new_output("display_data", {WIDGET_VIEW: {"model_id": "1"}, "text/plain": "slider"}),
        )
    )
    kinds = [set(output.data) for output in content.cells[0].outputs]
    assert kinds == [{"image/png", "text/plain"}, {"text/html"}]
    assert content.cells[0].outputs[0].data["image/png"] == PNG


def test_of_a_progress_bar_only_the_last_state_stays():
    text = "start\n 0%|  |\r50%|# |\r100%|##|\nend\n"
    content = stripped(_executed(new_output("stream", name="stderr", text=text)))
    assert _texts(content) == ["start\n100%|##|\nend\n"]


def test_nothing_names_the_machine():
    text = f"{project_root()}/results {Path.home()}/x {platform.node()} <a.B object at 0x7f01ab>"
    content = stripped(_executed(new_output("stream", name="stdout", text=text)))
    assert _texts(content) == ["./results ~/x localhost <a.B object>"]
    kernel = f"Linux {platform.release()}, x86_64"
    assert _texts(stripped(_executed(new_output("stream", text=kernel)))) == ["Linux , x86_64"]


def test_a_folder_that_only_begins_like_the_home_folder_is_left_alone():
    text = f"{Path.home()}less"
    assert _texts(stripped(_executed(new_output("stream", text=text)))) == [text]


def test_an_error_is_never_committed():
    with pytest.raises(MleRlError, match="shows an error"):
        stripped(_executed(new_output("error", ename="E", evalue="v", traceback=[])))


def test_stripping_twice_changes_nothing_more_and_leaves_the_original_alone():
    original = _executed(new_output("stream", text=f"{project_root()}\n"))
    once = stripped(original)
    assert stripped(once) == once
    assert original.cells[0].execution_count == 3


def test_an_error_caught_by_a_widget_is_found():
    caught = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}
    content = new_notebook()
    assert first_widget_error(content) is None
    models = {"1": {"state": {"value": 3}}, "2": {"state": {"outputs": [caught]}}}
    content.metadata.widgets = {WIDGET_STATE: {"state": models}}
    assert first_widget_error(content) == "E: v"


def test_prose_may_change_after_the_run_and_stays_as_it_is_now(tmp_path):
    notebook, executed = tmp_path / "01_a.ipynb", tmp_path / "executed.ipynb"
    cells = [new_markdown_cell("new prose"), new_code_cell("x"), new_markdown_cell("more")]
    nbformat.write(new_notebook(cells=cells), notebook)
    nbformat.write(_completed(new_output("stream", text="1\n")), executed)
    adopt(executed, notebook, "quick")
    now = nbformat.read(notebook, as_version=4)
    assert [cell.source for cell in now.cells] == ["new prose", "x", "more"]
    assert _texts(nbformat.NotebookNode(cells=[now.cells[1]])) == ["1\n"]


def test_a_notebook_that_cannot_be_written_is_a_sentence(tmp_path, monkeypatch):
    notebook, executed = tmp_path / "01_a.ipynb", tmp_path / "executed.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("x")]), notebook)
    nbformat.write(_completed(new_output("stream", text="1\n")), executed)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mle_rl.notebook_outputs.write_whole", refuse)
    with pytest.raises(MleRlError, match="cannot be written .Permission denied."):
        adopt(executed, notebook, "quick")


def test_outputs_are_taken_over_only_from_the_same_sources(tmp_path):
    notebook, executed = tmp_path / "01_a.ipynb", tmp_path / "executed.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("x")]), notebook)
    nbformat.write(_completed(new_output("stream", text="1\n")), executed)
    adopt(executed, notebook, "quick")
    assert _texts(nbformat.read(notebook, as_version=4)) == ["1\n"]
    nbformat.write(new_notebook(cells=[new_markdown_cell("x")]), notebook)
    before = notebook.read_bytes()
    nbformat.write(_completed(source="y"), executed)
    with pytest.raises(MleRlError, match="has changed since"):
        adopt(executed, notebook, "quick")
    assert notebook.read_bytes() == before


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_text("[]"),
        lambda path: nbformat.write(_executed(), path),
        lambda path: nbformat.write(_completed(profile="smoke"), path),
    ],
    ids=["absent", "cut off", "something else", "broken off", "of another profile"],
)
def test_outputs_are_taken_over_only_from_a_run_that_ended_well(tmp_path, harm):
    notebook, executed = tmp_path / "01_a.ipynb", tmp_path / "executed.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("x")]), notebook)
    nbformat.write(_completed(new_output("stream", text="1\n")), executed)
    harm(executed)
    before = notebook.read_bytes()
    with pytest.raises(MleRlError, match="no executed copy.*ended well.*--profile quick --only"):
        adopt(executed, notebook, "quick")
    assert notebook.read_bytes() == before


@pytest.mark.parametrize("save", [write_notebook, _save], ids=["committed", "executed"])
def test_a_kill_while_writing_leaves_the_notebook_before(tmp_path, monkeypatch, save):
    class Killed(BaseException):
        pass

    def killed(descriptor):
        raise Killed

    path = tmp_path / "01_a.ipynb"
    save(new_notebook(cells=[new_code_cell("x")]), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(Killed):
        save(new_notebook(), path)
    assert path.read_bytes() == before
