"""What a comparison says: the best program so far over time, and methods at equal time.

The reward split chooses, the final split is reported; nothing here chooses by a final score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mle_rl.analysis.statistics import Interval, bootstrap_interval
from mle_rl.training.best_of import best_of_k

SEARCH = ["method", "seed"]
"""What names one search of a comparison."""


def best_so_far(programs: pd.DataFrame, *, higher_is_better: bool) -> pd.DataFrame:
    """The program that is best on the reward split so far, as steps over time.

    Args:
        programs: One row per program, as `mle_rl.search.compare` returns them.
        higher_is_better: Direction of both scores.

    Returns:
        One row each time a search finds a better one: method, seed, ended_at_s, reward_score and
        the final_score of that program. The latter may get worse. Of equal ones the first stays.
    """
    sign = 1 if higher_is_better else -1
    valid = programs[programs.valid].sort_values([*SEARCH, "ended_at_s"], kind="stable")
    merit = sign * valid.reward_score
    before = merit.groupby([valid.method, valid.seed]).transform(lambda s: s.cummax().shift())
    better = valid[before.isna() | (merit > before)]
    return better[[*SEARCH, "ended_at_s", "reward_score", "final_score"]].reset_index(drop=True)


def at_times(curve: pd.DataFrame, times_s: Sequence[float], column: str) -> np.ndarray:
    """Values of the step function of one search, (times,); NaN before its first valid program."""
    steps = np.searchsorted(curve.ended_at_s, times_s, side="right")
    return np.concatenate([[np.nan], curve[column]])[steps]


def equal_time(
    programs: pd.DataFrame, searches: pd.DataFrame, *, higher_is_better: bool
) -> pd.DataFrame:
    """What each search had reached when its time was over.

    Args:
        programs: One row per program.
        searches: One row per finished search, also of those without a program.
        higher_is_better: Direction of both scores.

    Returns:
        One row per search, in the order given: method, seed, programs, valid_share, distinct (valid
        programs with different texts), first_valid_s, best_reward_score, its final_score, and
        optimism: how much better it looks on the reward split than it is on the final one. NaN
        where nothing is valid.
    """
    curve = best_so_far(programs, higher_is_better=higher_is_better)
    rows = []
    for method, seed in searches[SEARCH].itertuples(index=False):
        mine = _of(programs, method, seed)
        steps = _of(curve, method, seed)
        first, last = steps.head(1), steps.tail(1)
        reward, final = (_only(last, name) for name in ("reward_score", "final_score"))
        rows.append(
            {
                "method": method,
                "seed": seed,
                "programs": len(mine),
                "valid_share": mine.valid.mean() if len(mine) else np.nan,
                "distinct": mine[mine.valid].code.nunique(),
                "first_valid_s": _only(first, "ended_at_s"),
                "best_reward_score": reward,
                "final_score": final,
                "optimism": reward - final if higher_is_better else final - reward,
            }
        )
    return pd.DataFrame(rows)


def over_seeds(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Searches of `equal_time` by method: means, and the final score with an interval.

    Args:
        table: Of `equal_time`.
        rng: Source of the bootstrap.

    Returns:
        One row per method: seeds, solved (seeds with a valid program), programs, valid_share,
        best_reward_score, final_score (interquartile mean over the seeds solved), low and high (95
        % bootstrap interval over these, NaN for fewer than two), optimism.
    """
    rows = []
    for method in table.method.unique():
        mine = table[table.method == method]
        solved = mine.dropna(subset="final_score")
        interval = Interval(np.nan, np.nan, np.nan)
        if len(solved):
            interval = bootstrap_interval(solved.final_score.to_numpy(), rng=rng)
        several = len(solved) > 1
        rows.append(
            {
                "method": method,
                "seeds": len(mine),
                "solved": len(solved),
                "programs": mine.programs.mean(),
                "valid_share": mine.valid_share.mean(),
                "best_reward_score": solved.best_reward_score.mean(),
                "final_score": interval.point,
                "low": interval.low if several else np.nan,
                "high": interval.high if several else np.nan,
                "optimism": solved.optimism.mean(),
            }
        )
    return pd.DataFrame(rows)


def over_time(
    programs: pd.DataFrame,
    searches: pd.DataFrame,
    *,
    higher_is_better: bool,
    parts: int = 3,
    k: int = 50,
) -> pd.DataFrame:
    """What each method wrote in each part of its time: does it change what it writes?

    Args:
        programs: One row per program.
        searches: One row per finished search, with the budget in ``seconds``.
        higher_is_better: Direction of both scores.
        parts: Into which the budget is divided, each as long as the others.
        k: Programs of which the best is handed in, see below.

    Returns:
        One row per method and part (from 1), searches of all seeds together: programs, valid_share,
        distinct_share (of the valid programs of the part, counted by seed), duration_s (median of
        the valid ones), reward_score (their median) and ``best_of_<k>``: the final score to be
        expected of the best on the reward split of k programs of the part, if one of them is valid
        (`best_of_k`; mean over the seeds with k or more, NaN if there is none). It says more of the
        upper end than the best program itself, which is one draw; it takes the programs of a part
        for draws from one distribution, which those of a tree search are not. A part in which
        nothing ended has no row.
    """
    seconds = programs.merge(searches[[*SEARCH, "seconds"]], on=SEARCH).seconds.to_numpy()
    part = np.minimum(programs.ended_at_s.to_numpy() * parts // seconds, parts - 1).astype(int) + 1
    rows = []
    for (method, number), mine in programs.assign(part=part).groupby(
        ["method", "part"], sort=False
    ):
        valid = mine[mine.valid]
        distinct = valid.groupby("seed").code.nunique().sum()
        rows.append(
            {
                "method": method,
                "part": number,
                "programs": len(mine),
                "valid_share": mine.valid.mean(),
                "distinct_share": distinct / len(valid) if len(valid) else np.nan,
                "duration_s": valid.duration_s.median(),
                "reward_score": valid.reward_score.median(),
                f"best_of_{k}": _expected_best(mine, k, higher_is_better),
            }
        )
    return pd.DataFrame(rows)


def _expected_best(programs: pd.DataFrame, k: int, higher_is_better: bool) -> float:
    """Final score of the best of k programs, mean over seeds with so many and a valid one."""
    expected = []
    for _, mine in programs.groupby("seed"):
        if len(mine) >= k and mine.valid.any():
            scores = mine.reward_score, mine.final_score
            expected.append(best_of_k(*scores, k, higher_is_better=higher_is_better).final_score)
    return float(np.mean(expected)) if expected else np.nan


def _of(table: pd.DataFrame, method: str, seed: int) -> pd.DataFrame:
    return table[(table.method == method) & (table.seed == seed)]


def _only(row: pd.DataFrame, column: str) -> float:
    """A value of a table of one row; NaN of an empty one."""
    return float(row[column].iloc[0]) if len(row) else np.nan
