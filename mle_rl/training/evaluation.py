"""Samples of a policy, and what they say about it.

"Best" is always chosen by the reward split; the final split is for reports and chooses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from scipy.special import stdtrit

from mle_rl.agent import Solution
from mle_rl.agent.family import entropy, model_family
from mle_rl.records import Execution, Outcome, Program, PromptKind
from mle_rl.training.best_of import BestOf, best_of_k

ALARM_CHANCE = 0.01
"""Share of evaluations in which luck alone sets off the alarm, if gaps are normal."""
ALARM_LEAST = 8
"""Other valid programs that it takes to know what gap is normal."""
_MAD_TO_DEVIATION, _MAD_EFFICIENCY = 1.4826, 0.37  # of a normal distribution


@dataclass(frozen=True)
class Sample:
    """One completion of an evaluation.

    Attributes:
        program: None if the completion holds none.
        shown: The solution that the prompt showed; None for one from scratch.
    """

    kind: PromptKind
    program: Program | None
    execution: Execution
    outcome: Outcome
    shown: Solution | None = None


@dataclass(frozen=True)
class Evaluation:
    """Samples of one policy on one task, and what they say about it.

    Scores are in units and direction of the task's metric. "Best" is always chosen by the reward
    split; ``final`` scores are for reporting and choose nothing.
    """

    task: str
    higher_is_better: bool
    samples: tuple[Sample, ...]

    @property
    def valid(self) -> tuple[Sample, ...]:
        """The samples with a valid submission."""
        return tuple(s for s in self.samples if s.outcome.valid)

    @property
    def valid_share(self) -> float:
        """Share of samples with a valid submission."""
        return len(self.valid) / len(self.samples)

    @property
    def distinct_valid(self) -> int:
        """Number of different program texts among the valid samples."""
        return len({s.program.code for s in self.valid})

    @property
    def family_entropy(self) -> float:
        """Entropy of the model families of the valid samples, in nats; see `mle_rl.agent.family`.

        0 if all are of one family, or none is valid.
        """
        return entropy(model_family(s.program.code) for s in self.valid)

    @property
    def mean_reward_score(self) -> float:
        """Mean over the valid samples on the reward split; NaN if there is none."""
        return _mean([s.outcome.reward_score for s in self.valid])

    @property
    def mean_final_score(self) -> float:
        """Mean over the valid samples on the final split; NaN if there is none."""
        return _mean([s.outcome.final_score for s in self.valid])

    @property
    def best(self) -> Sample | None:
        """The valid sample with the best score on the reward split, None if there is none."""
        sign = 1 if self.higher_is_better else -1
        return max(self.valid, key=lambda s: sign * s.outcome.reward_score, default=None)

    @property
    def optimism(self) -> float:
        """How much better the best sample looks on the reward split than on the final one.

        Positive when it looks better than it is; NaN if nothing is valid.
        """
        return nan if self.best is None else self._gap(self.best)

    @property
    def alarm(self) -> str | None:
        """A sentence if the best sample's `optimism` is more than chance explains, else None.

        The rule: the gaps (reward split better than final split) of the other valid programs, each
        text counted once, say what is normal: their median, and their spread, which is 1.4826 times
        the median absolute deviation (their standard deviation where that is 0). The best one has
        been chosen, at worst for its gap. Of m programs with normal gaps the largest gap lies more
        than q spreads above the median in `ALARM_CHANCE` of all evaluations, where q is Student's
        quantile of ``1 - ALARM_CHANCE / m`` with 0.37 (m - 1) degrees of freedom: what the median
        absolute deviation is worth beside a standard deviation. A larger gap is no luck of the
        choice: the program, or the policy that was trained on this score, fits the reward split
        itself. Fewer than `ALARM_LEAST` other programs say too little; then there is no alarm.
        """
        if self.best is None:
            return None
        chosen = self.best.program.code
        others = {s.program.code: self._gap(s) for s in self.valid if s.program.code != chosen}
        if len(others) < ALARM_LEAST:
            return None
        gaps = np.array(list(others.values()))
        middle = np.median(gaps)
        spread = _MAD_TO_DEVIATION * np.median(abs(gaps - middle)) or gaps.std(ddof=1)
        m = len(gaps) + 1
        allowed = spread * stdtrit(_MAD_EFFICIENCY * (m - 1), 1 - ALARM_CHANCE / m)
        if self.optimism - middle <= allowed:
            return None
        return (
            f"The best sample looks {self.optimism:.4g} better on the "
            f"reward split than on the final one; of {len(gaps)} other programs the median is "
            f"{middle:.4g}, and chance explains up to {middle + allowed:.4g}. Do not trust its "
            "reward score: see what the program does."
        )

    def _gap(self, sample: Sample) -> float:
        """How much better a valid sample is on the reward split than on the final one."""
        gap = sample.outcome.reward_score - sample.outcome.final_score
        return gap if self.higher_is_better else -gap

    @property
    def durations_s(self) -> np.ndarray:
        """Execution times in seconds, (samples,)."""
        return np.array([s.execution.duration_s for s in self.samples])

    def best_of(self, k: int) -> BestOf:
        """What is to be expected of the best of ``k`` fresh samples; see `best_of_k`."""
        return best_of_k(
            [s.outcome.reward_score for s in self.samples],
            [s.outcome.final_score for s in self.samples],
            k,
            higher_is_better=self.higher_is_better,
        )

    def summary(self) -> dict[str, float]:
        """The numbers in one row."""
        best = self.best
        return {
            "samples": len(self.samples),
            "valid_share": self.valid_share,
            "distinct_valid": self.distinct_valid,
            "family_entropy": self.family_entropy,
            "mean_reward_score": self.mean_reward_score,
            "mean_final_score": self.mean_final_score,
            "best_reward_score": nan if best is None else best.outcome.reward_score,
            "best_final_score": nan if best is None else best.outcome.final_score,
            "optimism": self.optimism,
            "duration_mean_s": float(self.durations_s.mean()),
            "duration_median_s": float(np.median(self.durations_s)),
        }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else nan
