"""Who is kept by a live queue that drops what is stale: the estimate against what happens.

The real driver and queue on a clock that jumps from one end of a program to the next; rollouts are
dispatched while the learner asks for a batch and never while it trains, as in a run.
"""

from concurrent.futures import Future
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np
import pytest

from mle_rl.rollout.inclusion import drop_stale_probability
from mle_rl.rollout.kept import kept_probability
from mle_rl.rollout.ledger import Ledger
from mle_rl.rollout.live import LiveDriver
from mle_rl.rollout.queue import QueueConfig, RolloutQueue

SLOW = 0.5
"""Share of slow programs in the policy."""

WARM = 20
"""Updates that are left out: at the start all rollouts are equally old."""


class Clockwork(LiveDriver):
    """A run in virtual time."""

    def __init__(self, config, seconds, make_rollout, make_result, seed=0):
        self.time, self.ends = 0.0, []
        super().__init__(
            RolloutQueue(config), self.begin, Ledger(":memory:"), clock=lambda: self.time
        )
        self.seconds, self.make_rollout, self.make_result = seconds, make_rollout, make_result
        self.rng = np.random.default_rng(seed)
        self.slow = {}

    def begin(self, rollout):
        future = Future()
        noise = 1 + 0.1 * self.rng.random()
        heappush(
            self.ends, (self.time + self.seconds[self.slow[rollout.id]] * noise, rollout.id, future)
        )
        return future

    def run_until(self, time):
        while self.ends and self.ends[0][0] <= time:
            self.time, id, future = heappop(self.ends)
            future.set_result(self.make_result(id))
        self.time = time

    def _wait(self, n):
        self.run_until(self.ends[0][0])

    def train(self, updates, train_s):
        """For each batch: its rollouts, and how likely each was kept."""
        config = self.queue.config

        def sample(ids):
            self.slow |= {id: int(self.rng.random() < SLOW) for id in ids}
            return [self.make_rollout(id, version=version) for id in ids]

        for version in range(updates):
            batch = self.next_batch(config.batch_size, version, sample)
            self.ledger.trained([replace(r, reward=0.0) for r in batch], version)
            yield batch, kept_probability(self.ledger, config, batch, version)
            self.run_until(self.time + train_s)

    def kept_share(self, slow):
        """Of the fast or the slow whose fate is decided, the start left out."""
        table = self.ledger.table().set_index("id")
        decided = table[table.state.isin(["trained", "dropped"]) & (table.model_version >= WARM)]
        mine = [id for id in decided.index if self.slow[id] == slow]
        return (decided.state[mine] == "trained").mean()


def rule(ordering, max_in_flight, staleness=1):
    return QueueConfig(
        workers=32,
        batch_size=32,
        staleness="drop",
        max_staleness=staleness,
        ordering=ordering,
        max_in_flight=max_in_flight,
    )


CASES = {
    "first finished": (rule("completion", 32), (1.0, 12.0), 9.5),
    "some wait for a worker": (rule("completion", 64), (1.0, 12.0), 9.5),
    "two updates old": (rule("completion", 64, staleness=2), (1.0, 12.0), 9.5),
    "oldest first": (rule("dispatch", 64), (1.0, 12.0), 9.5),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_estimate_is_what_happens_and_its_inverse_gives_the_policy_back(case, rollout, result):
    config, seconds, train_s = case
    run = Clockwork(config, seconds, rollout, result)
    batches = list(run.train(100, train_s))[WARM:]
    slow = np.array([run.slow[r.id] for batch, _ in batches for r in batch])
    kept = np.concatenate([kept for _, kept in batches])
    assert run.kept_share(slow=0) == pytest.approx(kept[slow == 0].mean(), abs=0.01)
    assert run.kept_share(slow=1) == pytest.approx(kept[slow == 1].mean(), abs=0.05)

    uniform = drop_stale_probability(1.05 * seconds[1], config.max_staleness, run.time / 100)
    assert uniform > run.kept_share(slow=1) + 0.15, "what moments without learner would give"

    weighted = (slow / kept).sum() / (1 / kept).sum()
    assert weighted == pytest.approx(SLOW, abs=0.03)
    assert slow.mean() < SLOW - 0.05


def test_before_anything_can_have_been_dropped_everything_is_kept(rollout, result):
    run = Clockwork(rule("completion", 64), (1.0, 12.0), rollout, result)
    first, *later = [kept for _, kept in run.train(6, 9.5)]
    assert (first == 1).all()
    assert any((kept < 1).any() for kept in later)


def test_a_rollout_that_no_other_place_could_have_held_has_a_probability(ledger, rollout, result):
    """Two of version 0: one ended in time, one had not begun when its last batch was complete."""
    ledger.dispatched([rollout(0), rollout(1)])
    execution, outcome = result(0)
    done = replace(
        rollout(0), started_at=1.0, finished_at=6.0, execution=execution, outcome=outcome
    )
    ledger.started(0, 1.0)
    ledger.finished(done)
    ledger.trained([replace(done, reward=0.0)], version=0)
    ledger.dropped(1, "stale")
    config = rule("completion", 32, staleness=0)
    longer = replace(done, finished_at=6.5)
    kept = kept_probability(ledger, config, [done, longer], 0)
    assert kept.tolist() == pytest.approx([2 / 3, 1 / 3])
