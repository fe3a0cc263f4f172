"""Tables of the whole suite: its competitions, and its reference programs."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mle_rl.tasks.grading import read_answers
from mle_rl.tasks.leaderboards import anchors, leaderboard
from mle_rl.tasks.loading import load, names
from mle_rl.tasks.metrics import METRICS
from mle_rl.tasks.task import Task

if TYPE_CHECKING:
    import pandas as pd


def describe(chosen: Iterable[Task] | None = None) -> pd.DataFrame:
    """Competitions, one row each, with what people ask first.

    Args:
        chosen: Loaded competitions of the suite; all by default.

    Columns: ``task``, ``kind``, ``metric``, ``better``, ``train``, ``reward`` and ``final`` (rows),
    ``programs``, ``median_score``, ``best_reference`` (both on the reward split), ``best_program``
    (name of the latter), ``median_duration_s`` and ``best_duration_s``.
    """
    import pandas as pd

    chosen = map(load, names()) if chosen is None else chosen
    return pd.DataFrame([_row(task) for task in chosen])


def reference_table(data_dir: str | Path | None = None) -> pd.DataFrame:
    """All reference programs of the suite, one row each, best first within a task.

    Columns: ``task``, ``program``, ``reward_score``, ``final_score``, ``duration_s``, and ``gain``:
    the reward score on the scale that is 0 at the sample submission and 1 at the best reference
    program, whatever the direction of the metric.
    """
    import pandas as pd

    tables = []
    for name in names():
        task = load(name, data_dir)
        table = pd.DataFrame([vars(entry) for entry in leaderboard(task).entries])
        baseline, best = anchors(task)
        table.insert(0, "task", name)
        tables.append(table.assign(gain=(table["reward_score"] - baseline) / (best - baseline)))
    return pd.concat(tables, ignore_index=True)


def frontier(table: pd.DataFrame) -> pd.DataFrame:
    """The programs of one task that no faster program equals, fastest first.

    Args:
        table: Rows of :func:`reference_table` for one task.
    """
    by_time = table.sort_values(["duration_s", "gain"], ascending=[True, False])
    return by_time[by_time["gain"] > by_time["gain"].cummax().shift(fill_value=-float("inf"))]


def _row(task: Task) -> dict[str, object]:
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
        "best_reference": board.scores[0],
        "best_program": board.best.program,
        "median_duration_s": board.median_duration_s,
        "best_duration_s": board.best.duration_s,
    }


def _count_rows(path: Path) -> int:
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in csv.reader(file)) - 1
