"""What a training run makes of durations. Without torch, so that settings load fast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args

from mle_rl.errors import MleRlError, unknown_name

Scheme = Literal["none", "paper", "task_mean", "inclusion"]


@dataclass(frozen=True)
class DurationWeighting:
    """How much each sample's gradient counts; see `mle_rl.losses.duration_weights`."""

    scheme: Scheme = "none"
    """none: 1. paper: its own duration (right if workers repeat one action for a fixed time).
    task_mean: mean duration of its task (one worker per task). inclusion: inverse probability of
    having been kept by a queue that drops what is stale. Rows need duration_s; task_mean also task,
    inclusion the like."""

    floor_s: float = 0.01
    """Shorter durations count as this many seconds."""

    inclusion_floor: float = 0.05
    """Smaller probabilities of being kept count as this: bias for less variance."""

    charge_time: bool = False
    """Charge every second what a second has earned so far, rho = E[R] / E[D] (reward rate).

    E[(R - rho D) g] = E[D] grad(E[R] / E[D]) holds for either sign of rho. As long as rewards are
    negative in the mean, rho is, and the rate rises with every second that a program takes: slow
    failures pay. Without negative rewards (``failure=0``, ``score_scale="percentile"``) this cannot
    be; otherwise the trainer warns when it happens."""

    def __post_init__(self):
        if self.scheme not in get_args(Scheme):
            raise unknown_name("duration weighting", str(self.scheme), get_args(Scheme))
        if not (isinstance(self.floor_s, Real) and 0 < self.floor_s < math.inf):
            raise MleRlError(f"floor_s is {self.floor_s!r}; give a positive number of seconds.")
        if not (isinstance(self.inclusion_floor, Real) and 0 <= self.inclusion_floor <= 1):
            raise MleRlError(f"inclusion_floor is {self.inclusion_floor!r}; give a probability.")
        if not isinstance(self.charge_time, bool):
            raise MleRlError(f"charge_time is {self.charge_time!r}; give True or False.")
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
