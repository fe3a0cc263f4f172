"""The three orders in which finished rollouts leave the queue.

Each class holds the rollouts that are ready and hands out the next ``n``. They see tickets,
``(dispatch number, model version, id)``: enough to order by dispatch, to judge age, and to name the
rollout. Dispatch numbers are unique, so ids are never compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush

Ticket = tuple[int, int, Hashable]


class CompletionOrder:
    """First finished, first taken: fast work overtakes slow work that was dispatched before it."""

    def __init__(self):
        self._ready: deque[Ticket] = deque()
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
        pop = self._ready.popleft
        return [pop() for _ in range(n)]

    def remove_older(self, version: int) -> list[Ticket]:
        """Removes and returns every ticket sampled before model version ``version``."""
        stale = [t for t in self._ready if t[1] < version]
        if stale:
            fresh = [t for t in self._ready if t[1] >= version]
            self._ready.clear()
            self._ready.extend(fresh)
        return stale


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


class WindowOrder(DispatchOrder):
    """Dispatch order in which overtaking is bounded.

    Only the ``window`` rollouts that begin with the oldest one not yet taken may be taken. Those
    taken out of turn keep their place in the window, so it does not move on until its head has been
    taken (or dropped); rollouts that were dropped have no place. With admission control, a rollout
    is then never more than ``max_staleness + (window - 1) // batch_size`` versions old when it is
    taken, which is ``max_staleness`` in strict order.
    """

    def __init__(self, window: int):
        super().__init__()
        self._window = window
        self._line: deque[int] = deque()
        self._out_of_turn: set[int] = set()

    def dispatched(self, numbers: Iterable[int]) -> None:
        """New rollouts join the end of the line."""
        self._line.extend(numbers)

    def dropped(self, number: int) -> None:
        """A rollout that will never be taken leaves the line."""
        self._line.remove(number)
        self._advance()

    def take(self, n: int) -> list[Ticket] | None:
        """Removes and returns the next ``n`` tickets; None, unchanged, when fewer are eligible."""
        if len(self._ready) < n:
            return None
        last = self._line[min(self._window, len(self._line)) - 1]
        taken = []
        while self._ready and len(taken) < n and self._ready[0][0] <= last:
            taken.append(heappop(self._ready))
        if len(taken) < n:
            self.add_many(taken)
            return None
        self._out_of_turn.update(number for number, _, _ in taken)
        self._advance()
        return taken

    def _advance(self) -> None:
        while self._line and self._line[0] in self._out_of_turn:
            self._out_of_turn.remove(self._line.popleft())

    def remove_older(self, version: int) -> list[Ticket]:
        """Removes and returns every ticket sampled before model version ``version``."""
        stale = super().remove_older(version)
        for number, _, _ in stale:
            self.dropped(number)
        return stale

    def line(self) -> dict[str, list[int]]:
        """The state that the tickets do not carry."""
        return {"line": list(self._line), "out_of_turn": sorted(self._out_of_turn)}

    def set_line(self, state: dict[str, list[int]]) -> None:
        """Restores what :meth:`line` returned."""
        self._line = deque(state["line"])
        self._out_of_turn = set(state["out_of_turn"])
