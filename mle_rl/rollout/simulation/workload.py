"""What the workers of a simulation are given to do: a policy over actions, and their durations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.simulation.durations import Constant, Distribution


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A categorical policy whose action ``a`` takes ``scale_s[a]`` times a draw of ``noise``.

    One action and a distribution is the renewal model; two or four actions are the bandits; one
    action per recorded execution, with equal probability, replays recorded durations.

    Attributes:
        scale_s: Duration of each action before noise, shape (actions,).
        probabilities: The policy, shape (actions,).
        noise: Law of the factor on the duration; the same for all actions.
        tasks: Task of each action, for workers that are bound to one; all the same by default.
        time_limit_s: What takes longer is stopped then, with status ``"timeout"``.
    """

    scale_s: Sequence[float] = (1.0,)
    probabilities: Sequence[float] | None = None
    noise: Distribution = field(default_factory=lambda: Constant(1.0))
    tasks: Sequence[int] | None = None
    time_limit_s: float = math.inf

    def __post_init__(self):
        n = len(self.scale_s)
        probabilities = self.probabilities if self.probabilities is not None else [1 / n] * n
        tasks = self.tasks if self.tasks is not None else [0] * n
        arrays = {
            "scale_s": np.asarray(self.scale_s, dtype=float),
            "probabilities": np.asarray(probabilities, dtype=float),
            "tasks": np.asarray(tasks, dtype=int),
        }
        if any(a.shape != (n,) for a in arrays.values()) or n == 0:
            raise MleRlError("A workload has one duration, probability and task for each action.")
        if not (np.isfinite(arrays["scale_s"]).all() and (arrays["scale_s"] > 0).all()):
            raise MleRlError("Durations of a workload must be positive and finite.")
        p = arrays["probabilities"]
        if not ((p >= 0).all() and abs(p.sum() - 1) < 1e-9):
            raise MleRlError("The probabilities of a workload must be non-negative and sum to 1.")
        if not self.time_limit_s > 0:
            raise MleRlError(f"time_limit_s is {self.time_limit_s}; give a positive number.")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @property
    def mean_s(self) -> float:
        """E[D] over the policy and the noise, without the time limit."""
        return float(self.probabilities @ self.scale_s) * self.noise.mean

    def draw(
        self, n: int, rng: np.random.Generator, probabilities: np.ndarray | None = None
    ) -> np.ndarray:
        """``n`` actions, by the workload's policy or by another one; shape (n,) of int."""
        cumulative = np.cumsum(self.probabilities if probabilities is None else probabilities)
        if len(cumulative) == 1:
            return np.zeros(n, dtype=int)
        return np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")

    def of_task(self, task: int, probabilities: np.ndarray | None = None) -> np.ndarray:
        """The policy given the task, shape (actions,)."""
        policy = self.probabilities if probabilities is None else probabilities
        p = np.where(self.tasks == task, policy, 0.0)
        if p.sum() == 0:
            raise MleRlError(f"No action of this workload belongs to task {task}.")
        return p / p.sum()
