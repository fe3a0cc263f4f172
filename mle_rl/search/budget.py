"""Wall-clock time that a search may take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from mle_rl.errors import MleRlError


class Budget:
    """Seconds on the clock of the wall, counted from the moment this is made.

    Whatever a method does meanwhile counts: sampling, training, waiting, grading.

    Args:
        seconds: How many.
        clock: Seconds, never going back.

    Raises:
        MleRlError: Not a positive, finite number.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        check_seconds(seconds)
        self.seconds = seconds
        self._clock = clock
        self._start = clock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, beyond the budget as well."""
        return self._clock() - self._start

    @property
    def left_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.seconds - self.elapsed_s)

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.elapsed_s >= self.seconds


def check_seconds(seconds: float) -> None:
    """Refuse a budget that is none.

    Raises:
        MleRlError: Not a positive, finite number.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise MleRlError(
            f"The budget of a search is {seconds:g} seconds: give a positive number, such as 600."
        )
