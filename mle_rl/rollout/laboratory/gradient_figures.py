"""Figures of the duration-aware loss: directions, price, bandit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mle_rl.analysis import OKABE_ITO

LOOKS = {
    "none": ("black", "o"),
    "duration": ("blue", "s"),
    "inclusion": ("green", "^"),
    "importance ratio": ("purple", "D"),
    "reward rate": ("orange", "v"),
    "duration, fixed scale": ("sky", "P"),
}
"""Colour and marker of each weighting, in every figure."""


def plot_angles(table: pd.DataFrame, title: str) -> Figure:
    """Angle of the expected update to the gradients of two objectives, a row per rule.

    Args:
        table: Columns ``rule`` (in words), ``weighting``, and one column of degrees per objective.
        title: The finding.
    """
    objectives = [c for c in table.columns if c not in ("rule", "weighting")]
    rules = list(dict.fromkeys(table.rule))
    fig, panels = plt.subplots(
        1, len(objectives), figsize=(4.1 * len(objectives), 0.36 * len(rules) + 1.4), sharey=True
    )
    for axes, objective in zip(panels, objectives, strict=True):
        for shift, (weighting, rows) in enumerate(table.groupby("weighting", sort=False)):
            colour, marker = LOOKS[weighting]
            y = [rules.index(rule) + 0.18 * (shift - 1) for rule in rows.rule]
            axes.plot(
                rows[objective], y, marker=marker, ls="none", ms=5.5, color=OKABE_ITO[colour],
                label=weighting,
            )  # fmt: skip
        axes.axvline(90, color=OKABE_ITO["vermillion"], lw=1, ls=":")
        axes.set(xlim=(-4, 100), xticks=[0, 30, 60, 90], xlabel="angle (degrees)")
        axes.set_title(f"to the gradient of {objective}", fontsize=9)
    panels[0].set_yticks(range(len(rules)), rules)
    panels[0].set_ylim(len(rules) - 0.5, -0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    fig.legend(
        handles, [f"weight: {name}" for name in labels], loc="outside lower left", ncols=3,
        fontsize=8,
    )  # fmt: skip
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig


def plot_arms(panels: Mapping[str, pd.DataFrame], arms: Sequence[str], title: str) -> Figure:
    """Components of exact and estimated updates, a panel per rule and weighting.

    Args:
        panels: Heading, and columns ``goal`` (gradient of E[R]), ``exact`` (expected update),
            ``estimate``, ``error`` (3 standard errors), a row per arm, in units of their norm.
        arms: Names.
        title: The finding.
    """
    columns = 3
    rows = -(-len(panels) // columns)
    fig, grid = plt.subplots(
        rows, columns, figsize=(7.6, 2.0 * rows + 0.7), sharex=True, sharey=True, squeeze=False
    )
    x = np.arange(len(arms))
    for axes, (heading, table) in zip(grid.flat, panels.items(), strict=False):
        axes.bar(x, table.goal, width=0.7, color="0.88", label="gradient of E[R]")
        axes.scatter(
            x, table.exact, marker="_", s=300, lw=2.5, color=OKABE_ITO["orange"], zorder=3,
            label="expected update",
        )  # fmt: skip
        axes.errorbar(
            x, table.estimate, yerr=table.error, fmt="o", ms=4, color=OKABE_ITO["blue"], zorder=4,
            label="simulated, 3 standard errors",
        )  # fmt: skip
        axes.axhline(0, color="0.3", lw=0.8)
        axes.set_title(heading, fontsize=9)
        axes.set_xticks(x, [arm.replace(" and ", "\nand ") for arm in arms], fontsize=8)
        axes.grid(axis="x", visible=False)
    for axes in grid[:, 0]:
        axes.set_ylabel("component")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=8)
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig


def plot_price(table: pd.DataFrame, title: str, at: float) -> Figure:
    """Effective sample size of duration weights against the spread of log durations.

    Args:
        table: Columns ``sigma``, ``theory``, ``mean``, ``low``, ``high`` (shares of the batch),
            ``floor_s``.
        title: The finding.
        at: Spread that the title speaks of; marked.
    """
    fig, axes = plt.subplots(figsize=(6.4, 3.4))
    axes.axvline(at, color=OKABE_ITO["black"], lw=1, ls=":")
    axes.plot(
        table.sigma, table.theory, color=OKABE_ITO["orange"], ls="-", lw=2,
        label="1 / (1 + CV^2) = exp(-sigma^2)",
    )  # fmt: skip
    axes.errorbar(
        table.sigma, table["mean"], yerr=[table["mean"] - table.low, table.high - table["mean"]],
        fmt="o", ms=4, color=OKABE_ITO["blue"], capsize=2, label="simulated batches, 80 % of them",
    )  # fmt: skip
    axes.set(xlabel="sigma, spread of log duration", ylabel="effective share of the batch")
    axes.set_ylim(0, 1.03)
    axes.legend(fontsize=8)
    axes.set_title(title)
    return fig


def plot_penalty(table: pd.DataFrame, title: str) -> Figure:
    """Angle to the right direction against a constant that is added to all rewards.

    Args:
        table: Column ``constant``, and a column of degrees per way of centring.
        title: The finding.
    """
    fig, axes = plt.subplots(figsize=(6.4, 3.2))
    looks = (("vermillion", "--"), ("orange", "-."), ("blue", "-"))
    names = [c for c in table.columns if c != "constant"]
    for name, (colour, line) in zip(names, looks, strict=False):
        axes.plot(table.constant, table[name], color=OKABE_ITO[colour], ls=line, lw=2, label=name)
    axes.axhline(90, color="0.4", lw=1, ls=":")
    axes.text(table.constant.iloc[0], 92, "beyond: away from the goal", fontsize=8)
    axes.set(xlabel="constant added to all rewards", ylabel="angle to the goal (degrees)")
    axes.set(ylim=(-5, 160), yticks=[0, 30, 60, 90, 120, 150])
    axes.legend(fontsize=8)
    axes.set_title(title)
    return fig


def plot_bandit(table: pd.DataFrame, title: str) -> Figure:
    """Final E[R] by rule and weighting, with the intervals over seeds and the reference.

    Args:
        table: Of :func:`mle_rl.rollout.laboratory.bandit.summarise`.
        title: The finding.
    """
    rules = list(dict.fromkeys(table.rule))
    weightings = list(dict.fromkeys(table.weighting))
    fig, axes = plt.subplots(figsize=(7.8, 0.46 * len(rules) + 1.3))
    for shift, weighting in enumerate(weightings):
        rows = table[table.weighting == weighting]
        colour, marker = LOOKS[weighting]
        offset = 0.15 * (shift - (len(weightings) - 1) / 2)
        y = np.array([rules.index(rule) for rule in rows.rule]) + offset
        axes.errorbar(
            rows["mean"], y, xerr=[rows["mean"] - rows.low, rows.high - rows["mean"]],
            fmt=marker, ms=4.5, color=OKABE_ITO[colour], elinewidth=1.3, label=weighting,
        )  # fmt: skip
        axes.scatter(
            rows.reference, y, marker="o", s=70, facecolors="none", edgecolors="0.45", lw=0.9,
            label="earlier implementation" if shift == 0 else None,
        )  # fmt: skip
    for edge in np.arange(len(rules) - 1) + 0.5:
        axes.axhline(edge, color="0.9", lw=0.8)
    axes.set_yticks(range(len(rules)), rules)
    axes.set(xlim=(0.45, 1.03), ylim=(len(rules) - 0.5, -0.5))
    seeds = int(table.seeds.iloc[0])
    over = f"mean of {seeds} seeds, 95 % interval" if seeds > 1 else "one seed"
    axes.set_xlabel(f"E[R] after training (optimum 1.0); {over}")
    axes.grid(axis="y", visible=False)
    fig.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=4, fontsize=8)
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig


def plot_bandit_curves(curves: pd.DataFrame, title: str) -> Figure:
    """E[R] against updates, wall-clock time and execution time; a line per arm of the comparison.

    Args:
        curves: Columns ``run``, ``update``, ``hours``, ``execution_hours``, ``mean``, ``low``,
            ``high``.
        title: The finding.
    """
    axes_of = {
        "update": "updates",
        "hours": "wall-clock hours (simulated)",
        "execution_hours": "execution hours, all workers",
    }
    fig, panels = plt.subplots(1, 3, figsize=(9.2, 3.3), sharey=True)
    looks = (
        ("black", "-"), ("blue", "--"), ("orange", "-."), ("green", ":"), ("purple", (0, (5, 1))),
    )  # fmt: skip
    for axes, (column, label) in zip(panels, axes_of.items(), strict=True):
        for (name, rows), (colour, line) in zip(
            curves.groupby("run", sort=False), looks, strict=False
        ):
            axes.plot(rows[column], rows["mean"], color=OKABE_ITO[colour], ls=line, label=name)
            axes.fill_between(
                rows[column], rows.low, rows.high, color=OKABE_ITO[colour], alpha=0.15, lw=0
            )
        axes.set_xlabel(label)
        if column != "update":
            axes.set_xscale("log")
    panels[0].set_ylabel("E[R]")
    fig.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize=8
    )
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig
