"""What the best of k samples can be expected to score, without bias, from n samples at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, nan

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
        reward_scores: Scores that choose, None where there is none, length n.
        final_scores: Scores that are reported, None in the same places.
        k: Between 1 and n.
        higher_is_better: Direction of both.

    Raises:
        MleRlError: k is larger than n, or smaller than 1: nothing can be known of more samples than
            there are.
    """
    n = len(reward_scores)
    if not 1 <= k <= n:
        raise MleRlError(f"The best of {k} cannot be estimated from {n} samples: choose k up to n.")
    scored = [(r, f) for r, f in zip(reward_scores, final_scores, strict=True) if r is not None]
    scored.sort(key=lambda pair: pair[0], reverse=not higher_is_better)  # worst first
    missing = n - len(scored)
    chance = np.array([comb(missing + i, k - 1) / comb(n, k) for i in range(len(scored))])
    any_valid = float(chance.sum())
    if any_valid == 0:
        return BestOf(nan, nan, 0.0)
    expected = chance @ np.array(scored, dtype=float) / any_valid
    return BestOf(float(expected[0]), float(expected[1]), any_valid)
