"""The three orders in which finished rollouts leave the queue.

Each class holds the rollouts that are ready and hands out the next ``n``. They see tickets,
``(dispatch number, model version, id)``: enough to order by dispatch, to judge age, and to name the
rollout. Dispatch numbers are unique, so ids are never compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush

from mle_rl.rollout.config import QueueConfig

Ticket = tuple[int, int, Hashable]


class CompletionOrder:
    """First finished, first taken: fast work overtakes slow work that was dispatched before it."""

    def __init__(self):
        self._ready: list[Ticket] = []
        self.add = self._ready.append
        self.add_many = self._ready.extend

    def __len__(self) -> int:
        return len(self._ready)

    def tickets(self) -> list[Ticket]:
        """The ready tickets in the order in which :meth:`take` would hand them out."""
        return list(self._ready)

    def dispatched(self, numbers: Iterable[int]) -> None:
        """Completion order has no use for the order of dispatch."""

    def dropped(self, number: int) -> None:
        """Nor for rollouts that will never finish."""

    def take(self, n: int) -> list[Ticket] | None:
        """Removes and returns the next ``n`` tickets; None, unchanged, when there are fewer."""
        if len(self._ready) < n:
            return None
        taken = self._ready[:n]
        del self._ready[:n]
        return taken

    def remove_older(self, version: int) -> list[Ticket]:
        """Removes and returns every ticket sampled before model version ``version``."""
        stale = [t for t in self._ready if t[1] < version]
        if stale:
            self._ready[:] = [t for t in self._ready if t[1] >= version]
        return stale

    def line(self) -> None:
        """The tickets are the whole state."""

    def set_line(self, state: None) -> None:
        """Nothing to restore."""


class DispatchOrder:
    """Oldest dispatched first, among whatever is ready; what is still running is not waited for."""

    def __init__(self):
        self._ready: list[Ticket] = []

    def __len__(self) -> int:
        return len(self._ready)

    def tickets(self) -> list[Ticket]:
        """The ready tickets in the order in which :meth:`take` would hand them out."""
        return sorted(self._ready)

    def add(self, ticket: Ticket) -> None:
        """A rollout finished."""
        heappush(self._ready, ticket)

    def add_many(self, tickets: Iterable[Ticket]) -> None:
        """Several rollouts finished."""
        for ticket in tickets:
            heappush(self._ready, ticket)

    def dispatched(self, numbers: Iterable[int]) -> None:
        """The ticket itself carries the dispatch number."""

    def dropped(self, number: int) -> None:
        """A rollout that will never finish holds up nobody here."""

    def take(self, n: int) -> list[Ticket] | None:
        """Removes and returns the next ``n`` tickets; None, unchanged, when there are fewer."""
        if len(self._ready) < n:
            return None
        return [heappop(self._ready) for _ in range(n)]

    def remove_older(self, version: int) -> list[Ticket]:
        """Removes and returns every ticket sampled before model version ``version``."""
        stale = sorted(t for t in self._ready if t[1] < version)
        if stale:
            self._ready = [t for t in self._ready if t[1] >= version]
            heapify(self._ready)
        return stale

    def line(self) -> None:
        """The tickets are the whole state."""

    def set_line(self, state: None) -> None:
        """Nothing to restore."""


class WindowOrder(DispatchOrder):
    """Dispatch order in which overtaking is bounded; a window of 1 is strict dispatch order.

    Rollouts are taken one by one, always the oldest that is ready among the ``window`` that begin
    with the oldest one not yet taken; a batch is complete when ``n`` of them have been. Those taken
    out of turn keep their place, so the window does not move on until its head has been taken.
    Dropped rollouts have no place. With admission control a rollout is then never more than
    ``max_staleness + 1 + (window - 2) // batch_size`` versions old when it is taken.
    """

    def __init__(self, window: int):
        super().__init__()
        self._window = window
        self._line: deque[int] = deque()  # dispatch numbers from the oldest one not yet taken
        self._out_of_turn: set[int] = set()  # those of them that are taken
        self._ready_numbers: set[int] = set()
        self._head = 0  # place in the line of the oldest rollout that has not finished
        self._eligible = 0  # ready and inside the window; counted so that waiting costs nothing

    def add(self, ticket: Ticket) -> None:
        """A rollout finished."""
        super().add(ticket)
        number = ticket[0]
        self._ready_numbers.add(number)
        if number == self._line[self._head]:
            self._recount()
        else:
            self._eligible += number <= self._last()

    def add_many(self, tickets: Iterable[Ticket]) -> None:
        """Several rollouts finished."""
        for ticket in tickets:
            self.add(ticket)

    def dispatched(self, numbers: Iterable[int]) -> None:
        """New rollouts join the end of the line; none of them is ready."""
        self._line.extend(numbers)

    def dropped(self, number: int) -> None:
        """A rollout that will never be taken leaves the line."""
        self._line.remove(number)
        self._recount()

    def take(self, n: int) -> list[Ticket] | None:
        """Removes and returns the next ``n`` tickets; None, unchanged, when fewer are eligible."""
        if self._eligible < n:
            return None
        taken = [heappop(self._ready) for _ in range(n)]
        numbers = [number for number, _, _ in taken]
        self._out_of_turn.update(numbers)
        self._ready_numbers.difference_update(numbers)
        self._recount()
        return taken

    def _last(self) -> int:
        """The newest dispatch number inside the window, once all before its head are taken."""
        return self._line[min(self._head + self._window, len(self._line)) - 1]

    def _recount(self) -> None:
        line = self._line
        while line and line[0] in self._out_of_turn:
            self._out_of_turn.remove(line.popleft())
        done = (n in self._ready_numbers or n in self._out_of_turn for n in line)
        self._head = next((i for i, finished in enumerate(done) if not finished), len(line))
        last = self._last() if line else -1
        self._eligible = sum(number <= last for number in self._ready_numbers)

    def remove_older(self, version: int) -> list[Ticket]:
        """Removes and returns every ticket sampled before model version ``version``."""
        stale = super().remove_older(version)
        for number, _, _ in stale:
            self._ready_numbers.discard(number)
            self.dropped(number)
        return stale

    def line(self) -> dict[str, list[int]]:
        """The state that the tickets do not carry."""
        return {"line": list(self._line), "out_of_turn": sorted(self._out_of_turn)}

    def set_line(self, state: dict[str, list[int]]) -> None:
        """Restores what :meth:`line` returned."""
        self._line = deque(state["line"])
        self._out_of_turn = set(state["out_of_turn"])
        self._recount()


def order_of(config: QueueConfig) -> CompletionOrder | DispatchOrder | WindowOrder:
    """The order that a configuration names."""
    if config.ordering == "completion":
        return CompletionOrder()
    if config.ordering == "dispatch":
        return DispatchOrder()
    return WindowOrder(config.order_window)
