"""Rows of the history, from a ledger that the test has filled."""

from dataclasses import replace

import pytest

from mle_rl.records import Execution, Outcome, Rollout
from mle_rl.rollout.collector import Batch
from mle_rl.rollout.ledger import Ledger
from mle_rl.training.history import History

DURATIONS = (1.0, 2.0, 30.0, 40.0)


def rollout(id):
    execution = Execution("ok", "", "", DURATIONS[id], DURATIONS[id], 1.0, "limits")
    return Rollout(
        id, "some-task", "scratch", "some-task/scratch", (2,), (3, 1), (-0.5, -0.5), 0, 0.0,
        started_at=0.0, finished_at=DURATIONS[id], execution=execution,
        outcome=Outcome((), True, 0.5, 0.5), reward=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(("dropped", "distance"), [((), 0.0), ((3,), 1 / 3), ((2, 3), 0.5)])
def test_selection_by_duration_is_that_of_rollouts_that_were_decided(tmp_path, dropped, distance):
    """Slow programs that wait for the next batch have not been left out."""
    ledger = Ledger(":memory:")
    rollouts = [rollout(id) for id in range(4)]
    ledger.dispatched(rollouts)
    for each in rollouts:
        ledger.finished(each)
    ledger.trained(rollouts[:2], version=0)
    for id in dropped:
        ledger.dropped(id, "stale")
    history = History(tmp_path / "history.csv", "some-task", higher_is_better=True)
    batch = Batch(0, tuple(replace(r, reward=1.0) for r in rollouts[:2]), 0.1, 0.1, 50.0)
    history.begin(batch, ledger.counts(), ledger)
    assert history.end({}, 51.0)["duration_ks"] == pytest.approx(distance)
