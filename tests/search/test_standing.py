"""Several tasks together: shares of the leaderboard, and one method against each other one."""

import numpy as np
import pandas as pd
import pytest

from mle_rl import MleRlError, tasks
from mle_rl.search.recorded import Recorded
from mle_rl.search.standing import over_tasks, standing


def recorded(task, **scores):
    """One program per method, with its final score; None where it is not valid."""
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


def test_a_method_stands_where_its_final_score_is_on_the_leaderboard_whatever_the_metric():
    found = {}
    for name in ("library-docstrings", "terrain-height"):  # log loss, and one where more is better
        best = tasks.leaderboard(tasks.load(name), "final").best.final_score
        worse = best + 100 if name == "library-docstrings" else best - 100
        found[name] = recorded(name, rl=[best, worse], tree=[worse, worse], smollm2=[None, None])
    table = standing(found).set_index(["task", "method"]).beaten
    for name in found:
        entries = len(tasks.leaderboard(tasks.load(name)).entries)
        assert table[name, "rl"] == pytest.approx((1 - 0.5 / entries) / 2), "mean over seeds"
        assert table[name, "tree"] == table[name, "smollm2"] == 0


def shares(**by_method):
    rows = [
        {"task": f"task-{number}", "method": method, "beaten": share}
        for method, found in by_method.items()
        for number, share in enumerate(found)
    ]
    return pd.DataFrame(rows).dropna()


def test_differences_are_taken_within_a_task():
    """Tasks differ far more than methods: unpaired, the interval of the difference would hold 0."""
    easy = np.array([0.1, 0.5, 0.9, 0.3, 0.7])
    table = shares(tree=easy, rl=easy + 0.05)
    rl, tree = over_tasks(table, np.random.default_rng(0)).itertuples()
    assert (rl.method, tree.method) == ("rl", "tree"), "in the order of METHODS"
    assert (tree.ahead, tree.behind, tree.tasks) == (5, 0, 5)
    assert tree.difference == pytest.approx(0.05)
    assert 0 < tree.difference_low <= tree.difference <= tree.difference_high < 0.06
    assert tree.low < rl.low < tree.beaten < rl.beaten < tree.high
    assert pd.isna(rl.ahead)
    assert np.isnan(rl.difference)


def test_only_tasks_with_every_method_count_and_one_task_has_no_interval():
    table = shares(rl=[0.2, 0.4], tree=[0.6, None])
    rl, tree = over_tasks(table, np.random.default_rng(0)).itertuples()
    assert (rl.tasks, rl.beaten, tree.difference) == (1, 0.2, pytest.approx(-0.4))
    assert (tree.ahead, tree.behind) == (0, 1)
    assert np.isnan([rl.low, rl.high, tree.difference_low, tree.difference_high]).all()


def test_one_method_alone_has_nothing_to_be_compared_with():
    (rl,) = over_tasks(shares(rl=[0.2, 0.4]), np.random.default_rng(0)).itertuples()
    assert rl.beaten == pytest.approx(0.3)
    assert pd.isna(rl.ahead)


def test_without_rl_the_first_method_is_compared_with_the_others():
    table = shares(tree=[0.2], static=[0.5])
    static, tree = over_tasks(table, np.random.default_rng(0)).itertuples()
    assert (static.method, tree.difference) == ("static", pytest.approx(0.3))


def test_tasks_that_share_no_methods_are_a_sentence():
    with pytest.raises(MleRlError, match="give every comparison the same ones"):
        over_tasks(shares(rl=[0.2, None], tree=[None, 0.5]), np.random.default_rng(0))
