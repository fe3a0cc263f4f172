"""Several tasks together: leaderboard percentiles, and one method against each other one."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mle_rl import MleRlError, tasks
from mle_rl.search.recorded import Recorded
from mle_rl.search.standing import over_tasks, standing


def recorded(task, **scores):
    """One program per method and seed, with its final score; None where it is not valid."""
    rows = [
        {"method": method, "seed": seed, "ended_at_s": 1.0, "final_score": score, "code": "a"}
        for method, found in scores.items()
        for seed, score in enumerate(found)
    ]
    programs = pd.DataFrame(rows).astype({"final_score": float})
    programs = programs.assign(
        reward_score=programs.final_score, valid=programs.final_score.notna()
    )
    searches = programs[["method", "seed"]].assign(task=task, seconds=9.0, date="2026-01-01")
    return Recorded(programs, searches)


@pytest.mark.parametrize("name", ["library-docstrings", "terrain-height"])
def test_a_method_stands_where_its_final_score_is_on_the_leaderboard_whatever_the_metric(name):
    task = tasks.load(name)
    board = tasks.leaderboard(task, "final")
    best, beyond = board.best.final_score, 100 if task.higher_is_better else -100
    found = recorded(
        name,
        rl=[best, best - beyond],
        tree=[best - beyond, best - beyond],
        smollm2=[None, None],
        grammar=[best + beyond, None],
    )
    table = standing({name: found}).set_index("method")
    one = 1 - 0.5 / len(board.entries)  # a tie counts one half
    assert table.percentile.to_dict() == pytest.approx(
        {"rl": one / 2, "tree": 0, "smollm2": 0, "grammar": 0.5}
    ), "mean over seeds, nothing handed in is 0"
    assert table["rank"].to_dict() == {"rl": 1, "tree": 2, "smollm2": 3, "grammar": 3}


def test_nothing_recorded_is_a_sentence():
    with pytest.raises(MleRlError, match="No comparison is recorded"):
        standing({})


def table(**by_method):
    """Percentiles by method, one per task; their order is that of the final scores, too."""
    wide = pd.DataFrame(by_method, index=[f"task-{n}" for n in range(len(by_method["rl"]))])
    tall = wide.melt(ignore_index=False, var_name="method", value_name="percentile").dropna()
    tall = tall.rename_axis("task").reset_index()
    return tall.assign(rank=tall.groupby("task").percentile.rank(ascending=False))


def test_differences_are_taken_within_a_task():
    """Tasks differ far more than methods: unpaired, the interval of the difference would hold 0."""
    easy = [0.1, 0.5, 0.9, 0.3, 0.7]
    rl, tree = over_tasks(table(tree=easy, rl=[0.15, 0.56, 0.94, 0.35, 0.75])).itertuples()
    assert (rl.method, tree.method) == ("rl", "tree"), "in the order of METHODS"
    assert (tree.better, tree.worse, tree.tasks) == (5, 0, 5)
    assert tree.difference == pytest.approx(0.05)
    assert 0.04 < tree.difference_low < tree.difference < tree.difference_high < 0.06
    assert tree.low < rl.low < tree.percentile < rl.percentile < tree.high
    assert pd.isna(rl.better)
    assert np.isnan(rl.difference)


def test_the_interval_is_that_of_a_t_test():
    tree, rl = [0.1, 0.5, 0.9, 0.3], [0.4, 0.2, 0.8, 0.7]
    _, row = over_tasks(table(tree=tree, rl=rl)).itertuples()
    expected = stats.ttest_rel(rl, tree).confidence_interval(0.95)
    found = [row.difference_low, row.difference_high]
    assert found == pytest.approx([expected.low, expected.high])


def test_who_is_better_is_decided_by_scores_also_where_percentiles_tie():
    tied = table(rl=[0.5, 0.5], tree=[0.5, 0.5])
    tied.loc[tied.method == "rl", "rank"] = [1, 2]
    tied.loc[tied.method == "tree", "rank"] = [2, 1]
    _, row = over_tasks(tied).itertuples()
    assert (row.better, row.worse, row.difference) == (1, 1, 0)


def test_only_tasks_with_every_method_count_and_one_task_has_no_interval():
    rl, tree = over_tasks(table(rl=[0.2, 0.4], tree=[0.6, None])).itertuples()
    assert (rl.tasks, rl.percentile, tree.difference) == (1, 0.2, pytest.approx(-0.4))
    assert (tree.better, tree.worse) == (0, 1)
    assert np.isnan([rl.low, rl.high, tree.difference_low, tree.difference_high]).all()


def test_one_method_alone_has_nothing_to_be_compared_with():
    (rl,) = over_tasks(table(rl=[0.2, 0.4])).itertuples()
    assert rl.percentile == pytest.approx(0.3)
    assert pd.isna(rl.better)


def test_without_rl_the_first_method_is_compared_with_the_others():
    found = table(rl=[0.1], tree=[0.2], static=[0.5]).query("method != 'rl'")
    static, tree = over_tasks(found).itertuples()
    assert (static.method, tree.difference) == ("static", pytest.approx(0.3))


def test_tasks_that_share_no_methods_are_a_sentence():
    with pytest.raises(MleRlError, match="give every comparison the same ones"):
        over_tasks(table(rl=[0.2, None], tree=[None, 0.5]))
