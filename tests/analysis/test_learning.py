"""Learning curves: what is drawn, and what the runs were after."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from mle_rl.analysis.learning import CURVES, TASK_CURVES, plot_by_task, plot_learning
from mle_rl.training.weighting import DurationWeighting


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def _history():
    steps = {"step": [1, 2, 3], "wall_s": [60.0, 120.0, 180.0]}
    return pd.DataFrame({**steps, **{name: [0.1, 0.2, 0.3] for name, _ in CURVES}})


def test_every_task_has_a_line_of_its_own_in_every_panel():
    rows = [
        {"task": task, "step": step, **{name: level + step for name, _ in TASK_CURVES}}
        for task, level in (("one", 0.0), ("two", 10.0))
        for step in (1, 2, 3)
    ]
    objective = DurationWeighting("paper").objective
    fig = plot_by_task(pd.DataFrame(rows), "a finding", objective=objective)
    for axis in fig.axes:
        drawn = {line.get_label(): list(line.get_ydata()) for line in axis.lines}
        assert drawn == {"one": [1.0, 2.0, 3.0], "two": [11.0, 12.0, 13.0]}
    finding, said = fig.get_suptitle().splitlines()
    assert (finding, said.partition(" (")[0]) == ("a finding", "objective: E[DR]/E[D]")


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 90])
def test_ticks_stand_at_whole_updates(steps):
    """Under every panel; minutes may be split."""
    many = pd.concat([_history().head(1)] * steps).assign(step=range(1, steps + 1))
    learning, _ = plot_learning({"a": many}, "a finding", objective="E[R]")
    rows = many.assign(task="one", beaten_so_far=0.5)
    by_task = plot_by_task(rows, "a finding", objective="E[R]")
    for axis in [*learning.axes[::2], *by_task.axes]:
        ticks = axis.get_xticks()
        assert (ticks == ticks.round()).all()


def test_a_curve_says_what_its_run_climbed():
    fig, shown = plot_learning({"a": _history()}, "a finding", objective="E[R]")
    assert fig.get_suptitle().splitlines()[:2] == ["a finding", "objective: E[R] (R reward)"]
    assert set(shown.objective) == {"E[R]"}


def test_runs_with_other_objectives_are_told_apart():
    runs = {name: _history() for name in ("plain", "again", "rate")}
    objective = {"plain": "E[R]", "again": "E[R]", "rate": "E[R]/E[D]"}
    fig, shown = plot_learning(runs, "a finding", objective=objective)
    said = fig.get_suptitle().splitlines()[1]
    assert said == "objective: E[R] (plain, again); E[R]/E[D] (rate) (R reward, D duration)"
    assert shown.groupby("run").objective.first().to_dict() == objective
