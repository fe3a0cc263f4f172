"""Closed forms: which share of the trained rollouts each action has under each collection rule.

Everything is for a fixed categorical policy ``pi`` over actions with durations ``D``. Shares sum to
1. Sources: the renewal-reward theorem and the inspection paradox (any text on stochastic processes,
for example Ross, *Stochastic Processes*, chapter 3); the rest is derived where it stands. A test
holds every one of them against the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.simulation.durations import Distribution
from mle_rl.rollout.simulation.workload import Workload
from mle_rl.rollout.starts import expected_starts


def renewal(workload: Workload) -> np.ndarray:
    """Every worker loops and nothing is dropped: ``pi(a)``, whatever the durations are.

    The count of action ``a`` in time T on N workers is ``pi(a) N T / E[D]``: a slow action makes
    *every* action rarer, by making the worker busy, and its own share does not fall.
    """
    return workload.probabilities.copy()


def snapshot(workload: Workload) -> np.ndarray:
    """What is in progress at a random instant: ``pi(a) D(a) / E[D]`` (inspection paradox)."""
    return _normalised(workload.probabilities * workload.scale_s)


def window(workload: Workload, window_s: float, *, grid: int = 2000) -> np.ndarray:
    """Workers restart together and what is unfinished after T is thrown away: ``pi(a) U(T - D)``.

    A rollout of duration d counts if it starts by T - d, and starts in [0, t] number U(t), see
    :func:`mle_rl.rollout.starts.expected_starts`. Noise is averaged over.
    """
    if workload.noise.cv == 0:
        d = workload.scale_s * workload.noise.mean
        starts = expected_starts(workload, np.maximum(window_s - d, 0.0))
        return _normalised(workload.probabilities * np.where(d <= window_s, starts, 0.0))
    t = np.linspace(0, window_s, grid + 1)
    starts = expected_starts(workload, window_s - t, grid=grid)
    mean_starts = (starts[1:] + starts[:-1]) / 2
    share = [np.diff(workload.noise.cdf(t / scale)) @ mean_starts for scale in workload.scale_s]
    return _normalised(workload.probabilities * share)


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

    def probability(d: np.ndarray) -> np.ndarray:
        below = sum(
            p * workload.noise.cdf(d / s)
            for p, s in zip(workload.probabilities, workload.scale_s, strict=True)
        )
        return binom.cdf(kept - 1, started - 1, below)

    kept_share = [_expectation(workload.noise, s, probability) for s in workload.scale_s]
    return _normalised(workload.probabilities * kept_share)


def drop_stale_probability(durations_s, max_staleness: int, update_s: float) -> np.ndarray:
    """P(kept) of a rollout of length D, updates every tau: ``clip(eta + 1 - D/tau, 0, 1)``.

    A rollout begins at a uniform moment of an update interval, so it is ``floor(u + D / tau)``
    versions old at the end, u uniform on [0, 1). A learner that dispatches only between its updates
    gives other moments; live runs estimate, see :mod:`mle_rl.rollout.kept`. Nothing is dropped if
    and only if every duration is at most ``eta tau``.

    Args:
        durations_s: Any shape.
        max_staleness: eta.
        update_s: tau, wall-clock time between two updates.

    Raises:
        MleRlError: ``update_s`` is not a positive number of seconds.
    """
    if not 0 < update_s < math.inf:
        raise MleRlError(f"update_s is {update_s!r}; give the seconds between two updates.")
    return np.clip(max_staleness + 1 - np.asarray(durations_s, dtype=float) / update_s, 0, 1)


def steady_update_s(
    workload: Workload, workers: int, batch_size: int, max_staleness: int | None = None
) -> float:
    """Time between two updates when sampling is the bottleneck: ``B E[D] / (N P(kept))``.

    P(kept) depends on that time under an age limit, and grows with it: dropping slows the learner
    down until enough is kept, the one solution of the equation. Without ``max_staleness``
    everything is kept.
    """
    all_kept = batch_size * workload.mean_s / workers
    if max_staleness is None:
        return all_kept
    low, high = all_kept, all_kept
    while _kept_share(workload, max_staleness, high) * high < all_kept:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        enough = _kept_share(workload, max_staleness, middle) * middle >= all_kept
        low, high = (low, middle) if enough else (middle, high)
    return high


def drop_stale(workload: Workload, max_staleness: int, update_s: float) -> np.ndarray:
    """Dropped if older than eta updates: ``pi(a) clip(eta + 1 - D/tau, 0, 1)``."""
    return _normalised(workload.probabilities * _kept(workload, max_staleness, update_s))


def _kept(workload: Workload, max_staleness: int, update_s: float) -> np.ndarray:
    """P(kept) of each action, noise averaged over."""

    def probability(d: np.ndarray) -> np.ndarray:
        return drop_stale_probability(d, max_staleness, update_s)

    return np.array([_expectation(workload.noise, s, probability) for s in workload.scale_s])


def _kept_share(workload: Workload, max_staleness: int, update_s: float) -> float:
    return float(workload.probabilities @ _kept(workload, max_staleness, update_s))


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


def _expectation(noise: Distribution, scale: float, f: Callable[[np.ndarray], np.ndarray]) -> float:
    """E[f(scale X)] for X of the noise law, by its cumulative distribution on a fine log grid."""
    if noise.cv == 0:
        return float(f(np.array([scale * noise.mean]))[0])
    edges = noise.mean * np.logspace(-6, 6, 60_001)
    middle = np.sqrt(edges[1:] * edges[:-1])
    return float(np.diff(noise.cdf(edges)) @ f(scale * middle))


def _binomial(n: int, k: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def _normalised(share: np.ndarray) -> np.ndarray:
    total = share.sum()
    if not total > 0:
        raise MleRlError("Nothing is ever trained on under this rule: every action is too slow.")
    return share / total
