"""Checkers for the exercises of notebooks 03 and 04.

Each takes the reader's function, tries it on numbers it has not seen, and says in one sentence
whether it is right or, if a typical mistake explains the answer, which one. Nothing is raised: a
checker that is called before the exercise is solved says so. Solutions are in
``notebooks/exercises``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mle_rl.rollout import inclusion
from mle_rl.rollout.simulation.workload import Workload

Diagnosis = tuple[Callable[..., Any], str]

RIGHT = "Right."
UNSOLVED = "Not written yet: it returns None."


def check(
    answer: Callable[..., Any],
    solution: Callable[..., Any],
    cases: Sequence[tuple],
    mistakes: Sequence[Diagnosis],
) -> str:
    """Compares a function with the solution on all cases, and with known mistakes where it fails.

    Args:
        answer: The reader's function.
        solution: The right one, of the same arguments.
        cases: Arguments to try.
        mistakes: Wrong functions and the sentence that explains each.

    Returns:
        One sentence or two for the reader.
    """
    for case in cases:
        try:
            got = answer(*case)
        except Exception as error:  # the reader's code: whatever it raises is told, not a bug
            return f"It stops at {_shown(case)} with {type(error).__name__}: {error}"
        if got is None:
            return UNSOLVED
        expected = solution(*case)
        if not _close(got, expected):
            reason = next((why for wrong, why in mistakes if _explains(wrong, answer, cases)), "")
            return (
                f"Not yet: {_shown(case)} gives {_number(got)}, not {_number(expected)}. {reason}"
            )
    return RIGHT


def _explains(wrong: Callable[..., Any], answer: Callable[..., Any], cases) -> bool:
    """Whether a known mistake gives the reader's answer on every case."""
    try:
        return all(_close(answer(*case), wrong(*case)) for case in cases)
    except Exception:  # the reader's code fails on a later case
        return False


def _close(a: Any, b: Any) -> bool:
    try:
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        return a.shape == b.shape and bool(np.allclose(a, b, atol=1e-9))
    except (TypeError, ValueError):
        return False


def _shown(case: tuple) -> str:
    return "(" + ", ".join(_number(x) for x in case) + ")"


def _number(x: Any) -> str:
    try:
        return np.array2string(np.asarray(x, dtype=float), precision=4, separator=", ")
    except (TypeError, ValueError):
        return repr(x)


# ---- notebook 03 -----------------------------------------------------------------------------


def check_capacity(answer: Callable[[int, int, int, int, int], int]) -> str:
    """``capacity(version, max_staleness, batch_size, accepted, in_flight)``: how many may start."""

    def solution(v, eta, b, accepted, flying):
        return max(0, (eta + v + 1) * b - (accepted + flying))

    cases = [(0, 0, 8, 0, 0), (3, 2, 8, 24, 10), (5, 1, 4, 20, 8), (1, 4, 16, 96, 3)]
    mistakes = [
        (
            lambda v, eta, b, a, f: max(0, (eta + v) * b - (a + f)),
            "The batch that the present version will train on is missing: eta + version + 1.",
        ),
        (
            lambda v, eta, b, a, f: max(0, (eta + 1) * b - (a + f)),
            "Everything accepted since the start counts, so the bound must grow with the version.",
        ),
        (
            lambda v, eta, b, a, f: max(0, (eta + v + 1) * b - f),
            "What has finished was accepted too: it will be trained on, or has been.",
        ),
        (
            lambda v, eta, b, a, f: (eta + v + 1) * b - (a + f),
            "It may not be negative: nothing can be taken back.",
        ),
    ]
    return check(answer, solution, cases, mistakes)


def check_snapshot_share(answer: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> str:
    """``snapshot_share(policy, durations)``: share of each action among what is in progress."""

    def solution(p, d):
        return inclusion.snapshot(Workload(scale_s=d, probabilities=p))

    cases = [
        (np.array([0.5, 0.5]), np.array([1.0, 10.0])),
        (np.array([0.2, 0.3, 0.5]), np.array([2.0, 0.5, 7.0])),
    ]
    mistakes = [
        (lambda p, d: p, "A slow rollout is longer there to be seen: multiply by the duration."),
        (lambda p, d: p * d, "Shares sum to 1: divide by E[D]."),
        (
            lambda p, d: p / d / (p / d).sum(),
            "That is the share under sticky workers; what is seen in progress is slow, not fast.",
        ),
        (lambda p, d: d / d.sum(), "How often the policy starts an action matters as well."),
    ]
    return check(answer, solution, cases, mistakes)


def check_kept_probability(answer: Callable[[float, int, float], float]) -> str:
    """``kept(duration, max_staleness, update_s)``: P(not too old) under "drop stale"."""

    def solution(d, eta, tau):
        return float(inclusion.drop_stale_probability(d, eta, tau))

    cases = [(1.0, 4, 2.0), (7.0, 4, 2.0), (9.0, 4, 2.0), (12.0, 4, 2.0)]
    cases += [(1.5, 0, 2.0), (5.0, 1, 4.0)]
    mistakes = [
        (
            lambda d, eta, tau: float(d <= eta * tau),
            "Not a step: two rollouts of one length, begun early and late between two updates, "
            "end with different ages. Average over the moment of the start.",
        ),
        (
            lambda d, eta, tau: float(np.clip(eta - d / tau, 0, 1)),
            "A rollout that ends before the next update is 0 versions old: eta + 1 - D / tau.",
        ),
        (lambda d, eta, tau: eta + 1 - d / tau, "A probability lies between 0 and 1: clip it."),
        (
            lambda d, eta, tau: float(np.clip(1 - d / tau / (eta + 1), 0, 1)),
            "Nothing is dropped up to D = eta tau; the fall is only over the last interval.",
        ),
    ]
    return check(answer, solution, cases, mistakes)


# ---- notebook 04 -----------------------------------------------------------------------------


def check_weights(answer: Callable[[np.ndarray], np.ndarray]) -> str:
    """``weights(durations)``: the paper's weights of a batch, mean 1."""
    cases = [(np.array([1.0, 3.0]),), (np.array([0.5, 2.0, 7.5, 10.0]),)]
    mistakes = [
        (lambda d: d, "Normalise: the mean weight of a batch is 1."),
        (lambda d: d / d.sum(), "They sum to 1, but the mean should be 1: the step would shrink."),
        (lambda d: d.mean() / d, "Upside down: a slow rollout is to count more."),
        (lambda d: d / d.max(), "Divide by the mean, not by the largest."),
    ]
    return check(answer, lambda d: d / d.mean(), cases, mistakes)


def check_advantages(answer: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> str:
    """``advantages(rewards, weights)``: centred so that a constant in all rewards has no effect
    on the weighted gradient."""
    cases = [
        (np.array([1.0, -10.0, 0.5]), np.array([0.5, 0.1, 2.4])),
        (np.array([0.0, 4.0]), np.array([1.5, 0.5])),
    ]
    mistakes = [
        (lambda r, w: r, "Without a baseline a constant moves the gradient by grad E[D]."),
        (
            lambda r, w: r - r.mean(),
            "Centre with the weighted mean: the loss sums weight times advantage, and that sum "
            "must be 0 for equal rewards of any size.",
        ),
        (lambda r, w: w * (r - (w * r).sum() / w.sum()), "The weights come later; do not apply "
         "them twice."),
        (lambda r, w: r - (w * r).sum(), "Divide by the sum of the weights."),
    ]  # fmt: skip
    return check(answer, lambda r, w: r - (w * r).sum() / w.sum(), cases, mistakes)


def check_effective_share(answer: Callable[[float], float]) -> str:
    """``share(sigma)``: effective sample size over n, weights equal to log-normal durations."""
    cases = [(1.0,), (1.5,), (0.25,)]
    mistakes = [
        (lambda s: 1 / (1 + s**2), "CV^2 of a log-normal is exp(sigma^2) - 1, not sigma^2."),
        (lambda s: np.exp(s**2), "The inverse of it: weights never increase the sample size."),
        (lambda s: np.exp(-s), "CV^2 + 1 = exp(sigma^2): square sigma."),
        (
            lambda s: 1 / (1 + np.sqrt(np.expm1(s**2))),
            "1 / (1 + CV^2): the square of the coefficient of variation.",
        ),
    ]
    return check(answer, lambda s: np.exp(-(s**2)), cases, mistakes)
