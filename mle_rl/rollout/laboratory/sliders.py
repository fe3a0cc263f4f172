"""What the sliders of notebooks 03 and 04 draw: simulated again at every move.

``RANGES`` gives the first and last value and the step of every slider, as ``interact`` takes them;
``python -m mle_rl.rollout.bench`` measures a redraw at every corner of them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from mle_rl.losses import duration_weights, effective_sample_size
from mle_rl.rollout.laboratory.figures import plot_kept
from mle_rl.rollout.laboratory.gradient_figures import plot_price
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation import simulate
from mle_rl.rollout.simulation.durations import LogNormal
from mle_rl.rollout.simulation.workload import Workload


def kept(
    workers: int, max_staleness: int, duration_cv: float, *, batch_size: int = 64, seed: int = 0
) -> tuple[Figure, pd.DataFrame]:
    """Which rollouts an age limit drops: 100 updates on log-normal durations of 5 s on average.

    Args:
        workers: Executions at the same time.
        max_staleness: Age in updates that is still trained on.
        duration_cv: Spread of durations, standard deviation over mean.
        batch_size: Rollouts per update.
        seed: Of the simulation.
    """
    config = QueueConfig(
        workers=workers,
        batch_size=batch_size,
        staleness="drop",
        max_staleness=max_staleness,
        ordering="completion",
    )
    work = Workload(noise=LogNormal(mean=5.0, cv=duration_cv))
    result = simulate(config, work, updates=100, rng=np.random.default_rng(seed), trace=True)
    lost = sum(result.counts.dropped.values()) / result.trace.decided.sum()
    trained = result.trace.duration_s[result.trace.trained].mean()
    title = f"Dropped: {lost:.0%} of rollouts; mean duration 5 s becomes {trained:.1f} s"
    return plot_kept(result, title)


def price(sigma: float, floor_s: float, batch_size: int) -> tuple[Figure, pd.DataFrame]:
    """What weights equal to durations leave of a batch, over the spread of log durations.

    Args:
        sigma: Spread at which the title tells the number.
        floor_s: Shorter durations are raised to it; the median is 1 s.
        batch_size: Rollouts per update.
    """
    spreads = np.linspace(0.1, 2, 9)
    table = pd.DataFrame([effective_shares(s, floor_s, batch_size, draws=40) for s in spreads])
    table = table.assign(theory=np.exp(-(table.sigma**2)), floor_s=floor_s)
    here = effective_shares(sigma, floor_s, batch_size, draws=100)["mean"] * batch_size
    title = f"Weighted by duration at sigma {sigma:.1f}, {batch_size} rollouts are worth {here:.0f}"
    return plot_price(table, title, sigma), table


def effective_shares(sigma: float, floor_s: float, batch_size: int, draws: int) -> dict[str, float]:
    """Effective share of simulated batches: mean, and the ends of the middle 80 % of them."""
    rng = np.random.default_rng(1)
    law = LogNormal.of_sigma(sigma)
    shares = []
    for _ in range(draws):
        durations = torch.as_tensor(law.sample(batch_size, rng))
        weights = duration_weights(durations, "paper", floor_s=floor_s)
        shares.append(effective_sample_size(weights) / batch_size)
    low, high = np.quantile(shares, [0.1, 0.9])
    return {"sigma": sigma, "mean": np.mean(shares), "low": low, "high": high}


RANGES = {
    kept: {"workers": (16, 512, 16), "max_staleness": (0, 12, 1), "duration_cv": (0.2, 3.0, 0.2)},
    price: {"sigma": (0.1, 2.0, 0.1), "floor_s": (0.0, 2.0, 0.1), "batch_size": (16, 512, 16)},
}
"""By what is drawn."""
