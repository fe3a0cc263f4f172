"""Panels of several tasks: each has its own scale, and the title counts who ends ahead."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mle_rl import MleRlError, tasks
from mle_rl.analysis.search_tasks import plot_standing, plot_tasks
from mle_rl.search.recorded import Recorded
from mle_rl.search.standing import over_tasks

LOWER, HIGHER = "library-docstrings", "terrain-height"


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def comparison(task, seconds, seed=0, **scores):
    rows = [
        {"method": method, "seed": seed, "ended_at_s": 1.0, "reward_score": score}
        for method, score in scores.items()
    ]
    programs = pd.DataFrame(rows).astype({"reward_score": float})
    programs = programs.assign(
        final_score=programs.reward_score, valid=programs.reward_score.notna()
    )
    facts = {"task": task, "seconds": seconds, "date": "2026-01-01", "cores": 2}
    return Recorded(programs, programs[["method", "seed"]].assign(**facts))


def drawn(**found):
    return plot_tasks(
        {name.replace("_", "-"): each for name, each in found.items()}, np.random.default_rng(0)
    )


def test_a_panel_per_task_with_its_budget_its_direction_and_a_common_legend():
    assert not tasks.load(LOWER).higher_is_better
    assert tasks.load(HIGHER).higher_is_better
    fig, shown = drawn(
        library_docstrings=comparison(LOWER, 60.0, rl=1.2, static=1.1, smollm2=None),
        terrain_height=comparison(HIGHER, 120.0, rl=0.6, static=0.7, smollm2=None),
    )
    first, second, legend = fig.axes
    assert first.get_ylim()[0] > first.get_ylim()[1]
    assert second.get_ylim()[0] < second.get_ylim()[1]
    assert (first.get_xlim()[1], second.get_xlim()[1]) == (1, 2)
    assert {tuple(pair) for pair in shown[["task", "method"]].to_numpy()} == {
        (task, method) for task in (LOWER, HIGHER) for method in ("rl", "static")
    }
    named = [text.get_text() for text in legend.get_legend().get_texts()]
    assert "static SmolLM2-135M, best of n:\nno line on any task" in named
    assert "static policy, best of n" in named
    title = fig.get_suptitle().replace("\n", " ")
    assert "of 2 tasks: static policy, best of n on 2" in title, title
    assert "(1 seed; recorded 2026-01-01 on 2 cores, 60 or 120 s each)" in title


def test_the_title_counts_ties_for_all_who_tie_and_seeds_by_task_and_method():
    fig, _ = drawn(
        library_docstrings=comparison(LOWER, 60.0, rl=1.2, static=1.2, tree=1.3),
        terrain_height=comparison(HIGHER, 60.0, seed=7, rl=0.6, static=0.5, tree=0.4),
    )
    title = fig.get_suptitle().replace("\n", " ")
    assert "reinforcement learning on 2; static policy, best of n on 1" in title
    assert "tree" not in title
    assert "(1 seed; " in title, "one for each, though they are different ones"


def test_a_task_without_any_line_leaves_the_others_their_panels():
    fig, shown = drawn(
        library_docstrings=comparison(LOWER, 60.0, rl=None),
        terrain_height=comparison(HIGHER, 60.0, rl=0.6),
    )
    assert set(shown.task) == {HIGHER}
    assert not fig.axes[0].lines
    assert "reinforcement learning on 1" in fig.get_suptitle()
    fig, shown = drawn(library_docstrings=comparison(LOWER, 60.0, rl=None))
    assert shown.empty
    assert "of 1 task: nobody" in fig.get_suptitle()


def test_nothing_recorded_is_a_sentence():
    with pytest.raises(MleRlError, match="No comparison is recorded"):
        plot_tasks({}, np.random.default_rng(0))


def standing(rl, tree):
    rows = [(f"task-{n}", "rl", share) for n, share in enumerate(rl)]
    rows += [(f"task-{n}", "tree", share) for n, share in enumerate(tree)]
    made = pd.DataFrame(rows, columns=["task", "method", "percentile"])
    return made.assign(rank=made.groupby("task").percentile.rank(ascending=False))


def test_the_standing_draws_the_tasks_that_count_and_names_the_highest_method():
    table = standing(rl=[0.2, 0.4, 1.0], tree=[0.6, 0.5])
    fig, shown = plot_standing(table, over_tasks(table))
    assert set(shown.task) == {"task-0", "task-1"}, "the third has no tree search"
    means = shown.groupby("method")["mean"].first().to_dict()
    assert means == pytest.approx({"rl": 0.3, "tree": 0.55})
    title = fig.axes[0].get_title(loc="left") or fig.axes[0].get_title()
    assert title.startswith("Highest mean: static policy, tree search (0.55)")
    assert "2 tasks" in title


def test_the_standing_names_all_whose_means_look_equal():
    table = standing(rl=[0.2, 0.4], tree=[0.4, 0.202])
    fig, _ = plot_standing(table, over_tasks(table))
    title = fig.axes[0].get_title(loc="left") or fig.axes[0].get_title()
    assert "reinforcement learning and static policy, tree search (0.30)" in title
