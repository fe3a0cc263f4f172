"""Evaluate a policy on fresh samples, honestly: select on the reward split, report the final split.

Nothing here knows of a training run: no queue, ledger, archive or statistics of one is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
import torch

from mle_rl.agent import Archive, Policy
from mle_rl.errors import MleRlError
from mle_rl.records import Execution, Outcome, Program, PromptKind
from mle_rl.rollout.environment import Environment
from mle_rl.rollout.sampling import sample
from mle_rl.training.assembly import sampling_settings
from mle_rl.training.best_of import BestOf, best_of_k

ROWS = 64
"""Completions sampled at once."""


@dataclass(frozen=True)
class Sample:
    """One completion of an evaluation; ``program`` is None if it holds none."""

    kind: PromptKind
    program: Program | None
    execution: Execution
    outcome: Outcome


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
        if self.best is None:
            return nan
        gap = self.best.outcome.reward_score - self.best.outcome.final_score
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
            "mean_reward_score": self.mean_reward_score,
            "mean_final_score": self.mean_final_score,
            "best_reward_score": nan if best is None else best.outcome.reward_score,
            "best_final_score": nan if best is None else best.outcome.final_score,
            "optimism": self.optimism,
            "duration_mean_s": float(self.durations_s.mean()),
            "duration_median_s": float(np.median(self.durations_s)),
        }


def evaluate(
    policy: Policy,
    environment: Environment,
    n: int = 128,
    *,
    earlier: Archive | None = None,
    temperature: float = 1.0,
    seed: int = 0,
) -> Evaluation:
    """Sample ``n`` programs, run them and grade them.

    Args:
        policy: Who writes.
        environment: Task and sandbox.
        n: Number of samples.
        earlier: Solutions to improve, one drawn for each sample; None solves from scratch.
        temperature: Of sampling.
        seed: Of tokens and of the solutions drawn.

    Raises:
        MleRlError: ``n`` is not positive, or there is no solution to improve.
    """
    if n < 1:
        raise MleRlError(f"An evaluation needs at least one sample, not {n}.")
    kind, prompts = _prompts(policy, environment, n, earlier, seed)
    settings = sampling_settings(policy, temperature)
    generator = torch.Generator().manual_seed(seed)
    running = []
    for start in range(0, n, ROWS):  # programs of the first rows run while the next are sampled
        rows = sample(policy.model, prompts[start : start + ROWS], settings, generator)
        programs = [policy.parse(row.ids) for row in rows]
        running += [(program, environment.submit(program)) for program in programs]
    samples = tuple(Sample(kind, program, *future.result()) for program, future in running)
    task = environment.task
    return Evaluation(task.id, task.higher_is_better, samples)


def _prompts(policy: Policy, environment: Environment, n: int, earlier: Archive | None, seed: int):
    """Prompt kind, and the token ids of n prompts."""
    if earlier is None:
        return "scratch", [policy.prompt_ids(environment.task, "scratch")] * n
    rng = np.random.default_rng(seed)
    solutions = [earlier.draw(rng) for _ in range(n)]
    if solutions[0] is None:
        raise MleRlError("There is no earlier solution to improve: the archive is empty.")
    return "improve", [policy.prompt_ids(environment.task, "improve", s) for s in solutions]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else nan
