"""A policy that changes while rollouts are in flight: who is how old, and what undoes it."""

import numpy as np
import pytest

from mle_rl.rollout import QueueConfig, inclusion
from mle_rl.rollout.simulation import Learner, simulate
from mle_rl.rollout.simulation.durations import LogNormal
from mle_rl.rollout.simulation.workload import Workload

KEEP = {"staleness": "keep", "ordering": "completion"}


def test_staleness_grows_with_duration():
    """Policy moves in flight: the mean lag is D / tau, action by action."""
    work = Workload(scale_s=(1.0, 5.0, 20.0))
    config = QueueConfig(workers=2048, batch_size=2048, **KEEP)
    result = simulate(config, work, updates=97, rng=np.random.default_rng(2), trace=True)
    trace, tau = result.trace, result.elapsed_s / result.updates
    late = trace.trained & (trace.dispatched_at > 0.2 * result.elapsed_s)
    for action, d in enumerate((1.0, 5.0, 20.0)):
        mine = late & (trace.action == action)
        lag = (trace.taken_version - trace.version)[mine]
        error = lag.std() / np.sqrt(mine.sum() / 50)  # starts come in waves of workers
        expected = inclusion.mean_staleness(d, tau)
        assert abs(lag.mean() - expected) < max(3 * error, 0.03), action
        mean = inclusion.mean_staleness(work.mean_s, tau)
        assert abs(lag.mean() - mean) > 0.1, "not one lag for all"


def drifting(version: int) -> np.ndarray:
    """A policy that swings between two pairs of actions, 1 s and 9 s each: E[D] stays as it is."""
    swing = 0.2 * np.sin(2 * np.pi * version / 30)
    return np.array([0.25 + swing, 0.25 + swing, 0.25 - swing, 0.25 - swing])


def policy_that_moves(rollouts: int, seed: int) -> dict[str, float]:
    """Standard errors from 0 of: share of the slow action of the first pair minus the policy's own,
    times where the swing is going, over batches. By weight."""
    moves = {"none": [], "importance ratio": [], "duration": []}

    def learn(batch):
        now, then = drifting(batch.version), np.stack([drifting(v) for v in batch.versions])
        ratio = now[batch.actions] / then[np.arange(len(batch.actions)), batch.actions]
        going = np.cos(2 * np.pi * batch.version / 30)
        weights = {"none": np.ones_like(ratio), "importance ratio": ratio}
        weights["duration"] = batch.durations_s / 5.0
        for name, w in weights.items():
            moves[name].append(going * ((w * (batch.actions == 1)).mean() - w.mean() * now[1]))
        return drifting(batch.version + 1)

    work = Workload(scale_s=(1.0, 9.0, 1.0, 9.0), noise=LogNormal.of_sigma(0.3))
    config = QueueConfig(workers=128, batch_size=64, **KEEP)
    rng = np.random.default_rng(seed)
    simulate(config, work, updates=rollouts // 64, rng=rng, learner=Learner(learn=learn))
    off = {}
    for name, values in moves.items():
        blocks = np.array([b.mean() for b in np.array_split(values[60:], 30)])
        off[name] = abs(blocks.mean()) / (blocks.std(ddof=1) / np.sqrt(30))
    return off


@pytest.mark.parametrize(
    "rollouts", [60_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids=["small", "million"]
)
def test_the_ratio_of_versions_undoes_a_policy_that_moves_and_nothing_else_does(rollouts):
    off = policy_that_moves(rollouts, seed=0)
    assert off["importance ratio"] < 3
    assert off["none"] > 5
    assert off["duration"] > 5


def test_a_faster_policy_loses_more_of_what_is_slow():
    """The lock-in of an age limit: updates come faster, and the slow action's chance falls."""

    def kept(p_slow, **rule):
        work = Workload(scale_s=(1.0, 10.0), probabilities=(1 - p_slow, p_slow))
        config = QueueConfig(workers=1024, batch_size=256, ordering="completion", **rule)
        rng = np.random.default_rng(0)
        trace = simulate(config, work, updates=400, rng=rng, trace=True).trace
        tau = inclusion.steady_update_s(work, 1024, 256, rule.get("max_staleness"))
        slow = trace.decided & (trace.action == 1) & (trace.dispatched_at > 20)
        return trace.trained[slow].mean(), tau

    drop = {"staleness": "drop", "max_staleness": 4}
    (before, pace), (after, faster) = kept(0.5, **drop), kept(0.1, **drop)
    assert faster < pace
    assert after < before - 0.15
    assert before == pytest.approx(inclusion.drop_stale_probability(10.0, 4, pace), abs=0.05)
    assert kept(0.5, staleness="keep")[0] == kept(0.1, staleness="keep")[0] == 1, (
        "no limit, no loss"
    )
