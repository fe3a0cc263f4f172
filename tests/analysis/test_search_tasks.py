"""Panels of several tasks: each has its own scale, and the title counts who ends ahead."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mle_rl import MleRlError, tasks
from mle_rl.analysis.search_tasks import plot_standing, plot_tasks
from mle_rl.search.recorded import Recorded
from mle_rl.search.standing import over_tasks


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def comparison(task, seconds, **scores):
    rows = [
        {"method": method, "seed": 0, "ended_at_s": 1.0, "reward_score": score}
        for method, score in scores.items()
    ]
    programs = pd.DataFrame(rows).astype({"reward_score": float})
    programs = programs.assign(
        final_score=programs.reward_score, valid=programs.reward_score.notna()
    )
    facts = {"task": task, "seconds": seconds, "date": "2026-01-01"}
    return Recorded(programs, programs[["method", "seed"]].assign(**facts))


def test_a_panel_per_task_with_its_budget_its_direction_and_a_common_legend():
    lower, higher = "library-docstrings", "terrain-height"
    assert not tasks.load(lower).higher_is_better
    assert tasks.load(higher).higher_is_better
    found = {
        lower: comparison(lower, 60.0, rl=1.2, static=1.1, smollm2=None),
        higher: comparison(higher, 120.0, rl=0.6, static=0.7, smollm2=None),
    }
    fig, shown = plot_tasks(found, np.random.default_rng(0))
    first, second, legend = fig.axes
    assert first.get_ylim()[0] > first.get_ylim()[1]
    assert second.get_ylim()[0] < second.get_ylim()[1]
    assert (first.get_xlim()[1], second.get_xlim()[1]) == (1, 2)
    assert {tuple(pair) for pair in shown[["task", "method"]].to_numpy()} == {
        (task, method) for task in found for method in ("rl", "static")
    }
    named = [text.get_text() for text in legend.get_legend().get_texts()]
    assert {"static SmolLM2-135M, best of n", "no line: nothing valid"} <= set(named)
    title = fig.get_suptitle()
    assert "of 2 tasks: static policy, best of n on 2" in title, title
    assert "seed 0; 2026-01-01" in title


def test_nothing_recorded_is_a_sentence():
    with pytest.raises(MleRlError, match="No comparison is recorded"):
        plot_tasks({}, np.random.default_rng(0))


def test_the_standing_draws_the_tasks_that_count_and_names_the_highest_method():
    rows = [("a", "rl", 0.2), ("a", "tree", 0.6), ("b", "rl", 0.4), ("b", "tree", 0.5)]
    table = pd.DataFrame([*rows, ("c", "rl", 1.0)], columns=["task", "method", "beaten"])
    fig, shown = plot_standing(table, over_tasks(table, np.random.default_rng(0)))
    assert set(shown.task) == {"a", "b"}, "c has no tree search"
    assert shown.groupby("method")["mean"].first().to_dict() == pytest.approx(
        {"rl": 0.3, "tree": 0.55}
    )
    title = fig.axes[0].get_title(loc="left") or fig.axes[0].get_title()
    assert title.startswith("static policy, tree search stands highest: 0.55 on average")
    assert "2 tasks" in title
