"""Closed forms: which share of the trained rollouts each action has under each collection rule.

Everything is for a fixed categorical policy ``pi`` over actions with durations ``D``. Shares sum to
1. Sources: the renewal-reward theorem and the inspection paradox (any text on stochastic processes,
for example Ross, *Stochastic Processes*, chapter 3); the rest is derived where it stands. A test
holds every one of them against the simulation.
"""

from __future__ import annotations

import math

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.workload import Workload


def renewal(workload: Workload) -> np.ndarray:
    """Every worker loops and nothing is dropped: ``pi(a)``, whatever the durations are.

    The count of action ``a`` in time T on N workers is ``pi(a) N T / E[D]``: a slow action makes
    *every* action rarer, by making the worker busy, and its own share does not fall.
    """
    return workload.probabilities.copy()


def snapshot(workload: Workload) -> np.ndarray:
    """What is in progress at a random instant: ``pi(a) D(a) / E[D]`` (inspection paradox)."""
    return _normalised(workload.probabilities * workload.scale_s)


def window(workload: Workload, window_s: float, *, grid: int = 4000) -> np.ndarray:
    """Workers restart together and what is unfinished after T is thrown away: ``pi(a) U(T - D)``.

    A rollout of duration d counts if it starts by T - d, and starts in [0, t] number U(t). Noise
    is averaged over.
    """
    starts = expected_starts(workload, window_s, grid=grid)
    t = np.linspace(0, window_s, grid + 1)
    share = np.empty(len(workload.scale_s))
    for a, scale in enumerate(workload.scale_s):
        mass = np.diff(workload.noise.cdf(t / scale), prepend=0.0)
        share[a] = workload.probabilities[a] * (mass @ starts[::-1])
    return _normalised(share)


def expected_starts(workload: Workload, horizon_s: float, *, grid: int = 4000) -> np.ndarray:
    """Renewal function with the start at 0 counted, ``U(t) = 1 + integral U(t - x) dF(x)``.

    Solved on a grid from 0 to the horizon; exact when all durations lie on the grid.

    Returns:
        U at ``grid + 1`` equally spaced times, shape (grid + 1,). For large t it approaches
        :func:`expected_starts_asymptote`.
    """
    t = np.linspace(0, horizon_s, grid + 1)
    cdf = sum(
        p * workload.noise.cdf((t + 1e-9 * horizon_s) / scale)
        for p, scale in zip(workload.probabilities, workload.scale_s, strict=True)
    )
    mass = np.diff(cdf, prepend=0.0)
    starts = np.empty(grid + 1)
    for k in range(grid + 1):
        starts[k] = 1 + mass[1 : k + 1] @ starts[:k][::-1]
    return starts


def expected_starts_asymptote(workload: Workload, t: float) -> float:
    """``t / mu + E[D^2] / (2 mu^2)``, the limit of U(t) for durations not on a lattice."""
    mu = workload.mean_s
    second = float(workload.probabilities @ workload.scale_s**2) * workload.noise.mean**2
    return t / mu + second * (1 + workload.noise.cv**2) / (2 * mu**2)


def over_provision(workload: Workload, started: int, kept: int) -> np.ndarray:
    """Start M, keep the first B: ``pi(a) P(D <= B-th shortest)``.

    For durations without noise, with ties broken at random: of the other M - 1 rollouts L are
    shorter and E equally long, and the rollout is kept with probability (B - L) / (E + 1), clipped.
    """
    if workload.noise.cv > 0:
        return _over_provision_noisy(workload, started, kept)
    p, d = workload.probabilities, workload.scale_s
    share = np.empty(len(d))
    for a in range(len(d)):
        shorter, equal = p[d < d[a]].sum(), p[d == d[a]].sum()
        probability = 0.0
        for low in range(started):
            weight = _binomial(started - 1, low, shorter)
            if weight == 0:
                continue
            given = equal / (1 - shorter) if shorter < 1 else 0.0
            rest = started - 1 - low
            e = np.arange(rest + 1)
            chance = np.clip((kept - low) / (e + 1), 0, 1)
            probability += weight * float(
                np.array([_binomial(rest, k, min(given, 1.0)) for k in e]) @ chance
            )
        share[a] = p[a] * probability
    return _normalised(share)


def _over_provision_noisy(workload: Workload, started: int, kept: int) -> np.ndarray:
    """The same for continuous durations: the others shorter than d are binomial in F(d)."""
    from scipy.stats import binom

    rng = np.random.default_rng(0)
    noise = np.sort(workload.noise.sample(20_000, rng))  # quadrature over the noise
    share = np.empty(len(workload.scale_s))
    for a, scale in enumerate(workload.scale_s):
        d = scale * noise
        below = sum(
            p * workload.noise.cdf(d / s)
            for p, s in zip(workload.probabilities, workload.scale_s, strict=True)
        )
        share[a] = workload.probabilities[a] * binom.cdf(kept - 1, started - 1, below).mean()
    return _normalised(share)


def drop_stale_probability(durations_s, max_staleness: int, update_s: float) -> np.ndarray:
    """P(kept) of a rollout of length D, updates every tau: ``clip(eta + 1 - D/tau, 0, 1)``.

    A rollout begins at a uniform moment of an update interval, so it is ``floor(u + D / tau)``
    versions old at the end, u uniform on [0, 1). Nothing is dropped if and only if every duration
    is at most ``eta tau``.

    Args:
        durations_s: Any shape.
        max_staleness: eta.
        update_s: tau, wall-clock time between two updates.
    """
    return np.clip(max_staleness + 1 - np.asarray(durations_s, dtype=float) / update_s, 0, 1)


def drop_stale(workload: Workload, max_staleness: int, update_s: float) -> np.ndarray:
    """Dropped if older than eta updates: ``pi(a) clip(eta + 1 - D/tau, 0, 1)``."""
    quantiles = np.sort(workload.noise.sample(20_000, np.random.default_rng(0)))
    kept = [
        drop_stale_probability(s * quantiles, max_staleness, update_s).mean()
        for s in workload.scale_s
    ]
    return _normalised(workload.probabilities * kept)


def sticky(workload: Workload, window_s: float | None = None) -> np.ndarray:
    """Each worker draws one action per window and repeats it: ``pi(a) / D(a)``.

    The paper's premise, n_a = pi(a) T / D(a) (section 1 there), is the limit of a long window. In
    a finite one a worker completes ``ceil(T / D)`` rollouts of a fixed duration before it draws
    anew; give ``window_s`` for that.
    """
    d = workload.scale_s * workload.noise.mean
    if window_s is None:
        return _normalised(workload.probabilities / d)
    if workload.noise.cv > 0:
        raise MleRlError("The finite-window share of sticky workers is known without noise only.")
    return _normalised(workload.probabilities * np.ceil(window_s / d - 1e-9))


def per_task(workload: Workload, workers: int) -> np.ndarray:
    """Worker w is bound to task w mod n: between tasks proportional to 1 / E[D | task]."""
    tasks = sorted(set(workload.tasks.tolist()))
    share = np.zeros(len(workload.scale_s))
    for i, task in enumerate(tasks):
        p = workload.of_task(task)
        bound = len(range(i, workers, len(tasks)))
        share += bound * p / (p @ workload.scale_s)
    return _normalised(share)


def timeouts_masked(workload: Workload) -> np.ndarray:
    """Rollouts over the time limit are thrown away: ``pi(a) P(D <= limit | a)``."""
    within = workload.noise.cdf(workload.time_limit_s / workload.scale_s)
    return _normalised(workload.probabilities * within)


def mean_staleness(durations_s, update_s: float) -> np.ndarray:
    """Expected versions that pass while a rollout runs, ``D / tau``: lag grows with duration."""
    return np.asarray(durations_s, dtype=float) / update_s


def _binomial(n: int, k: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def _normalised(share: np.ndarray) -> np.ndarray:
    total = share.sum()
    if not total > 0:
        raise MleRlError("Nothing is ever trained on under this rule: every action is too slow.")
    return share / total
