"""Turn examples into a prepared competition: the same bytes on every machine.

No random generator is involved, whose stream could change between versions: every order and every
draw is a ranking by SHA-256 of the example's own content. Numbers are written as the source spells
them. A folder appears under its name only when it is complete (it is renamed into place).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.tasks.metrics import METRICS
from mle_rl.tasks.task import Kind, hash_files


@dataclass(frozen=True)
class Example:
    """One labelled example before it has an id.

    Attributes:
        features: Cells of the input columns, as text.
        target: The label or value, as text.
        group: Examples of one group (a file, a family) never lie on both sides of a split.
        stratum: Each stratum gives the same number of rows to train and to test.
        pixels: ``uint8`` array ``(H, W, C)`` for image tasks.
    """

    features: tuple[str, ...]
    target: str
    group: str
    stratum: str = ""
    pixels: np.ndarray | None = None

    @property
    def input(self) -> tuple[tuple[str, ...], bytes]:
        """All that a prediction can rest on: features and pixels."""
        return self.features, b"" if self.pixels is None else self.pixels.tobytes()

    def rank(self, salt: str) -> str:
        """A hexadecimal number that looks random and depends on the content alone."""
        features, pixels = self.input
        text = "\x1f".join((salt, self.group, self.target, *features))
        return hashlib.sha256(text.encode() + pixels).hexdigest()


def distinct(examples: Iterable[Example]) -> list[Example]:
    """Those whose input no other example has: they could lie on both sides of a split."""
    examples = list(examples)
    count = Counter(example.input for example in examples)
    return [example for example in examples if count[example.input] == 1]


@dataclass(frozen=True)
class Competition:
    """How to build one competition of the offline suite.

    Attributes:
        id: Folder name.
        title: Name for people.
        kind: ``"text"``, ``"image"`` or ``"table"``.
        metric: Key in ``METRICS``.
        target: Column to predict.
        features: Input columns, without the id.
        id_prefix: Letter before the number in an id, so that no reader takes ids for numbers.
        train_rows, test_rows: Rows per stratum; half of the test rows are the reward split.
        sample_predictions: What the sample submission predicts, in turn; none for probabilities.
        sources: Distributions whose installed files the data come from.
        examples: Reads the source data.
        page: Markdown page; ``{n_train}``, ``{n_test}`` and ``{classes}`` are filled in.
    """

    id: str
    title: str
    kind: Kind
    metric: str
    target: str
    features: tuple[str, ...]
    id_prefix: str
    train_rows: int
    test_rows: int
    sample_predictions: tuple[str, ...]
    sources: tuple[str, ...]
    examples: Callable[[], list[Example]]
    page: str

    def versions(self) -> dict[str, str]:
        """Installed versions of the sources."""
        return {name: metadata.version(name) for name in self.sources}


def build(competition: Competition, folder: Path) -> None:
    """Writes ``<folder>/prepared`` and ``<folder>/manifest.json``, whole or not at all.

    Raises:
        MleRlError: When the folder cannot be written, or the installed sources hold too little.
    """
    files = prepare(competition)
    manifest = {
        "id": competition.id,
        "sha256": hash_files(sorted(files.items())),
        "versions": competition.versions(),
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{competition.id}-", dir=folder.parent))
    except OSError as error:
        raise MleRlError(
            f"Cannot write task data below {folder.parent} ({error.strerror}). "
            "Make the folder writable or pass another data_dir."
        ) from None
    try:
        scratch.chmod(0o755)
        for name, content in files.items():
            path = scratch / "prepared" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (scratch / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
        _move_into_place(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _move_into_place(scratch: Path, folder: Path) -> None:
    try:
        os.rename(scratch, folder)
    except OSError as error:
        if (folder / "manifest.json").is_file():
            return  # another process has built the same bytes first
        raise MleRlError(
            f"Cannot put the task into {folder} ({error.strerror}). Delete that folder and retry."
        ) from None


def prepare(competition: Competition) -> dict[str, bytes]:
    """All files of a competition, by path below ``prepared/``."""
    train, reward, final = divide(competition)
    split_of = {id(e): name for name, part in (("reward", reward), ("final", final)) for e in part}
    test = reward + final
    ids = _assign_ids(competition, train + test)
    train.sort(key=lambda e: ids[id(e)])
    test.sort(key=lambda e: ids[id(e)])

    classes = sorted({e.target for e in train})
    columns = _submission_columns(competition, classes)
    inputs = ("id", *competition.features)

    def prediction(target: str) -> tuple[str, ...]:
        if METRICS[competition.metric].prediction != "distribution":
            return (target,)
        return tuple("1" if target == name else "0" for name in classes)

    files = {
        "public/train.csv": write_csv(
            (*inputs, competition.target), [(ids[id(e)], *e.features, e.target) for e in train]
        ),
        "public/test.csv": write_csv(inputs, [(ids[id(e)], *e.features) for e in test]),
        "public/sample_submission.csv": write_csv(
            columns, [(ids[id(e)], *_sample(competition, classes, n)) for n, e in enumerate(test)]
        ),
        "private/test.csv": write_csv(
            (*columns, "split"),
            [(ids[id(e)], *prediction(e.target), split_of[id(e)]) for e in test],
        ),
        "public/description.md": competition.page.format(
            n_train=len(train), n_test=len(test), classes=", ".join(f"`{c}`" for c in classes)
        ).encode(),
    }
    if competition.kind == "image":
        files["public/train_images.npy"] = _npy([e.pixels for e in train])
        files["public/test_images.npy"] = _npy([e.pixels for e in test])
    return files


def divide(competition: Competition) -> tuple[list[Example], list[Example], list[Example]]:
    """Splits the examples into train, reward and final; groups stay whole.

    Within a stratum, groups are walked in the order of their hash: the first fill the training
    rows, the next the test rows. Test groups then go, largest first, to the smaller hidden split.

    Raises:
        MleRlError: When a stratum has too few examples.
    """
    strata: dict[str, dict[str, list[Example]]] = defaultdict(lambda: defaultdict(list))
    for example in competition.examples():
        strata[example.stratum][example.group].append(example)
    train: list[Example] = []
    hidden: tuple[list[Example], list[Example]] = ([], [])
    for stratum, groups in sorted(strata.items()):
        order = iter(sorted(groups, key=lambda g: hashlib.sha256(g.encode()).hexdigest()))
        train += _fill(competition, groups, order, competition.train_rows, stratum)
        test = _fill(competition, groups, order, competition.test_rows, stratum)
        _share_out(test, hidden)
    return train, *hidden


def _fill(competition: Competition, groups, order, n_rows: int, stratum: str) -> list[Example]:
    rows: list[Example] = []
    for group in order:
        rows += sorted(groups[group], key=lambda e: e.rank(competition.id))
        if len(rows) >= n_rows:
            return rows[:n_rows]
    raise MleRlError(
        f"The installed {', '.join(competition.sources)} hold only {len(rows)} more examples "
        f"{f'of {stratum} ' if stratum else ''}for {competition.id}, {n_rows} are needed. "
        "Install the versions of constraints.txt."
    )


def _share_out(test: list[Example], hidden: tuple[list[Example], list[Example]]) -> None:
    by_group: dict[str, list[Example]] = defaultdict(list)
    for example in test:
        by_group[example.group].append(example)
    parts: tuple[list[Example], list[Example]] = ([], [])
    for group in sorted(by_group, key=lambda g: (-len(by_group[g]), _digest(g))):
        min(parts, key=len).extend(by_group[group])
    for whole, part in zip(hidden, parts, strict=True):
        whole.extend(part)


def _digest(text: str) -> str:
    return hashlib.sha256(f"hidden:{text}".encode()).hexdigest()


def _assign_ids(competition: Competition, examples: list[Example]) -> dict[int, str]:
    """Ids in an order that says nothing about label, group or split."""
    order = sorted(examples, key=lambda e: e.rank(f"{competition.id}:id"))
    return {id(e): f"{competition.id_prefix}{n:05d}" for n, e in enumerate(order)}


def _submission_columns(competition: Competition, classes: list[str]) -> tuple[str, ...]:
    if METRICS[competition.metric].prediction == "distribution":
        return ("id", *classes)
    return ("id", competition.target)


def _sample(competition: Competition, classes: list[str], row: int) -> tuple[str, ...]:
    if METRICS[competition.metric].prediction == "distribution":
        return (f"{1 / len(classes):.6f}",) * len(classes)
    return (competition.sample_predictions[row % len(competition.sample_predictions)],)


def write_csv(header: Sequence[str], rows: list[tuple[str, ...]]) -> bytes:
    """CSV bytes with Unix line ends."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue().encode()


def _npy(images: list[np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.stack(images))
    return buffer.getvalue()
