"""Several tasks together: percentiles of the leaderboards, and RL against each other method.

Metrics differ, so what is averaged over tasks is the percentile that a method reaches on the final
leaderboard of each. The intervals are Student's: with a handful of tasks a bootstrap would be too
narrow. They hold what seeds add, too, where each task was searched with one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from mle_rl import tasks
from mle_rl.errors import MleRlError
from mle_rl.search.methods import METHODS
from mle_rl.search.recorded import Recorded
from mle_rl.search.summary import equal_time

_COLUMNS = ["method", "tasks", "percentile", "low", "high", "better", "worse"]
_COLUMNS += ["difference", "difference_low", "difference_high"]


def standing(found: Mapping[str, Recorded]) -> pd.DataFrame:
    """Where each method stands on each task when its time is over.

    Args:
        found: Comparisons by task.

    Returns:
        One row per task and method: task, method, percentile (on the final leaderboard, of the
        program that is best on the reward split; mean over seeds, 0 for a seed without a valid
        program, which has nothing to hand in) and rank (by the mean final score, from 1; last with
        such a seed).

    Raises:
        MleRlError: There is no comparison.
    """
    if not found:
        raise MleRlError("No comparison is recorded: run `python -m mle_rl compare` first.")
    return pd.concat([_of_task(*each) for each in found.items()], ignore_index=True)


def over_tasks(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `standing` by method; the first method, RL where it took part, against the others.

    Args:
        table: Of `standing`. Only tasks that have every method count.

    Returns:
        One row per method, in the order of `METHODS`: tasks, percentile (mean over tasks), low,
        high; then ``better`` and ``worse`` (tasks on which the final score of the first method is
        better and worse than that of this one), ``difference`` (percentile of the first less this
        one, mean over tasks), difference_low and difference_high. 95 % intervals, NaN for one task.
        No differences in the first row.

    Raises:
        MleRlError: No task has every method.
    """
    wide = table.pivot(index="task", columns="method", values=["percentile", "rank"]).dropna()
    if wide.empty:
        raise MleRlError("No task has all of the methods: give every comparison the same ones.")
    percentile, rank = wide["percentile"], wide["rank"]
    methods = [name for name in METHODS if name in percentile]
    rows = []
    for method in methods:
        row = {"method": method, "tasks": len(wide)}
        row |= _interval("percentile", percentile[method], "")
        if method != methods[0]:
            row["better"] = (rank[methods[0]] < rank[method]).sum()
            row["worse"] = (rank[methods[0]] > rank[method]).sum()
            apart = percentile[methods[0]] - percentile[method]
            row |= _interval("difference", apart, "difference_")
        rows.append(row)
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"better": "Int64", "worse": "Int64"})


def _of_task(name: str, comparison: Recorded) -> pd.DataFrame:
    task = tasks.load(name)
    board = tasks.leaderboard(task, "final")
    searches = equal_time(
        comparison.programs, comparison.searches, higher_is_better=task.higher_is_better
    )
    reached = [0.0 if np.isnan(s) else board.percentile(s) for s in searches.final_score]
    by_method = searches.assign(percentile=reached).groupby("method", sort=False)
    scores = by_method.final_score.agg(lambda scores: scores.mean(skipna=False))
    ranks = scores.rank(ascending=not task.higher_is_better, method="min", na_option="bottom")
    found = pd.DataFrame({"percentile": by_method.percentile.mean(), "rank": ranks})
    return found.reset_index().assign(task=name)[["task", "method", "percentile", "rank"]]


def _interval(name: str, values: pd.Series, prefix: str) -> dict[str, float]:
    """Mean over tasks with its 95 % interval (Student's t)."""
    half = np.nan
    if len(values) > 1:
        half = stats.t.ppf(0.975, len(values) - 1) * values.sem()
    mean = values.mean()
    return {name: mean, f"{prefix}low": mean - half, f"{prefix}high": mean + half}
