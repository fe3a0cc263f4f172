"""Who gets into the batch, in figures; each comes with the numbers it makes itself."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from mle_rl.analysis import OKABE_ITO
from mle_rl.rollout.diagnostics import inclusion_by_decile, mean_by_decile
from mle_rl.rollout.inclusion import drop_stale_probability
from mle_rl.rollout.laboratory.rules import RULES
from mle_rl.rollout.simulation import Result


def plot_slow_share(table: pd.DataFrame, title: str) -> tuple[Figure, pd.DataFrame]:
    """Share of the slow one of two actions under each rule, with its closed form.

    Args:
        table: Rows of :func:`mle_rl.rollout.laboratory.comparison.compare` for two actions.
        title: The finding.
    """
    slow = table[table.action == 1].sort_values("closed_form", kind="stable")
    y = np.arange(len(slow))
    fig, axes = plt.subplots(figsize=(7.2, 0.31 * len(slow) + 1.3))
    axes.axvline(0.5, color=OKABE_ITO["black"], lw=1, ls=":", zorder=0)
    axes.scatter(
        slow.closed_form, y, marker="|", s=220, color=OKABE_ITO["orange"], lw=3, zorder=2,
        label="closed form",
    )  # fmt: skip
    axes.errorbar(
        slow.simulated, y, xerr=3 * slow.standard_error, fmt="o", ms=4, zorder=3,
        color=OKABE_ITO["blue"], elinewidth=1.5, label="simulated, 3 standard errors",
    )  # fmt: skip
    axes.set_yticks(y, [RULES[name].title for name in slow.rule])
    axes.set(xlim=(-0.02, 1), ylim=(-0.6, len(slow) - 0.4))
    axes.set_xlabel("share of the slow action among the trained rollouts (dotted: in the policy)")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper left", fontsize=8)
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig, slow


def plot_relative_share(table: pd.DataFrame, title: str, columns: int = 4) -> Figure:
    """How over- or under-represented each action is, against its duration, a panel per rule.

    Args:
        table: Rows of :func:`mle_rl.rollout.laboratory.comparison.compare`.
        title: The finding.
        columns: Panels side by side.
    """
    names = list(dict.fromkeys(table.rule))
    rows = -(-len(names) // columns)
    fig, grid = plt.subplots(
        rows, columns, figsize=(2.35 * columns, 1.75 * rows + 0.5), sharex=True, sharey=True,
        squeeze=False,
    )  # fmt: skip
    for axes, name in zip(grid.flat, names, strict=False):
        _relative_share(axes, table[table.rule == name])
        axes.set_title(RULES[name].title, fontsize=8.5)
    for axes in list(grid.flat)[len(names) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("duration (s)")
    for axes in grid[:, 0]:
        axes.set_ylabel("share / policy")
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig


FLOOR = 0.03
"""Relative shares are drawn down to this; what is never trained on is marked there."""


def _relative_share(axes: Axes, rows: pd.DataFrame) -> None:
    closed = (rows.closed_form / rows.policy).clip(lower=FLOOR)
    seen = rows.simulated / rows.policy
    error = 3 * rows.standard_error / rows.policy
    axes.axhline(1, color=OKABE_ITO["black"], lw=1, ls=":")
    axes.plot(rows.duration_s, closed, color=OKABE_ITO["orange"], lw=2, ls="-")
    drawn = seen > FLOOR
    axes.errorbar(
        rows.duration_s[drawn], seen[drawn], yerr=error[drawn], fmt="o", ms=3.5,
        color=OKABE_ITO["blue"], elinewidth=1.2,
    )  # fmt: skip
    axes.plot(
        rows.duration_s[~drawn], np.full((~drawn).sum(), FLOOR * 1.15), "v",
        color=OKABE_ITO["vermillion"], ms=5, ls="none",
    )  # fmt: skip
    axes.set(xscale="log", yscale="log", ylim=(FLOOR, 12))
    _plain(axes.yaxis, [0.1, 1, 10])
    _plain(axes.xaxis, [1, 3, 10, 30])


def _plain(axis, ticks: Sequence[float]) -> None:
    axis.set_ticks(ticks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())  # drawing them takes a third of a slider's redraw


def plot_kept(result: Result, title: str) -> tuple[Figure, pd.DataFrame]:
    """Share of the rollouts that were trained on by tenth of duration, under "drop stale".

    Args:
        result: A simulation with its trace, under a rule that drops what is too old.
        title: The finding.
    """
    trace, eta = result.trace, result.config.max_staleness
    update_s = result.elapsed_s / result.updates
    duration, decided = trace.duration_s, trace.decided
    table = inclusion_by_decile(duration[decided], trace.trained[decided])
    expected = drop_stale_probability(duration[decided], eta, update_s)
    table["closed_form"] = mean_by_decile(duration[decided], expected)
    x, at = np.geomspace(0.05, 30, 300), table.duration_s / update_s
    fig, axes = plt.subplots(figsize=(6.4, 3.2))
    line = {"color": OKABE_ITO["orange"], "ls": "-", "lw": 1}
    axes.plot(
        x, drop_stale_probability(x, eta, 1.0), label=f"clip({eta + 1} - D / tau, 0, 1)", **line
    )
    axes.scatter(
        at, table.closed_form, marker="_", s=200, lw=3, color=OKABE_ITO["orange"],
        label="its mean in each tenth of durations",
    )  # fmt: skip
    axes.errorbar(
        at, table.inclusion, yerr=3 * table.standard_error, fmt="o", ms=4, zorder=3,
        color=OKABE_ITO["blue"], label="simulated, 3 standard errors",
    )  # fmt: skip
    axes.set(xscale="log", xlim=(0.05, 30), ylim=(-0.03, 1.06), ylabel="share trained on")
    axes.set_xlabel("duration over the time between two updates, D / tau")
    _plain(axes.xaxis, [0.1, 0.3, 1, 3, 10, 30])
    axes.legend(loc="lower left", fontsize=8)
    axes.set_title(title)
    return fig, table.assign(update_s=update_s)


def plot_tradeoff(table: pd.DataFrame, title: str) -> Figure:
    """Throughput and age against the admitted staleness, a line per order.

    Args:
        table: Columns ``order``, ``max_staleness``, ``rollouts per second``, ``staleness``,
            ``max staleness``, ``workers`` (utilisation).
        title: The finding.
    """
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2))
    looks = (("blue", "o", "-"), ("orange", "s", "--"), ("green", "^", "-."))
    for (order, rows), (colour, marker, line) in zip(
        table.groupby("order", sort=False), looks, strict=False
    ):
        look = {"color": OKABE_ITO[colour], "marker": marker, "ls": line}
        left.plot(rows.max_staleness, rows["rollouts per second"], label=order, **look)
        right.plot(rows.max_staleness, rows["max staleness"], **look)
        right.plot(rows.max_staleness, rows["staleness"], **look | {"alpha": 0.45, "ms": 3})
    ages = np.array([table.max_staleness.min(), table.max_staleness.max()])
    right.plot(ages, ages, color=OKABE_ITO["black"], lw=1, ls=":", label="admitted age")
    right.plot([], [], color="0.3", marker="o", label="largest age")
    right.plot([], [], color="0.3", marker="o", ms=3, alpha=0.45, label="mean age")
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    left.set(xlabel="admitted staleness (updates)", ylabel="trained rollouts per second")
    left.set_ylim(0)
    right.set(xlabel="admitted staleness (updates)", ylabel="age when trained (updates)")
    left.legend(fontsize=8)
    handles, labels = right.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=8)
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig
