"""Figures of notebook 02: stages that programs reach, and what settings make of their rewards."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mle_rl.analysis.figures import OKABE_ITO
from mle_rl.records import STAGES
from mle_rl.reward_laboratory import CLASSES, Sample, Scoring, advantages, inversions, rewards
from mle_rl.rewards import RewardWeights

_LOOKS = {
    "valid": ("blue", "o"),
    "no valid submission": ("orange", "s"),
    "error": ("vermillion", "x"),
    "timeout": ("purple", "v"),
    "out of memory": ("green", "^"),
    "not run": ("black", "+"),
}


def draw_stages(samples: Sequence[Sample]) -> tuple[Figure, pd.DataFrame]:
    """Share of valid and of failed programs that reached each stage.

    Returns:
        The figure, and its numbers: one row per stage and group.
    """
    groups = {
        "valid": [s for s in samples if s.outcome.valid],
        "failed": [s for s in samples if not s.outcome.valid],
    }
    rows = [
        {
            "stage": stage,
            "programs": name,
            "count": len(group),
            "reached": float(np.mean([stage in s.outcome.stages for s in group])),
        }
        for name, group in groups.items()
        if group
        for stage in STAGES
    ]
    table = pd.DataFrame(rows)
    fig, axes = plt.subplots(figsize=(6.4, 3.2))
    places = np.arange(len(STAGES))[::-1]
    looks = {"valid": ("blue", "", 0.19), "failed": ("vermillion", "//", -0.19)}
    for name, (colour, hatch, shift) in looks.items():
        part = table[table.programs == name]
        if len(part):
            axes.barh(
                places + shift, part.reached, height=0.36, hatch=hatch, edgecolor="white",
                color=OKABE_ITO[colour], label=f"{name} ({part['count'].iloc[0]})",
            )  # fmt: skip
    axes.set(yticks=places, yticklabels=[s.replace("_", " ") for s in STAGES], xlim=(0, 1))
    axes.set(xlabel="share of programs that reached it")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    mean = np.mean([len(set(s.outcome.stages)) for s in groups["failed"]] or [0.0])
    axes.set_title(
        f"A failed program reached {mean:.1f} of 7 stages: that is what it can learn from"
    )
    return fig, table


def draw_rewards(
    samples: Sequence[Sample], weights: RewardWeights, scoring: Scoring
) -> tuple[Figure, pd.DataFrame]:
    """Reward of each program, and mean advantage of each class, under some settings.

    Returns:
        The figure, and its numbers: one row per program.
    """
    earned = rewards(samples, weights, scoring)
    table = pd.DataFrame(
        {
            "outcome": [s.outcome_class for s in samples],
            "stages": [len(set(s.outcome.stages)) for s in samples],
            "reward": earned,
            "advantage": advantages(earned),
        }
    )
    shown = [name for name in CLASSES if (table.outcome == name).any()]
    fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 2.9), width_ratios=(2, 1), sharey=True)
    for place, name in enumerate(reversed(shown)):
        part = table[table.outcome == name].sort_values("reward")
        colour, marker = _LOOKS[name]
        spread = np.linspace(-0.25, 0.25, len(part)) if len(part) > 1 else [0.0]
        left.scatter(
            part.reward, place + np.array(spread), s=18, marker=marker, color=OKABE_ITO[colour]
        )
        right.barh(place, part.advantage.mean(), height=0.5, color=OKABE_ITO[colour])
    labels = [f"{name} ({(table.outcome == name).sum()})" for name in reversed(shown)]
    left.set(yticks=range(len(shown)), yticklabels=labels, xlabel="reward")
    right.axvline(0, color="0.4", lw=0.8)
    right.set(xlabel="mean advantage")
    for axes in (left, right):
        axes.grid(axis="y", visible=False)
    share = inversions(samples, earned)
    finding = (
        "No failure beats a valid program"
        if share == 0
        else f"In {share:.0%} of pairs a failure beats a valid program"
    )
    left.set_title(f"{finding} ({weights.score_scale} score)")
    return fig, table
