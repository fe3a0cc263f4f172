"""The live driver with workers whose every move the test decides."""

import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mle_rl import MleRlError
from mle_rl.rollout.ledger import Ledger
from mle_rl.rollout.live import LiveDriver
from mle_rl.rollout.queue import QueueConfig, RolloutQueue

BATCH = 4


def admission(staleness=1, workers=2, **changes):
    """Admission control in strict dispatch order: batches do not depend on timing."""
    rule = {
        "workers": workers,
        "batch_size": BATCH,
        "staleness": "admit",
        "max_staleness": staleness,
        "ordering": "window",
        "order_window": 1,
        "max_in_flight": (staleness + 1) * BATCH,
    }
    return QueueConfig(**rule | changes)


@pytest.fixture
def driver(workers, ledger):
    return LiveDriver(RolloutQueue(admission()), workers, ledger)


@pytest.fixture
def sampler(rollout):
    """Samples what is asked for and remembers the version it was sampled with."""

    class Sampler:
        version = 0
        ids = ()

        def __call__(self, ids):
            self.ids = (*self.ids, *ids)
            return [rollout(id, version=self.version) for id in ids]

    return Sampler()


def end_all(workers, order=sorted):
    """End what runs until nothing runs, always the first in ``order``."""
    while workers.futures:
        workers.end(order(workers.futures)[0])


def take(driver, workers, sampler, version):
    """A batch with a worker thread that ends programs as they start."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            for id in sorted(workers.futures):
                workers.end(id)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        return driver.next_batch(BATCH, version, sampler)
    finally:
        stop.set()
        thread.join()


def test_programs_run_while_nobody_takes(driver, workers, sampler):
    """What the learner does in between does not stop the workers."""
    driver.dispatch(0, sampler)
    assert workers.started == [0, 1], "two workers, two programs"
    workers.end(1)
    assert workers.started == [0, 1, 2], "the next starts when one ends, without the learner"
    end_all(workers)
    assert driver.counts().ready == 2 * BATCH


def test_in_flight_never_exceeds_what_can_still_be_used(driver, workers, sampler):
    for version in range(4):
        sampler.version = version
        take(driver, workers, sampler, version)
        counts = driver.counts()
        assert counts.in_flight + counts.ready <= 2 * BATCH
        assert counts.dispatched <= (1 + version + 1) * BATCH


def test_batches_are_in_dispatch_order_whatever_ends_first(driver, workers, sampler):
    driver.dispatch(0, sampler)
    end_all(workers, order=lambda ids: sorted(ids, reverse=True))
    batch = driver.next_batch(BATCH, 0, sampler)
    assert [r.id for r in batch] == [0, 1, 2, 3]


def test_rollouts_carry_the_version_that_sampled_them(driver, workers, sampler):
    ages = []
    for version in range(4):
        sampler.version = version
        batch = take(driver, workers, sampler, version)
        ages.append({version - r.model_version for r in batch})
    assert ages == [{0}, {1}, {1}, {1}]


def test_time_in_queue_is_apart_from_execution(workers, ledger, sampler):
    """A clock that the test moves: rollout 2 waits 5 s for a worker and runs for 3."""
    time = [100.0]
    driver = LiveDriver(RolloutQueue(admission()), workers, ledger, clock=lambda: time[0])
    driver.dispatch(0, sampler)
    time[0] += 5.0
    workers.end(0)
    time[0] += 3.0
    workers.end(2)
    workers.end(1)
    workers.end(3)
    batch = driver.next_batch(BATCH, 0, sampler)
    second = batch[2]
    assert (second.dispatched_at, second.started_at, second.finished_at) == (0.0, 5.0, 8.0)


def test_a_failed_program_is_an_outcome(driver, workers, sampler):
    driver.dispatch(0, sampler)
    workers.end(0, status="error")
    workers.end(1, status="timeout")
    end_all(workers)
    batch = driver.next_batch(BATCH, 0, sampler)
    assert [r.execution.status for r in batch] == ["error", "timeout", "ok", "ok"]


def test_a_killed_sandbox_is_paid_to_nobody_and_its_place_is_given_back(
    driver, workers, sampler, ledger
):
    driver.dispatch(0, sampler)
    workers.end(0, status="killed", duration_s=0.0)
    workers.end(1, status="killed", duration_s=0.5)  # for what the program did
    end_all(workers)
    batch = driver.next_batch(BATCH, 0, sampler)
    assert [r.id for r in batch] == [1, 2, 3, 4]
    assert sampler.ids == tuple(range(2 * BATCH + 1)), "one more is admitted"
    assert ledger.counts().dropped == driver.counts().dropped == {"crashed": 1}


def test_a_failed_grader_is_raised_and_paid_to_nobody(driver, workers, sampler, ledger):
    driver.dispatch(0, sampler)
    workers.fail(0, ZeroDivisionError("a bug of the grader"))
    with pytest.raises(ZeroDivisionError, match="a bug of the grader"):
        driver.next_batch(BATCH, 0, sampler)
    assert workers.started == [0, 1], "nothing is started after it"
    assert ledger.counts().ready == 0
    assert ledger.counts().conserved


def test_results_known_at_once_need_no_deep_stack(ledger, result, rollout):
    """Replay: thousands of results in a row, each reporting from inside its own start."""

    def known(item):
        future = Future()
        future.set_result(result(item.id))
        return future

    rule = admission(workers=1, batch_size=2000, order_window=2000, max_in_flight=4000)
    driver = LiveDriver(RolloutQueue(rule), known, ledger)
    batch = driver.next_batch(2000, 0, lambda ids: [rollout(id) for id in ids])
    assert len(batch) == 2000


@pytest.fixture
def stale(workers, ledger, sampler):
    """Version 1 has dispatched 4 and 5; 1 to 3 are of version 0 and of no use, and 1 runs."""
    rule = QueueConfig(
        workers=1,
        batch_size=1,
        ordering="completion",
        staleness="drop",
        max_staleness=0,
        max_in_flight=3,
    )
    driver = LiveDriver(RolloutQueue(rule), workers, ledger)
    driver.dispatch(0, sampler)
    workers.end(0)
    batch = driver.next_batch(1, 0, sampler)
    assert [r.id for r in batch] == [0]
    ledger.trained(batch, 0)
    sampler.version = 1
    driver.dispatch(1, sampler)
    return driver


def test_stale_rollouts_are_dropped_and_never_started(stale, workers, ledger):
    assert ledger.counts().dropped == {"stale": 2}, "what runs is judged when it has ended"
    workers.end(1)
    assert workers.started == [0, 1, 4]
    assert ledger.counts().dropped == stale.counts().dropped == {"stale": 3}
    assert ledger.counts().conserved
    assert stale.counts().conserved


def test_a_resumed_run_does_not_run_again_what_is_stale(stale, workers, ledger):
    workers.started.clear()
    resumed = LiveDriver(RolloutQueue(stale.queue.config), workers, ledger)
    resumed.resume(stale.state_dict())
    assert workers.started == [4]
    assert ledger.counts().dropped == resumed.counts().dropped == {"stale": 3}


def test_aborted_rollouts_that_wait_are_never_run(workers, ledger, sampler):
    rule = QueueConfig(
        workers=2, batch_size=2, staleness="keep", ordering="completion", over_provision=3.0
    )
    driver = LiveDriver(RolloutQueue(rule), workers, ledger)
    driver.dispatch(0, sampler)
    for id in (0, 1):
        workers.end(id)
    assert sorted(workers.started) == [0, 1, 2, 3]
    driver.next_batch(2, 0, sampler)
    assert ledger.counts().dropped == {"aborted": 4}
    end_all(workers)  # 2 and 3 run to their end
    assert sorted(workers.started) == [0, 1, 2, 3]
    assert ledger.counts().conserved
    known = ledger.table().set_index("id").duration_s.notna()
    assert known.to_list() == [True] * 4 + [False] * 2, "who was aborted is known by duration"


def test_a_pool_that_somebody_closes_ends_the_run(workers, ledger, sampler):
    """The learner would wait for ever for programs that nobody runs."""
    rule = admission(ordering="completion", order_window=None)
    driver = LiveDriver(RolloutQueue(rule), workers, ledger)
    driver.dispatch(0, sampler)
    workers.futures.pop(0).cancel()
    end_all(workers)
    with pytest.raises(MleRlError, match="pool"):
        driver.next_batch(BATCH, 0, sampler)


def test_a_pool_that_is_closed_after_the_run_is_no_failure(driver, workers, sampler):
    driver.dispatch(0, sampler)
    driver.close()
    for id in sorted(workers.futures):
        workers.futures.pop(id).cancel()
    driver.dispatch(0, sampler)
    assert workers.started == [0, 1]


def test_others_go_on_while_a_program_is_prepared(ledger, sampler):
    """Parsing, instrumenting and looking up a record take time; nobody is to wait for them."""
    answered = []

    def execute(rollout):
        other = threading.Thread(target=driver.counts, daemon=True)
        other.start()
        other.join(5.0)
        answered.append(not other.is_alive())
        return Future()

    driver = LiveDriver(RolloutQueue(admission()), execute, ledger)
    driver.dispatch(0, sampler)
    assert answered == [True, True]


def test_a_program_that_cannot_be_started_ends_the_run(workers, ledger, sampler):
    """In a worker's thread, where nobody would hear of it."""

    def execute(rollout):
        if rollout.id == 2:
            raise ZeroDivisionError("a bug of the instrumentation")
        return workers(rollout)

    driver = LiveDriver(RolloutQueue(admission()), execute, ledger)
    driver.dispatch(0, sampler)
    workers.end(0)
    with pytest.raises(ZeroDivisionError, match="a bug of the instrumentation"):
        driver.next_batch(BATCH, 0, sampler)


def test_a_state_does_not_outlive_its_rollouts(driver, workers, sampler, ledger, monkeypatch):
    """All that a state names is on disk for good before anybody writes the state."""
    durable = set()

    def sync():
        durable.update(r.id for r in ledger.rollouts("started") + ledger.rollouts("dispatched"))

    monkeypatch.setattr(ledger, "sync", sync)
    driver.dispatch(0, sampler)
    state = driver.state_dict()
    assert durable == {id for _, _, id in state["queue"]["in_flight"]} == set(range(2 * BATCH))


def test_a_rule_that_can_give_no_batch_is_a_sentence(workers, ledger, sampler, result):
    rule = admission(staleness=0, timeouts="mask")
    driver = LiveDriver(RolloutQueue(rule), workers, ledger)
    driver.dispatch(0, sampler)
    end_all(workers)
    driver.next_batch(BATCH, 0, sampler)
    with pytest.raises(MleRlError, match="gives no batch"):
        driver.next_batch(BATCH, 0, sampler)  # version 0 again: nothing is admitted


def test_workers_that_repeat_themselves_exist_in_the_simulation_only(workers, ledger):
    rule = QueueConfig(
        workers=2, batch_size=2, staleness="keep", worker_rule="sticky", sticky_window_s=1.0
    )
    with pytest.raises(MleRlError, match="simulation"):
        LiveDriver(RolloutQueue(rule), workers, ledger)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_resumed_run_trains_on_every_rollout_once(workers, rollout, data):
    """A run saved and killed anywhere: batches before and after are 0, 1, 2, ... in order."""
    ledger = Ledger(":memory:")
    workers.futures.clear()
    driver = LiveDriver(RolloutQueue(admission()), workers, ledger)
    version, trained, saved = 0, [], None

    def sample(ids):
        return [rollout(id, version=version) for id in ids]

    def batch_or_none(driver, version):
        """Take if that needs no waiting."""
        driver.dispatch(version, sample)
        if driver.queue.ready_ids()[:BATCH] != tuple(range(len(trained), len(trained) + BATCH)):
            return None
        return driver.next_batch(BATCH, version, sample)

    for _ in range(data.draw(st.integers(5, 40))):
        action = data.draw(st.sampled_from(["end", "end", "end", "take", "save", "kill"]))
        if action == "end" and workers.futures:
            workers.end(data.draw(st.sampled_from(sorted(workers.futures))))
        elif action == "take":
            batch = batch_or_none(driver, version)
            if batch is not None:
                ledger.trained([replace(r, reward=0.0) for r in batch], version)
                trained += [r.id for r in batch]
                version += 1
        elif action == "save":
            saved = (driver.state_dict(), version, list(trained))
        elif action == "kill" and saved is not None:
            workers.futures.clear()
            driver = LiveDriver(RolloutQueue(admission()), workers, ledger)
            state, version, trained = saved[0], saved[1], list(saved[2])
            driver.resume(state)
        assert ledger.counts().conserved
        assert driver.counts().conserved
        assert ledger.counts().trained == driver.counts().trained == len(trained)
        rewound = ledger.counts().dropped.get("rewound", 0)
        assert ledger.counts().dispatched - rewound == driver.counts().dispatched
    assert trained == list(range(len(trained)))
