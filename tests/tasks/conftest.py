"""A competition of a few rows, built by hand, and the data folder that real ones share."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mle_rl.tasks import Task, load_folder

MakeTask = Callable[..., Task]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Writes a prepared competition whose answers are given as rows and loads it."""

    def make(
        metric: str,
        answers: Sequence[Sequence[str]],
        columns: Sequence[str] = ("id", "target", "split"),
        train: Sequence[Sequence[str]] = (),
        name: str = "toy",
    ) -> Task:
        folder = tmp_path / name
        public, private = folder / "prepared" / "public", folder / "prepared" / "private"
        public.mkdir(parents=True)
        private.mkdir(parents=True)
        visible = [c for c in columns if c != "split"]
        _write(public / "sample_submission.csv", visible, [])
        _write(private / "test.csv", columns, answers)
        if train:
            _write(public / "train.csv", visible, train)
        return load_folder(folder, metric)

    return make


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests build real competitions, once per session."""
    return tmp_path_factory.mktemp("tasks")
