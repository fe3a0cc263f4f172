"""How likely a live queue that drops what is stale keeps a rollout, from recorded times.

The closed form of :func:`mle_rl.rollout.inclusion.drop_stale_probability` assumes that rollouts are
dispatched at uniform moments of an update. The live driver dispatches only while the learner asks
for a batch, never while it trains: a rollout begins right before an update, or waits for a worker
first, and the closed form is far off as soon as training takes a good part of the time.

What is known instead, for every rollout of earlier versions and whatever became of it: when it
began, and when one of its version had to have finished at the latest, which is when the last batch
that could use it was complete. The difference is the longest program that its place could have
held. Actions are drawn after the place is given, so a program of ``d`` seconds is kept with the
share of places that could hold it, the empirical survival function of that difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mle_rl.records import Rollout
from mle_rl.rollout.config import QueueConfig
from mle_rl.rollout.ledger import Ledger

RECENT = 8
"""Model versions whose places are counted: the pace of a run changes as programs get slower."""


def kept_probability(
    ledger: Ledger, config: QueueConfig, rollouts: Sequence[Rollout], version: int
) -> np.ndarray:
    """P(kept) of trained rollouts under ``staleness="drop"``, shape (len(rollouts),).

    ``(1 + places that could hold it) / (1 + places)``: each rollout was kept itself, so none has
    probability 0, and before anything can have been dropped all have 1. What no place of late could
    hold is kept by luck or never; it has a probability near 0, and whoever divides by it needs a
    floor, as `DurationWeighting` has. What is never kept cannot be weighted at all.

    Args:
        ledger: Knows all rollouts, those of this batch as trained.
        config: The rule.
        rollouts: The batch.
        version: Model version that trains on it.
    """
    last_useful = range(version + 1 - RECENT, version + 1)
    ended = ledger.last_moments(last_useful, in_order_of_completion=config.ordering == "completion")
    dispatched_by = range(
        last_useful.start - config.max_staleness, last_useful.stop - config.max_staleness
    )
    longest = np.sort(
        [
            -np.inf if began is None else ended[by + config.max_staleness] - began
            for by, began in ledger.starts(dispatched_by)
        ]
    )
    took = np.array([r.finished_at - r.started_at for r in rollouts])
    could_hold = len(longest) - np.searchsorted(longest, took)
    return (1 + could_hold) / (1 + len(longest))
