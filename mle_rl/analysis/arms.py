"""Curves of an ablation: one colour per arm, a thin line per seed, their mean drawn over them."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from mle_rl.analysis.figures import OKABE_ITO
from mle_rl.analysis.learning import count_updates, entitle
from mle_rl.errors import MleRlError

_LOOKS = (("blue", "-"), ("vermillion", "--"), ("green", "-."), ("purple", ":"))


def plot_arms(
    curves: pd.DataFrame, labels: Mapping[str, str], title: str
) -> tuple[Figure, pd.DataFrame]:
    """Draw columns of runs against updates, side by side.

    With few seeds an interval says less than the seeds themselves, so these are drawn.

    Args:
        curves: Rows with ``arm``, ``seed``, ``date``, ``objective``, ``step`` and the columns of
            ``labels``, as `mle_rl.training.ablation.run_arms` returns them; of older recordings
            the objective is missing, and the figure says so.
        labels: Column -> what its axis says.
        title: The finding.

    Returns:
        The figure, and the plotted numbers.

    Raises:
        MleRlError: There are more arms than can be told apart.
    """
    arms = list(dict.fromkeys(curves.arm))
    if len(arms) > len(_LOOKS):
        raise MleRlError(f"At most {len(_LOOKS)} arms can be told apart in one figure.")
    if "objective" not in curves:
        curves = curves.assign(objective="not recorded")
    fig, axes = plt.subplots(1, len(labels), figsize=(3.6 * len(labels), 3.2), squeeze=False)
    for axis, (column, label) in zip(axes[0], labels.items(), strict=True):
        for arm, (colour, line) in zip(arms, _LOOKS, strict=False):
            runs = curves[curves.arm == arm].pivot(index="step", columns="seed", values=column)
            look = {"color": OKABE_ITO[colour], "linestyle": line}
            axis.plot(runs, lw=0.6, alpha=0.6, **look)
            axis.plot(runs.mean(axis=1), lw=2, label=arm, **look)
        axis.set_ylabel(label)
        count_updates(axis)
    axes[0, 0].legend()
    entitle(fig, title, dict(zip(curves.arm, curves.objective, strict=True)))
    return fig, curves[["arm", "seed", "date", "objective", "step", *labels]]
