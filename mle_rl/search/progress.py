"""How far a search is, in lines: programs, valid share, best score, time left."""

from __future__ import annotations

from collections.abc import Callable

from mle_rl.search.budget import Budget

LINES = 10
"""About how many lines a search prints."""


class Progress:
    """Says how far a search is, about `LINES` times, whatever happens how often.

    Args:
        title: What the lines begin with.
        budget: Of the search.
        report: Is given the lines.
    """

    def __init__(self, title: str, budget: Budget, report: Callable[[str], None]):
        self._title, self._budget, self._report = title, budget, report
        self._next_s = 0.0

    def say(self, programs: int, valid: float, best: float | None) -> None:
        """Print a line if it is time to."""
        if self._budget.elapsed_s >= self._next_s:
            self._next_s = self._budget.elapsed_s + self._budget.seconds / LINES
            self._report(
                f"{self._state(programs, valid, best)}, {_clock(self._budget.left_s)} left"
            )

    def end(self, programs: int, valid: float, best: float | None) -> None:
        """The last line."""
        spent = _clock(self._budget.elapsed_s)
        self._report(f"{self._state(programs, valid, best)}, ended after {spent}")

    def _state(self, programs: int, valid: float, best: float | None) -> str:
        share = f"{valid / programs:.0%} valid" if programs else "none valid"
        # Not a number: a run of training without a valid program so far.
        shown = "none yet" if best is None or best != best else f"{best:.4f}"
        return f"{self._title}: {programs} programs, {share}, best {shown}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
