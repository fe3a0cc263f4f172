"""The archive of earlier solutions, from which the self-improvement prompt is fed (paper, section
3).

By default it keeps valid solutions only: showing failed programs for debugging helped the paper's
small model little. It is bounded, so a long run does not grow, and it is plain data, so a run can
be resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import numpy as np

from mle_rl.records import Execution, Outcome, Program

_SHOWN_OUTPUT = 160
"""Characters of a program's output that a prompt shows: the last ones, where scores are printed."""


@dataclass(frozen=True)
class Solution:
    """An earlier program and what it printed and scored.

    Attributes:
        output: The end of its standard output, values of training loss and validation score
            included.
        score: Score on the reward split, None for a program without a valid submission.
    """

    program: Program
    output: str
    score: float | None


@dataclass
class Archive:
    """The last ``capacity`` distinct solutions of one task.

    Attributes:
        valid_only: Refuse solutions without a valid submission.
    """

    capacity: int = 512
    valid_only: bool = True
    solutions: dict[str, Solution] = field(default_factory=dict)

    def add(self, program: Program, execution: Execution, outcome: Outcome) -> None:
        """Remember a program that ran; the oldest is forgotten when the archive is full."""
        if self.valid_only and not outcome.valid:
            return
        score = outcome.reward_score if outcome.valid else None
        self.solutions.pop(program.code, None)
        self.solutions[program.code] = Solution(program, shown_output(execution), score)
        while len(self.solutions) > self.capacity:
            del self.solutions[next(iter(self.solutions))]

    def draw(
        self, rng: np.random.Generator, weight: Callable[[Solution], float] | None = None
    ) -> Solution | None:
        """A solution at random, or None while the archive is empty.

        Args:
            weight: Relative frequency of a solution; uniform when None.
        """
        if not self.solutions:
            return None
        kept = list(self.solutions.values())
        if weight is None:
            return kept[rng.integers(len(kept))]
        weights = np.array([weight(solution) for solution in kept], dtype=float)
        return kept[rng.choice(len(kept), p=weights / weights.sum())]

    def state_dict(self) -> list[dict]:
        """The solutions as plain data, oldest first."""
        return [asdict(solution) for solution in self.solutions.values()]

    def load_state_dict(self, state: list[dict]) -> None:
        """Restore what `state_dict` returned."""
        restored = [Solution(Program(**s["program"]), s["output"], s["score"]) for s in state]
        self.solutions = {solution.program.code: solution for solution in restored}


def shown_output(execution: Execution) -> str:
    """The end of what a program printed, whole lines, with values that markers carried but it did
    not print."""
    lines = execution.stdout.strip().splitlines()
    for marker in execution.markers:
        if marker.value is not None and not any(f"{marker.value:.3f}" in line for line in lines):
            name = "training loss" if marker.stage == "training_loss_seen" else "validation score"
            lines.append(f"{name}: {marker.value:.3f}")
    text = "\n".join(lines[-4:])[-_SHOWN_OUTPUT:]
    return text + "\n" if text else ""
