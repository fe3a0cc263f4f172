"""Figures: one style, and files that are the same bytes whenever the numbers are the same.

A figure is saved three times: PNG to look at, PDF to print, CSV with the plotted numbers.
All three say (the first two in the picture) where the numbers come from.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from mle_rl.analysis.statistics import Interval
from mle_rl.errors import MleRlError, unknown_name
from mle_rl.notebook import Run, unwritable

OKABE_ITO = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "yellow": "#F0E442",
    "black": "#000000",
}
"""Okabe and Ito's palette (2008), told apart with every common form of colour blindness."""

KINDS = {
    "live": "live: programs ran while this was made",
    "recorded": "recorded: programs ran live on the day that the figure names",
    "replayed": "replayed from recorded executions",
    "simulated": "simulated in virtual time",
    "exact": "computed exactly",
}
"""Where the numbers of a figure come from, and how the figure says it."""

_STAMP = "mle_rl-kind"


def style() -> None:
    """Set matplotlib's defaults: palette, a second channel beside colour, sizes, fonts."""
    colours = [OKABE_ITO[name] for name in ("blue", "orange", "green", "vermillion", "purple")]
    lines = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))]
    mpl.rcParams.update(
        {
            "axes.grid": True,
            "axes.prop_cycle": cycler(color=colours, linestyle=lines),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": "medium",
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "figure.figsize": (6.4, 3.6),
            "font.size": 10,
            "grid.alpha": 0.3,
            "legend.frameon": False,
            "pdf.fonttype": 42,
            "savefig.bbox": "tight",
            "savefig.dpi": 150,
        }
    )


def plot_interval(axes: Axes, x, interval: Interval, *, label: str, **line) -> None:
    """Draw a curve with its interval as a band of the same colour."""
    (drawn,) = axes.plot(x, interval.point, label=label, **line)
    axes.fill_between(x, interval.low, interval.high, color=drawn.get_color(), alpha=0.2, lw=0)


def save_figure(fig: Figure, name: str, data: pd.DataFrame, run: Run, *, kind: str) -> Path:
    """Save a figure as PNG and PDF and its numbers as CSV, and stamp it with their origin.

    Args:
        fig: The figure; the stamp is added below it, once, however often it is saved.
        name: File name without ending, words joined by underscores.
        data: The plotted numbers, one row per mark.
        run: The run whose results folder receives the three files.
        kind: One of ``KINDS``.

    Returns:
        Path of the PNG.

    Raises:
        MleRlError: Unknown kind, no numbers, a bad name, or a folder that cannot be written.
    """
    if kind not in KINDS:
        raise unknown_name("kind of figure", kind, KINDS)
    stamp = f"{KINDS[kind]}; {run.profile} profile"
    _stamp(fig, stamp)
    # Laying out again moves axes by 1e-8 inch, enough to change the PDF: lay out once and keep it.
    fig.draw_without_rendering()
    fig.set_layout_engine("none")
    save_table(data, name, run)
    png, pdf = run.path(name, ".png"), run.path(name, ".pdf")
    try:
        fig.savefig(png, metadata={"Software": None, "Description": stamp})
        fig.savefig(
            pdf,
            metadata={"Creator": None, "Producer": None, "CreationDate": None, "Subject": stamp},
        )
    except OSError as error:
        raise unwritable(png, error) from None
    return png


def save_table(data: pd.DataFrame, name: str, run: Run) -> Path:
    """Write numbers as CSV with ten significant digits, a named index kept as columns.

    Ten digits, because the last ones differ between machines and say nothing.
    """
    if data.empty:
        raise MleRlError(f"The table {name!r} has no rows: nothing was plotted or measured.")
    path = run.path(name, ".csv")
    named = any(label is not None for label in data.index.names)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        data.to_csv(path, index=named, float_format="%.10g", lineterminator="\n")
    except OSError as error:
        raise unwritable(path, error) from None
    return path


def _stamp(fig: Figure, text: str) -> None:
    for old in [artist for artist in fig.texts if artist.get_gid() == _STAMP]:
        old.remove()
    stamp = fig.text(1, 0, text, ha="right", va="top", fontsize=7, color="0.35", gid=_STAMP)
    stamp.set_in_layout(True)
