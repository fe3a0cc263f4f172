"""The rollout queue: every collection rule as one deterministic state machine.

The queue knows rollouts by their id and nothing else about them. It has no thread, no clock, no
tensor and no random number: time and model version come in as arguments, decisions go out as
return values. The simulation of :mod:`mle_rl.rollout.simulation` and the live driver that trains a
language model both run this code, so what is simulated is what trains.

A driver does four things: dispatch while :meth:`RolloutQueue.capacity` is positive, report what
starts, finishes or crashes, :meth:`~RolloutQueue.take` a batch, and cancel what
:meth:`~RolloutQueue.drain_dropped` names. Where rollouts are only useful as complete groups, the
item is the group: dispatch it once and finish it with its last member, so that no member can be
late, dropped or overtaken alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from itertools import repeat
from math import inf

from mle_rl.errors import MleRlError
from mle_rl.rollout.config import QueueConfig
from mle_rl.rollout.order import Ticket, order_of
from mle_rl.rollout.tally import Counts, DropReason, Tally

__all__ = ["Counts", "DropReason", "QueueConfig", "RolloutQueue"]


class RolloutQueue:
    """Decides which rollouts may start and which of the finished ones make up the next batch.

    All times are seconds on one clock of the driver, virtual or real, and are the time of the call:
    they may not go backwards.
    """

    def __init__(self, config: QueueConfig):
        self.config = config
        self._places = config.max_in_flight or config.workers
        self._in_rounds = config.in_rounds
        self._in_flight: dict[Hashable, Ticket] = {}
        self._running: set[Hashable] = set()
        self._ready = order_of(config)
        self._tally = Tally()
        self._now = -inf
        self._version = -1
        self._oldest_usable = -1
        self._last_round = -1
        self._window_opened_at: float | None = None

    # ---- what the driver may ask -------------------------------------------------------------

    def capacity(self, version: int) -> int:
        """How many rollouts may be dispatched now.

        Args:
            version: The learner's present model version, the number of updates made so far.
        """
        self._hear(version)
        config = self.config
        if self._in_rounds and version <= self._last_round:
            return 0
        if config.over_provision > 1:
            return max(0, config.round_size - len(self._in_flight) - len(self._ready))
        room = self._places - len(self._in_flight)
        if config.staleness == "admit":
            usable = (config.max_staleness + version + 1) * config.batch_size
            room = min(room, usable - self._tally.begun)
        return room if room > 0 else 0

    @property
    def in_flight(self) -> int:
        """Number of rollouts dispatched and not finished."""
        return len(self._in_flight)

    @property
    def ready(self) -> int:
        """Number of rollouts finished and not taken."""
        return len(self._ready)

    @property
    def counts(self) -> Counts:
        """Where every dispatched rollout is at this moment."""
        return self._tally.counts(len(self._in_flight), len(self._ready))

    @property
    def window_closes_at(self) -> float | None:
        """When the open restart window ends; None when there is none open."""
        if self.config.restart_window_s is None or self._window_opened_at is None:
            return None
        return self._window_opened_at + self.config.restart_window_s

    def in_flight_ids(self) -> tuple[Hashable, ...]:
        """Rollouts under way, in dispatch order. A resumed run executes these again."""
        return tuple(id for _, _, id in sorted(self._in_flight.values()))

    def running_ids(self) -> tuple[Hashable, ...]:
        """Rollouts that a worker is executing, in dispatch order."""
        return tuple(id for id in self.in_flight_ids() if id in self._running)

    def ready_ids(self) -> tuple[Hashable, ...]:
        """Finished rollouts, in the order in which they will be taken."""
        return tuple(id for _, _, id in self._ready.tickets())

    def drain_dropped(self) -> tuple[tuple[Hashable, DropReason], ...]:
        """Rollouts dropped since the last call, with the reason.

        The driver cancels those that still run and tells the ledger. It must ask after every take,
        because the list grows until it does.
        """
        return self._tally.drain()

    # ---- what the driver reports -------------------------------------------------------------

    def dispatch(self, id: Hashable, version: int, now: float) -> None:
        """A rollout has been sampled by model ``version`` and is under way.

        Raises:
            MleRlError: There is no capacity, or the id is already in flight.
        """
        self._tick(now)
        self._hear(version)
        if self.capacity(self._version) < 1:  # the learner may be ahead of the model that sampled
            raise MleRlError("No rollout is admitted at present; ask capacity(version) first.")
        if id in self._in_flight:
            raise MleRlError(f"Rollout {id!r} was dispatched twice; ids must be unique in a run.")
        number = self._tally.dispatched
        self._in_flight[id] = (number, version, id)
        self._tally.dispatched = number + 1
        self._ready.dispatched((number,))
        self._open_window(now)

    def start(self, id: Hashable, now: float) -> None:
        """A worker begins to execute the rollout. Time before this is queue time."""
        self._tick(now)
        if id not in self._in_flight or id in self._running:
            raise MleRlError(f"Rollout {id!r} cannot start: it is not waiting for a worker.")
        self._running.add(id)
        self._open_window(now)

    def finish(self, id: Hashable, now: float, status: str = "ok") -> bool:
        """The rollout has an outcome; failures of the *program* are outcomes too.

        It need not have started: a program may be rejected without being run.

        Args:
            id: A rollout in flight.
            now: Seconds.
            status: The execution's status. ``"timeout"`` is dropped if the rule masks time-outs.

        Returns:
            Whether it is now waiting for the learner; False when it was dropped.

        Raises:
            MleRlError: The rollout is not in flight; perhaps it was dropped, see
                :meth:`drain_dropped`.
        """
        self._tick(now)
        ticket = self._leave(id)
        reason = self._refusal(ticket, status, now)
        if reason is None:
            self._ready.add(ticket)
            return True
        self._drop(ticket, reason)
        return False

    def turn_over(
        self, finished: Sequence[Hashable], new: Sequence[Hashable], version: int, now: float
    ) -> None:
        """Workers finish and go on at once: ``finish`` of a rollout, ``dispatch`` of its successor.

        The same as the two calls for each pair in turn, several times faster, for drivers that
        know many completions ahead. A successor may itself be among those that finish later.

        Args:
            finished: Rollouts in flight (or among ``new``), in the order in which they finish.
            new: As many new rollouts, sampled by model ``version``.
            version: Model version of the new rollouts.
            now: Seconds, the time of the last completion.

        Raises:
            MleRlError: The rule is one under which finishing a rollout need not make room for
                another (admission control, rounds, windows). Or ids are wrong; the queue is then
                not to be used any more, because nothing is checked before it is done.
        """
        if self.config.staleness == "admit" or self._in_rounds:
            raise MleRlError("turn_over needs a rule under which a free worker always goes on.")
        self._tick(now)
        self._hear(version)
        first = self._tally.dispatched
        numbers = range(first, first + len(new))
        in_flight = self._in_flight
        expected = len(in_flight)
        in_flight.update(zip(new, zip(numbers, repeat(version), new)))  # noqa: B905
        distinct = len(in_flight) == expected + len(new)
        try:
            tickets = list(map(in_flight.pop, finished))
        except KeyError as unknown:
            raise MleRlError(f"Rollout {unknown.args[0]!r} is not in flight.") from None
        if not (distinct and len(in_flight) == expected):
            raise MleRlError("turn_over was given an id twice, or unequal numbers of ids.")
        self._tally.dispatched = first + len(new)
        self._ready.dispatched(numbers)
        if self._running:
            self._running.difference_update(finished)
        if self._oldest_usable > 0:
            for ticket in [t for t in tickets if t[1] < self._oldest_usable]:
                self._drop(ticket, "stale")
            tickets = [t for t in tickets if t[1] >= self._oldest_usable]
        self._ready.add_many(tickets)

    def crash(self, id: Hashable, now: float) -> None:
        """The machine, not the program, failed: the rollout is lost and its place is given back."""
        self._tick(now)
        self._drop(self._leave(id), "crashed")

    def expire(self, now: float, version: int = -1) -> None:
        """Drops what waits for a worker and is too old already; what runs is judged when it ends.

        For drivers that report every :meth:`start`: work that cannot be used is then not begun, and
        its place is given back at once.

        Args:
            now: Seconds.
            version: The learner's present model version, if it is news.
        """
        self._tick(now)
        self._hear(version)
        if self._oldest_usable <= 0:
            return
        waiting = [t for id, t in self._in_flight.items() if id not in self._running]
        for ticket in sorted(waiting):
            if ticket[1] < self._oldest_usable:
                self._drop(self._leave(ticket[2]), "stale")

    def take(self, n: int, version: int, now: float) -> tuple[Hashable, ...] | None:
        """Hands out the next batch.

        Args:
            n: Rollouts wanted, at most ``batch_size``. Under ``restart_window_s`` the smallest
                number worth an update: the batch is everything that finished in the window.
            version: The learner's present model version.
            now: Seconds.

        Returns:
            Ids in the configured order, or None when the rule does not (yet) give ``n`` of them.
        """
        self._tick(now)
        self._hear(version)
        if not 1 <= n <= self.config.batch_size:
            raise MleRlError(f"take asks for {n} rollouts; give 1 to {self.config.batch_size}.")
        if self.config.restart_window_s is not None:
            return self._take_window(n, version, now)
        if self._in_rounds and version <= self._last_round:
            return None
        tickets = self._ready.take(n)
        if tickets is None:
            return None
        self._tally.trained += n
        if self._in_rounds:
            self._last_round = version
            if self.config.unfinished == "abort":
                self._drop_in_flight("aborted")
                for late in self._ready.take(self.ready) or ():
                    self._drop(late, "aborted")
        return tuple([id for _, _, id in tickets])

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """Everything needed to go on, in flight and buffered rollouts included; plain JSON types
        if the ids are."""
        return {
            "config": asdict(self.config),
            "in_flight": [list(t) for t in sorted(self._in_flight.values())],
            "ready": [list(t) for t in self._ready.tickets()],
            "line": self._ready.line(),
            **self._tally.state_dict(),
            "version": self._version,
            "last_round": self._last_round,
        }

    def load_state_dict(self, state: Mapping) -> None:
        """Restores a saved state on a new clock.

        What was in flight is waiting again: the driver starts it anew, see :meth:`in_flight_ids`.

        Raises:
            MleRlError: The state was saved under another configuration.
        """
        if state["config"] != asdict(self.config):
            raise MleRlError(
                "The saved queue has another configuration than this one; resume with the "
                "configuration it was saved with, or start a new run."
            )
        self.__init__(self.config)  # forget everything, the old clock included
        self._in_flight = {id: (number, version, id) for number, version, id in state["in_flight"]}
        self._ready.set_line(state["line"])
        self._ready.add_many([tuple(t) for t in state["ready"]])
        self._tally.load_state_dict(state)
        self._last_round = state["last_round"]
        self._hear(state["version"])

    # ---- internals ---------------------------------------------------------------------------

    def _tick(self, now: float) -> None:
        if not self._now <= now < inf:
            raise MleRlError(
                f"Time went from {self._now} s to {now} s; give finite seconds of one clock that "
                "never goes back."
            )
        self._now = now

    def _hear(self, version: int) -> None:
        """Learns that the model has reached ``version``; what that makes too old is dropped."""
        if version <= self._version:
            return
        self._version = version
        if self.config.staleness == "drop":
            self._oldest_usable = version - self.config.max_staleness
            for ticket in self._ready.remove_older(self._oldest_usable):
                self._tally.drop(ticket[2], "stale")

    def _leave(self, id: Hashable) -> Ticket:
        ticket = self._in_flight.pop(id, None)
        if ticket is None:
            raise MleRlError(f"Rollout {id!r} is not in flight; it finished or was dropped before.")
        self._running.discard(id)
        return ticket

    def _refusal(self, ticket: Ticket, status: str, now: float) -> DropReason | None:
        """Why a rollout that has just finished may not be trained on."""
        if ticket[1] < self._oldest_usable:
            return "stale"
        if status == "timeout" and self.config.timeouts == "mask":
            return "timeout"
        closes_at = self.window_closes_at
        if closes_at is not None and now > closes_at:
            return "window"
        return None

    def _drop(self, ticket: Ticket, reason: DropReason) -> None:
        self._ready.dropped(ticket[0])
        self._tally.drop(ticket[2], reason)

    def _drop_in_flight(self, reason: DropReason) -> None:
        for ticket in sorted(self._in_flight.values()):
            self._drop(ticket, reason)
        self._in_flight.clear()
        self._running.clear()

    def _open_window(self, now: float) -> None:
        """A restart window opens with the first work after the last one, or after resuming."""
        if self.config.restart_window_s is not None and self._window_opened_at is None:
            self._window_opened_at = now

    def _take_window(self, n: int, version: int, now: float) -> tuple[Hashable, ...] | None:
        closes_at = self.window_closes_at
        if closes_at is None or now < closes_at:
            return None
        self._window_opened_at = None
        self._drop_in_flight("window")
        if len(self._ready) < n:
            return None
        tickets = self._ready.take(len(self._ready))
        self._tally.trained += len(tickets)
        self._last_round = version
        return tuple([id for _, _, id in tickets])
