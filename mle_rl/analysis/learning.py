"""Learning curves of a training run: mean beside maximum, and diversity beside both.

Reinforcement learning on the result of an execution is known to raise the mean more than the
maximum and to narrow the policy to few ideas, so neither is ever drawn without the other. Every
curve is drawn against updates and against wall-clock time, for a method that pays for slow programs
can win by one and lose by the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

CURVES = (
    ("reward_mean", "mean reward"),
    ("score_best_so_far", "best score so far\n(reward split)"),
    ("valid_share", "valid share"),
    ("distinct_share", "distinct programs\n(share of batch)"),
    ("duration_mean_s", "execution time\n(mean of batch, s)"),
)
"""Column of a run's history, and what its axis says."""


def plot_learning(
    histories: Mapping[str, pd.DataFrame],
    title: str,
    *,
    objective: str | Mapping[str, str],
    higher_is_better: bool = True,
) -> tuple[Figure, pd.DataFrame]:
    """Draw `CURVES` of one or more runs against updates (left) and minutes (right).

    Args:
        histories: Name of a run -> its history, as `mle_rl.training.train` returns it.
        title: The finding.
        objective: What the runs climbed (``config.weighting.objective``): of all, or name of a run
            -> its own.
        higher_is_better: Direction of the score; its axis is turned so that better is up.

    Returns:
        The figure, and the plotted numbers with columns ``run`` and ``objective``.
    """
    objectives = dict.fromkeys(histories, objective) if isinstance(objective, str) else objective
    fig, axes = plt.subplots(len(CURVES), 2, figsize=(8, 9.5), sharex="col", sharey="row")
    for name, history in histories.items():
        for row, (column, label) in zip(axes, CURVES, strict=True):
            for axis, time in zip(row, (history.step, history.wall_s / 60), strict=True):
                axis.plot(time, history[column], label=name)
            row[0].set_ylabel(label)
    for row in axes[2:4]:
        row[0].set_ylim(-0.03, 1.03)
    if not higher_is_better:
        axes[1, 0].invert_yaxis()
    count_updates(axes[-1, 0])
    axes[-1, 1].set_xlabel("wall-clock time (minutes)")
    if len(histories) > 1:
        axes[0, 0].legend()
    entitle(fig, title, objectives)
    columns = ["step", "wall_s", *(column for column, _ in CURVES)]
    shown = [
        history[columns].assign(run=name, objective=objectives[name])
        for name, history in histories.items()
    ]
    return fig, pd.concat(shown, ignore_index=True)


TASK_CURVES = (
    ("reward_mean", "mean reward"),
    ("valid_share", "valid share"),
    ("beaten_so_far", "leaderboard beaten by\nthe best so far (share)"),
)
"""Column of `mle_rl.training.by_task.history_by_task`, and what its axis says."""


def plot_by_task(history: pd.DataFrame, title: str, *, objective: str) -> Figure:
    """Draw `TASK_CURVES` of one policy against updates, a line per task.

    Args:
        history: As `mle_rl.training.by_task.history_by_task` returns it.
        title: The finding.
        objective: What the run climbed (``config.weighting.objective``).
    """
    fig, axes = plt.subplots(len(TASK_CURVES), 1, figsize=(7, 6.4), sharex=True)
    for axis, (column, label) in zip(axes, TASK_CURVES, strict=True):
        for name, rows in history.groupby("task", sort=False):
            axis.plot(rows.step, rows[column], label=name)
        axis.set_ylabel(label)
    count_updates(axes[-1])
    axes[0].legend(loc="upper left", bbox_to_anchor=(1, 1))
    entitle(fig, title, dict.fromkeys(history.task, objective))
    return fig


def count_updates(axis: Axes) -> None:
    """Let the horizontal axis count updates: there is none between two."""
    axis.set_xlabel("updates")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def entitle(fig: Figure, title: str, objectives: Mapping[str, str]) -> None:
    """Put the finding above a figure, and below it what its learners climbed.

    Weights and charges for time change the goal, so a curve that lies higher need not be better at
    the goal of the lower one.

    Args:
        fig: The figure.
        title: The finding.
        objectives: Name of a curve -> `mle_rl.training.weighting.DurationWeighting.objective`.
    """
    curves: dict[str, list[str]] = {}
    for name, objective in objectives.items():
        curves.setdefault(objective, []).append(name)
    said = [f"{each} ({', '.join(names)})" for each, names in curves.items()]
    said = list(curves) if len(curves) == 1 else said
    letters = "R reward, D duration" if any("D" in each for each in curves) else "R reward"
    line = f"objective: {'; '.join(said)} ({letters})"
    fig.suptitle(f"{title}\n{line}", x=0.01, ha="left", fontsize="medium")
