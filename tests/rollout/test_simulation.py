"""The two virtual drivers, the stages of a box, and what a trace says."""

import tracemalloc
from collections import defaultdict, deque
from dataclasses import fields

import numpy as np
import pytest

from mle_rl import MleRlError
from mle_rl.rollout import QueueConfig
from mle_rl.rollout.simulation import EventSimulation, Generation, Learner, simulate
from mle_rl.rollout.simulation.durations import Constant, LogNormal
from mle_rl.rollout.simulation.stream import simulate_stream, streams
from mle_rl.rollout.simulation.trace import FATES, Trace
from mle_rl.rollout.simulation.workload import Workload

WORK = Workload(
    scale_s=(1.0, 4.0), probabilities=(0.7, 0.3), noise=LogNormal.of_sigma(0.8), time_limit_s=9.0
)


def config(**settings) -> QueueConfig:
    defaults = {"workers": 6, "batch_size": 4, "staleness": "keep", "ordering": "completion"}
    return QueueConfig(**(defaults | settings))


class Scripted(EventSimulation):
    """The general driver with given actions and durations, per worker in order."""

    def __init__(self, trace: Trace, *args):
        super().__init__(*args)
        script = defaultdict(deque)
        for worker, action, d in zip(trace.worker, trace.action, trace.duration_s, strict=True):
            script[worker].append((int(action), float(d)))
        # A worker that the fast driver did not look at again may begin, but not end, one more.
        self._source.next = lambda worker, now: (
            script[worker].popleft() if script[worker] else (0, 1e9)
        )


@pytest.mark.parametrize("train_s", [0.0, 0.3, 3.0])
@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"ordering": "dispatch"},
        {"ordering": "window", "order_window": 1},
        {"ordering": "window", "order_window": 9},
        {"staleness": "drop", "max_staleness": 1},
        {"staleness": "drop", "max_staleness": 0, "ordering": "dispatch"},
    ],
)
def test_the_fast_driver_is_the_general_one(rule, train_s):
    """Same durations, same queue: every column of the two traces is equal."""
    args = (config(**rule), WORK)
    fast = simulate_stream(
        *args, updates=60, rng=np.random.default_rng(4), train_s=train_s, trace=True
    )
    learner = Learner(train_s=train_s)
    general = Scripted(fast.trace, *args, learner, None, np.random.default_rng(0), True).run(60)
    assert general.counts == fast.counts
    assert general.elapsed_s == pytest.approx(fast.elapsed_s, abs=1e-9)
    assert np.allclose(general.training, fast.training)
    known = np.isfinite(fast.trace.finished_at)
    for column in fields(Trace):
        a, b = getattr(fast.trace, column.name), getattr(general.trace, column.name)
        if column.name in ("action", "duration_s"):  # those in flight at the end are not scripted
            a, b = a[known], b[known]
        assert np.allclose(a, b, equal_nan=True), column.name


def test_the_fast_driver_does_not_depend_on_its_block_size(monkeypatch):
    """A block ends at a stopping time; the law of what follows must not notice."""
    means = {}
    for rows in (2, 64):
        monkeypatch.setattr("mle_rl.rollout.simulation.stream._ROWS", rows)
        result = simulate_stream(
            config(workers=16), WORK, updates=5000, rng=np.random.default_rng(rows), trace=True
        )
        d = result.trace.duration_s[result.trace.trained]
        means[rows] = (d.mean(), d.std() / np.sqrt(len(d)))
    (a, ea), (b, eb) = means.values()
    assert abs(a - b) < 3 * np.hypot(ea, eb)
    truth = np.minimum(
        WORK.noise.sample(400_000, np.random.default_rng(0))
        * WORK.scale_s[WORK.draw(400_000, np.random.default_rng(1))],
        WORK.time_limit_s,
    )
    assert abs(b - truth.mean()) < 3 * np.hypot(eb, truth.std() / np.sqrt(len(truth)))


@pytest.mark.parametrize(
    ("rule", "learner", "generation"),
    [
        ({"staleness": "admit", "max_staleness": 1}, Learner(), None),
        ({"over_provision": 2.0}, Learner(), None),
        ({"restart_window_s": 1.0}, Learner(), None),
        ({"worker_rule": "per_task"}, Learner(), None),
        ({"max_in_flight": 99}, Learner(), None),
        ({"timeouts": "mask"}, Learner(), None),
        ({}, Learner(learn=lambda batch: None), None),
        ({}, Learner(weight_sync_s=1.0), None),
        ({}, Learner(), Generation(4, Constant(1.0))),
    ],
)
def test_the_fast_driver_is_not_used_where_the_queue_can_hold_up_a_worker(
    rule, learner, generation
):
    assert streams(config(), WORK, Learner(), None)
    assert not streams(config(**rule), WORK, learner, generation)


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_strict_order_with_admission_bounds_the_age_of_every_rollout(staleness):
    rule = config(staleness="admit", max_staleness=staleness, ordering="window", order_window=1)
    heavy = Workload(noise=LogNormal.of_sigma(2.0))
    result = simulate(
        rule,
        heavy,
        updates=300,
        rng=np.random.default_rng(0),
        learner=Learner(train_s=0.5),
        trace=True,
    )
    assert result.trace.staleness.max() <= staleness
    assert result.trace.trained[: 4 * 300].all(), "in dispatch order, without a gap"
    greedy = simulate(
        config(staleness="admit", max_staleness=staleness, ordering="dispatch"),
        heavy,
        updates=300,
        rng=np.random.default_rng(0),
        learner=Learner(train_s=0.5),
        trace=True,
    )
    if staleness:
        assert greedy.trace.staleness.max() > staleness, "oldest first alone bounds the mean only"


def test_an_update_takes_its_time_and_syncs():
    result = EventSimulation(
        config(workers=1, batch_size=1),
        Workload(scale_s=(2.0,)),
        Learner(train_s=3.0, weight_sync_s=1.0),
        None,
        np.random.default_rng(0),
        True,
    ).run(3)
    assert result.training.tolist() == [[2, 5, 6], [6, 9, 10], [10, 13, 14]]
    assert result.trace.version[:7].tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert result.trace.taken_at[:3].tolist() == [2, 6, 10]


@pytest.mark.parametrize(
    ("shared", "generated"),
    [(True, [1.0, 2.0, 7.0, 8.0]), (False, [1.0, 2.0, 3.0, 4.0])],
)
def test_training_on_shared_gpus_pauses_generation(shared, generated):
    """One slot of 1 s per sequence; the update runs from 2.5 to 6.5."""
    result = EventSimulation(
        config(workers=4, batch_size=1),
        Workload(scale_s=(1.5,)),
        Learner(train_s=4.0),
        Generation(1, Constant(1.0), paused_by_training=shared),
        np.random.default_rng(0),
        True,
    ).run(1)
    done = result.trace.generated_at
    assert done[~np.isnan(done)].tolist()[: len(generated)] == pytest.approx(
        generated[: np.isfinite(done).sum()]
    )


def test_weight_sync_delays_what_is_being_generated():
    """Update from 2.5 to 4.4 (training to 3.4, sync of 1): the sequence begun at 3 ends at 5."""
    result = EventSimulation(
        config(workers=4, batch_size=1, max_in_flight=9),
        Workload(scale_s=(1.5,)),
        Learner(train_s=0.9, weight_sync_s=1.0),
        Generation(1, Constant(1.0)),
        np.random.default_rng(0),
        True,
    ).run(3)
    assert result.trace.generated_at[:4].tolist() == pytest.approx([1.0, 2.0, 3.0, 5.0])


def test_worker_utilisation_counts_aborted_work():
    result = EventSimulation(
        config(workers=2, batch_size=1, over_provision=2.0),
        Workload(scale_s=(1.0, 3.0), tasks=(0, 1)),
        Learner(),
        None,
        np.random.default_rng(3),
        True,
    ).run(50)
    trace = result.trace
    spent = (trace.finished_at - trace.started_at)[trace.decided].sum()
    assert result.executed_s == pytest.approx(spent)
    aborted = trace.fate == FATES.index("aborted")
    assert aborted.any()
    assert (trace.finished_at - trace.started_at)[aborted].max() <= 3.0


def test_a_rule_that_can_never_fill_a_batch_says_so():
    never = config(batch_size=4, restart_window_s=1.0)
    with pytest.raises(MleRlError, match="worker before it is sampled"):
        EventSimulation(
            config(worker_rule="sticky", sticky_window_s=1.0),
            WORK,
            Learner(),
            Generation(1, Constant(1.0)),
            np.random.default_rng(0),
        )
    with pytest.raises(MleRlError, match="No batch fills"):
        simulate(
            config(timeouts="mask", worker_rule="per_task"),
            Workload(scale_s=(2.0,), time_limit_s=1.0),
            updates=1,
            rng=np.random.default_rng(0),
        )
    with pytest.raises(MleRlError, match="No batch fills"):
        simulate(never, Workload(scale_s=(2.0,)), updates=1, rng=np.random.default_rng(0))


@pytest.mark.parametrize("updates", [0, -1, 2.5, None])
def test_a_run_makes_at_least_one_update(updates):
    with pytest.raises(MleRlError, match="updates"):
        simulate(config(), WORK, updates=updates, rng=np.random.default_rng(0))


@pytest.mark.parametrize("slots", [0, -1, 1.5])
def test_sampling_needs_a_slot(slots):
    with pytest.raises(MleRlError, match="slots"):
        Generation(slots, Constant(1.0))


@pytest.mark.parametrize(
    "rule", [{}, {"staleness": "drop", "max_staleness": 1}, {"over_provision": 2.0}]
)
def test_memory_does_not_grow_without_a_trace(rule):
    def peak(updates: int) -> int:
        tracemalloc.start()
        simulate(config(**rule), WORK, updates=updates, rng=np.random.default_rng(0))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(300)  # imports and caches
    assert peak(6000) < 1.2 * peak(300) + 20_000


def test_a_trace_is_a_table_with_fates_in_words():
    result = simulate(
        config(over_provision=2.0), WORK, updates=9, rng=np.random.default_rng(0), trace=True
    )
    frame = result.trace.frame()
    by_fate = frame["fate"].value_counts()
    assert by_fate["trained"] == result.counts.trained
    assert by_fate["aborted"] == result.counts.dropped["aborted"]
    assert len(frame) == result.counts.dispatched
