"""Best so far and methods at equal time: the reward split chooses, the final one is reported."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl.search.summary import at_times, best_so_far, equal_time, over_seeds, over_time


def table(*rows, method="static", seed=0):
    """Programs from (ended_at_s, reward_score or None, final_score)."""
    columns = ["ended_at_s", "reward_score", "final_score"]
    made = pd.DataFrame(rows, columns=columns).astype(float)
    return made.assign(
        method=method,
        seed=seed,
        valid=made.reward_score.notna(),
        code=made.reward_score.astype(str),
    )


def searches(programs):
    return programs[["method", "seed"]].drop_duplicates()


trials = st.lists(
    st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(-3, 3)), st.integers(-9, 9)),
    max_size=12,
)


@given(rows=trials, higher=st.booleans())
def test_the_curve_is_that_of_a_loop_over_the_programs(rows, higher):
    """Brute force: it rises on the reward split, step by step, whatever the final split does."""
    programs = table(*rows)
    curve = best_so_far(programs, higher_is_better=higher)
    expected, best = [], None
    for at_s, reward, final in sorted(rows, key=lambda row: row[0]):
        better = best is None or (reward is not None and (reward > best) == higher)
        if reward is not None and reward != best and better:
            best = reward
            expected.append((at_s, reward, final))
    found = curve[["ended_at_s", "reward_score", "final_score"]]
    assert [tuple(row) for row in found.to_numpy()] == expected


def test_searches_do_not_see_one_another():
    programs = pd.concat(
        [
            table((1, 0.9, 0.1), (2, 0.5, 0.5)),
            table((1, 0.2, 0.2), (2, 0.4, 0.3), seed=1),
            table((1, 0.1, 0.7), method="rl"),
        ]
    )
    curve = best_so_far(programs, higher_is_better=True)
    assert curve.groupby(["method", "seed"]).size().to_dict() == {
        ("rl", 0): 1,
        ("static", 0): 1,
        ("static", 1): 2,
    }


def test_a_curve_is_read_as_a_step_function():
    curve = best_so_far(table((2, 0.1, 5), (4, 0.2, 3)), higher_is_better=True)
    read = at_times(curve, [0, 1.9, 2, 3.9, 4, 99], "final_score")
    np.testing.assert_array_equal(read, [np.nan, np.nan, 5, 5, 3, 3])


@pytest.mark.parametrize("higher", [True, False])
def test_the_final_split_chooses_nothing(higher):
    sign = 1 if higher else -1
    programs = table((1, sign * 1.0, sign * 3.0), (2, sign * 2.0, sign * 0.5), (3, None, None))
    (row,) = equal_time(programs, searches(programs), higher_is_better=higher).itertuples()
    assert (row.best_reward_score, row.final_score) == (sign * 2.0, sign * 0.5)
    assert row.optimism == pytest.approx(1.5), "it looks better than it is"
    assert (row.programs, row.distinct, row.first_valid_s) == (3, 2, 1)
    assert row.valid_share == pytest.approx(2 / 3)


def test_a_search_that_found_nothing_keeps_its_row():
    programs = table((1, 0.5, 0.4))
    asked = pd.DataFrame({"method": ["static", "smollm2", "smollm2"], "seed": [0, 0, 1]})
    programs = pd.concat([programs, table((1, None, None), method="smollm2", seed=1)])
    found = equal_time(programs, asked, higher_is_better=True)
    assert found.programs.tolist() == [1, 0, 1]
    assert found.final_score.isna().tolist() == [False, True, True]
    by_method = over_seeds(found, np.random.default_rng(0))
    assert by_method.set_index("method").solved.to_dict() == {"static": 1, "smollm2": 0}


def test_an_interval_over_seeds_needs_two_of_them():
    one = table((1, 0.5, 0.4))
    several = pd.concat([table((1, 0.5, s / 10), method="rl", seed=s) for s in range(5)])
    programs = pd.concat([one, several])
    found = equal_time(programs, searches(programs), higher_is_better=True)
    rows = over_seeds(found, np.random.default_rng(0)).set_index("method")
    assert np.isnan([rows.low["static"], rows.high["static"]]).all()
    assert rows.low["rl"] < rows.final_score["rl"] < rows.high["rl"]
    assert rows.final_score["rl"] == pytest.approx(0.2)
    assert rows.seeds["rl"] == 5


def test_a_zero_is_a_score():
    programs = table((1, -1.0, -1.0), (2, 0.0, 0.0))
    assert best_so_far(programs, higher_is_better=True).reward_score.tolist() == [-1.0, 0.0]


def test_what_is_written_is_told_apart_by_the_part_of_the_budget_in_which_it_ended():
    programs = pd.concat(
        [
            table((1, 0.1, 0), (9, 0.3, 0), (10, None, 0), (29, 0.5, 0), (30, 0.5, 0)),
            table((11, 0.2, 0), (12, 0.2, 0), seed=1),
            table((25, None, 0), method="rl"),
        ]
    ).assign(duration_s=lambda made: made.ended_at_s / 10)
    settings = {"higher_is_better": True, "k": 2}
    found = over_time(programs, searches(programs).assign(seconds=30.0), **settings).set_index(
        ["method", "part"]
    )
    assert list(found.index) == [("static", 1), ("static", 2), ("static", 3), ("rl", 3)]
    assert found.programs.tolist() == [2, 3, 2, 1]
    assert found.valid_share.tolist() == pytest.approx([1, 2 / 3, 1, 0])
    assert found.distinct_share.tolist()[:3] == [1, 0.5, 0.5], "seeds apart, equal texts once"
    assert found.reward_score.tolist()[:3] == [0.2, 0.2, 0.5]
    assert found.duration_s.tolist()[:3] == pytest.approx([0.5, 1.15, 2.95])
    assert found.loc[("rl", 3), ["distinct_share", "duration_s", "reward_score"]].isna().all()


@pytest.mark.parametrize("higher", [True, False])
def test_the_best_of_k_of_a_part_is_the_mean_over_all_choices_and_over_seeds_with_k(higher):
    sign = 1 if higher else -1
    programs = pd.concat(
        [
            table((1, sign * 1, 5), (2, sign * 2, 3), (3, None, None), (9, sign * 9, 9)),
            table((1, sign * 1, 7), (2, None, None), seed=1),
            table((1, sign * 1, 100), seed=2),
            table((1, None, None), (2, None, None), seed=3),
        ]
    )
    found = over_time(
        programs.assign(duration_s=1.0),
        searches(programs).assign(seconds=10.0),
        higher_is_better=higher,
        parts=2,
        k=2,
    ).set_index("part")
    by_hand = np.mean([3, 5, 3])  # of the pairs of seed 0 in part 1; seed 2 has too few, 3 none
    assert found.best_of_2[1] == pytest.approx(np.mean([by_hand, 7])), (
        "seed 2 has too few, seed 3 none"
    )
    assert np.isnan(found.best_of_2[2])
