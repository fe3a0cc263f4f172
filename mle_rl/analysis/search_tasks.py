"""Methods of search on several tasks: a panel per task, and where they stand over all of them."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mle_rl import tasks
from mle_rl.analysis.figures import OKABE_ITO
from mle_rl.analysis.search import LOOKS, draw_lines, lines_of, reference_levels
from mle_rl.errors import MleRlError
from mle_rl.search.methods import METHODS
from mle_rl.search.recorded import Recorded

_COLUMNS = 4


def plot_tasks(
    found: Mapping[str, Recorded], rng: np.random.Generator
) -> tuple[Figure, pd.DataFrame]:
    """`mle_rl.analysis.search.plot_search` of several tasks, a panel for each.

    Args:
        found: Comparisons by task; budgets may differ between tasks.
        rng: Source of the bootstrap, where a task has several seeds.

    Returns:
        The figure, and its numbers: task, method, minutes, final_score, low and high.

    Raises:
        MleRlError: There is no comparison, or one cannot be drawn.
    """
    if not found:
        raise MleRlError("No comparison is recorded: run `python -m mle_rl compare` first.")
    lines = {name: _lines(name, comparison, rng) for name, comparison in found.items()}
    columns = min(_COLUMNS, len(found) + 1)  # one place is for the legend
    rows = -(-(len(found) + 1) // columns)
    size = (max(6.0, 2.9 * columns), 2.5 * rows + 0.5)
    fig, grid = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for axes, (name, shown) in zip(grid.flat, lines.items(), strict=False):
        task, seconds = tasks.load(name), float(found[name].searches.seconds.iloc[0])
        higher = task.higher_is_better
        draw_lines(axes, shown, seconds, reference_levels(task), higher_is_better=higher)
        axes.set_title(f"{name}\n{task.metric.replace('_', ' ')}", fontsize=9)
    for axes in grid.flat[len(found) :]:
        axes.axis("off")
    grid.flat[len(found)].legend(handles=_legend(found), fontsize="small", loc="center")
    fig.supxlabel("wall-clock time of the method (minutes)", fontsize="medium")
    fig.supylabel("final split, better is up", fontsize="medium")
    fig.suptitle(_title(lines, found), fontsize="medium")
    return fig, pd.concat([shown.assign(task=name) for name, shown in lines.items()])[
        ["task", "method", "minutes", "final_score", "low", "high"]
    ]


def plot_standing(table: pd.DataFrame, summary: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Shares of the leaderboards by method: a mark per task, the mean and its interval beside.

    Args:
        table: Of `mle_rl.search.standing.standing`.
        summary: Of `mle_rl.search.standing.over_tasks`.

    Returns:
        The figure, and its numbers: task, method, beaten, and mean, low and high of the method.
    """
    counted = table.groupby("task").method.nunique() == len(summary)
    table = table[table.task.map(counted)]
    fig, axes = plt.subplots(figsize=(7.6, 0.45 * len(summary) + 1.4))
    for place, row in enumerate(summary.itertuples()):
        colour = OKABE_ITO[LOOKS[row.method][0]]
        mine = table.beaten[table.method == row.method]
        axes.plot(mine, np.full(len(mine), place), "o", ms=5, mfc="none", mec=colour)
        axes.plot([row.low, row.high], [place + 0.25] * 2, color=colour, lw=2)
        axes.plot([row.beaten], [place + 0.25], "D", color=colour, ms=6)
    axes.set_yticks(range(len(summary)), [METHODS[name].label for name in summary.method])
    axes.set_ylim(len(summary) - 0.4, -0.5)
    axes.set(xlim=(-0.02, 1.02), xlabel="share of the reference programs beaten, final split")
    best = summary.loc[summary.beaten.idxmax()]
    number = summary.tasks.iloc[0]
    axes.set_title(
        f"{METHODS[best.method].label} stands highest: {best.beaten:.2f} on average\n"
        f"(circles: {number} tasks; diamond and bar: their mean, 95 % bootstrapped over tasks)"
    )
    means = summary[["method", "beaten", "low", "high"]].rename(columns={"beaten": "mean"})
    return fig, table.merge(means, on="method")


def _lines(name: str, comparison: Recorded, rng: np.random.Generator) -> pd.DataFrame:
    higher = tasks.load(name).higher_is_better
    return lines_of(comparison.programs, comparison.searches, higher_is_better=higher, rng=rng)


def _legend(found: Mapping[str, Recorded]) -> list[Line2D]:
    compared = {method for comparison in found.values() for method in comparison.searches.method}
    handles = [
        Line2D([], [], color=OKABE_ITO[colour], linestyle=style, lw=2, label=METHODS[method].label)
        for method, (colour, style) in LOOKS.items()
        if method in compared
    ]
    for style, label in (("--", "median reference"), (":", "best reference")):
        handles.append(Line2D([], [], color="0.5", linestyle=style, lw=1, label=label))
    return [*handles, Line2D([], [], linestyle="", label="no line: nothing valid")]


def _title(lines: Mapping[str, pd.DataFrame], found: Mapping[str, Recorded]) -> str:
    """On how many tasks each method ends ahead, and when and how often that was measured."""
    ahead: dict[str, int] = {}
    for name, shown in lines.items():
        last = shown.groupby("method", sort=False).final_score.last()
        best = last.max() if tasks.load(name).higher_is_better else last.min()
        for method in last.index[last == best]:
            ahead[method] = ahead.get(method, 0) + 1
    order = sorted(ahead, key=lambda method: -ahead[method])
    who = ", ".join(f"{METHODS[method].label} on {ahead[method]}" for method in order)
    number = "1 task" if len(found) == 1 else f"{len(found)} tasks"
    days = sorted({day for comparison in found.values() for day in comparison.searches.date})
    seeds = sorted({seed for comparison in found.values() for seed in comparison.searches.seed})
    tried = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"Ahead when the time is over, of {number}: {who}\n({tried}; {when})"
