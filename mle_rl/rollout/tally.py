"""How many rollouts went where: the books of the queue, and the sum that must hold in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal

DropReason = Literal["stale", "aborted", "window", "timeout", "crashed"]


@dataclass(frozen=True)
class Counts:
    """Where every dispatched rollout is.

    Attributes:
        dispatched: All that were ever dispatched.
        trained: Handed out in a batch.
        dropped: By reason; see :data:`DropReason`.
        in_flight: Dispatched, not finished: waiting for a worker or running.
        ready: Finished, waiting for the learner.
    """

    dispatched: int = 0
    trained: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    in_flight: int = 0
    ready: int = 0

    @property
    def conserved(self) -> bool:
        """Dispatched = trained + dropped + in flight + ready; anything else is a lost rollout."""
        accounted = self.trained + sum(self.dropped.values()) + self.in_flight + self.ready
        return self.dispatched == accounted


class Tally:
    """Counts what is for good, and keeps the drops until the driver has heard of them."""

    def __init__(self):
        self.dispatched = 0
        self.trained = 0
        self.drops: Counter[str] = Counter()
        self._unheard: list[tuple[Hashable, DropReason]] = []

    @property
    def begun(self) -> int:
        """Rollouts that were dispatched and not dropped: accepted or under way."""
        return self.dispatched - sum(self.drops.values())

    def drop(self, id: Hashable, reason: DropReason) -> None:
        """A rollout will never be trained on."""
        self.drops[reason] += 1
        self._unheard.append((id, reason))

    def drain(self) -> tuple[tuple[Hashable, DropReason], ...]:
        """The drops since the last call."""
        unheard, self._unheard = tuple(self._unheard), []
        return unheard

    def counts(self, in_flight: int, ready: int) -> Counts:
        """The books, with what the queue holds at this moment."""
        return Counts(self.dispatched, self.trained, dict(self.drops), in_flight, ready)

    def state_dict(self) -> dict:
        """Everything, in plain JSON types if the ids are."""
        return {
            "dispatched": self.dispatched,
            "trained": self.trained,
            "dropped": dict(self.drops),
            "undrained": [list(drop) for drop in self._unheard],
        }

    def load_state_dict(self, state: Mapping) -> None:
        """Restores what :meth:`state_dict` returned; other entries are left alone."""
        self.dispatched, self.trained = state["dispatched"], state["trained"]
        self.drops = Counter(state["dropped"])
        self._unheard = [tuple(drop) for drop in state["undrained"]]
