"""Scratch beside improve: pairs, equal budgets, and what is kept."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mle_rl import tasks
from mle_rl.agent import Solution
from mle_rl.analysis import improvement, improvement_figures
from mle_rl.analysis.known import gain_scale
from mle_rl.records import Execution, Outcome, Program
from mle_rl.training.evaluate import SelfImprovement
from mle_rl.training.evaluation import Evaluation, Sample

LOWER, HIGHER = "library-docstrings", "photo-patches"


def sample(name, gains, shown=None, code="a"):
    """A sample at these gains on the two splits of a task, None for one that is not valid."""
    execution = Execution("ok", "", "", 1.0, 1.0, 1.0, "limits")
    scores = [None, None]
    if gains is not None:
        scales = gain_scale(name).values()
        scores = [low + g * (high - low) for g, (low, high) in zip(gains, scales, strict=True)]
    outcome = Outcome((), gains is not None, *scores)
    kind = "scratch" if shown is None else "improve"
    return Sample(kind, Program("", code), execution, outcome, shown)


def evaluation(name, samples):
    return Evaluation(name, tasks.load(name).higher_is_better, tuple(samples))


def self_improvement(name, scratch, improve):
    """Gains of the samples from scratch; gains of improve samples and of what they were shown."""
    first = [sample(name, gains) for gains in scratch]
    second = []
    for gains, shown in improve:
        score = sample(name, (shown, shown)).outcome.reward_score
        second.append(sample(name, gains, Solution(Program("", "b"), "", score)))
    return SelfImprovement(evaluation(name, first), evaluation(name, second))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", [LOWER, HIGHER])
def test_an_improve_sample_is_compared_with_what_it_was_shown_in_the_task_s_direction(name, rng):
    found = self_improvement(
        name,
        [(0.9, 0.9)] * 5,
        [((0.6, 0), 0.5), ((0.4, 1), 0.5), ((0.5, 1), 0.5), (None, 0.5), ((0.3, 0), 0.2)],
    )
    shares = improvement.changes(found, rng).set_index("change").share
    assert shares.to_dict() == {"better": 0.4, "equal": 0.2, "worse": 0.2, "not valid": 0.2}


def test_shares_and_rewards_of_the_kinds_with_intervals_around_them(rng):
    found = self_improvement(
        HIGHER, [(0.5, 0.5), None] * 30, [((0.5, 0.5), 0.5)] * 50 + [(None, 0.5)] * 10
    )
    table = improvement.by_kind(found, lambda outcome: 3.0 if outcome.valid else -1.0, rng)
    values = table.set_index(["measure", "kind"])
    assert values.value["valid share"].to_list() == pytest.approx([1 / 2, 5 / 6, 1 / 3])
    assert values.value["mean reward"].to_list() == pytest.approx([1.0, 7 / 3, 4 / 3])
    assert (table.low < table.value).all()
    assert (table.value < table.high).all()
    deviation = np.sqrt(1 / 2 * 1 / 2 / 60 + 5 / 6 * 1 / 6 / 60)
    difference = values.loc[("valid share", "difference")]
    assert difference.high - difference.low == pytest.approx(2 * 1.96 * deviation, rel=0.15)


def test_equal_budgets_count_programs_not_kinds(rng):
    """Two valid ones among four from scratch; each improve sample is better than all of them."""
    found = self_improvement(HIGHER, [(0.2, 0.1), (0.4, 0.3), None, None], [((0.6, 0.5), 0.4)] * 4)
    table = improvement.equal_budget(found, [1, 2], rng, repeats=20).set_index(["way", "k"])
    # Of six pairs three hold the better one, two the other alone, one neither.
    scratch = [(3 * 0.3 + 2 * 0.1) / 6, 0.3]
    # One is valid in half of the cases, else one of the other three is taken, of which two are.
    # Two are not valid in one case of six, and the other two are.
    both = [0.5 * 0.5 + 0.5 * (0.1 + 0.3) / 3, 5 / 6 * 0.5 + 1 / 6 * 0.3]
    assert table.gain["scratch"].to_list() == pytest.approx(scratch)
    assert table.gain["both"].to_list() == pytest.approx(both)
    assert table.gain["difference"].to_list() == pytest.approx(np.subtract(both, scratch))


def test_without_a_difference_of_the_kinds_the_budgets_do_not_differ(rng):
    """The same many samples twice: whatever is shown, 2k programs are 2k programs."""
    drawn = np.random.default_rng(2)
    gains = [tuple(drawn.uniform(0, 1, 2)) if drawn.random() < 0.2 else None for _ in range(1000)]
    found = self_improvement(HIGHER, gains, [(pair, 0.5) for pair in gains])
    table = improvement.equal_budget(found, [1, 3, 10], rng, repeats=1)
    assert table[table.way == "difference"].gain.abs().max() < 0.01


def test_the_interval_of_equal_kinds_holds_no_difference(rng):
    gains = [tuple(pair) for pair in np.random.default_rng(1).uniform(0, 1, (40, 2))]
    found = self_improvement(LOWER, gains, [(pair, 0.5) for pair in reversed(gains)])
    table = improvement.equal_budget(found, [1, 5, 20], rng, repeats=100)
    apart = table[table.way == "difference"]
    assert ((apart.low < 0) & (apart.high > 0)).all()


@pytest.mark.parametrize("name", [LOWER, HIGHER])
def test_what_is_kept_is_chosen_on_the_reward_split_and_reported_on_the_final_one(name):
    found = self_improvement(name, [(0.5, 0.9), None], [((0.7, 0.2), 0.5), ((0.6, 0.8), 0.5)])
    kept = improvement.kept_best(found).set_index("kind")
    assert kept.final_gain.to_list() == pytest.approx([0.9, 0.2, 0.2])
    assert kept.programs.to_list() == [2, 2, 4]
    assert kept.valid.to_list() == [1, 2, 3]
    assert kept.percentile.scratch > kept.percentile.kept


def test_figures_count_only_intervals_that_exclude_nothing():
    comparison = pd.DataFrame(
        [
            (task, measure, kind, value, value - 0.1, value + 0.1)
            for task, difference in (("a", 0.3), ("b", -0.3), ("c", 0.05), ("d", 0.2))
            for measure in ("valid share", "mean reward")
            for kind, value in (("scratch", 0.3), ("improve", 0.4), ("difference", difference))
        ],
        columns=["task", "measure", "kind", "value", "low", "high"],
    )
    fig = improvement_figures.draw_kinds(comparison)
    assert "on 2 of 4 tasks and lowers it on 1" in fig.get_suptitle()
    curves = pd.DataFrame(
        [
            (task, k, way, gain, gain - 0.1, gain + 0.1)
            for task, end in (("a", 0.3), ("b", 0.05), ("c", -0.3))
            for k, difference in ((1, 0.5), (8, end))
            for way, gain in (("scratch", 0.5), ("both", 0.6), ("difference", difference))
        ],
        columns=["task", "k", "way", "gain", "low", "high"],
    )
    budget = improvement_figures.draw_budget(curves)
    assert "wins on 1 of 3 tasks and loses on 1" in budget.get_suptitle().replace("\n", " ")
    plt.close(fig)
    plt.close(budget)
