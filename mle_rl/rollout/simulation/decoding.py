"""The sampling stage at work: slots that decode sequences, and pauses in which they stand still."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from mle_rl.rollout.simulation.stages import Generation


class Decoding:
    """Which slots are free, and how much longer a sequence takes because of pauses."""

    def __init__(self, generation: Generation, rng: np.random.Generator):
        self.generation = generation
        self._rng = rng
        self._free = list(range(generation.slots))  # a heap: the lowest free slot is taken first
        self._paused_until = 0.0
        self._pause_s = 0.0  # all pauses so far
        self._accounted_s = [0.0] * generation.slots  # of those, what its sequence has sat out

    def room(self, now: float) -> int:
        """How many sequences may begin now."""
        return 0 if now < self._paused_until else len(self._free)

    def begin(self) -> tuple[int, float]:
        """A sequence begins; its slot, and the seconds it takes if nothing pauses it."""
        slot = heappop(self._free)
        self._accounted_s[slot] = self._pause_s
        return slot, float(self.generation.seconds.sample(1, self._rng)[0])

    def pause(self, now: float, until: float) -> None:
        """All sequences stand still."""
        self._pause_s += until - now
        self._paused_until = until

    def still_to_come_s(self, slot: int) -> float:
        """When a sequence should be done: the length of the pauses it must still make up for."""
        late = self._pause_s - self._accounted_s[slot]
        self._accounted_s[slot] = self._pause_s
        return late

    def end(self, slot: int) -> None:
        """The sequence is complete, or given up."""
        heappush(self._free, slot)
