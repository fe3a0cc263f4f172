"""How long executions take: distributions by name.

A distribution gives samples, its mean, its coefficient of variation and its cumulative distribution
function; the last is what the closed forms of :mod:`mle_rl.rollout.inclusion` need. Seconds
throughout. Durations that were measured are in :mod:`.recorded`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mle_rl.errors import MleRlError, unknown_name


class Distribution(Protocol):
    """A law of durations on (0, infinity)."""

    @property
    def mean(self) -> float:
        """Expected duration."""

    @property
    def cv(self) -> float:
        """Coefficient of variation: standard deviation over mean."""

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """``n`` independent durations, shape (n,)."""

    def cdf(self, t: np.ndarray) -> np.ndarray:
        """P(D <= t), same shape as ``t``."""


@dataclass(frozen=True)
class Constant:
    """Always the same."""

    mean: float
    cv: float = 0.0

    def __post_init__(self):
        _require(self, self.cv == 0, "a constant duration has cv 0")

    def sample(self, n, rng):
        return np.full(n, self.mean)

    def cdf(self, t):
        return (np.asarray(t) >= self.mean).astype(float)


@dataclass(frozen=True)
class Uniform:
    """Even between ``mean (1 - sqrt(3) cv)`` and ``mean (1 + sqrt(3) cv)``."""

    mean: float
    cv: float

    def __post_init__(self):
        _require(self, 0 < self.cv < 1 / math.sqrt(3), "uniform needs 0 < cv < 0.577")

    @property
    def _ends(self) -> tuple[float, float]:
        half = math.sqrt(3) * self.cv * self.mean
        return self.mean - half, self.mean + half

    def sample(self, n, rng):
        return rng.uniform(*self._ends, n)

    def cdf(self, t):
        low, high = self._ends
        return np.clip((np.asarray(t) - low) / (high - low), 0, 1)


@dataclass(frozen=True)
class Exponential:
    """Memoryless: the one law under which a rollout's age says nothing about its end."""

    mean: float
    cv: float = 1.0

    def __post_init__(self):
        _require(self, self.cv == 1, "an exponential has cv 1")

    def sample(self, n, rng):
        return rng.exponential(self.mean, n)

    def cdf(self, t):
        return -np.expm1(-np.maximum(np.asarray(t, dtype=float), 0) / self.mean)


@dataclass(frozen=True)
class Gamma:
    """Shape ``1 / cv^2``; between constant (cv to 0) and heavier than exponential (cv above 1)."""

    mean: float
    cv: float

    def __post_init__(self):
        _require(self, 0 < self.cv < math.inf, "gamma needs a positive, finite cv")

    def sample(self, n, rng):
        shape = self.cv**-2
        return rng.gamma(shape, self.mean / shape, n)

    def cdf(self, t):
        from scipy.special import gammainc

        shape = self.cv**-2
        return gammainc(shape, np.maximum(np.asarray(t, dtype=float), 0) * shape / self.mean)


@dataclass(frozen=True)
class LogNormal:
    """exp of a normal, what running times of programs look like; sigma^2 = log(1 + cv^2)."""

    mean: float
    cv: float

    def __post_init__(self):
        _require(self, 0 < self.cv < math.inf, "lognormal needs a positive, finite cv")

    @classmethod
    def of_sigma(cls, sigma: float, median: float = 1.0) -> LogNormal:
        """From the standard deviation of the logarithm, and the median."""
        return cls(median * math.exp(sigma**2 / 2), math.sqrt(math.expm1(sigma**2)))

    @property
    def sigma(self) -> float:
        """Standard deviation of log D."""
        return math.sqrt(math.log1p(self.cv**2))

    @property
    def median(self) -> float:
        """exp of the mean of log D."""
        return self.mean / math.sqrt(1 + self.cv**2)

    def quantile(self, q: np.ndarray) -> np.ndarray:
        """Duration below which a share ``q`` of all lies."""
        from scipy.special import ndtri

        return self.median * np.exp(self.sigma * ndtri(q))

    def sample(self, n, rng):
        logs = rng.standard_normal(n)
        logs *= self.sigma
        logs += math.log(self.median)
        return np.exp(logs, out=logs)

    def cdf(self, t):
        from scipy.special import ndtr

        with np.errstate(divide="ignore"):
            z = (
                np.log(np.maximum(np.asarray(t, dtype=float), 0)) - math.log(self.median)
            ) / self.sigma
        return ndtr(z)


@dataclass(frozen=True)
class Pareto:
    """Power-law tail with exponent ``1 + sqrt(1 + cv^-2)``: a few programs run and run."""

    mean: float
    cv: float

    def __post_init__(self):
        _require(self, 0 < self.cv < math.inf, "pareto needs a positive, finite cv")

    @property
    def _law(self) -> tuple[float, float]:
        alpha = 1 + math.sqrt(1 + self.cv**-2)
        return alpha, self.mean * (alpha - 1) / alpha

    def sample(self, n, rng):
        alpha, shortest = self._law
        return shortest * (1 + rng.pareto(alpha, n))

    def cdf(self, t):
        alpha, shortest = self._law
        return 1 - (shortest / np.maximum(np.asarray(t, dtype=float), shortest)) ** alpha


NAMED = {
    "constant": Constant,
    "uniform": Uniform,
    "exponential": Exponential,
    "gamma": Gamma,
    "lognormal": LogNormal,
    "pareto": Pareto,
}
"""The distributions that a name, a mean and a coefficient of variation determine."""


def named(name: str, mean: float = 1.0, cv: float | None = None) -> Distribution:
    """A distribution by name, for sliders and configurations.

    Args:
        name: One of :data:`NAMED`.
        mean: Seconds.
        cv: Coefficient of variation; leave out for ``"constant"`` and ``"exponential"``, whose is
            fixed.

    Raises:
        MleRlError: Unknown name, or a mean or cv that the law cannot have.
    """
    if name not in NAMED:
        raise unknown_name("distribution", name, NAMED)
    if cv is None and name not in ("constant", "exponential"):
        raise MleRlError(f"The {name} distribution needs cv, its standard deviation over its mean.")
    return NAMED[name](mean) if cv is None else NAMED[name](mean, cv)


def _require(law: Distribution, condition: bool, sentence: str) -> None:
    if not 0 < law.mean < math.inf:
        sentence = f"a mean of {law.mean!r} s is not positive and finite"
    elif condition:
        return
    raise MleRlError(f"This duration distribution does not exist: {sentence}.")
