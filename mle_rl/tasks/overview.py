"""One table of the whole suite."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from mle_rl.tasks.grading import read_answers
from mle_rl.tasks.leaderboards import leaderboard
from mle_rl.tasks.loading import load, names
from mle_rl.tasks.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd


def describe(data_dir: str | Path | None = None) -> pd.DataFrame:
    """The competitions of the suite, one row each, with what people ask first.

    Columns: ``task``, ``kind``, ``metric``, ``better``, ``train``, ``reward`` and ``final`` (rows),
    ``programs``, ``median_score``, ``best_known``, ``best_program`` (all on the reward split),
    ``median_duration_s`` and ``best_duration_s``.
    """
    import pandas as pd

    return pd.DataFrame([_row(name, data_dir) for name in names()])


def _row(name: str, data_dir: str | Path | None) -> dict[str, object]:
    task = load(name, data_dir)
    board = leaderboard(task)
    rows = read_answers(task).rows
    return {
        "task": task.id,
        "kind": task.kind,
        "metric": METRICS[task.metric].title,
        "better": "higher" if task.higher_is_better else "lower",
        "train": _count_rows(task.public_dir / "train.csv"),
        "reward": len(rows["reward"]),
        "final": len(rows["final"]),
        "programs": len(board.entries),
        "median_score": board.median_score,
        "best_known": board.scores[0],
        "best_program": board.best.program,
        "median_duration_s": board.median_duration_s,
        "best_duration_s": board.best.duration_s,
    }


def _count_rows(path: Path) -> int:
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in csv.reader(file)) - 1
