"""The collection rules as one frozen configuration; contradictory settings are refused.

Who gets into a training batch is decided by a handful of independent choices: how many rollouts may
be under way, in which order finished ones are taken, what happens to those that are too old, and
what an update does to those still running. Every engine in use is a point in this space; the
presets that the notebooks compare are in :mod:`mle_rl.rollout.laboratory.rules`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Literal, get_args, get_type_hints

from mle_rl.errors import MleRlError

Ordering = Literal["completion", "dispatch", "window"]
Staleness = Literal["keep", "drop", "admit"]
Unfinished = Literal["abort", "recycle"]
Timeouts = Literal["score", "mask"]
WorkerRule = Literal["renewal", "sticky", "per_task"]


@dataclass(frozen=True, kw_only=True)
class QueueConfig:
    """Which rollouts are started, and which of those that finish are trained on.

    The shortest one names how old a rollout may be, since by default nothing is dropped::

        QueueConfig(workers=8, batch_size=64, max_staleness=1)

    Attributes:
        workers: Rollouts that can execute at the same time.
        batch_size: Rollouts that one learner update consumes.
        ordering: ``"completion"`` takes what finished first; ``"dispatch"`` takes the oldest
            dispatched among what is ready; ``"window"`` does the same, but only ``order_window``
            rollouts, the oldest one not yet taken and those behind it, may be taken at all.
        order_window: Length of that window in rollouts. 1 is strict dispatch order.
        staleness: ``"keep"`` trains on everything; ``"drop"`` discards what is more than
            ``max_staleness`` versions old; ``"admit"`` discards nothing and dispatches only what
            can still be used: ``(max_staleness + version + 1) * batch_size - (accepted + in
            flight) > 0`` (AReaL, arXiv 2505.24298, section 5.1). With ``max_staleness=0`` this is
            synchronous collection.
        max_staleness: In learner updates; required by ``"drop"`` and ``"admit"``.
        over_provision: Above 1, collection goes in rounds, one per model version: each dispatches
            ``ceil(over_provision * batch_size)`` rollouts and ends when ``batch_size`` are ready.
        unfinished: What the end of a round does to the rest: ``"abort"`` or ``"recycle"`` (they
            run on into the next round; APRIL, arXiv 2509.18521).
        restart_window_s: All workers restart at every update; what has not finished after this
            many seconds is thrown away and everything that has finished is the batch.
        timeouts: Whether a rollout that reached its time limit is an outcome with a definite
            reward (``"score"``) or is thrown away (``"mask"``).
        worker_rule: What a free worker does next, for the driver to read: sample anew
            (``"renewal"``), repeat its action until ``sticky_window_s`` has passed (``"sticky"``),
            or sample for the one task it is bound to (``"per_task"``).
        sticky_window_s: Required by ``"sticky"``.
        max_in_flight: Rollouts dispatched and not finished, waiting ones included. The default is
            ``workers``; a live driver that samples in large batches sets more.

    Raises:
        MleRlError: A value is out of range, or two settings contradict each other.
    """

    workers: int
    batch_size: int
    ordering: Ordering = "dispatch"
    order_window: int | None = None
    staleness: Staleness = "admit"
    max_staleness: int | None = None
    over_provision: float = 1.0
    unfinished: Unfinished = "abort"
    restart_window_s: float | None = None
    timeouts: Timeouts = "score"
    worker_rule: WorkerRule = "renewal"
    sticky_window_s: float | None = None
    max_in_flight: int | None = None

    def __post_init__(self):
        for problem in chain(_out_of_range(self), _contradictions(self)):  # ranges first
            raise MleRlError(problem)

    @property
    def round_size(self) -> int:
        """Rollouts under way in one over-provisioned round."""
        return math.ceil(self.over_provision * self.batch_size - 1e-9)

    @property
    def in_rounds(self) -> bool:
        """Whether dispatch stops at a take and goes on with the next model version."""
        return self.over_provision > 1 or self.restart_window_s is not None


def _out_of_range(c: QueueConfig):
    """One sentence for each value that no rule allows."""
    hints = get_type_hints(QueueConfig)
    for name in ("ordering", "staleness", "unfinished", "timeouts", "worker_rule"):
        if getattr(c, name) not in get_args(hints[name]):
            known = ", ".join(get_args(hints[name]))
            yield f"{name} is {getattr(c, name)!r}; choose one of {known}."
    for name, least in (
        ("workers", 1),
        ("batch_size", 1),
        ("max_staleness", 0),
        ("order_window", 1),
        ("max_in_flight", 1),
    ):
        value = getattr(c, name)
        optional = name not in ("workers", "batch_size")
        if value is None and optional:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            yield f"{name} is {value!r}; give a whole number of at least {least}."
    for name in ("restart_window_s", "sticky_window_s"):
        value = getattr(c, name)
        if value is not None and not (_is_number(value) and 0 < value < math.inf):
            yield f"{name} is {value!r}; give a positive number of seconds."
    if not (_is_number(c.over_provision) and 1 <= c.over_provision < math.inf):
        yield (
            f"over_provision is {c.over_provision!r}; give a number of at least 1 (1.5 starts "
            "half as many again)."
        )


def _is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _contradictions(c: QueueConfig):
    """One sentence for each pair of settings that cannot both be meant."""
    if c.staleness == "keep" and c.max_staleness is not None:
        yield (
            "staleness='keep' trains on rollouts of any age; leave out max_staleness, or "
            "choose 'drop' or 'admit'."
        )
    if c.staleness != "keep" and c.max_staleness is None:
        yield (
            f"staleness={c.staleness!r} needs max_staleness, the age in learner updates that "
            "is still used."
        )
    if c.ordering == "window" and c.order_window is None:
        yield "ordering='window' needs order_window, how many rollouts are considered; 1 is strict."
    if c.ordering != "window" and c.order_window is not None:
        yield (
            f"order_window has no effect with ordering={c.ordering!r}; choose "
            "ordering='window' or leave it out."
        )
    if c.unfinished == "recycle" and c.over_provision == 1:
        yield (
            "unfinished='recycle' has no effect unless over_provision is above 1; everything "
            "else already runs on."
        )
    if c.worker_rule == "sticky" and c.sticky_window_s is None:
        yield (
            "worker_rule='sticky' needs sticky_window_s, the time for which a worker repeats "
            "its action."
        )
    if c.worker_rule != "sticky" and c.sticky_window_s is not None:
        yield "sticky_window_s has no effect unless worker_rule='sticky'."
    if c.worker_rule != "renewal" and (c.max_in_flight or 0) > c.workers:
        yield (
            f"worker_rule={c.worker_rule!r} samples only for a worker that is free; max_in_flight "
            "cannot exceed workers, so leave it out."
        )
    if c.over_provision > 1:
        yield from _round_contradictions(c)
    if c.restart_window_s is not None:
        yield from _window_contradictions(c)


def _round_contradictions(c: QueueConfig):
    if c.restart_window_s is not None:
        yield "over_provision ends a round by count and restart_window_s by time; choose one."
    if c.staleness == "admit":
        yield (
            "over_provision starts more than can be used and staleness='admit' forbids "
            "exactly that; choose one."
        )
    if c.unfinished == "abort" and c.staleness == "drop":
        yield (
            "Nothing is ever stale when unfinished rollouts are aborted at every update; set "
            "staleness='keep'."
        )
    if c.ordering != "completion":
        yield (
            "over_provision keeps the first batch_size rollouts that finish; set "
            "ordering='completion'."
        )
    if c.max_in_flight is not None:
        yield (
            "over_provision already says how many rollouts are in flight; leave out max_in_flight."
        )
    if c.worker_rule == "sticky":
        yield "A sticky worker repeats its action across updates, a round ends at one; choose one."


def _window_contradictions(c: QueueConfig):
    if c.staleness != "keep":
        yield (
            "Nothing is ever stale when all workers restart at every update; set staleness='keep'."
        )
    if c.ordering == "window":
        yield (
            "restart_window_s trains on everything that finished; an order window has no "
            "effect, so set ordering='completion'."
        )
    if c.worker_rule == "sticky" and c.sticky_window_s != c.restart_window_s:
        yield (
            "A sticky worker under restart_window_s repeats its action for that window; give "
            "sticky_window_s the same value."
        )
