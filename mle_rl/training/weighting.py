"""Which duration weights a training run uses. Without torch, so that settings load fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
