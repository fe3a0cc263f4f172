"""Methods of search at equal time: the score of the best program so far against the clock."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mle_rl.analysis.figures import OKABE_ITO
from mle_rl.analysis.statistics import bootstrap_curve
from mle_rl.errors import MleRlError
from mle_rl.search.methods import METHODS
from mle_rl.search.summary import at_times, best_so_far
from mle_rl.tasks import Task, leaderboard

LOOKS = {
    "rl": ("vermillion", "-"),
    "static": ("blue", "--"),
    "tree": ("sky", "-."),
    "smollm2": ("purple", (0, (5, 1, 1, 1, 1, 1))),
    "grammar": ("green", ":"),
    "default": ("black", (0, (1, 3))),
    "evolution": ("orange", (0, (7, 2))),
    "rl-duration": ("green", (0, (2, 1))),
    "rl-scratch": ("blue", "-."),
    "rl-penalty": ("purple", "--"),
    "rl-penalty-scratch": ("black", (0, (4, 1, 1, 1))),
}
"""Colour and line style of each method."""

LINE = ["method", "minutes", "final_score", "low", "high"]
"""Columns of the plotted numbers."""

_POINTS = 241
_SETTLED = 0.05
"""Share of the budget after which every score is within the figure; earlier ones may be cut off."""


def plot_search(
    programs: pd.DataFrame,
    searches: pd.DataFrame,
    *,
    metric: str,
    higher_is_better: bool,
    rng: np.random.Generator,
    levels: Mapping[str, float] | None = None,
    origin: str = "",
) -> tuple[Figure, pd.DataFrame]:
    """Final score of the program that is best on the reward split, against minutes.

    One line per method, better is up. With several seeds the line is their interquartile mean, with
    a 95 % bootstrap band, from the moment at which all of them have a valid program. A method that
    has none for some seed when the time is over has no line, and the legend says so.

    Args:
        programs: One row per program, as `mle_rl.search.compare` returns them.
        searches: One row per search, with the budget in ``seconds``.
        metric: Name of the score.
        higher_is_better: Its direction.
        rng: Source of the bootstrap.
        levels: Horizontal lines to compare with: name -> final score.
        origin: Added to the title, such as the day of recorded runs.

    Returns:
        The figure, and its numbers: method, minutes, final_score, low and high.

    Raises:
        MleRlError: No method has a valid program for each seed, or budgets differ.
    """
    shown = lines_of(programs, searches, higher_is_better=higher_is_better, rng=rng)
    if not programs.valid.any():
        raise MleRlError("No program of the comparison is valid: give it more seconds.")
    if shown.empty:
        raise MleRlError(
            "Every method has a seed without a valid program, so that none has a line: give them "
            "more seconds."
        )
    seconds = float(searches.seconds.iloc[0])
    fig, axes = plt.subplots(figsize=(7.6, 4.2))
    draw_lines(axes, shown, seconds, levels or {}, higher_is_better=higher_is_better)
    for method in _ordered(searches):
        if method not in set(shown.method):
            _say_missing(axes, method, programs, searches)
    axes.set(
        xlabel="wall-clock time of the method (minutes)",
        ylabel=f"{metric.replace('_', ' ')}, final split",
    )
    axes.set_title(_title(shown, searches, seconds, higher_is_better, origin))
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return fig, shown


def lines_of(
    programs: pd.DataFrame,
    searches: pd.DataFrame,
    *,
    higher_is_better: bool,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """The numbers of `plot_search`: method, minutes, final_score, low and high; maybe no row.

    Raises:
        MleRlError: Budgets differ.
    """
    if searches.seconds.nunique() != 1:
        raise MleRlError("Searches with different budgets cannot be compared in one figure.")
    curves = best_so_far(programs, higher_is_better=higher_is_better)
    seconds = float(searches.seconds.iloc[0])
    lines = [_line(curves, searches, method, seconds, rng) for method in _ordered(searches)]
    drawn = [line for line in lines if len(line)] or [pd.DataFrame(columns=LINE)]
    return pd.concat(drawn, ignore_index=True)


def draw_lines(
    axes: Axes,
    shown: pd.DataFrame,
    seconds: float,
    levels: Mapping[str, float],
    *,
    higher_is_better: bool,
) -> None:
    """Draw what `lines_of` returns, and the levels, with limits in which better is up."""
    for method, line in shown.groupby("method", sort=False):
        _draw(axes, method, line)
    for (name, level), style in zip(levels.items(), ("--", ":"), strict=False):
        axes.axhline(level, color="0.5", linestyle=style, lw=1, label=name)
    _limit(axes, shown, seconds, list(levels.values()), higher_is_better)


def reference_levels(task: Task) -> dict[str, float]:
    """Final scores to compare with: the median and the best of the reference programs."""
    board = leaderboard(task, "final")
    return {"median reference": board.median_score, "best reference": board.best.final_score}


def _ordered(searches: pd.DataFrame) -> list[str]:
    return [name for name in METHODS if name in set(searches.method)]


def _line(
    curves: pd.DataFrame,
    searches: pd.DataFrame,
    method: str,
    seconds: float,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """One method over time; empty if not every seed has a valid program in the end.

    A single seed keeps the moments of its steps; several are read at common times.
    """
    seeds = searches.seed[searches.method == method]
    mine = [curves[(curves.method == method) & (curves.seed == seed)] for seed in seeds]
    if any(curve.empty for curve in mine):
        return pd.DataFrame()
    first = max(curve.ended_at_s.iloc[0] for curve in mine)
    if len(mine) == 1:
        times = np.append(mine[0].ended_at_s, seconds)
    else:
        times = np.linspace(first, seconds, _POINTS)
    scores = np.array([at_times(curve, times, "final_score") for curve in mine])
    middle, low, high = scores[0], np.nan, np.nan
    if len(mine) > 1:
        middle, low, high = bootstrap_curve(scores, rng=rng, repeats=1000)
    values = {"minutes": times / 60, "final_score": middle, "low": low, "high": high}
    return pd.DataFrame({"method": method, **values})


def _draw(axes: Axes, method: str, line: pd.DataFrame) -> None:
    colour, style = LOOKS[method]
    colour = OKABE_ITO[colour]
    axes.step(
        line.minutes,
        line.final_score,
        where="post",
        color=colour,
        linestyle=style,
        lw=2,
        label=METHODS[method].label,
    )
    axes.plot(line.minutes.iloc[:1], line.final_score.iloc[:1], "o", color=colour, ms=4)
    if line.low.notna().any():
        axes.fill_between(
            line.minutes, line.low, line.high, step="post", color=colour, alpha=0.2, lw=0
        )


def _say_missing(axes: Axes, method: str, programs: pd.DataFrame, searches: pd.DataFrame) -> None:
    """An entry of the legend without a line."""
    seeds = searches.seed[searches.method == method]
    without = len(seeds) - programs[programs.valid & (programs.method == method)].seed.nunique()
    colour, style = LOOKS[method]
    label = f"{METHODS[method].label}:\nnothing valid for {without} of {len(seeds)} seed(s)"
    axes.plot([], [], color=OKABE_ITO[colour], linestyle=style, lw=2, label=label)


def _limit(
    axes: Axes, shown: pd.DataFrame, seconds: float, levels: list[float], higher_is_better: bool
) -> None:
    """Better is up; the first, often terrible, programs do not squash the rest."""
    settled = shown[shown.minutes >= _SETTLED * seconds / 60]
    values = np.concatenate([settled[["final_score", "low", "high"]].to_numpy().ravel(), levels])
    low, high = np.nanmin(values), np.nanmax(values)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    ends = (low - margin, high + margin)
    axes.set_ylim(ends if higher_is_better else ends[::-1])
    axes.set_xlim(0, seconds / 60)


def leaders(shown: pd.DataFrame, *, higher_is_better: bool) -> tuple[list[str], float]:
    """The methods whose lines end best, several where they tie, and that final score."""
    last = shown.groupby("method", sort=False).final_score.last()
    best = last.max() if higher_is_better else last.min()
    return list(last.index[last == best]), float(best)


def _title(
    shown: pd.DataFrame,
    searches: pd.DataFrame,
    seconds: float,
    higher_is_better: bool,
    origin: str,
) -> str:
    """Who is ahead when the time is over, and how often and how long it was tried."""
    methods, best = leaders(shown, higher_is_better=higher_is_better)
    ahead = " and ".join(METHODS[name].label for name in methods)
    seeds = sorted(set(searches.seed))
    tried = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    task = searches.task.iloc[0]
    return (
        f"Ahead after {_span(seconds)}: {ahead} ({best:.4f})\n"
        f"{task}, {tried}, {origin or f'{seconds:g} s each'}; better is up"
    )


def _span(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else f"{seconds / 60:.3g} min"
