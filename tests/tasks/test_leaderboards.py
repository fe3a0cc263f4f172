"""Percentiles, medal lines and anchors; the shipped boards belong to the shipped programs."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl import MleRlError, tasks
from mle_rl.tasks import leaderboards
from mle_rl.tasks.leaderboards import Entry, Leaderboard, medal_positions
from mle_rl.tasks.references import REFERENCES
from mle_rl.tasks.suite import COMPETITIONS


def board(scores, higher_is_better=True):
    ranked = sorted(scores, reverse=higher_is_better)
    entries = tuple(Entry(f"p{k}", s, s, 1.0) for k, s in enumerate(ranked))
    return Leaderboard(entries, higher_is_better, "final")


# Kaggle's progression table, places counted by hand
@pytest.mark.parametrize(
    ("teams", "gold", "silver", "bronze"),
    [
        (1, 1, 1, 1),
        (7, 1, 1, 2),
        (31, 3, 6, 12),
        (99, 9, 19, 39),
        (100, 10, 20, 40),
        (249, 10, 49, 99),
        (250, 10, 50, 100),
        (999, 11, 50, 100),
        (1000, 12, 50, 100),
        (4321, 18, 216, 432),
    ],
)
def test_medal_positions(teams, gold, silver, bronze):
    assert medal_positions(teams) == {"gold": gold, "silver": silver, "bronze": bronze}


def test_medal_positions_equal_the_published_fractions():
    """Integer division against the fractions of the rule, for every size of a leaderboard."""
    for n in range(1, 5000):
        gold = max(1, int(n * 0.1)) if n < 100 else 10 if n < 250 else 10 + int(n * 0.002)
        silver = max(1, int(n * 0.2)) if n < 250 else 50 if n < 1000 else int(n * 0.05)
        bronze = max(1, int(n * 0.4)) if n < 250 else 100 if n < 1000 else int(n * 0.1)
        assert tuple(medal_positions(n).values()) == (gold, silver, bronze)


def test_medals_reach_the_line():
    thirty = board(range(30))  # best 29; gold to place 3, silver to 6, bronze to 12
    assert thirty.medal_lines == {"gold": 27, "silver": 24, "bronze": 18}
    assert [thirty.medal(s) for s in (40, 27, 26.9, 24, 23, 18, 17.9)] == [
        "gold",
        "gold",
        "silver",
        "silver",
        "bronze",
        "bronze",
        None,
    ]


def test_lower_may_be_better():
    thirty = board(range(30), higher_is_better=False)
    assert thirty.medal_lines == {"gold": 2, "silver": 5, "bronze": 11}
    assert thirty.medal(2) == "gold"
    assert thirty.medal(12) is None
    assert thirty.percentile(-1) == 1.0


def test_above_median_is_strict():
    for better in (True, False):
        five = board([1, 2, 3, 4, 5], better)
        assert not five.above_median(3)
        assert five.above_median(3.1 if better else 2.9)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(-1, 10), st.booleans())
def test_percentile_by_brute_force(scores, score, higher_is_better):
    sign = 1 if higher_is_better else -1
    beaten = [1.0 if sign * score > sign * s else 0.5 if s == score else 0.0 for s in scores]
    expected = statistics.fmean(beaten)
    assert board(scores, higher_is_better).percentile(score) == pytest.approx(expected)


@pytest.mark.parametrize("name", COMPETITIONS)
def test_shipped_boards_belong_to_the_shipped_programs(name):
    path = leaderboards.resources.files(leaderboards.__name__).joinpath(f"{name}.csv")
    entries = leaderboards.read_entries(path)
    assert [e.program for e in entries] == [r.name for r in REFERENCES[name]]
    assert len(entries) >= 30
    for entry in entries:
        assert math.isfinite(entry.reward_score)
        assert math.isfinite(entry.final_score)
        assert entry.duration_s > 0


def test_slow_programs_are_best_on_at_least_three_tasks(data_dir):
    """The best known solution takes five times the median duration or more."""
    slow = []
    for name, competition in COMPETITIONS.items():
        path = leaderboards.resources.files(leaderboards.__name__).joinpath(f"{name}.csv")
        better = tasks.METRICS[competition.metric].higher_is_better
        entries = leaderboards.read_entries(path)
        best = sorted(entries, key=lambda e: e.reward_score, reverse=better)[0]
        if best.duration_s >= 5 * statistics.median(e.duration_s for e in entries):
            slow.append(name)
    assert len(slow) >= 3


def test_boards_and_anchors_of_a_task(data_dir):
    task = tasks.load("doctor-visits", data_dir)
    reward, final = tasks.leaderboard(task), tasks.leaderboard(task, "final")
    assert list(reward.scores) == sorted(e.reward_score for e in reward.entries)
    assert list(final.scores) == sorted(e.final_score for e in final.entries)
    assert reward.scores != final.scores
    baseline, best = tasks.anchors(task)
    assert best == reward.scores[0] < reward.median_score < baseline
    assert tasks.reference_programs(task)[0] == tasks.references(task)[0].program


def test_no_board_no_split(make_task):
    task = make_task("rmsle", [("a", "1", "reward"), ("b", "1", "final")])
    with pytest.raises(MleRlError, match="no leaderboard for toy"):
        tasks.leaderboard(task)
    with pytest.raises(MleRlError, match="no reference programs for toy"):
        tasks.reference_programs(task)
    with pytest.raises(MleRlError, match="no split 'private'"):
        tasks.leaderboard(task, "private")


def test_the_leaderboard_of_mle_bench_is_read(make_task):
    task = make_task("rmsle", [("a", "1", "reward"), ("b", "1", "final")])
    path = task.folder / "leaderboard.csv"
    path.write_text("scoreNullable,teamName,score\n,one,0.3\n,two,0.1\n,three,0.2\n")
    ranked = tasks.leaderboard(task, "final")
    assert [e.program for e in ranked.entries] == ["two", "three", "one"]
    assert math.isnan(ranked.median_duration_s)
    path.write_text("teamName,score\none,much\n")
    with pytest.raises(MleRlError, match="is damaged"):
        tasks.leaderboard(task)
    path.write_text("teamName,score\n")
    with pytest.raises(MleRlError, match="has no entries"):
        tasks.leaderboard(task)
