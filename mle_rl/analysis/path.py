"""The one path, drawn with the values that one program had on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from mle_rl.analysis.figures import OKABE_ITO
from mle_rl.errors import MleRlError
from mle_rl.records import Rollout

if TYPE_CHECKING:
    from mle_rl.tasks import Task

Station = tuple[str, Sequence[str]]
"""A word of the path, and what was true of the program there, one short line each."""

_PER_ROW = 4


def stations(
    task: Task, rollout: Rollout, *, places: int, batch: int, duration_weight: float
) -> list[Station]:
    """What is true of one finished rollout at each word of the path.

    Args:
        task: What was to be solved.
        rollout: With program, execution, outcome and reward.
        places: Where its program is observed.
        batch: Rollouts in its batch.
        duration_weight: Its weight in that batch.
    """
    execution, outcome = rollout.execution, rollout.outcome
    scores = {"reward": outcome.reward_score, "final": outcome.final_score}
    return [
        ("Task", [task.id, f"{task.metric}, {_direction(task)} is better"]),
        ("Prompt", [rollout.prompt_kind, f"{len(rollout.prompt_ids)} tokens"]),
        (
            "Program",
            [
                *wrap(rollout.program.plan, width=36, max_lines=2, placeholder=" ..."),
                f"{len(rollout.program.code.splitlines())} lines of Python",
                f"{len(rollout.completion_ids)} tokens,"
                f" log-probability {sum(rollout.logprobs):.1f}",
            ],
        ),
        ("Instrumented", [f"{places} places observed"]),
        (
            "Execution",
            [
                f"{execution.status} in {execution.duration_s:.2f} s",
                f"peak memory {execution.peak_memory_mb:.0f} MiB",
                f"{len(outcome.stages)} stages reached",
            ],
        ),
        (
            "Outcome",
            [f"{split} split {score:.4f}" for split, score in scores.items()]
            if outcome.valid
            else ["no valid submission"],
        ),
        ("Reward", [f"{rollout.reward:.4f}"]),
        (
            "Batch",
            [
                f"one of {batch} rollouts",
                f"policy version {rollout.model_version}",
                f"duration weight {duration_weight:.2f}",
            ],
        ),
    ]


def draw_path(path: Sequence[Station], title: str) -> tuple[Figure, pd.DataFrame]:
    """Draw the stations as boxes joined by arrows, four in a row, read like text.

    Returns:
        The figure, and its contents as a table with the columns ``station`` and ``value``.

    Raises:
        MleRlError: No stations.
    """
    if not path:
        raise MleRlError("There is no path to draw: give at least one station.")
    rows = -(-len(path) // _PER_ROW)
    fig, axes = plt.subplots(figsize=(10, 1.5 * rows + 0.4))
    axes.set(xlim=(0, _PER_ROW), ylim=(-rows, 0))
    axes.set_title(title)
    axes.set_axis_off()
    centres = [((i % _PER_ROW) + 0.5, -(i // _PER_ROW) - 0.5) for i in range(len(path))]
    for (x, y), (word, values) in zip(centres, path, strict=True):
        frame = plt.Rectangle(
            (x - 0.42, y - 0.4), 0.84, 0.8, facecolor="white", edgecolor=OKABE_ITO["blue"]
        )
        axes.add_patch(frame)
        axes.text(x, y + 0.33, word, ha="center", va="top", weight="bold", size=10)
        axes.text(
            x - 0.39, y + 0.15, "\n".join(values), ha="left", va="top", size=8, linespacing=1.4
        )
    for start, end in pairwise(centres):
        _arrow(axes, start, end)
    table = [(word, value) for word, values in path for value in values]
    return fig, pd.DataFrame(table, columns=["station", "value"])


def _arrow(axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From box to box in a row; at the end of a row round to the beginning of the next."""
    colour = OKABE_ITO["vermillion"]
    head = {"arrowstyle": "-|>", "color": colour, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    if start[1] == end[1]:
        corners = [(start[0] + 0.42, start[1]), (end[0] - 0.42, end[1])]
    else:
        between = (start[1] + end[1]) / 2
        bottom, top = (start[0], start[1] - 0.4), (end[0], end[1] + 0.4)
        corners = [bottom, (bottom[0], between), (top[0], between), top]
        axes.plot(*zip(*corners[:3], strict=True), color=colour, lw=1.4, ls="-")
    axes.annotate("", corners[-1], corners[-2], arrowprops=head)


def _direction(task: Task) -> str:
    return "higher" if task.higher_is_better else "lower"
