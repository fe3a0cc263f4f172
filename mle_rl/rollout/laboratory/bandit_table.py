"""The bandit under every collection rule with every weighting: the table, and curves.

    python -m mle_rl.rollout.laboratory.bandit_table

prints the table of ten seeds and sets it beside an earlier implementation; about three minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from mle_rl.analysis.statistics import bootstrap_interval
from mle_rl.errors import unknown_name
from mle_rl.rollout.laboratory.bandit import COLUMNS, FIXED_SCALE, Bandit, Outcome, run
from mle_rl.rollout.queue import QueueConfig

_KEEP = {"staleness": "keep", "ordering": "completion"}
_STICKY = {**_KEEP, "worker_rule": "sticky", "sticky_window_s": 24.0}

ROWS: dict[str, dict] = {
    "synchronous, wait for all": {"max_staleness": 0, "ordering": "completion"},
    "asynchronous, keep all": _KEEP,
    "drop stale, 4 updates": {"staleness": "drop", "max_staleness": 4, "ordering": "completion"},
    "drop stale, 20 updates": {"staleness": "drop", "max_staleness": 20, "ordering": "completion"},
    "admission control, 4, oldest first": {"max_staleness": 4},
    "admission control, 4, strict order": {
        "max_staleness": 4,
        "ordering": "window",
        "order_window": 1,
    },
    "over-provision 1.5x, abort": {**_KEEP, "over_provision": 1.5},
    "over-provision 1.5x, recycle": {**_KEEP, "over_provision": 1.5, "unfinished": "recycle"},
    "restart window, 8 s": {**_KEEP, "restart_window_s": 8.0},
    "sticky, a window of 24 s is a batch": {**_STICKY, "restart_window_s": 24.0},
    "sticky, 24 s, 64 at a time": _STICKY,
}
"""Collection rules, the rows of the table, as settings of the queue."""

REFERENCE: dict[tuple[str, str], float] = {
    ("synchronous, wait for all", "none"): 0.995,
    ("synchronous, wait for all", "duration"): 0.926,
    ("synchronous, wait for all", "reward rate"): 0.499,
    ("asynchronous, keep all", "none"): 0.994,
    ("asynchronous, keep all", "duration"): 0.929,
    ("asynchronous, keep all", "importance ratio"): 0.994,
    ("drop stale, 4 updates", "none"): 0.700,
    ("drop stale, 4 updates", "duration"): 0.934,
    ("drop stale, 4 updates", "inclusion"): 0.842,
    ("drop stale, 20 updates", "none"): 0.994,
    ("admission control, 4, oldest first", "none"): 0.994,
    ("over-provision 1.5x, abort", "none"): 0.504,
    ("over-provision 1.5x, abort", "duration"): 0.505,
    ("restart window, 8 s", "none"): 0.698,
    ("restart window, 8 s", "duration"): 0.690,
    ("sticky, a window of 24 s is a batch", "none"): 0.507,
    ("sticky, a window of 24 s is a batch", "duration"): 0.995,
}
"""Final E[R] of an independent earlier implementation of the same experiment, 10 seeds. Its
admission row was not bounded in capacity: it took whatever was ready, sorted by dispatch."""


_run = lru_cache(maxsize=2048)(run)  # table and curves share runs; one is the same every time


def table(bandit: Bandit | None = None, **chosen) -> pd.DataFrame:
    """The four-arm table in one call: collection rules as rows, weightings as columns.

    Args:
        bandit: The problem.
        **chosen: ``rows``, ``columns``, ``seeds`` (ten by default) and ``progress`` of
            :func:`runs`.

    Returns:
        Final E[R] in words, mean over seeds and its 95 % interval; empty where the weighting has no
        meaning under the rule.
    """
    return in_words(summarise(runs(bandit, **chosen), rng=np.random.default_rng(0)))


def in_words(cells: pd.DataFrame) -> pd.DataFrame:
    """The rows of :func:`summarise` as a table of rules by weightings."""
    text = [f"{c.mean:.3f} [{c.low:.3f}, {c.high:.3f}]" for c in cells.itertuples(name="Cell")]
    wide = cells.assign(text=text).pivot(index="rule", columns="weighting", values="text")
    columns = [c for c in (*COLUMNS, FIXED_SCALE) if c in wide]
    return wide.loc[cells.rule.unique(), columns].fillna("")


def runs(
    bandit: Bandit | None = None,
    *,
    rows: Iterable[str] = tuple(ROWS),
    columns: Sequence[str] = COLUMNS,
    seeds: Iterable[int] = range(10),
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """The experiment: every rule with every weighting that has a meaning under it.

    Args:
        bandit: The problem.
        rows: Names of rules, keys of :data:`ROWS`.
        columns: Names of weightings, of :data:`COLUMNS`.
        seeds: One run per seed.
        progress: Called with a line of text after each row.

    Returns:
        One row per run: rule, weighting, seed, final ``expected_reward``, ``p_best`` (probability
        of the best arm), ``reached_at`` and ``reached_s`` (update and virtual time at which E[R]
        first passed 0.9; NaN if never), ``elapsed_s``, ``dropped``, ``staleness``.
    """
    bandit, seeds = bandit or Bandit(), tuple(seeds)
    records = []
    for row in rows:
        if row not in ROWS:
            raise unknown_name("collection rule of the bandit", row, ROWS)
        config = config_of(bandit, row)
        for column in columns:
            if column == "inclusion" and config.in_rounds and config.unfinished == "abort":
                continue
            for seed in seeds:
                outcome = _run(bandit, config, column, seed)
                records.append(
                    {"rule": row, "weighting": column, "seed": seed, **_record(bandit, outcome)}
                )
        if progress:
            progress(row)
    return pd.DataFrame(records)


def summarise(
    results: pd.DataFrame, value: str = "expected_reward", *, rng: np.random.Generator
) -> pd.DataFrame:
    """Mean over seeds of every cell with its 95 % bootstrap interval.

    The mean, not the interquartile mean: some cells are lotteries between two outcomes, and which
    share of seeds wins is the point.

    Returns:
        One row per cell: ``rule``, ``weighting``, ``mean``, ``low``, ``high``, ``seeds``, ``least``
        and ``most`` (over seeds), ``reference`` (NaN where there is none).
    """
    rows = []
    for (rule, weighting), cell in results.groupby(["rule", "weighting"], sort=False):
        interval = bootstrap_interval(cell[value].to_numpy(), np.mean, rng=rng)
        rows.append(
            {
                "rule": rule,
                "weighting": weighting,
                "mean": interval.point,
                "low": interval.low,
                "high": interval.high,
                "seeds": len(cell),
                "least": cell[value].min(),
                "most": cell[value].max(),
                "reference": REFERENCE.get((rule, weighting), math.nan),
            }
        )
    return pd.DataFrame(rows)


def learning_curves(
    bandit: Bandit,
    pairs: Sequence[tuple[str, str]],
    *,
    seeds: Iterable[int],
    rng: np.random.Generator,
    every: int = 5,
) -> pd.DataFrame:
    """E[R] after every few updates, with the times at which they were made.

    Args:
        bandit: The problem.
        pairs: Rule and weighting of each curve.
        seeds: One run per seed.
        rng: Source of the bootstrap.
        every: Updates between two points.

    Returns:
        Columns ``run``, ``update``, ``hours`` and ``execution_hours`` (means over seeds), ``mean``,
        ``low``, ``high`` (95 % interval over seeds).
    """
    frames = []
    for row, weighting in pairs:
        runs = [_run(bandit, config_of(bandit, row), weighting, seed) for seed in seeds]
        rewards = np.stack([r.expected_reward for r in runs])
        at = np.unique(np.r_[0 : bandit.updates : every, bandit.updates - 1])
        samples = [
            bootstrap_interval(rewards[:, update], np.mean, rng=rng, repeats=300) for update in at
        ]
        hours = np.mean([r.updated_at_s for r in runs], axis=0) / 3600
        executed = np.mean([r.executed_s for r in runs], axis=0) / 3600
        frames.append(
            pd.DataFrame(
                {
                    "run": f"{row}; weight: {weighting}",
                    "update": at + 1,
                    "hours": hours[at],
                    "execution_hours": executed[at],
                    "mean": [s.point for s in samples],
                    "low": [s.low for s in samples],
                    "high": [s.high for s in samples],
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def config_of(bandit: Bandit, row: str) -> QueueConfig:
    """The queue of a row of the table."""
    return QueueConfig(workers=bandit.workers, batch_size=bandit.batch_size, **ROWS[row])


def _record(bandit: Bandit, outcome: Outcome) -> dict[str, float]:
    curve = outcome.expected_reward
    reached = np.flatnonzero(curve > 0.9)
    at = reached[0] if len(reached) else None
    return {
        "expected_reward": float(curve[-1]),
        "p_best": float(outcome.policy[int(np.argmax(bandit.rewards))]),
        "reached_at": math.nan if at is None else float(at + 1),
        "reached_s": math.nan if at is None else float(outcome.updated_at_s[at]),
        "elapsed_s": float(outcome.updated_at_s[-1]),
        "dropped": outcome.dropped,
        "staleness": outcome.staleness,
    }


def agreement(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that have a reference, and whether it lies within the spread over seeds.

    Returns:
        ``rule``, ``weighting``, ``mean``, ``least``, ``most``, ``reference``, ``difference``, and
        ``within``: the reference is between the least and the most of the seeds, give or take one
        unit of its last digit, because it is a rounded mean with a spread of its own.
    """
    known = cells.dropna(subset="reference")
    unit = 1e-3
    within = (known.least - unit <= known.reference) & (known.reference <= known.most + unit)
    known = known.assign(difference=known["mean"] - known.reference, within=within)
    columns = ["rule", "weighting", "mean", "least", "most", "reference", "difference", "within"]
    return known[columns].reset_index(drop=True)


if __name__ == "__main__":
    cells = summarise(runs(progress=print), rng=np.random.default_rng(0))
    print(in_words(cells).to_string(), agreement(cells).round(3).to_string(index=False), sep="\n\n")
