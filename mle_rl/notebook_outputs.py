"""What a notebook shows: errors hidden in widgets, and outputs fit to be committed.

Committed outputs are text, tables and PNG. Execution counts, widgets, timings, progress bars and
everything that names a machine are taken out, so that a diff shows changed results only.
"""

from __future__ import annotations

import copy
import platform
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from mle_rl.errors import MleRlError
from mle_rl.files import write_whole
from mle_rl.notebook import project_root

WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MARK = "mle_rl"
"""In the metadata of an executed copy, from the end of its run on: fingerprint and profile."""

KEPT_TYPES = ("image/png", "text/html", "text/latex", "text/markdown", "text/plain")


def first_widget_error(content: NotebookNode) -> str | None:
    """The error that an output widget caught, if any.

    A callback of ``interact`` that raises writes its error into the widget; the cell succeeds.
    """
    models = content.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    for model in models.values():
        for output in model.get("state", {}).get("outputs", ()):
            if output.get("output_type") == "error":
                return f"{output['ename']}: {output['evalue']}"
    return None


def stripped(content: NotebookNode) -> NotebookNode:
    """A copy of an executed notebook as it may be committed."""
    content = copy.deepcopy(content)
    content.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    for cell in content.cells:
        cell.metadata = NotebookNode({k: v for k, v in cell.metadata.items() if k == "tags"})
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [kept for out in cell.outputs if (kept := _stripped_output(out))]
    return content


def read_completed(executed: Path) -> NotebookNode | None:
    """An executed copy; None when it is absent, damaged, or of a run that did not end well."""
    try:
        content = nbformat.read(executed, as_version=4)
        return content if MARK in content.metadata else None
    except Exception:  # nbformat raises many unrelated types for what is not a notebook
        return None


def adopt(executed: Path, notebook: Path, profile: str) -> None:
    """Put the outputs of an executed copy into the committed notebook, whose prose stays.

    Raises:
        MleRlError: There is no executed copy of a run of this profile that has ended well, or the
            code of the notebook has changed since, or the notebook cannot be written.
    """
    done = read_completed(executed)
    if done is None or done.metadata[MARK].get("profile") != profile:
        raise MleRlError(
            f"Notebook {notebook.stem} has no executed copy {executed} of a run that ended well "
            f"in the profile {profile}: run 'python -m mle_rl notebooks --profile {profile} "
            f"--only {notebook.stem}' first."
        )
    now = nbformat.read(notebook, as_version=4)
    if [cell.source for cell in _code(done)] != [cell.source for cell in _code(now)]:
        raise MleRlError(
            f"The code of notebook {notebook.stem} has changed since it was executed (or it was "
            "executed with other parameters): execute it again, then take over its outputs."
        )
    for cell, executed_cell in zip(_code(now), _code(done), strict=True):
        cell.outputs = executed_cell.outputs
    try:
        write_notebook(stripped(now), notebook)
    except OSError as error:
        raise MleRlError(
            f"The notebook {notebook} cannot be written ({error.strerror}): take its outputs over "
            "in a checkout where you may write."
        ) from None


def _code(content: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in content.cells if cell.cell_type == "code"]


def write_notebook(content: NotebookNode, path: Path) -> None:
    """Write a notebook as the repository keeps it: one space of indent, one newline at the end."""
    nbformat.validate(content)
    text = nbformat.writes(content, version=4, indent=1, ensure_ascii=False, sort_keys=True)
    write_whole(path, text.rstrip("\n") + "\n")


def _stripped_output(output: NotebookNode) -> NotebookNode | None:
    if output.output_type == "stream":
        output.text = _impersonal(_without_progress_bars(output.text))
        return output if output.text.strip() else None
    if output.output_type == "error":
        raise MleRlError("A notebook that shows an error cannot be committed: mend it first.")
    if WIDGET_VIEW in output.data:
        return None
    output.data = {kind: output.data[kind] for kind in KEPT_TYPES if kind in output.data}
    output.data = {
        kind: value if kind == "image/png" else _impersonal("".join(value))
        for kind, value in output.data.items()
    }
    output.metadata = {}
    if output.output_type == "execute_result":
        output.execution_count = None
    return output


def _without_progress_bars(text: str) -> str:
    """What is left on a terminal: a carriage return takes the cursor back over its line."""
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


def _impersonal(text: str) -> str:
    machine = {
        str(project_root()): ".",
        str(Path.home()): "~",
        platform.node(): "localhost",
        platform.release(): "",
    }
    for name, shown in machine.items():
        if name:
            text = re.sub(rf"{re.escape(name)}(?!\w)", shown, text)
    return re.sub(r" at 0x[0-9a-f]+", "", text)
