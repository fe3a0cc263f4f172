"""Statistics over runs, and figures that are the same bytes on every save.

Every aggregate is an interquartile mean with a stratified bootstrap interval; every figure is
saved with the numbers it shows and says whether they were live, recorded, replayed, simulated or
exact.
"""

from mle_rl.analysis.figures import KINDS, OKABE_ITO, plot_interval, save_figure, save_table, style
from mle_rl.analysis.statistics import Interval, bootstrap_curve, bootstrap_interval, iqm

__all__ = [
    "KINDS",
    "OKABE_ITO",
    "Interval",
    "bootstrap_curve",
    "bootstrap_interval",
    "iqm",
    "plot_interval",
    "save_figure",
    "save_table",
    "style",
]
