"""What the best of k samples can be expected to score, without bias, from n samples at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, isnan, nan

import numpy as np

from mle_rl.errors import MleRlError


@dataclass(frozen=True)
class BestOf:
    """The best of k samples, chosen on the reward split.

    Attributes:
        reward_score: Its expected score there, given that one of the k is valid.
        final_score: Its expected score on the final split, given the same.
        any_valid: Probability that one of the k is valid.
    """

    reward_score: float
    final_score: float
    any_valid: float


def best_of_k(
    reward_scores: Sequence[float | None],
    final_scores: Sequence[float | None],
    k: int,
    *,
    higher_is_better: bool,
) -> BestOf:
    """Expectation of the best of ``k`` out of the n samples at hand, over all subsets of size k.

    Drawn without replacement, which is unbiased for k fresh samples: of the C(n, k) subsets, the
    i-th worst sample is the best of C(i - 1, k - 1). (Chen et al. 2021, arXiv 2107.03374, equation
    1, has the same count for pass@k.) Samples without a score are worse than all others.

    Args:
        reward_scores: Scores that choose, None or NaN where there is none, length n.
        final_scores: Scores that are reported, None or NaN in the same places.
        k: Between 1 and n.
        higher_is_better: Direction of both.

    Raises:
        MleRlError: k is larger than n, or smaller than 1: nothing can be known of more samples than
            there are.
    """
    n = len(reward_scores)
    if not 1 <= k <= n:
        raise MleRlError(f"The best of {k} cannot be estimated from {n} samples: choose k up to n.")
    scored = [(r, f) for r, f in zip(reward_scores, final_scores, strict=True) if _is_score(r)]
    scored.sort(key=lambda pair: pair[0], reverse=not higher_is_better)  # worst first
    missing = n - len(scored)
    chance = np.array([comb(missing + i, k - 1) / comb(n, k) for i in range(len(scored))])
    any_valid = float(chance.sum())
    if any_valid == 0:
        return BestOf(nan, nan, 0.0)
    expected = chance @ np.array(scored, dtype=float) / any_valid
    return BestOf(float(expected[0]), float(expected[1]), any_valid)


def best_of_k_each(
    first: Sequence[tuple[float, float] | None],
    second: Sequence[tuple[float, float] | None],
    k: int,
    *,
    higher_is_better: bool,
) -> BestOf:
    """Expectation of the best of ``k`` samples of each of two kinds, over all pairs of subsets.

    The counterpart of `best_of_k` for two kinds of prompt that share a budget of 2k programs: the
    best is a given sample of one kind if it is the best of its own subset and better than the whole
    subset of the other kind, and the two subsets are chosen independently.

    Args:
        first, second: A (reward, final) pair of scores for each sample, None for one without.
        k: Between 1 and the number of samples of the smaller kind.
        higher_is_better: Direction of both scores.

    Raises:
        MleRlError: There are fewer than k samples of a kind.
    """
    sizes = len(first), len(second)
    if not 1 <= k <= min(sizes):
        raise MleRlError(
            f"The best of {k} of each kind cannot be estimated from {sizes[0]} and {sizes[1]} "
            "samples: choose k up to the smaller number."
        )
    scored = [(pair, kind) for kind, of in enumerate((first, second)) for pair in of if pair]
    scored.sort(key=lambda item: item[0][0], reverse=not higher_is_better)  # worst first
    worse = [sum(pair is None for pair in of) for of in (first, second)]
    chance = []
    for _, kind in scored:
        own, other = comb(worse[kind], k - 1), comb(worse[1 - kind], k)
        chance.append(own * other / (comb(sizes[0], k) * comb(sizes[1], k)))
        worse[kind] += 1
    any_valid = float(sum(chance))
    if any_valid == 0:
        return BestOf(nan, nan, 0.0)
    expected = np.array(chance) @ np.array([pair for pair, _ in scored], dtype=float) / any_valid
    return BestOf(float(expected[0]), float(expected[1]), any_valid)


def _is_score(score: float | None) -> bool:
    """Whether there is one; a table has NaN where there is none."""
    return score is not None and not isnan(score)
