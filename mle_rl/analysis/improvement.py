"""What showing an earlier solution does: samples from scratch beside samples that improve them.

Intervals are bootstrapped over samples. For the improve kind they hold for the solutions that were
there to be shown, which a second evaluation would draw anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mle_rl import tasks
from mle_rl.analysis.known import gain_scale
from mle_rl.analysis.statistics import bootstrap_interval
from mle_rl.records import Outcome
from mle_rl.training.best_of import best_of_k, best_of_k_each

if TYPE_CHECKING:
    from mle_rl.training.evaluate import SelfImprovement
    from mle_rl.training.evaluation import Evaluation, Sample

KINDS = ("scratch", "improve")
CHANGES = ("better", "equal", "worse", "not valid")
"""What an improve sample is beside the solution that it was shown, on the reward split."""

_REPEATS = 1000


def by_kind(
    found: SelfImprovement, pay: Callable[[Outcome], float], rng: np.random.Generator
) -> pd.DataFrame:
    """Valid share and mean reward of each kind, and their differences, with 95 % intervals.

    Args:
        found: With an improve kind of as many samples as there are from scratch.
        pay: The reward of an outcome.
        rng: Of the bootstrap.

    Returns:
        Columns ``measure`` (valid share, mean reward), ``kind`` (scratch, improve, difference:
        improve minus scratch), ``value``, ``low``, ``high``.
    """
    measures = {"valid share": lambda outcome: float(outcome.valid), "mean reward": pay}
    rows = []
    for measure, value in measures.items():
        values = np.array(
            [[value(s.outcome) for s in of.samples] for of in (found.scratch, found.improved)]
        ).T  # (samples, kinds): the bootstrap draws each kind apart
        statistics = {
            "scratch": lambda m: m[:, 0].mean(),
            "improve": lambda m: m[:, 1].mean(),
            "difference": lambda m: m[:, 1].mean() - m[:, 0].mean(),
        }
        for kind, statistic in statistics.items():
            interval = bootstrap_interval(values, statistic, rng=rng, repeats=_REPEATS)
            rows.append((measure, kind, *interval))
    return pd.DataFrame(rows, columns=["measure", "kind", "value", "low", "high"])


def change(sample: Sample, higher_is_better: bool) -> str:
    """Which of `CHANGES` an improve sample made of the valid solution that it was shown."""
    if not sample.outcome.valid:
        return "not valid"
    gain = sample.outcome.reward_score - sample.shown.score
    if gain == 0:
        return "equal"
    return "better" if (gain > 0) == higher_is_better else "worse"


def changes(found: SelfImprovement, rng: np.random.Generator) -> pd.DataFrame:
    """Shares of `CHANGES` among the improve samples, with 95 % intervals.

    Returns:
        Columns ``change``, ``share``, ``low``, ``high``.
    """
    made = [change(s, found.improved.higher_is_better) for s in found.improved.samples]
    rows = []
    for name in CHANGES:
        hits = np.array([made_one == name for made_one in made], dtype=float)
        interval = bootstrap_interval(hits, np.mean, rng=rng, repeats=_REPEATS)
        rows.append((name, *interval))
    return pd.DataFrame(rows, columns=["change", "share", "low", "high"])


def equal_budget(
    found: SelfImprovement, ks: Sequence[int], rng: np.random.Generator, repeats: int = 300
) -> pd.DataFrame:
    """The best of 2k samples from scratch beside the best of k from scratch and k that improve.

    Gains on the final split (0: sample submission, 1: best known program) of the program that the
    reward split chooses; 0 if none is valid. Expectations over all choices of samples, with 95 %
    intervals. Where none of the k from scratch is valid there is nothing to show, and the other k
    are from scratch as well. What was shown comes from all samples from scratch, not from the k
    chosen, so it is as varied as after n of them.

    Args:
        found: Both kinds.
        ks: Each at most half of the samples from scratch.

    Returns:
        Columns ``k``, ``way`` (scratch, both, difference: both minus scratch), ``gain``, ``low``,
        ``high``.
    """
    first, second = (_gains(of) for of in (found.scratch, found.improved))
    indices = np.column_stack([np.arange(len(first)), np.arange(len(second))])

    def scratch(k: int, drawn: np.ndarray) -> float:
        return _gain_of_best([first[int(i)] for i in drawn[:, 0]], 2 * k)

    def both(k: int, drawn: np.ndarray) -> float:
        return _gain_of_both(
            [first[int(i)] for i in drawn[:, 0]], [second[int(i)] for i in drawn[:, 1]], k
        )

    rows = []
    for k in ks:
        ways = {
            "scratch": lambda drawn, k=k: scratch(k, drawn),
            "both": lambda drawn, k=k: both(k, drawn),
            "difference": lambda drawn, k=k: both(k, drawn) - scratch(k, drawn),
        }
        for way, statistic in ways.items():
            interval = bootstrap_interval(indices, statistic, rng=rng, repeats=repeats)
            rows.append((k, way, *interval))
    return pd.DataFrame(rows, columns=["k", "way", "gain", "low", "high"])


def kept_best(found: SelfImprovement) -> pd.DataFrame:
    """The best of each kind and of both, chosen on the reward split, reported on the final one.

    Returns:
        Columns ``kind`` (scratch, improve, kept), ``programs`` that it took, ``valid``,
        ``reward_score``, ``final_score`` (NaN if none is valid), ``final_gain``, ``percentile`` on
        the leaderboard of the final split.
    """
    task = tasks.load(found.scratch.task)
    board = tasks.leaderboard(task, "final")
    low, high = gain_scale(task.id)["final"]
    rows = []
    kinds = zip((*KINDS, "kept"), (found.scratch, found.improved, found.together), strict=True)
    for kind, of in kinds:
        row = {"kind": kind, "programs": len(of.samples), "valid": len(of.valid)}
        if of.best is not None:
            final = of.best.outcome.final_score
            row |= {"reward_score": of.best.outcome.reward_score, "final_score": final}
            row |= {"final_gain": (final - low) / (high - low)}
            row |= {"percentile": board.percentile(final)}
        rows.append(row)
    return pd.DataFrame(rows)


def table_by_task(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One table of several, with the column ``task`` in front."""
    return pd.concat([t.assign(task=name) for name, t in tables.items()], ignore_index=True)[
        ["task", *next(iter(tables.values()))]
    ]


def _gains(of: Evaluation) -> list[tuple[float, float] | None]:
    """(reward, final) gains of each sample, None for one that is not valid."""
    scale = gain_scale(of.task)

    def gain(split: str, score: float) -> float:
        low, high = scale[split]
        return (score - low) / (high - low)

    return [
        (gain("reward", s.outcome.reward_score), gain("final", s.outcome.final_score))
        if s.outcome.valid
        else None
        for s in of.samples
    ]


_Gains = Sequence[tuple[float, float] | None]


def _gain_of_best(samples: _Gains, k: int) -> float:
    """Expected final gain of the best of k samples; 0 is handed in where none is valid."""
    rewards, finals = zip(*(pair or (None, None) for pair in samples), strict=True)
    best = best_of_k(rewards, finals, k, higher_is_better=True)
    return best.any_valid * best.final_score if best.any_valid else 0.0


def _gain_of_both(scratch: _Gains, improve: _Gains, k: int) -> float:
    """The same for k of each kind, or 2k from scratch where the first k show nothing to improve."""
    best = best_of_k_each(scratch, improve, k, higher_is_better=True)
    gain = best.any_valid * best.final_score if best.any_valid else 0.0
    failed = sum(pair is None for pair in scratch)
    nothing_to_show = comb(failed, k) / comb(len(scratch), k)
    if nothing_to_show == 0:
        return gain
    rest = [pair for pair in scratch if pair is not None] + [None] * (failed - k)
    return gain + nothing_to_show * (_gain_of_best(rest, k) - _gain_of_best(improve, k))
