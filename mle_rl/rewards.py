"""Rewards: from what a program achieved to one number, and what the settings of that number do.

The paper's reward (section 2): -10 for a complete failure, +0.1 for each stage that instrumentation
saw, and the true score, its sign flipped where lower is better, for a valid submission. Each of
these is a setting here; `reward_laboratory` shows what a choice of settings does.

Departures from the paper, all settable: credit for stages is not added to a valid score (the paper
does not say); the score may be put on a scale of its own (``anchored``, ``percentile``), since raw
scores that leave -1..1 (an RMSE of 57) make a valid program worth less than a crash; time may cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mle_rl.errors import MleRlError, unknown_name
from mle_rl.records import STAGES, Outcome

ScoreScale = Literal["raw", "anchored", "percentile"]
SCORE_SCALES = ("raw", "anchored", "percentile")


@dataclass(frozen=True)
class RewardWeights:
    """What earns and costs how much."""

    failure: float = -10.0
    """Reward of a program without a valid submission, before any credit (paper: -10)."""

    stage: float = 0.1
    """Credit for each stage that was really reached (paper: 0.1)."""

    keep_stages_when_valid: bool = False
    """Whether a valid program gets the credit for its stages on top of its score."""

    score_scale: ScoreScale = "raw"
    """``raw``: the metric, higher is better. ``anchored``: 0 at the baseline, 1 at the best known.
    ``percentile``: share of the leaderboard that is beaten, 0 to 1."""

    valid_floor: float | None = None
    """A valid program's score counts at least this much; None sets no floor (paper: none)."""

    time_cost_rate: float = 0.0
    """Reward charged per second of execution, for every program alike (reward rate; paper: 0)."""

    def __post_init__(self) -> None:
        _need_number("failure", self.failure)
        _need_number("stage", self.stage, least=0.0)
        _need_number("time_cost_rate", self.time_cost_rate, least=0.0)
        if self.valid_floor is not None:
            _need_number("valid_floor", self.valid_floor)
        if not isinstance(self.keep_stages_when_valid, bool):
            raise MleRlError("RewardWeights.keep_stages_when_valid must be True or False.")
        if self.score_scale not in SCORE_SCALES:
            raise unknown_name("score_scale", str(self.score_scale), SCORE_SCALES)


def _need_number(name: str, value: object, least: float = -math.inf) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < least:
        wanted = "a finite number" + ("" if least == -math.inf else f" of {least:g} or more")
        raise MleRlError(f"RewardWeights.{name} is {value!r}; it must be {wanted}.")


def reward(
    outcome: Outcome,
    weights: RewardWeights,
    *,
    higher_is_better: bool,
    anchors: tuple[float, float] | None = None,
    percentile: Callable[[float], float] | None = None,
    duration_s: float | None = None,
) -> float:
    """The reward of one program.

    Args:
        outcome: The graded execution; ``reward_score`` is used, never ``final_score``.
        weights: The settings.
        higher_is_better: Direction of the task's metric.
        anchors: ``(baseline, best known)`` in units of the metric, for ``score_scale="anchored"``.
        percentile: Score -> share of the leaderboard beaten, 0 to 1, for ``"percentile"``.
        duration_s: Execution time, needed when time costs.

    Returns:
        A finite number.

    Raises:
        MleRlError: What the settings need is missing or not a finite number.
    """
    credit = weights.stage * len(set(outcome.stages))
    if outcome.valid:
        total = scaled_score(
            outcome.reward_score, weights, higher_is_better, anchors=anchors, percentile=percentile
        )
        if weights.valid_floor is not None:
            total = max(total, weights.valid_floor)
        total += credit if weights.keep_stages_when_valid else 0.0
    else:
        total = weights.failure + credit
    return total - _time_cost(weights, duration_s)


def scaled_score(
    score: float | None,
    weights: RewardWeights,
    higher_is_better: bool,
    *,
    anchors: tuple[float, float] | None = None,
    percentile: Callable[[float], float] | None = None,
) -> float:
    """A valid score on the scale of the settings, higher always better.

    Raises:
        MleRlError: The score is missing or not finite, or the scale lacks what it needs.
    """
    if score is None or not math.isfinite(score):
        raise MleRlError(
            f"A valid outcome has the score {score!r}; grading must give a finite number "
            "or call the submission invalid."
        )
    if weights.score_scale == "raw":
        return float(score if higher_is_better else -score)
    if weights.score_scale == "anchored":
        if (
            anchors is None
            or not all(math.isfinite(a) for a in anchors)
            or anchors[0] == anchors[1]
        ):
            raise MleRlError(
                "score_scale='anchored' needs two different finite scores, (baseline, best known), "
                f"not {anchors!r}."
            )
        baseline, best = anchors
        if (best > baseline) != higher_is_better:
            raise MleRlError(
                f"The best known score {best:g} is worse than the baseline {baseline:g}; "
                "swap the anchors."
            )
        return (score - baseline) / (best - baseline)
    if percentile is None:
        raise MleRlError("score_scale='percentile' needs the task's leaderboard: pass percentile=.")
    share = float(percentile(score))
    if not 0.0 <= share <= 1.0:
        raise MleRlError(f"The leaderboard gave the percentile {share!r}; it must lie in 0..1.")
    return share


def _time_cost(weights: RewardWeights, duration_s: float | None) -> float:
    if weights.time_cost_rate == 0.0:
        return 0.0
    if duration_s is None or not math.isfinite(duration_s) or duration_s < 0:
        raise MleRlError(
            f"time_cost_rate needs the execution time in seconds; duration_s is {duration_s!r}."
        )
    return weights.time_cost_rate * duration_s


def largest_failing_reward(weights: RewardWeights) -> float:
    """The most that a program without a valid submission can earn: every stage, in no time.

    It is also the most that printing alone could reach if prints counted, as they do in the paper.
    """
    return weights.failure + weights.stage * len(STAGES)
