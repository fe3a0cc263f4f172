"""Random interleavings against a twin that keeps everything and computes every answer afresh.

After each of dispatch, start, finish, crash, take, update and resume: nothing is lost, batches come
in the rule's order, and no rule ever has more under way than it admits. Deliberately broken queues
at the end show that each of the three would be noticed.
"""

import json
import math

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mle_rl import MleRlError
from mle_rl.rollout import QueueConfig, RolloutQueue

BASE = [
    {"staleness": "keep", "ordering": "completion"},
    {"staleness": "keep", "ordering": "dispatch"},
    {"staleness": "keep", "ordering": "window", "order_window": 4},
    {"staleness": "drop", "max_staleness": 1, "ordering": "completion"},
    {"staleness": "drop", "max_staleness": 0, "ordering": "dispatch"},
    {"staleness": "drop", "max_staleness": 1, "ordering": "window", "order_window": 5},
    {"staleness": "admit", "max_staleness": 0, "ordering": "completion"},
    {"staleness": "admit", "max_staleness": 2, "ordering": "dispatch", "max_in_flight": 7},
    {"staleness": "admit", "max_staleness": 1, "ordering": "window", "order_window": 3},
    {"staleness": "admit", "max_staleness": 0, "ordering": "window", "order_window": 1},
    {"staleness": "admit", "max_staleness": 2, "ordering": "window", "order_window": 1},
    {"staleness": "keep", "ordering": "completion", "over_provision": 1.5},
    {
        "staleness": "keep",
        "ordering": "completion",
        "over_provision": 2.0,
        "unfinished": "recycle",
    },
    {"staleness": "keep", "ordering": "completion", "restart_window_s": 6.0},
    {"staleness": "keep", "ordering": "completion", "timeouts": "mask"},
]


class Twin:
    """The same rules in the plainest way: one dictionary per rollout, nothing ever forgotten."""

    def __init__(self, config: QueueConfig):
        self.config = config
        self.rollouts: list[dict] = []
        self.finished = 0
        self.version = 0
        self.round_taken = -1
        self.opened_at = None

    def where(self, *states) -> list[dict]:
        return [r for r in self.rollouts if r["state"] in states]

    @property
    def in_flight(self) -> list[dict]:
        return self.where("waiting", "running")

    def capacity(self) -> int:
        c, flying = self.config, len(self.in_flight)
        if c.in_rounds and self.version <= self.round_taken:
            return 0
        if c.over_provision > 1:
            size = math.ceil(c.over_provision * c.batch_size)
            return max(0, size - flying - len(self.where("ready")))
        limits = [(c.max_in_flight or c.workers) - flying]
        if c.staleness == "admit":
            accepted = len(self.where("trained", "ready"))
            usable = (c.max_staleness + self.version + 1) * c.batch_size
            limits.append(usable - (accepted + flying))
        return max(0, min(limits))

    def dispatch(self, id, now):
        self.rollouts.append({"id": id, "version": self.version, "state": "waiting"})
        self.open(now)

    def open(self, now):
        if self.config.restart_window_s and self.opened_at is None:
            self.opened_at = now

    def finish(self, r, now, status) -> bool:
        c = self.config
        self.finished += 1
        r["finished"] = self.finished
        late = self.opened_at is not None and now > self.opened_at + c.restart_window_s
        if c.staleness == "drop" and r["version"] < self.version - c.max_staleness:
            r["state"] = "stale"
        elif status == "timeout" and c.timeouts == "mask":
            r["state"] = "timeout"
        elif late:
            r["state"] = "window"
        else:
            r["state"] = "ready"
        return r["state"] == "ready"

    def update(self):
        self.version += 1
        if self.config.staleness == "drop":
            for r in self.where("ready"):
                if r["version"] < self.version - self.config.max_staleness:
                    r["state"] = "stale"

    def eligible(self, n) -> list[dict]:
        ready = self.where("ready")
        if self.config.ordering == "completion":
            return sorted(ready, key=lambda r: r["finished"])
        if self.config.ordering == "dispatch":
            return ready
        batch = []
        while len(batch) < n:  # one at a time, looking at the whole line again
            line = self.where("waiting", "running", "ready", "trained")
            gone = [r["state"] == "trained" or r in batch for r in line]
            head = gone.index(False) if False in gone else len(line)
            window = zip(line, gone, strict=True)
            window = list(window)[head : head + self.config.order_window]
            ready = [r for r, taken in window if r["state"] == "ready" and not taken]
            if not ready:
                break
            batch.append(ready[0])
        return batch

    def take(self, n, now):
        c = self.config
        if c.restart_window_s:
            if self.opened_at is None or now < self.opened_at + c.restart_window_s:
                return None
            self.opened_at = None
            for r in self.in_flight:
                r["state"] = "window"
            batch = self.eligible(len(self.where("ready")))
            if len(batch) < n:
                return None
        else:
            if c.in_rounds and self.version <= self.round_taken:
                return None
            batch = self.eligible(n)[:n]
            if len(batch) < n:
                return None
        for r in batch:
            r["state"] = "trained"
            r["age"] = self.version - r["version"]
        if c.in_rounds:
            self.round_taken = self.version
            if c.over_provision > 1 and c.unfinished == "abort":
                for r in self.where("waiting", "running", "ready"):
                    r["state"] = "aborted"
        return tuple(r["id"] for r in batch)


class Interleavings(RuleBasedStateMachine):
    queue_class = RolloutQueue

    @initialize(base=st.sampled_from(BASE), workers=st.integers(1, 5), batch_size=st.integers(1, 3))
    def begin(self, base, workers, batch_size):
        self.config = QueueConfig(workers=workers, batch_size=batch_size, **base)
        self.queue = self.queue_class(self.config)
        self.twin = Twin(self.config)
        self.now = 0.0
        self.drops = []

    def some(self, data, *states):
        return data.draw(st.sampled_from(self.twin.where(*states)))

    @rule(s=st.sampled_from([0.0, 0.5, 4.0]))
    def time_passes(self, s):
        self.now += s

    @rule(data=st.data())
    def dispatch(self, data):
        room = self.queue.capacity(self.twin.version)
        assert room == self.twin.capacity(), "capacity"
        for _ in range(data.draw(st.integers(0, room))):
            id = len(self.twin.rollouts)
            self.queue.dispatch(id, self.twin.version, self.now)
            self.twin.dispatch(id, self.now)

    @precondition(lambda self: self.twin.where("waiting"))
    @rule(data=st.data())
    def start(self, data):
        r = self.some(data, "waiting")
        self.queue.start(r["id"], self.now)
        r["state"] = "running"
        self.twin.open(self.now)

    @precondition(lambda self: self.twin.in_flight)
    @rule(data=st.data(), status=st.sampled_from(["ok", "error", "timeout"]))
    def finish(self, data, status):
        r = self.some(data, "waiting", "running")
        kept = self.queue.finish(r["id"], self.now, status)
        assert kept == self.twin.finish(r, self.now, status)

    @precondition(lambda self: self.twin.in_flight)
    @rule(data=st.data())
    def crash(self, data):
        r = self.some(data, "waiting", "running")
        self.queue.crash(r["id"], self.now)
        r["state"] = "crashed"

    @rule(data=st.data())
    def take(self, data):
        whole = self.config.staleness == "admit" or self.config.in_rounds
        n = self.config.batch_size if whole else data.draw(st.integers(1, self.config.batch_size))
        n = 1 if self.config.restart_window_s else n
        batch = self.queue.take(n, self.twin.version, self.now)
        assert batch == self.twin.take(n, self.now), "order"
        if batch and self.config.staleness == "admit" and self.config.ordering == "window":
            bound = (
                self.config.max_staleness
                + 1
                + (self.config.order_window - 2) // self.config.batch_size
            )
            assert all(self.twin.rollouts[id]["age"] <= bound for id in batch)
        if batch and whole:
            self.update()

    @precondition(lambda self: self.config.staleness != "admit")
    @rule()
    def update(self):
        self.twin.update()
        self.queue.capacity(self.twin.version)

    @rule()
    def resume(self):
        saved = json.loads(json.dumps(self.queue.state_dict()))
        self.queue = self.queue_class(self.config)
        self.queue.load_state_dict(saved)
        for r in self.twin.where("running"):
            r["state"] = "waiting"
        self.twin.opened_at = None

    @invariant()
    def nothing_is_lost(self):
        if not hasattr(self, "queue"):
            return
        counts, twin = self.queue.counts, self.twin
        assert counts.conserved, "conservation"
        assert counts.dispatched == len(twin.rollouts)
        assert counts.trained == len(twin.where("trained"))
        assert self.queue.in_flight_ids() == tuple(r["id"] for r in twin.in_flight)
        assert set(self.queue.running_ids()) == {r["id"] for r in twin.where("running")}
        assert set(self.queue.ready_ids()) == {r["id"] for r in twin.where("ready")}
        self.drops += self.queue.drain_dropped()
        gone = twin.where("stale", "aborted", "window", "timeout", "crashed")
        assert sorted(self.drops) == sorted((r["id"], r["state"]) for r in gone)
        assert sum(counts.dropped.values()) == len(self.drops)

    @invariant()
    def never_more_than_admitted(self):
        if not hasattr(self, "queue"):
            return
        c, counts = self.config, self.queue.counts
        if c.over_provision > 1:
            assert counts.in_flight + counts.ready <= c.round_size
        else:
            assert counts.in_flight <= (c.max_in_flight or c.workers)
        if c.staleness == "admit":
            begun = counts.trained + counts.ready + counts.in_flight
            assert begun <= (c.max_staleness + self.twin.version + 1) * c.batch_size


def check(queue_class, examples: int, *, steps: int = 40, shrink: bool = True) -> None:
    machine = type("Machine", (Interleavings,), {"queue_class": queue_class})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_interleavings():
    check(RolloutQueue, 150)


@pytest.mark.slow
def test_ten_thousand_interleavings():
    check(RolloutQueue, 10_000)


class NeverGivesBack(RolloutQueue):
    """A crash keeps its place in the admission count."""

    def crash(self, id, now):
        super().crash(id, now)
        self._tally.drops["crashed"] -= 1


class ForgetsTheBuffer(RolloutQueue):
    """A checkpoint without what was ready."""

    def state_dict(self):
        return super().state_dict() | {"ready": []}


class NewestFirst(RolloutQueue):
    """Batches in the wrong order."""

    def take(self, n, version, now):
        batch = super().take(n, version, now)
        return batch and batch[::-1]


class OneTooMany(RolloutQueue):
    """The admission inequality with >= where > belongs."""

    def capacity(self, version):
        return super().capacity(version) + 1


class KeepsTheStale(RolloutQueue):
    """Staleness is judged one version late."""

    def _hear(self, version):
        super()._hear(version - 1)


class AbortsSilently(RolloutQueue):
    """What is aborted is not reported to the driver."""

    def _drop_in_flight(self, reason):
        super()._drop_in_flight(reason)
        self.drain_dropped()


@pytest.mark.parametrize(
    "broken",
    [NeverGivesBack, ForgetsTheBuffer, NewestFirst, OneTooMany, KeepsTheStale, AbortsSilently],
)
def test_a_broken_queue_is_found(broken):
    with pytest.raises((AssertionError, MleRlError)):
        check(broken, 300, shrink=False)
