"""Is anything left to win? Many samples of a policy before training, beside the best known program.

The samples come from files that ``python -m mle_rl headroom`` records, one row per sample. The best
known program is that of `mle_rl.analysis.known`: a reference program, or what a long search found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mle_rl import tasks
from mle_rl.analysis.figures import OKABE_ITO
from mle_rl.analysis.known import best_known, gain_scale
from mle_rl.errors import MleRlError
from mle_rl.training.best_of import best_of_k

FIRST = 1000
"""Samples on which a policy is judged to be fit for training."""
VALID_SHARE = (0.05, 0.40)
DISTINCT_VALID = 200
"""What it takes: valid sometimes, not always, and in many different ways."""


_SCORES = ("best_sample", "best_known", "left", "left_from_median")


def living(table: pd.DataFrame, first: int = FIRST) -> dict[str, object]:
    """Whether the policy is fit for training on a task: does it succeed sometimes, in many ways?

    Returns:
        ``valid_share`` and ``distinct_valid`` (programs) of the first samples, and ``fit``: both
        within `VALID_SHARE` and `DISTINCT_VALID`; None as long as there are fewer samples.
    """
    head = table[table["sample"] < first]
    share, distinct = head.valid.mean(), head.program[head.valid].nunique()
    low, high = VALID_SHARE
    fit = bool(low <= share <= high and distinct >= DISTINCT_VALID) if len(head) >= first else None
    return {"valid_share": share, "distinct_valid": distinct, "fit": fit}


def summarise(samples: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per task: is the policy fit for training, and is anything left to win?

    Columns: ``task``, ``samples``; `living` of the first 1,000; ``valid_share_all``; then for the
    reward and the final split (``final_`` before the name) what the sample submission scores
    (``baseline``), the best of the samples (``best_sample``), the best known program
    (``best_known``), and ``left``: the share of the way from baseline to best known that the
    samples leave; 0 is nothing, below 0 the samples are better than what was known. Where most of
    that way is easy, ``left_from_median`` tells more: the same from the median reference program
    on, above 1 if the samples do not even reach that. Best is by the reward split, on both.
    ``known_from`` says where the best known program comes from. NaN where no sample is valid.
    """
    rows = []
    for name, table in samples.items():
        task = tasks.load(name)
        row = {"task": name, "samples": len(table), **living(table)}
        row["valid_share_all"] = table.valid.mean()
        best = _best(table, task.higher_is_better)
        for split, (low, high) in gain_scale(name).items():
            score = nan if best is None else best[f"{split}_score"]
            median = tasks.leaderboard(task, split).median_score
            prefix = "" if split == "reward" else "final_"
            row |= {
                f"{prefix}baseline": low,
                f"{prefix}best_sample": score,
                f"{prefix}best_known": high,
                f"{prefix}left": (high - score) / (high - low),
                f"{prefix}left_from_median": (high - score) / (high - median),
            }
        rows.append(row | {"known_from": best_known(task).source})
    return pd.DataFrame(rows)


def report(samples: Mapping[str, pd.DataFrame]) -> str:
    """`summarise` in words and tables, for the command line; there must be samples of a task."""
    table = summarise(samples)
    names = {None: f"{FIRST} wanted", True: "yes", False: "no"}
    fit = table[["task", "samples", "valid_share", "distinct_valid"]]
    both = [prefix + name for prefix in ("", "final_") for name in _SCORES]
    scores = table[["task", *both, "known_from"]]
    gains = best_of_k_curves(samples, [1, 10, 100, 1000])
    gains = gains.pivot(index="task", columns="k", values="final_gain").loc[list(samples)]
    low, high = VALID_SHARE
    return f"""\
The first {FIRST} samples; fit for training: {low:.0%} to {high:.0%} valid, {DISTINCT_VALID} or more
different valid programs.
{_text(fit.assign(fit=[names[known] for known in table.fit]), 3)}

Best of all samples by the reward split, beside the best program that is known; left: share of
the way to it from the sample submission, or from the median reference program, that is left.
{_text(scores, 4)}

Gain on the final split to be expected of the best of k; 0: baseline, 1: best known.
{_text(gains.reset_index().rename_axis(columns=None), 3)}"""


def _text(table: pd.DataFrame, digits: int) -> str:
    return table.to_string(index=False, na_rep="", float_format=f"{{:.{digits}f}}".format)


def best_of_k_curves(
    samples: Mapping[str, pd.DataFrame], ks: Sequence[int] | None = None
) -> pd.DataFrame:
    """What the best of k samples gains, on average over all choices of k of the recorded ones.

    The gain is 0 at the sample submission and 1 at the best known program. Of k programs the best
    on the reward split is handed in; if none is valid, the sample submission is.

    Args:
        samples: See `mle_rl.analysis.samples.read_samples`.
        ks: Numbers of samples; those above what a task has are left out of it.

    Returns:
        Columns ``task``, ``k``, ``reward_gain``, ``final_gain``, ``any_valid`` (probability).
    """
    rows = []
    for name, table in samples.items():
        scale = gain_scale(name)
        for k in _up_to(len(table)) if ks is None else [k for k in ks if k <= len(table)]:
            best = best_of_k(
                table.reward_score,
                table.final_score,
                k,
                higher_is_better=tasks.load(name).higher_is_better,
            )
            row = {"task": name, "k": k}
            for split, (low, high) in scale.items():
                gain = (getattr(best, f"{split}_score") - low) / (high - low)
                row[f"{split}_gain"] = best.any_valid * gain if best.any_valid else 0.0
            rows.append(row | {"any_valid": best.any_valid})
    return pd.DataFrame(rows)


def draw_headroom(samples: Mapping[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """The gain of the best of k samples against k, a panel per task; 1 is the best known program.

    Returns:
        The figure, and the curves.

    Raises:
        MleRlError: There are no samples.
    """
    if not samples:
        raise MleRlError("No samples are recorded: run `python -m mle_rl headroom` first.")
    curves = best_of_k_curves(samples)
    table = summarise(samples)
    columns = min(4, len(table))
    rows = -(-len(table) // columns)
    size = (max(6.0, 2.75 * columns), 2.6 * rows)
    fig, grid = plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
    for axis, (_, task) in zip(grid.flat, table.iterrows(), strict=False):
        curve = curves[curves.task == task.task]
        axis.axhline(1, color="0.5", ls=":", label="best known program")
        for split, colour, style in (("reward", "orange", "--"), ("final", "blue", "-")):
            look = {"color": OKABE_ITO[colour], "ls": style, "label": f"{split} split"}
            axis.plot(curve.k, curve[f"{split}_gain"], **look)
        axis.set(xscale="log", ylim=(-0.05, 1.2))
        known = f"left {task.final_left:.0%}" if task.valid_share_all else "none valid"
        axis.set_title(f"{task.task}\n{task.samples} samples, {known}", fontsize=9)
    for place in range(len(table), grid.size):
        grid.flat[place].axis("off")
        grid.flat[place - columns].tick_params(labelbottom=True)
    place = {"loc": "center"} if rows * columns > len(table) else {"loc": "lower right"}
    last = grid.flat[-1]
    last.legend(*grid.flat[0].get_legend_handles_labels(), fontsize="small", **place)
    fig.supxlabel("samples of the untrained policy, the best of which is handed in")
    fig.supylabel("gain")
    left = (~(table.final_left <= 0.05)).sum()  # also where nothing is valid
    fig.suptitle(
        f"Sampling leaves over 5 % of the gain on {left} of {len(table)} tasks (final split)"
    )
    return fig, curves


def _best(table: pd.DataFrame, higher_is_better: bool) -> pd.Series | None:
    scores = table.reward_score.dropna()
    if scores.empty:
        return None
    return table.loc[scores.idxmax() if higher_is_better else scores.idxmin()]


def _up_to(n: int) -> list[int]:
    """About 30 numbers of samples up to n, evenly spaced on a log axis."""
    return sorted({round(k) for k in np.geomspace(1, n, 30)})
