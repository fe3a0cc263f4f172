"""How often a worker that loops has started by time t: the renewal function."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.simulation.workload import Workload

_SAME_S = 1e-9  # moments closer than this are one moment
_MOMENTS = 200_000  # at most; sums of durations without a common measure multiply without end


def expected_starts(workload: Workload, t: np.ndarray, *, grid: int = 2000) -> np.ndarray:
    """Renewal function with the start at 0 counted, ``U(t) = 1 + integral U(t - x) dF(x)``.

    Without noise exactly, by the probabilities of all moments at which a rollout can start; with
    noise by the trapezoidal rule on a grid up to the largest t, with an error of its square. For
    large t it approaches :func:`expected_starts_asymptote`.

    Args:
        workload: The policy over actions, and how long they take.
        t: Times in seconds, any shape.
        grid: Steps of the grid.
    """
    t = np.asarray(t, dtype=float)
    if workload.noise.cv == 0:
        times, probabilities = _start_moments(workload, float(t.max()))
        return np.cumsum(probabilities)[np.searchsorted(times, t + _SAME_S, side="right") - 1]
    at = np.linspace(0, float(t.max()), grid + 1)
    cdf = sum(
        p * workload.noise.cdf(at / scale)
        for p, scale in zip(workload.probabilities, workload.scale_s, strict=True)
    )
    mass = np.diff(cdf)
    starts = np.ones(grid + 1)
    for k in range(1, grid + 1):
        past = starts[:k][::-1]  # U(t_k - x) at the upper ends of the steps of x
        known = mass[:k] @ past + mass[1:k] @ past[:-1]
        starts[k] = (1 + known / 2) / (1 - mass[0] / 2)
    return np.interp(t, at, starts)


def _start_moments(workload: Workload, horizon_s: float) -> tuple[np.ndarray, np.ndarray]:
    """All moments up to the horizon at which a rollout can start, and how likely one does."""
    d = (workload.scale_s * workload.noise.mean).tolist()
    heap, probability = [0.0], {0: 1.0}  # keyed by the moment in units of _SAME_S
    times, chances = [], []
    while heap:
        if len(times) + len(heap) > _MOMENTS:
            raise MleRlError(
                "These durations can be added up in too many ways for the exact renewal function; "
                "round them to a common step, or give the workload some noise."
            )
        now = heappop(heap)
        chance = probability.pop(round(now / _SAME_S))
        times.append(now)
        chances.append(chance)
        for p, step in zip(workload.probabilities, d, strict=True):
            then, key = now + step, round((now + step) / _SAME_S)
            if then <= horizon_s + _SAME_S and p > 0:
                if key not in probability:
                    heappush(heap, then)
                    probability[key] = 0.0
                probability[key] += p * chance
    return np.array(times), np.array(chances)


def expected_starts_asymptote(workload: Workload, t: float) -> float:
    """``t / mu + E[D^2] / (2 mu^2)``, the limit of U(t) for durations not on a lattice."""
    mu = workload.mean_s
    second = float(workload.probabilities @ workload.scale_s**2) * workload.noise.mean**2
    return t / mu + second * (1 + workload.noise.cv**2) / (2 * mu**2)
