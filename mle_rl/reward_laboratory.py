"""The reward laboratory: what reward settings do to programs that have already run.

Pure functions over graded executions. The same `RewardWeights` that are tried here go to training.
What to look at: does a failure ever earn more than a valid program (an inversion), what does the
learner see of each class of outcome (its advantage), and what could a program earn without solving
anything. `warnings_in_words` says the first and the last as sentences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd

from mle_rl import tasks
from mle_rl.errors import MleRlError
from mle_rl.records import STAGES, Execution, Outcome
from mle_rl.rewards import RewardWeights, largest_failing_reward, reward, scaled_score

CLASSES = ("valid", "no valid submission", "error", "timeout", "out of memory", "not run")
"""Classes of outcome, from best to worst."""

_CLASS_OF_STATUS = {
    "ok": "no valid submission",
    "error": "error",
    "timeout": "timeout",
    "out_of_memory": "out of memory",
    "killed": "error",
    "rejected": "not run",
}
_EPSILON = 1e-4


@dataclass(frozen=True)
class Sample:
    """One program that ran, as far as its reward depends on it."""

    outcome: Outcome
    status: str
    duration_s: float

    @classmethod
    def of(cls, execution: Execution, outcome: Outcome) -> Sample:
        """From what running and grading a program gave."""
        return cls(outcome, execution.status, execution.duration_s)

    @property
    def outcome_class(self) -> str:
        """One of `CLASSES`."""
        return "valid" if self.outcome.valid else _CLASS_OF_STATUS[self.status]


@dataclass(frozen=True)
class Scoring:
    """What a reward needs to know of a task.

    Attributes:
        higher_is_better: Direction of the metric.
        worst: The worst score that the metric can give; infinite where there is none.
        anchors: ``(baseline, best known)``, for the scale ``anchored``, or a function that looks
            them up.
        percentile: Score -> share of the leaderboard beaten, for the scale ``percentile``.
    """

    higher_is_better: bool
    worst: float
    anchors: tuple[float, float] | Callable[[], tuple[float, float]] | None = None
    percentile: Callable[[float], float] | None = None

    def compared(self, scale: str) -> dict:
        """What a scale compares scores with, as arguments of `mle_rl.rewards.reward`."""
        if scale == "anchored":
            return {"anchors": self.anchors() if callable(self.anchors) else self.anchors}
        return {"percentile": self.percentile} if scale == "percentile" else {}


def scoring_of(task: tasks.Task) -> Scoring:
    """The scoring of a task, with its own leaderboard.

    That is looked up when a scale first needs it, and raises MleRlError if there is none: raw
    scores are compared with nothing.
    """
    board = cache(partial(tasks.leaderboard, task))
    return Scoring(
        higher_is_better=task.higher_is_better,
        worst=tasks.METRICS[task.metric].worst,
        anchors=cache(partial(tasks.anchors, task)),
        percentile=lambda score: board().percentile(score),
    )


def rewards(samples: Sequence[Sample], weights: RewardWeights, scoring: Scoring) -> np.ndarray:
    """The reward of each sample, shape ``(samples,)``."""
    compared = scoring.compared(weights.score_scale)
    return np.array(
        [
            reward(
                sample.outcome,
                weights,
                higher_is_better=scoring.higher_is_better,
                duration_s=sample.duration_s,
                **compared,
            )
            for sample in samples
        ]
    )


def advantages(rewards: np.ndarray) -> np.ndarray:
    """What GRPO makes of the rewards of one group: centred, and divided by their deviation.

    Args:
        rewards: Shape ``(samples,)``, all of one group.

    Returns:
        Same shape, ``(r - mean) / (std + 1e-4)`` with the sample deviation, as TRL computes it.
    """
    if len(rewards) < 2:
        raise MleRlError("An advantage compares samples of one group; give at least two.")
    return (rewards - rewards.mean()) / (rewards.std(ddof=1) + _EPSILON)


def by_class(samples: Sequence[Sample], rewards: np.ndarray) -> pd.DataFrame:
    """Reward and advantage of each class of outcome.

    Returns:
        One row per class that occurs, in the order of `CLASSES`: ``outcome``, ``programs``,
        ``lowest``, ``mean`` and ``highest`` reward, mean ``advantage``, mean number of ``stages``.
    """
    table = pd.DataFrame(
        {
            "outcome": [sample.outcome_class for sample in samples],
            "reward": rewards,
            "advantage": advantages(rewards),
            "stages": [len(set(sample.outcome.stages)) for sample in samples],
        }
    )
    groups = table.groupby("outcome")
    rows = pd.DataFrame(
        {
            "programs": groups.size(),
            "lowest": groups["reward"].min(),
            "mean": groups["reward"].mean(),
            "highest": groups["reward"].max(),
            "advantage": groups["advantage"].mean(),
            "stages": groups["stages"].mean(),
        }
    )
    return rows.reindex([name for name in CLASSES if name in rows.index]).reset_index()


def inversions(samples: Sequence[Sample], rewards: np.ndarray) -> float:
    """Share of pairs of a failure and a valid program in which the failure earns as much or more.

    Zero when there are no such pairs.
    """
    valid = np.array([sample.outcome.valid for sample in samples], dtype=bool)
    failed, solved = rewards[~valid], rewards[valid]
    if not failed.size or not solved.size:
        return 0.0
    # For each failure, how many valid programs lie at or below it.
    beaten = np.searchsorted(np.sort(solved), failed, side="right")
    return float(beaten.sum() / (failed.size * solved.size))


def lowest_valid_reward(weights: RewardWeights, scoring: Scoring) -> float:
    """The least that a valid program can earn, before time is charged; may be minus infinity.

    Raises:
        MleRlError: The scale compares scores with a leaderboard, and the task has none.
    """
    floor = -math.inf if weights.valid_floor is None else weights.valid_floor
    if weights.score_scale == "percentile":
        if scoring.percentile is None:
            raise MleRlError("score_scale='percentile' needs the task's leaderboard.")
        return max(scoring.percentile(scoring.worst), floor)  # looks it up: there may be none
    compared = scoring.compared(weights.score_scale)
    if math.isinf(scoring.worst):
        return floor
    return max(scaled_score(scoring.worst, weights, scoring.higher_is_better, **compared), floor)


def warnings_in_words(
    weights: RewardWeights, scoring: Scoring, *, charge_time: bool = False
) -> list[str]:
    """What these settings make possible that they should not, each as a sentence.

    An empty list means that no failure can earn as much as any valid program, whatever the score
    and the stages.

    Args:
        weights: The settings.
        scoring: Of the task.
        charge_time: Whether the learner climbs the reward rate, see
            `mle_rl.training.weighting.DurationWeighting`.

    Raises:
        MleRlError: The scale compares scores with a leaderboard, and the task has none.
    """
    failing, valid = largest_failing_reward(weights), lowest_valid_reward(weights, scoring)
    found = []
    if valid <= failing:
        least = "without limit" if valid == -math.inf else f"to {valid:.3g}"
        found.append(
            f"A failure can beat a valid program: reaching all stages without a submission earns "
            f"{failing:.3g}, while a valid but poor score can fall {least}. "
            f"Use {_remedies(weights, failing, valid)}."
        )
    elif weights.time_cost_rate:
        seconds = (valid - failing) / weights.time_cost_rate
        found.append(
            f"A quick failure can beat a slow valid program: from {seconds:.3g} s on, time costs "
            "more than a valid submission is worth."
        )
    if charge_time and min(weights.failure, valid) < 0:
        found.append(
            "Rewards can be negative, and as long as their mean is, slow failures pay: a negative "
            "rate of reward rises with every second. Set failure to 0 and use a scale without "
            "negative scores ('percentile'), or leave out charge_time."
        )
    if weights.stage == 0:
        found.append(
            "Failures all earn the same: with no credit for stages there is nothing to learn from "
            "until a first program is valid."
        )
    most = weights.stage * len(STAGES)
    if weights.keep_stages_when_valid and most > 1 and weights.score_scale != "raw":
        found.append(
            f"Stages are worth up to {most:.3g} to a valid program, more than the "
            "whole range of its score: it pays more to show stages than to score."
        )
    return found


def _remedies(weights: RewardWeights, failing: float, valid: float) -> str:
    """What keeps every failure below every valid program, of the settings that can here."""
    helps = {
        "the scale 'percentile'": weights.score_scale != "percentile" and failing < 0,
        "a valid_floor": True,
        "a lower reward for failure": valid > -math.inf,
        "less credit for stages": weights.failure < valid,
    }
    *others, last = (name for name, does in helps.items() if does)
    return f"{', '.join(others)}{',' if len(others) > 1 else ''} or {last}" if others else last
