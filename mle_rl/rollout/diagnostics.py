"""One table per run: who got into the batch, at what price, and whether anything was lost.

Works on the trace of a simulation and on columns collected live, so that every training run can
report the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mle_rl.errors import MleRlError
from mle_rl.records import SHORTEST_S
from mle_rl.rollout.queue import Counts

OBJECTIVES = ("E[R]", "E[DR]/E[D]", "E[R]/E[D]")
"""What a learning curve may show; its label must say which."""


def ks_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Kolmogorov-Smirnov distance: largest gap between two empirical distribution functions."""
    a, b = np.sort(_durations(a)), np.sort(_durations(b))
    at = np.concatenate([a, b])
    gap = np.searchsorted(a, at, side="right") / len(a)
    gap -= np.searchsorted(b, at, side="right") / len(b)
    return float(np.abs(gap).max())


def inclusion_by_decile(durations_s: np.ndarray, trained: np.ndarray) -> pd.DataFrame:
    """Share of the dispatched rollouts that were trained on, by tenth of duration.

    A flat profile means that there is no bias to mend. Rollouts whose durations are equal fall
    into one bin, so there may be fewer than ten.

    Args:
        durations_s: Execution time of every rollout whose fate is decided, shape (n,).
        trained: Whether it was trained on, shape (n,) of bool.

    Returns:
        One row per bin: ``decile`` (the first it covers, from 1), ``duration_s`` (median),
        ``rollouts``, ``inclusion``, ``standard_error`` (binomial).
    """
    durations = _durations(durations_s)
    return _by_decile(durations, durations[np.asarray(trained, dtype=bool)])


def mean_by_decile(durations_s: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mean of a value in each row of :func:`inclusion_by_decile`."""
    durations = _durations(durations_s)
    bins = _decile(durations, durations)
    n = np.bincount(bins, minlength=10)
    return (np.bincount(bins, weights=values, minlength=10) / np.maximum(n, 1))[n > 0]


def kish(weights: np.ndarray) -> float:
    """Effective number of samples, (sum w)^2 / sum w^2."""
    weights = np.asarray(weights, dtype=float)
    return float(weights.sum() ** 2 / (weights**2).sum())


def report(
    counts: Counts,
    dispatched_durations_s: np.ndarray,
    trained_durations_s: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    objective: str = "E[R]",
    time_in_queue_s: np.ndarray | None = None,
    staleness: np.ndarray | None = None,
    utilisation: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """The diagnostics of one run as a table of quantity, value and what it means.

    Args:
        counts: The queue's.
        dispatched_durations_s: Execution time of the rollouts whose fate is decided.
        trained_durations_s: Execution time of those that were trained on. Execution time alone:
            time in queue is not a property of the action.
        weights: What the loss multiplied the trained rollouts by; if left out, nothing is said of
            them.
        objective: One of :data:`OBJECTIVES`, the label of the run's learning curve.
        time_in_queue_s: Of the trained rollouts.
        staleness: Of the trained rollouts, in updates.
        utilisation: By device, 0 to 1.

    Raises:
        MleRlError: A duration that is not positive and finite, or an unknown objective.
    """
    if objective not in OBJECTIVES:
        raise MleRlError(f"The objective {objective!r} is unknown; {', '.join(OBJECTIVES)}.")
    dispatched, trained = _durations(dispatched_durations_s), _durations(trained_durations_s)
    ks = ks_distance(dispatched, trained)
    rows = [
        ("objective", objective, "what the curve of this run shows"),
        ("KS distance", round(ks, 4), "trained against dispatched; 0 is no bias"),
        *(
            (
                f"included: tenth {row.decile}",
                f"{row.inclusion:.1%}",
                f"about {row.duration_s:.3g} s",
            )
            for row in _by_decile(dispatched, trained).itertuples()
        ),
        *([] if weights is None else _price_of(np.asarray(weights, dtype=float))),
        ("execution time", f"{trained.mean():.3g} s", "mean of the trained"),
    ]
    if time_in_queue_s is not None:
        rows.append(("time in queue", f"{np.mean(time_in_queue_s):.3g} s", "apart from execution"))
    if staleness is not None:
        rows.append(
            ("staleness", f"{np.mean(staleness):.2f}", f"updates; largest {np.max(staleness)}")
        )
    rows += [
        ("dispatched", counts.dispatched, ""),
        ("trained", counts.trained, ""),
        *((f"dropped: {reason}", n, "") for reason, n in sorted(counts.dropped.items())),
        ("in flight", counts.in_flight, ""),
        ("ready", counts.ready, ""),
        ("conserved", "yes" if counts.conserved else "NO", "dispatched = all the others"),
        *((f"busy: {d}", f"{share:.0%}", "") for d, share in (utilisation or {}).items()),
    ]
    return pd.DataFrame(rows, columns=["quantity", "value", "meaning"]).set_index("quantity")


def of_result(result, *, weights=None, objective: str = "E[R]", utilisation=None) -> pd.DataFrame:
    """:func:`report` of a simulation that kept its trace.

    Args:
        result: A :class:`mle_rl.rollout.simulation.Result`.
        weights: A function from durations (n,) to weights (n,), or None.
        objective: One of :data:`OBJECTIVES`.
        utilisation: By device; the workers' by default.
    """
    trace = result.trace
    trained = trace.duration_s[trace.trained]
    return report(
        result.counts,
        trace.duration_s[trace.decided],
        trained,
        weights=None if weights is None else weights(trained),
        objective=objective,
        time_in_queue_s=trace.time_in_queue_s,
        staleness=trace.staleness,
        utilisation=utilisation or {"workers": result.worker_utilisation},
    )


def of_ledger(ledger, *, workers: int, weights=None, objective: str = "E[R]") -> pd.DataFrame:
    """:func:`report` of a training run, from its ledger.

    Durations are those of ``ledger.durations()``: what was dropped before its program began has
    none and is counted as dropped only. Time in queue is that before execution; the ledger does not
    know when a batch was taken.

    Args:
        ledger: A :class:`mle_rl.rollout.ledger.Ledger`.
        workers: Executions at the same time.
        weights: A function from durations (n,) to weights (n,), or None.
        objective: One of :data:`OBJECTIVES`.
    """
    rows = ledger.table()
    ended = rows[rows.duration_s.notna() & (rows.state != "rewound")]
    trained = rows[rows.state == "trained"]
    decided, seconds = (durations.clip(min=SHORTEST_S) for durations in ledger.durations())
    return report(
        ledger.counts(),
        decided,
        seconds,
        weights=None if weights is None else weights(seconds),
        objective=objective,
        time_in_queue_s=(trained.started_at - trained.dispatched_at).to_numpy(),
        staleness=(trained.trained_version - trained.model_version).to_numpy(),
        utilisation={"workers": ended.duration_s.sum() / (workers * ended.finished_at.max())},
    )


def _price_of(weights: np.ndarray) -> list[tuple]:
    """Rows on what weighting costs."""
    return [
        ("effective sample size", round(kish(weights), 1), f"of {len(weights)} rollouts"),
        ("largest weight", round(float(weights.max() / weights.mean()), 2), "mean 1"),
    ]


def _by_decile(durations: np.ndarray, trained: np.ndarray) -> pd.DataFrame:
    """:func:`inclusion_by_decile` from the durations of all and of those that were trained on."""
    bins = _decile(durations, durations)
    n = np.bincount(bins, minlength=10)
    kept = np.flatnonzero(n)
    inclusion = np.bincount(_decile(trained, durations), minlength=10)[kept] / n[kept]
    if (inclusion > 1).any():
        raise MleRlError(
            "More rollouts of some duration were trained on than were dispatched: give the "
            "durations of all whose fate is decided first, then of those trained on."
        )
    return pd.DataFrame(
        {
            "decile": kept + 1,
            "duration_s": [np.median(durations[bins == b]) for b in kept],
            "rollouts": n[kept],
            "inclusion": inclusion,
            "standard_error": np.sqrt(inclusion * (1 - inclusion) / n[kept]),
        }
    )


def _decile(durations: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Tenth of ``of`` into which each duration falls, 0 to 9; equal durations are never split."""
    edges = np.quantile(of, np.linspace(0, 1, 11))
    return np.searchsorted(edges[1:-1], durations, side="left")


def _durations(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0 or not (np.isfinite(values) & (values > 0)).all():
        raise MleRlError("Durations must be a non-empty column of positive, finite seconds.")
    return values
