"""Several tasks together: where the methods stand on the leaderboards, and RL against each.

Metrics differ, so what is averaged is the share of a task's reference programs that a method beats
on the final split. Tasks are what is resampled: the intervals say how far the order of the methods
hangs on the choice of the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mle_rl import tasks
from mle_rl.analysis.statistics import bootstrap_interval
from mle_rl.errors import MleRlError
from mle_rl.search.methods import METHODS
from mle_rl.search.recorded import Recorded
from mle_rl.search.summary import equal_time

_COLUMNS = ["method", "tasks", "beaten", "low", "high", "ahead", "behind"]
_COLUMNS += ["difference", "difference_low", "difference_high"]


def standing(found: Mapping[str, Recorded]) -> pd.DataFrame:
    """Where each method stands on each task when its time is over.

    Args:
        found: Comparisons by task.

    Returns:
        One row per task and method: task, method, beaten (share of the leaderboard of the final
        split that the program beats which is best on the reward split, mean over seeds; 0 for a
        seed without a valid program, which has nothing to hand in).
    """
    rows = []
    for name, comparison in found.items():
        task = tasks.load(name)
        board = tasks.leaderboard(task, "final")
        searches = equal_time(
            comparison.programs, comparison.searches, higher_is_better=task.higher_is_better
        )
        beaten = [0.0 if np.isnan(s) else board.percentile(s) for s in searches.final_score]
        by_method = searches.assign(task=name, beaten=beaten).groupby("method", sort=False).beaten
        rows.append(by_method.mean().reset_index().assign(task=name))
    return pd.concat(rows, ignore_index=True)[["task", "method", "beaten"]]


def over_tasks(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of `standing` by method; the first method, RL where it took part, against the others.

    Args:
        table: Of `standing`. Only tasks that have every method count.
        rng: Source of the bootstrap.

    Returns:
        One row per method, in the order of `METHODS`: tasks, beaten (mean over tasks), low, high;
        then ``ahead`` and ``behind`` (tasks on which the first method is better and worse than this
        one), ``difference`` (the first minus this one, mean over tasks), difference_low and
        difference_high. Intervals: 95 %, bootstrapped over tasks, NaN for fewer than two. No
        differences in the first row.

    Raises:
        MleRlError: No task has every method.
    """
    shares = table.pivot(index="task", columns="method", values="beaten").dropna()
    shares = shares[[name for name in METHODS if name in shares]]
    if shares.empty:
        raise MleRlError("No task has all of the methods: give every comparison the same ones.")
    first, rows = shares.columns[0], []
    for method, mine in shares.items():
        row = {"method": method, "tasks": len(shares), **_interval("beaten", mine, rng)}
        if method != first:
            apart = shares[first] - mine
            row |= {"ahead": (apart > 0).sum(), "behind": (apart < 0).sum()}
            row |= _interval("difference", apart, rng, "difference_")
        rows.append(row)
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"ahead": "Int64", "behind": "Int64"})


def _interval(name: str, values: pd.Series, rng: np.random.Generator, prefix: str = "") -> dict:
    """Mean over tasks with its interval."""
    found = bootstrap_interval(values.to_numpy(), np.mean, rng=rng)
    several = len(values) > 1
    return {
        name: found.point,
        f"{prefix}low": found.low if several else np.nan,
        f"{prefix}high": found.high if several else np.nan,
    }
