"""The timeline of a box: what every device does, second by second."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from mle_rl.analysis import OKABE_ITO
from mle_rl.rollout.simulation.box import Box, held
from mle_rl.rollout.simulation.stages import Result
from mle_rl.rollout.simulation.trace import FATES

FATE_COLOURS = {
    "trained": OKABE_ITO["blue"],
    "stale": OKABE_ITO["vermillion"],
    "aborted": OKABE_ITO["vermillion"],
    "window": OKABE_ITO["vermillion"],
    "timeout": OKABE_ITO["vermillion"],
    "crashed": OKABE_ITO["black"],
    "ready": OKABE_ITO["sky"],
    "in flight": OKABE_ITO["sky"],
}


def plot_timeline(
    runs: Mapping[str, tuple[Box, Result]], window_s: tuple[float, float], title: str
) -> tuple[Figure, pd.DataFrame]:
    """What every device of a box does over a stretch of time, one column per run.

    Args:
        runs: Heading of the column, the box, and its simulation.
        window_s: First and last second shown.
        title: The finding.

    Returns:
        The figure, and a row per bar: ``run``, ``device``, ``begin_s``, ``end_s``, ``what``.
    """
    fig, grid = plt.subplots(
        3, len(runs), figsize=(4.6 * len(runs), 5.2), sharex=True, sharey="row", squeeze=False,
        height_ratios=[2, 0.8, 4],
    )  # fmt: skip
    bars = []
    for column, (heading, (box, result)) in zip(grid.T, runs.items(), strict=True):
        for row in (
            _sampling_rows(column[0], box, result, window_s),
            _training_row(column[1], result, window_s),
            _worker_rows(column[2], result, window_s),
        ):
            bars.append(pd.DataFrame(row).assign(run=heading))
        column[0].set_title(heading)
        column[2].set(xlabel="time (s)", xlim=window_s)
    grid[0, 0].set_ylabel("sampling GPU")
    grid[2, 0].set_ylabel("execution worker")
    handles = {
        "decoding (darker: fuller)": OKABE_ITO["green"],
        "training": OKABE_ITO["orange"],
        "weight sync": OKABE_ITO["purple"],
        "execution": OKABE_ITO["blue"],
        "execution, not trained on yet": OKABE_ITO["sky"],
        "execution, thrown away": OKABE_ITO["vermillion"],
    }
    shown = set(pd.concat(bars).what)
    known = {"decoding": 0, "training": 1, "weight sync": 2, "trained": 3, "undecided": 4}
    keep = [i for what, i in known.items() if what in shown] + ([5] if "dropped" in shown else [])
    patches = [plt.Rectangle((0, 0), 1, 1, color=list(handles.values())[i]) for i in keep]
    labels = [list(handles)[i] for i in keep]
    fig.legend(patches, labels, loc="outside lower left", ncols=len(keep), fontsize=7.5)
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig, pd.concat(bars, ignore_index=True)


def _sampling_rows(axes: Axes, box: Box, result: Result, window_s) -> list[dict]:
    """Occupancy of each sampling GPU on a grid of instants, drawn as darkness."""
    trace = result.trace
    begins, ends = held(result)
    instants = np.linspace(*window_s, 401)
    gpu = box.gpu_of(trace.slot)
    image = np.zeros((box.sampling_gpus, 400))
    for g in range(box.sampling_gpus):
        begin, end = np.sort(begins[gpu == g]), np.sort(ends[gpu == g])
        middle = (instants[1:] + instants[:-1]) / 2
        image[g] = np.searchsorted(begin, middle, "right") - np.searchsorted(end, middle, "right")
    first = 0 if box.training_gpus == 0 else 1
    for step in result.training:  # held sequences are not decoded
        image[:, (instants[1:] > step[first]) & (instants[:-1] < step[2])] = 0
    share = image / box.generation_batch
    axes.imshow(
        share, aspect="auto", origin="lower", cmap=_shades(OKABE_ITO["green"]), vmin=0, vmax=1,
        extent=(*window_s, -0.5, box.sampling_gpus - 0.5), interpolation="none",
    )  # fmt: skip
    axes.set_yticks(range(box.sampling_gpus))
    axes.grid(visible=False)
    return [
        {"device": f"sampling GPU {g}", "begin_s": instants[i], "end_s": instants[i + 1],
         "what": "decoding", "share": share[g, i]}
        for g in range(box.sampling_gpus)
        for i in np.flatnonzero(share[g])
    ]  # fmt: skip


def _training_row(axes: Axes, result: Result, window_s) -> list[dict]:
    bars = []
    for taken, trained, synced in result.training:
        for begin, end, what, colour in (
            (taken, trained, "training", "orange"),
            (trained, synced, "weight sync", "purple"),
        ):
            if end > window_s[0] and begin < window_s[1] and end > begin:
                axes.broken_barh([(begin, end - begin)], (-0.4, 0.8), color=OKABE_ITO[colour])
                bars.append(
                    {"device": "learner", "begin_s": begin, "end_s": end, "what": what, "share": 1}
                )
    axes.set_yticks([0], ["learner"])
    axes.set_ylim(-0.6, 0.6)
    axes.grid(visible=False)
    return bars


def _worker_rows(axes: Axes, result: Result, window_s) -> list[dict]:
    trace, bars = result.trace, []
    ends = np.where(np.isnan(trace.finished_at), result.elapsed_s, trace.finished_at)
    shown = (trace.worker >= 0) & (ends > window_s[0]) & (trace.started_at < window_s[1])
    for i in np.flatnonzero(shown):
        fate = FATES[trace.fate[i]]
        begin, length = trace.started_at[i], ends[i] - trace.started_at[i]
        axes.broken_barh(
            [(begin, length)],
            (trace.worker[i] - 0.4, 0.8),
            facecolor=FATE_COLOURS[fate],
            edgecolor="white",
            linewidth=0.4,
        )
        undecided = fate in ("ready", "in flight")
        what = "undecided" if undecided else "trained" if fate == "trained" else "dropped"
        bars.append(
            {"device": f"worker {trace.worker[i]}", "begin_s": begin, "end_s": ends[i],
             "what": what, "share": 1}
        )  # fmt: skip
    axes.set_ylim(-0.6, result.config.workers - 0.4)
    axes.grid(visible=False)
    return bars


def _shades(colour: str):
    return LinearSegmentedColormap.from_list("shades", ["white", colour])
