"""The queue by example: small numbers that can be checked by hand."""

import json

import pytest

from mle_rl import MleRlError
from mle_rl.rollout import QueueConfig, RolloutQueue


def queue(**settings) -> RolloutQueue:
    defaults = {"workers": 4, "batch_size": 2, "staleness": "keep", "ordering": "completion"}
    return RolloutQueue(QueueConfig(**(defaults | settings)))


def fill(q: RolloutQueue, ids, version: int = 0, now: float = 0.0) -> None:
    for id in ids:
        q.dispatch(id, version, now)
        q.start(id, now)


@pytest.mark.parametrize(
    ("version", "accepted", "running", "expected"),
    [
        (0, 0, 0, 6),  # (2 + 0 + 1) * 2
        (0, 2, 3, 1),
        (0, 2, 4, 0),
        (1, 2, 4, 2),
        (3, 2, 4, 6),
    ],
)
def test_admission_is_the_inequality(version, accepted, running, expected):
    q = queue(staleness="admit", max_staleness=2, max_in_flight=100)
    fill(q, range(accepted + running))
    for id in range(accepted):
        q.finish(id, 1.0)
    assert q.capacity(version) == expected


def test_what_an_older_model_sampled_is_admitted_by_the_present_version():
    q = queue(staleness="admit", max_staleness=1, max_in_flight=9)
    fill(q, range(4))
    assert q.capacity(0) == 0
    assert q.capacity(1) == 2
    fill(q, [4, 5], version=0)
    assert q.capacity(1) == 0


def test_admission_with_no_staleness_is_synchronous():
    q = queue(staleness="admit", max_staleness=0)
    fill(q, "ab")
    assert q.capacity(0) == 0
    q.finish("a", 1.0)
    assert q.capacity(0) == 0
    q.finish("b", 5.0)
    assert set(q.take(2, 0, 5.0)) == {"a", "b"}
    assert q.capacity(0) == 0, "the next batch waits for the update"
    assert q.capacity(1) == 2


def test_a_crash_gives_its_admission_back():
    q = queue(staleness="admit", max_staleness=0)
    fill(q, "ab")
    q.crash("a", 1.0)
    assert q.capacity(0) == 1
    assert q.drain_dropped() == (("a", "crashed"),)
    fill(q, "c", now=1.0)
    q.finish("c", 2.0)
    q.finish("b", 3.0)
    assert q.take(2, 0, 3.0) == ("c", "b")


@pytest.mark.parametrize(
    ("settings", "first", "second"),
    [
        ({"ordering": "completion"}, ("d", "c"), ("b", "a")),
        ({"ordering": "dispatch"}, ("c", "d"), ("a", "b")),
        ({"ordering": "window", "order_window": 4}, ("c", "d"), ("a", "b")),
        ({"ordering": "window", "order_window": 3}, None, ("a", "b")),
        ({"ordering": "window", "order_window": 1}, None, ("a", "b")),
    ],
)
def test_order_of_the_batches(settings, first, second):
    """Dispatched a, b, c, d; finished d, c and then b, a."""
    q = queue(**settings)
    fill(q, "abcd")
    q.finish("d", 1.0)
    q.finish("c", 2.0)
    assert q.take(2, 0, 2.0) == first
    q.finish("b", 3.0)
    q.finish("a", 4.0)
    assert q.take(2, 0, 4.0) == second


def test_a_window_does_not_slide_past_its_head():
    q = queue(ordering="window", order_window=3, workers=8)
    fill(q, "abcdefg")
    for now, id in enumerate("bcdefg"):
        q.finish(id, float(now))
    assert q.take(2, 0, 9.0) == ("b", "c"), "inside the window a, b, c"
    assert q.take(2, 0, 9.0) is None, "a holds it, although four are ready behind"
    q.finish("a", 10.0)
    assert q.take(2, 0, 10.0) == ("a", "d"), "taking the head moves the window on"
    assert q.take(2, 0, 10.0) == ("e", "f")


def test_a_crashed_head_strands_nobody():
    q = queue(ordering="window", order_window=1)
    fill(q, "abc")
    q.finish("b", 1.0)
    q.finish("c", 2.0)
    assert q.take(2, 0, 2.0) is None
    q.crash("a", 3.0)
    assert q.take(2, 0, 3.0) == ("b", "c")


def test_stale_rollouts_go_as_soon_as_they_are_too_old():
    q = queue(staleness="drop", max_staleness=1)
    fill(q, "abc")
    q.finish("a", 1.0)
    assert q.capacity(1) == 2
    assert q.ready == 1, "one version old is still used"
    q.capacity(2)
    assert q.ready == 0
    assert q.finish("b", 2.0) is False, "too old when it arrives"
    assert q.drain_dropped() == (("a", "stale"), ("b", "stale"))
    assert q.counts.dropped == {"stale": 2}


def test_over_provision_aborts_what_is_left_and_waits_for_the_update():
    q = queue(over_provision=1.5, workers=3)
    assert q.capacity(0) == 3
    fill(q, "abc")
    q.finish("c", 1.0)
    q.finish("a", 2.0)
    assert q.take(2, 0, 2.0) == ("c", "a")
    assert q.drain_dropped() == (("b", "aborted"),)
    assert q.capacity(0) == 0
    assert q.capacity(1) == 3


def test_recycled_rollouts_count_towards_the_next_round():
    q = queue(over_provision=1.5, workers=3, unfinished="recycle")
    fill(q, "abc")
    q.finish("c", 1.0)
    q.finish("a", 2.0)
    assert q.take(2, 0, 2.0) == ("c", "a")
    assert q.in_flight == 1
    assert q.capacity(1) == 2


def test_a_restart_window_is_a_batch_of_what_finished_in_time():
    q = queue(restart_window_s=5.0, workers=3)
    fill(q, "abc", now=10.0)
    assert q.window_closes_at == 15.0
    q.finish("a", 11.0)
    assert q.take(1, 0, 14.0) is None
    q.finish("b", 15.0)
    assert q.finish("c", 15.1) is False
    assert q.take(1, 0, 16.0) == ("a", "b")
    assert q.counts.dropped == {"window": 1}
    assert q.capacity(0) == 0
    assert q.capacity(1) == 3


def test_an_empty_window_makes_no_batch_and_opens_again():
    q = queue(restart_window_s=5.0, workers=1)
    fill(q, "a")
    assert q.take(1, 0, 5.0) is None
    assert q.counts.dropped == {"window": 1}
    assert q.capacity(0) == 1, "no update was made, so none is waited for"


@pytest.mark.parametrize("timeouts", ["score", "mask"])
def test_timeouts_are_outcomes_or_nothing(timeouts):
    q = queue(timeouts=timeouts)
    fill(q, "ab")
    assert q.finish("a", 1.0, status="timeout") is (timeouts == "score")
    assert q.finish("b", 2.0, status="error"), "a failing program is an outcome under every rule"
    assert q.ready == (2 if timeouts == "score" else 1)


def test_turn_over_is_finish_and_dispatch_in_turn():
    fast, slow = queue(), queue()
    for q in (fast, slow):
        fill(q, range(4))
    fast.turn_over([2, 4, 0], [4, 5, 6], 1, 7.0)  # 4 begins and ends inside the segment
    for finished, new in zip([2, 4, 0], [4, 5, 6], strict=True):
        slow.finish(finished, 7.0)
        slow.dispatch(new, 1, 7.0)
    assert fast.state_dict() == slow.state_dict()


@pytest.mark.parametrize(
    ("finished", "new"), [("a", "a"), ("z", "b"), ("a", "bc"), ("aa", "bc"), ("ab", "cc")]
)
def test_turn_over_with_wrong_ids_is_refused(finished, new):
    q = queue()
    fill(q, "ab")
    with pytest.raises(MleRlError):
        q.turn_over(finished, new, 0, 1.0)


@pytest.mark.parametrize(
    "rule",
    [
        {"staleness": "admit", "max_staleness": 1},
        {"over_provision": 2.0},
        {"restart_window_s": 1.0},
    ],
)
def test_turn_over_is_refused_where_a_free_worker_may_have_to_wait(rule):
    q = queue(**rule)
    fill(q, "a")
    with pytest.raises(MleRlError, match="always goes on"):
        q.turn_over("a", "b", 0, 1.0)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda q: q.dispatch("a", 0, 1.0), "dispatched twice"),
        (lambda q: q.start("a", 1.0), "not waiting"),
        (lambda q: q.start("z", 1.0), "not waiting"),
        (lambda q: q.finish("z", 1.0), "not in flight"),
        (lambda q: q.crash("z", 1.0), "not in flight"),
        (lambda q: q.take(3, 0, 1.0), "1 to 2"),
        (lambda q: q.take(0, 0, 1.0), "1 to 2"),
        *(
            (lambda q, now=now: q.finish("a", now), "never goes back")
            for now in (-1.0, float("nan"), float("inf"))
        ),
        (lambda q: fill(q, "vwxyz"), "No rollout is admitted"),
    ],
)
def test_misuse_is_refused_and_changes_nothing(wrong, sentence):
    q = queue()
    fill(q, "a")
    before = q.counts
    with pytest.raises(MleRlError, match=sentence):
        wrong(q)
    if sentence != "No rollout is admitted":
        assert q.counts == before
    assert q.counts.conserved


def test_a_saved_queue_goes_on_with_nothing_lost():
    q = queue(ordering="window", order_window=3, workers=8, max_in_flight=8)
    fill(q, range(6))
    for id in (1, 2, 4):
        q.finish(id, 1.0)
    q.take(2, 0, 1.0)
    q.crash(3, 2.0)
    resumed = queue(ordering="window", order_window=3, workers=8, max_in_flight=8)
    resumed.load_state_dict(json.loads(json.dumps(q.state_dict())))
    assert resumed.state_dict() == q.state_dict()
    assert resumed.counts == q.counts
    assert resumed.in_flight_ids() == (0, 5)
    assert resumed.running_ids() == (), "what was running is waiting for a worker again"
    for each in (q, resumed):
        each.finish(0, 3.0)
    assert resumed.take(2, 1, 3.0) == q.take(2, 1, 3.0) == (0, 4)


def test_a_window_that_is_resumed_closes():
    q = queue(restart_window_s=5.0, workers=1)
    fill(q, ["a"])
    resumed = queue(restart_window_s=5.0, workers=1)
    resumed.load_state_dict(q.state_dict())
    assert resumed.capacity(0) == 0
    resumed.start("a", 100.0)
    resumed.finish("a", 104.0)
    assert resumed.take(1, 0, 105.0) == ("a",)


def test_a_state_of_another_rule_is_refused():
    with pytest.raises(MleRlError, match="another configuration"):
        queue().load_state_dict(queue(workers=5).state_dict())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 2.5}, "workers"),
        ({"batch_size": True}, "batch_size"),
        ({"ordering": "random"}, "completion, dispatch, window"),
        ({"over_provision": 0.5}, "over_provision"),
        ({"over_provision": float("nan")}, "over_provision"),
        ({"over_provision": float("inf")}, "over_provision"),
        ({"over_provision": "1.5"}, "over_provision"),
        *(
            ({name: bad, **extra}, name)
            for name, extra in (
                ("restart_window_s", {}),
                ("sticky_window_s", {"worker_rule": "sticky"}),
            )
            for bad in (0.0, -1.0, float("nan"), float("inf"), "8", True)
        ),
        ({"max_staleness": 3}, "any age"),
        ({"staleness": "drop"}, "needs max_staleness"),
        ({"staleness": "admit"}, "needs max_staleness"),
        ({"staleness": "admit", "max_staleness": -1}, "max_staleness"),
        ({"ordering": "window"}, "needs order_window"),
        ({"ordering": "window", "order_window": 0}, "order_window"),
        ({"order_window": 4}, "no effect"),
        ({"unfinished": "recycle"}, "no effect"),
        ({"worker_rule": "sticky"}, "needs sticky_window_s"),
        ({"sticky_window_s": 3.0}, "no effect"),
        ({"worker_rule": "per_task", "max_in_flight": 9}, "cannot exceed workers"),
        (
            {"worker_rule": "sticky", "sticky_window_s": 1.0, "max_in_flight": 9},
            "cannot exceed workers",
        ),
        ({"over_provision": 2.0, "restart_window_s": 3.0}, "choose one"),
        ({"over_provision": 2.0, "staleness": "admit", "max_staleness": 1}, "choose one"),
        ({"over_provision": 2.0, "staleness": "drop", "max_staleness": 1}, "ever stale"),
        ({"over_provision": 2.0, "ordering": "dispatch"}, "completion"),
        ({"over_provision": 2.0, "max_in_flight": 9}, "already says"),
        ({"over_provision": 2.0, "worker_rule": "sticky", "sticky_window_s": 1.0}, "choose one"),
        ({"restart_window_s": 3.0, "staleness": "drop", "max_staleness": 1}, "ever stale"),
        ({"restart_window_s": 3.0, "ordering": "window", "order_window": 2}, "no effect"),
        (
            {"restart_window_s": 3.0, "worker_rule": "sticky", "sticky_window_s": 1.0},
            "same value",
        ),
    ],
)
def test_contradictions_are_refused_with_a_sentence(settings, sentence):
    with pytest.raises(MleRlError, match=sentence) as error:
        queue(**settings)
    text = str(error.value)
    assert text[-1] == "."
    assert "\n" not in text


def test_what_waits_and_is_too_old_can_be_dropped_before_it_runs():
    """0 runs, 1 and 2 wait; nobody is held up by those that are gone."""
    rule = {"staleness": "drop", "max_staleness": 0, "ordering": "window", "order_window": 1}
    q = queue(workers=1, batch_size=1, max_in_flight=3, **rule)
    for id in (0, 1, 2):
        q.dispatch(id, 0, 0.0)
    q.start(0, 0.0)
    q.expire(1.0)
    assert q.capacity(0) == 0, "of use until the learner has gone on"
    q.expire(2.0, version=1)
    assert q.drain_dropped() == ((1, "stale"), (2, "stale"))
    assert q.capacity(1) == 2
    q.dispatch(3, 1, 2.0)
    assert not q.finish(0, 3.0)
    q.start(3, 3.0)
    q.finish(3, 4.0)
    assert q.take(1, 1, 4.0) == (3,)
    assert q.counts.conserved
