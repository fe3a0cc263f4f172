"""Execute the numbered notebooks in order, each in a fresh kernel, and say how far they are.

What a run leaves lies in the results folder of its profile: figures and tables in a folder per
notebook, executed copies in ``executed/``. In the smoke profile everything goes to a temporary
folder, which is removed unless a notebook failed: its executed copy is there to be read.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import nbformat
from nbclient.exceptions import CellExecutionError, DeadKernelError

from mle_rl import notebook_parameters
from mle_rl.errors import MleRlError
from mle_rl.notebook import checkout_results, project_root, results_folder, write
from mle_rl.notebook_kernel import KernelClient, drive
from mle_rl.notebook_outputs import MARK, first_widget_error, read_completed

_LIBRARY = Path(__file__).parent


@dataclass(frozen=True)
class Settings:
    """How to run notebooks.

    Attributes:
        profile: Passed to the notebooks as ``MLE_RL_PROFILE``.
        results: Folder of this profile; notebooks get it as ``MLE_RL_RESULTS``.
        resume: Leave out notebooks that were executed before with the same content, library and
            recorded results.
        parameters: Values that replace those of the cell tagged ``parameters``.
    """

    profile: str
    results: Path
    resume: bool = False
    parameters: Mapping[str, object] = field(default_factory=dict)

    def executed(self, notebook: Path) -> Path:
        """Where the executed copy of a notebook lies."""
        return self.results / "executed" / notebook.name


def find(folder: Path | None = None, only: Sequence[str] = ()) -> list[Path]:
    """The numbered notebooks of a folder in order, or those whose names begin with ``only``.

    Raises:
        MleRlError: No such folder or notebook.
    """
    folder = folder or project_root() / "notebooks"
    found = sorted(folder.glob("[0-9][0-9]*_*.ipynb"))
    if not found:
        raise MleRlError(
            f"There are no numbered notebooks in {folder}: run from a checkout of the project."
        )
    missing = [prefix for prefix in only if not any(p.name.startswith(prefix) for p in found)]
    if missing:
        names = ", ".join(path.stem for path in found)
        raise MleRlError(f"No notebook begins with {missing[0]!r}. Known: {names}.")
    return [path for path in found if not only or path.name.startswith(tuple(only))]


def run(notebooks: Iterable[Path], profile: str, *, resume: bool = False, parameters=()) -> None:
    """Execute notebooks in order; stop at the first that fails.

    Raises:
        MleRlError: A notebook has not all the parameters, or not of the kind that is given, before
            the first one is executed; or a cell failed, a widget shows an error, a kernel died, or
            the results folder cannot be written. Names the notebook, the cell, the error, and the
            executed copy.
        KeyboardInterrupt: Says what is kept.
    """
    notebooks, parameters = list(notebooks), dict(parameters)
    for path in notebooks if parameters else ():
        notebook_parameters.check(parameters, path)
    results = results_folder(profile)
    # By profile, not by place: a checkout may itself lie in the temporary folder.
    temporary = profile == "smoke" and not os.environ.get("MLE_RL_RESULTS")
    settings = Settings(profile, results, resume, parameters)
    start = time.monotonic()
    try:
        for position, path in enumerate(notebooks, 1):
            execute(path, settings, Progress(f"[{position}/{len(notebooks)}] {path.stem}"))
    except KeyboardInterrupt as interrupt:
        kept = "what was finished is kept, and --resume goes on from there"
        if temporary:
            shutil.rmtree(results)
            kept = "nothing is kept: MLE_RL_RESULTS names no folder, and the profile is smoke"
        raise KeyboardInterrupt(f"{str(interrupt) or 'Interrupted'}; {kept}.") from None
    figures = len(list(results.glob("*/*.png")))
    took = clock(time.monotonic() - start)
    if temporary:
        shutil.rmtree(results)
        print(f"{len(notebooks)} notebooks in {took}; {figures} figures were made and removed.")
    else:
        print(f"{len(notebooks)} notebooks in {took}; {figures} figures are in {results}")


def execute(path: Path, settings: Settings, progress: Progress) -> None:
    """Execute one notebook in a fresh kernel and keep the executed copy, marked at the end."""
    content = _read(path, settings.parameters)
    content.metadata.pop(MARK, None)
    digest = fingerprint(content, _recorded(settings.results))
    copy = settings.executed(path)
    if settings.resume and _was_executed(copy, digest, settings.profile):
        progress.done("unchanged since it was executed, left out")
        return
    _save(content, copy)
    client = KernelClient(
        content,
        kernel_name="python3",
        timeout=None,
        resources={"metadata": {"path": str(path.parent)}},
        startup_timeout=180,
        progress=progress,
    )
    progress.cells = sum(cell.cell_type == "code" for cell in content.cells)
    try:
        drive(client, _environment(settings), progress)
    except (CellExecutionError, RuntimeError) as error:
        raise _failure(path, content, progress.cell, error, copy) from None
    finally:
        _save(content, copy)
    if problem := first_widget_error(content):
        raise MleRlError(
            f"Notebook {path.stem} shows an error inside a widget: {problem}. Call the function "
            f"under the slider once in a cell of its own; the executed copy is {copy}."
        )
    content.metadata[MARK] = {"fingerprint": digest, "profile": settings.profile}
    _save(content, copy)
    progress.done(f"{progress.cells} cells in {progress.elapsed}")


def fingerprint(content: nbformat.NotebookNode, recorded: Sequence[Path] = ()) -> str:
    """What ``resume`` compares: a digest of a notebook's sources and of all that they rest on.

    Args:
        content: The notebook.
        recorded: Files of results that notebooks read. Every file of the library counts by itself:
            its code, the shipped weights, leaderboards and tables.
    """
    digest = hashlib.sha256()
    for cell in content.cells:
        digest.update(f"{cell.cell_type}\0{cell.source}\0".encode())
    library = [path for path in _LIBRARY.rglob("*") if "__pycache__" not in path.parts]
    for path in [*sorted(library), *recorded]:
        if path.is_file():
            named = path.relative_to(_LIBRARY) if path.is_relative_to(_LIBRARY) else path.name
            digest.update(f"{named}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _recorded(results: Path) -> list[Path]:
    """What the full profile recorded: the notebooks of every profile show it where it is there.

    Not for a run that writes them itself: after each of its notebooks all would count as changed.
    """
    full = checkout_results()
    if full == results:
        return []
    return sorted(path for path in full.rglob("*") if path.suffix in (".csv", ".json"))


class Progress:
    """One line per notebook: cells done, time, and the last line that the running cell printed.

    On a terminal the line is redrawn every second; in a log it is repeated every minute.
    """

    def __init__(self, title: str, stream: TextIO | None = None):
        self.title = title
        self.stream = stream or sys.stdout
        self.cells = self.cell = 0
        self.last_line = ""
        self._start = self._shown = time.monotonic()
        self._terminal = self.stream.isatty()

    @property
    def elapsed(self) -> str:
        """Minutes and seconds since this notebook began."""
        return clock(time.monotonic() - self._start)

    def tick(self) -> None:
        """Show the state if it is time to."""
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{self._state()[:width]:<{width}}", end="", file=self.stream, flush=True)
        elif time.monotonic() - self._shown >= 60:
            self._shown = time.monotonic()
            print(self._state(), file=self.stream, flush=True)

    def done(self, text: str) -> None:
        """The last line about this notebook."""
        clear = "\r\x1b[K" if self._terminal else ""
        print(f"{clear}{self.title}: {text}", file=self.stream, flush=True)

    def _state(self) -> str:
        state = f"{self.title}: cell {self.cell}/{self.cells}, {self.elapsed}"
        return f"{state}: {self.last_line}" if self.last_line else state


def _environment(settings: Settings) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    return environment | {
        "MLE_RL_PROFILE": settings.profile,
        "MLE_RL_RESULTS": str(settings.results),
        "OMP_NUM_THREADS": "1",  # setup() sets the threads; this holds for what loads before it
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _read(path: Path, parameters: Mapping[str, object]) -> nbformat.NotebookNode:
    if not parameters:
        return nbformat.read(path, as_version=4)
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    content = load_notebook_node(str(path))
    return parameterize_notebook(
        content, dict(parameters), kernel_name="python3", language="python"
    )


def _was_executed(copy: Path, digest: str, profile: str) -> bool:
    done = read_completed(copy)
    return done is not None and done.metadata[MARK] == {"fingerprint": digest, "profile": profile}


def _save(content: nbformat.NotebookNode, copy: Path) -> None:
    write(copy, nbformat.writes(content) + "\n")


def _failure(path: Path, content, cell: int, error: Exception, copy: Path) -> MleRlError:
    where = "before its first cell"
    if cell:
        source = [each.source for each in content.cells if each.cell_type == "code"][cell - 1]
        where = f"in code cell {cell} ({source.strip().partition(chr(10))[0]!r})"
    if isinstance(error, CellExecutionError):
        said = (error.evalue.strip().splitlines() or [""])[-1]
        reason = f"{error.ename}: {said}" if said else error.ename
    elif isinstance(error, DeadKernelError):
        reason = "its kernel died, perhaps for lack of memory"
    else:
        reason = str(error)
    return MleRlError(
        f"Notebook {path.stem} failed {where}: {reason.rstrip('.')}. "
        f"The executed copy with the whole traceback is {copy}."
    )


def clock(seconds: float) -> str:
    """Seconds as ``m:ss``, or ``h:mm:ss`` from an hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
