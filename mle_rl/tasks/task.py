"""A competition on disk, in the folder layout of MLE-bench.

::

    <id>/prepared/public/    description.md, train.csv, test.csv, sample_submission.csv, ...
    <id>/prepared/private/   the answers; never visible to a program

The rows of ``test.csv`` belong in secret to the *reward* split, whose score trains the policy, or
to the *final* split, which is scored for reporting only. Only the private answers know which.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mle_rl.errors import MleRlError, unknown_name
from mle_rl.tasks.metrics import METRICS

Kind = Literal["text", "image", "table"]

_USUAL_ANSWERS = ("test.csv", "answers.csv")


@dataclass(frozen=True)
class Task:
    """What is to be solved, and where its files are.

    Attributes:
        id: Name of the competition, and of its folder.
        title: Name for people.
        kind: ``"text"``, ``"image"`` or ``"table"``.
        metric: Key in ``mle_rl.tasks.metrics.METRICS``.
        folder: The folder ``<id>`` that holds ``prepared/``.
        description: The competition's page, Markdown.
        submission_columns: Columns that a submission needs; the first one is the id.
        answers_path: The private CSV with the answers.
        fingerprint: SHA-256 of every prepared file; executions are recorded under it.
        ignored_columns: Columns that a submission may have besides, as its sample has them.
    """

    id: str
    title: str
    kind: Kind
    metric: str
    folder: Path
    description: str
    submission_columns: tuple[str, ...]
    answers_path: Path
    fingerprint: str
    ignored_columns: tuple[str, ...] = ()

    @property
    def higher_is_better(self) -> bool:
        """Direction of the metric."""
        return METRICS[self.metric].higher_is_better

    @property
    def public_dir(self) -> Path:
        """What a program sees as ``./input``."""
        return self.folder / "prepared" / "public"

    @property
    def private_dir(self) -> Path:
        """The answers."""
        return self.folder / "prepared" / "private"


def load_folder(
    path: str | Path,
    metric: str,
    *,
    kind: Kind = "table",
    title: str | None = None,
    columns: tuple[str, ...] | None = None,
    sample: str | None = None,
    answers: str | None = None,
) -> Task:
    """Loads a competition folder, whether MLE-bench or this package prepared it.

    Competitions differ in their file names, so the sample submission and the answers are found by
    looking: the public CSV whose name starts with "sample", and the private CSV with its columns
    (``test.csv`` or ``answers.csv`` where several have). Where that is not enough, name the file.

    Args:
        path: The folder ``<id>`` that holds ``prepared/public`` and ``prepared/private``.
        metric: Name in ``METRICS``; MLE-bench keeps it in code, not on disk.
        kind: What the inputs are.
        title: Name for people; the id by default.
        columns: The id column and the columns to predict, where they are not those of the sample
            submission in its order, as in detecting-insults: ``("Comment", "Insult")``.
        sample: File name of the sample submission, relative to ``prepared/public``.
        answers: File name of the answers, relative to ``prepared/private``.

    Raises:
        MleRlError: For a folder that is not a prepared competition, or an ambiguous one.
    """
    folder = Path(path)
    public, private = folder / "prepared" / "public", folder / "prepared" / "private"
    if metric not in METRICS:
        raise unknown_name("metric", metric, METRICS)
    for needed in (public, private):
        if not needed.is_dir():
            raise MleRlError(
                f"{folder} is not a prepared competition: it has no folder "
                f"{needed.relative_to(folder)}. Prepare it, or pass the folder above 'prepared'."
            )
    sample_path = _find(public, sample, "sample submission", _sample_candidates(public))
    header = read_header(sample_path)
    columns = columns or header
    answers_path = _find(private, answers, "answers file", _with_columns(private, columns))
    page = public / "description.md"
    return Task(
        id=folder.name,
        title=title or folder.name,
        kind=kind,
        metric=metric,
        folder=folder,
        description=page.read_text(encoding="utf-8") if page.is_file() else "",
        submission_columns=columns,
        answers_path=answers_path,
        fingerprint=fingerprint(folder / "prepared"),
        ignored_columns=tuple(name for name in header if name not in columns),
    )


def fingerprint(prepared: Path) -> str:
    """SHA-256 over the names and the bytes of all files below a folder, in sorted order."""
    files = sorted((p for p in prepared.rglob("*") if p.is_file()), key=lambda p: p.as_posix())
    return hash_files((p.relative_to(prepared).as_posix(), p.read_bytes()) for p in files)


def hash_files(files: Iterable[tuple[str, bytes]]) -> str:
    """SHA-256 over names, lengths and contents, so that pairs cannot run together."""
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def read_header(path: Path) -> tuple[str, ...]:
    """The first record of a CSV file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return tuple(next(csv.reader(file), ()))


def _sample_candidates(public: Path) -> list[Path]:
    return [p for p in sorted(public.glob("*.csv")) if p.name.lower().startswith("sample")]


def _with_columns(private: Path, columns: tuple[str, ...]) -> list[Path]:
    return [p for p in sorted(private.rglob("*.csv")) if set(columns) <= set(read_header(p))]


def _find(folder: Path, named: str | None, what: str, candidates: list[Path]) -> Path:
    if named is not None:
        if not (folder / named).is_file():
            raise MleRlError(f"There is no {what} {named!r} in {folder}.")
        return folder / named
    usual = [p for p in candidates if p.name in _USUAL_ANSWERS]
    for found in (candidates, usual):
        if len(found) == 1:
            return found[0]
    found = ", ".join(p.name for p in candidates) or "none"
    raise MleRlError(f"Expected one {what} in {folder}, found {found}. Name it explicitly.")
