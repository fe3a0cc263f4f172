"""Methods of search on several tasks: a panel per task, and where they stand over all of them."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mle_rl import tasks
from mle_rl.analysis.figures import OKABE_ITO
from mle_rl.analysis.search import LINE, LOOKS, draw_lines, leaders, lines_of, reference_levels
from mle_rl.errors import MleRlError
from mle_rl.search.methods import METHODS
from mle_rl.search.recorded import Recorded, origin

_COLUMNS = 4
_LETTERS_PER_INCH = 12


def plot_tasks(
    found: Mapping[str, Recorded], rng: np.random.Generator
) -> tuple[Figure, pd.DataFrame]:
    """`mle_rl.analysis.search.plot_search` of several tasks, a panel for each.

    A task on which no method has a line has an empty panel.

    Args:
        found: Comparisons by task; budgets may differ between tasks.
        rng: Source of the bootstrap, where a task has several seeds.

    Returns:
        The figure, and its numbers: task, method, minutes, final_score, low and high.

    Raises:
        MleRlError: There is no comparison, or budgets of one task differ.
    """
    if not found:
        raise MleRlError("No comparison is recorded: run `python -m mle_rl compare` first.")
    lines = {name: _lines(name, comparison, rng) for name, comparison in found.items()}
    columns = min(_COLUMNS, len(found) + 1)  # one place is for the legend
    rows = -(-(len(found) + 1) // columns)
    size = (max(6.0, 2.9 * columns), 2.5 * rows + 0.6)
    fig, grid = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for axes, (name, shown) in zip(grid.flat, lines.items(), strict=False):
        task, seconds = tasks.load(name), float(found[name].searches.seconds.iloc[0])
        if len(shown):
            levels = reference_levels(task)
            draw_lines(axes, shown, seconds, levels, higher_is_better=task.higher_is_better)
        axes.set_title(f"{name}\n{task.metric.replace('_', ' ')}", fontsize=9)
    for axes in grid.flat[len(found) :]:
        axes.axis("off")
    drawn = pd.concat([shown.assign(task=name) for name, shown in lines.items()])
    handles = _legend(found, set(drawn.method))
    grid.flat[len(found)].legend(handles=handles, fontsize="small", loc="center")
    fig.supxlabel("wall-clock time of the method (minutes)", fontsize="medium")
    fig.supylabel("final split, better is up", fontsize="medium")
    title = textwrap.fill(_ahead(lines), int(_LETTERS_PER_INCH * size[0]))
    fig.suptitle(f"{title}\n({_tried(found)})", fontsize="medium")
    return fig, drawn[["task", *LINE]]


def plot_standing(table: pd.DataFrame, summary: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Leaderboard percentiles by method: a circle per task, the mean and its interval beside.

    Args:
        table: Of `mle_rl.search.standing.standing`.
        summary: Of `mle_rl.search.standing.over_tasks`, of the same table.

    Returns:
        The figure, and its numbers: task, method, percentile, rank, and mean, low and high.
    """
    counted = table.groupby("task").method.transform("nunique") == len(summary)
    table = table[counted]
    fig, axes = plt.subplots(figsize=(7.6, 0.45 * len(summary) + 1.4))
    for place, row in enumerate(summary.itertuples()):
        colour = OKABE_ITO[LOOKS[row.method][0]]
        mine = table.percentile[table.method == row.method]
        axes.plot(mine, np.full(len(mine), place), "o", ms=5, mfc="none", mec=colour)
        axes.plot([row.low, row.high], [place + 0.25] * 2, "-", color=colour, lw=2)
        axes.plot([row.percentile], [place + 0.25], "D", color=colour, ms=6)
    axes.set_yticks(range(len(summary)), [METHODS[name].label for name in summary.method])
    axes.set_ylim(len(summary) - 0.4, -0.5)
    axes.set(xlim=(-0.02, 1.02), xlabel="percentile on the leaderboard of the final split")
    shown = summary.percentile.round(2)  # what the title says is equal counts as equal
    highest = summary.method[shown == shown.max()]
    axes.set_title(
        f"Highest mean: {' and '.join(METHODS[name].label for name in highest)} "
        f"({shown.max():.2f})\n"
        f"(circles: {table.task.nunique()} tasks; diamond and bar: mean, 95 % interval over tasks)"
    )
    means = summary[["method", "percentile", "low", "high"]]
    return fig, table.merge(means.rename(columns={"percentile": "mean"}), on="method")


def _lines(name: str, comparison: Recorded, rng: np.random.Generator) -> pd.DataFrame:
    higher = tasks.load(name).higher_is_better
    return lines_of(comparison.programs, comparison.searches, higher_is_better=higher, rng=rng)


def _legend(found: Mapping[str, Recorded], drawn: set[str]) -> list[Line2D]:
    compared = {method for comparison in found.values() for method in comparison.searches.method}
    handles = []
    for method, (colour, style) in LOOKS.items():
        if method in compared:
            label = METHODS[method].label + ("" if method in drawn else ":\nno line on any task")
            look = {"color": OKABE_ITO[colour], "linestyle": style, "lw": 2}
            handles.append(Line2D([], [], label=label, **look))
    for style, label in (("--", "median reference"), (":", "best reference")):
        handles.append(Line2D([], [], color="0.5", linestyle=style, lw=1, label=label))
    missing = "no line: not run, or a seed\nwithout a valid program"
    return [*handles, Line2D([], [], linestyle="", label=missing)]


def _ahead(lines: Mapping[str, pd.DataFrame]) -> str:
    """On how many tasks each method ends ahead."""
    ahead = Counter()
    for name, shown in lines.items():
        if len(shown):
            methods, _ = leaders(shown, higher_is_better=tasks.load(name).higher_is_better)
            ahead.update(methods)
    who = "; ".join(f"{METHODS[method].label} on {count}" for method, count in ahead.most_common())
    number = "1 task" if len(lines) == 1 else f"{len(lines)} tasks"
    return f"Ahead when the time is over, of {number}: {who or 'nobody'}"


def _tried(found: Mapping[str, Recorded]) -> str:
    """How often and how long, when and on what."""
    searches = pd.concat([comparison.searches for comparison in found.values()])
    seeds = searches.groupby(["task", "method"]).seed.nunique()
    least, most = seeds.min(), seeds.max()
    number = f"{least}" if least == most else f"{least} to {most}"
    return f"{number} seed{'' if most == 1 else 's'}; {origin(searches)}"
