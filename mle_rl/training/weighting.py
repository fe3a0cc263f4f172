"""What a training run makes of durations. Without torch, so that settings load fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mle_rl.errors import MleRlError


@dataclass(frozen=True)
class DurationWeighting:
    """How much each sample's gradient counts; see `mle_rl.losses.duration_weights`."""

    scheme: Literal["none", "paper", "task_mean", "inclusion"] = "none"
    """none: 1. paper: its own duration (right if workers repeat one action for a fixed time).
    task_mean: mean duration of its task (one worker per task). inclusion: inverse probability of
    having been kept by the queue. Rows need duration_s; task_mean also task, inclusion the like."""

    floor_s: float = 0.01
    """Shorter durations count as this many seconds."""

    inclusion_floor: float = 0.05
    """Smaller probabilities of being kept count as this: bias for less variance."""

    charge_time: bool = False
    """Charge every second what a second has earned so far, rho = E[R] / E[D] (reward rate)."""

    def __post_init__(self):
        if self.charge_time and self.scheme != "none":
            raise MleRlError(
                "charge_time makes time cost, and a weighting scheme makes slow programs count "
                "more: leave out one of them."
            )

    @property
    def objective(self) -> str:
        """What the learner climbs, for the label of a curve; D is duration, R reward."""
        if self.charge_time:
            return "E[R]/E[D]"
        return "E[DR]/E[D]" if self.scheme == "paper" else "E[R]"
