"""Figures of notebook 06: samples from scratch beside samples that improve them."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from mle_rl.analysis.figures import OKABE_ITO, plot_interval
from mle_rl.analysis.improvement import CHANGES
from mle_rl.analysis.statistics import Interval


def draw_kinds(comparison: pd.DataFrame) -> Figure:
    """Valid share and mean reward by task and kind.

    Args:
        comparison: Rows of `by_kind` with a column ``task``.
    """
    names = list(dict.fromkeys(comparison.task))
    fig, panels = plt.subplots(1, 2, figsize=(8, 0.9 + 0.5 * len(names)), sharey=True)
    looks = {"scratch": ("blue", "o", 0.13), "improve": ("vermillion", "s", -0.13)}
    for axis, measure in zip(panels, ("valid share", "mean reward"), strict=True):
        for kind, (colour, marker, shift) in looks.items():
            rows = comparison[(comparison.measure == measure) & (comparison.kind == kind)]
            places = [len(names) - 1 - names.index(name) + shift for name in rows.task]
            error = [rows.value - rows.low, rows.high - rows.value]
            axis.errorbar(
                rows.value, places, xerr=error, fmt=marker, color=OKABE_ITO[colour], label=kind
            )
        axis.set(xlabel=measure, yticks=range(len(names)), yticklabels=names[::-1])
        axis.set_ylim(-0.5, len(names) - 0.5)
    panels[1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    apart = comparison[(comparison.kind == "difference") & (comparison.measure == "mean reward")]
    more, less = (apart.low > 0).sum(), (apart.high < 0).sum()
    fig.suptitle(
        f"Showing a solution raises the mean reward on {more} of {len(names)} tasks and lowers it "
        f"on {less}\n(95 % intervals that exclude 0)",
        x=0.01,
        ha="left",
        fontsize="medium",
    )
    return fig


def draw_changes(shares: pd.DataFrame) -> Figure:
    """What improve samples are beside what they were shown, by task.

    Args:
        shares: Rows of `changes` with a column ``task``.
    """
    names = list(dict.fromkeys(shares.task))
    fig, axis = plt.subplots(figsize=(7, 1.3 + 0.4 * len(names)))
    left = np.zeros(len(names))
    looks = zip(
        CHANGES, ("blue", "sky", "orange", "vermillion"), ("", "..", "//", "xx"), strict=True
    )
    for name, colour, hatch in looks:
        share = shares[shares.change == name].set_index("task").share.loc[names].to_numpy()
        look = {"color": OKABE_ITO[colour], "hatch": hatch, "edgecolor": "white"}
        axis.barh(names, share, left=left, label=name, **look)
        left += share
    axis.invert_yaxis()
    axis.set(xlim=(0, 1), xlabel="share of the samples that were shown a solution")
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    better = shares[shares.change == "better"].share
    axis.set_title(f"{better.mean():.0%} are better than what they were shown (mean of the tasks)")
    return fig


def draw_budget(curves: pd.DataFrame) -> Figure:
    """Gain against the number of programs, a panel per task.

    Args:
        curves: Rows of `equal_budget` with a column ``task``.
    """
    names = list(dict.fromkeys(curves.task))
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    fig, grid = plt.subplots(
        rows,
        columns,
        figsize=(max(6.0, 2.8 * columns), 2.9 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    labels = {"scratch": "all from scratch", "both": "half from scratch, half improve"}
    for axis, name in zip(grid.flat, names, strict=False):
        for way, colour, style in (("scratch", "blue", "-"), ("both", "vermillion", "--")):
            part = curves[(curves.task == name) & (curves.way == way)]
            band = Interval(*(part[column].to_numpy() for column in ("gain", "low", "high")))
            look = {"color": OKABE_ITO[colour], "ls": style, "marker": "o", "ms": 3}
            plot_interval(axis, 2 * part.k.to_numpy(), band, label=labels[way], **look)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(ScalarFormatter())
        axis.set_title(name, fontsize=9)
    for axis in grid.flat[len(names) :]:
        axis.axis("off")
    grid.flat[0].legend(loc="lower right", fontsize="small")
    fig.supxlabel("programs run (the best on the reward split is handed in)")
    fig.supylabel("gain on the final split")
    last = curves[
        (curves.way == "difference") & (curves.k == curves.groupby("task").k.transform("max"))
    ]
    more, less = (last.low > 0).sum(), (last.high < 0).sum()
    fig.suptitle(
        f"With as many programs, improving wins on {more} of {len(names)} tasks and loses on "
        f"{less};\non the others the interval of the difference holds 0 (right ends)",
        x=0.01,
        ha="left",
        fontsize="medium",
    )
    return fig
