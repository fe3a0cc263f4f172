"""The pieces of notebooks 03 and 04 that put queue, closed forms and losses together."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from mle_rl import MleRlError
from mle_rl.analysis import style
from mle_rl.losses.objectives import expected_reward, gradient, time_average_reward
from mle_rl.rollout import inclusion
from mle_rl.rollout.laboratory import bandit, bandit_table, figures, gradient_figures, timeline
from mle_rl.rollout.laboratory import gradients as g
from mle_rl.rollout.laboratory.comparison import closed_form, compare, rules_table
from mle_rl.rollout.laboratory.rules import ENGINES, RULES, rule
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation import simulate
from mle_rl.rollout.simulation.box import Box, run_box
from mle_rl.rollout.simulation.durations import Constant, LogNormal
from mle_rl.rollout.simulation.workload import Workload

SMALL = bandit.Bandit(updates=60)
ARMS = bandit.Bandit(noise=Constant(1.0))


@pytest.fixture(autouse=True)
def _figures():
    style()
    yield
    plt.close("all")


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_a_configuration_that_runs(name):
    config = rule(name).config(12, 8)
    result = simulate(
        config, Workload(scale_s=(0.5, 2.0)), updates=5, rng=np.random.default_rng(0), trace=True
    )
    assert result.updates == 5
    assert result.counts.conserved


def test_rules_in_words_say_of_each_whether_it_is_biased():
    table = rules_table()
    assert list(table.index) == list(RULES)
    assert (table[table.unbiased == "yes"]["right weight"] == "none needed").all()
    assert not (table[table.unbiased == "no"]["right weight"] == "none needed").any()
    assert {engine.rule for engine in ENGINES} <= set(RULES)
    with pytest.raises(MleRlError, match="synchronous"):
        rule("fifo")


def test_comparison_is_right_for_the_right_form_and_not_for_another(monkeypatch):
    two = Workload(scale_s=(1.0, 10.0))
    args = {"updates": 400, "workers": 64, "batch_size": 64}
    names = ["window", "over_provision", "snapshot"]
    table = compare(names, two, rng=np.random.default_rng(0), **args)
    assert table.deviation.abs().max() < 3
    monkeypatch.setattr(
        "mle_rl.rollout.laboratory.comparison.closed_form", lambda *a, **k: inclusion.sticky(two)
    )
    wrong = compare(names, two, rng=np.random.default_rng(0), **args)
    assert wrong.groupby("rule").deviation.apply(lambda x: x.abs().max()).min() > 5


def test_updates_slow_down_until_enough_is_kept():
    work = Workload(scale_s=(1.0, 10.0))
    free = inclusion.steady_update_s(work, 160, 64)
    assert free == pytest.approx(64 * 5.5 / 160)
    limited = inclusion.steady_update_s(work, 1600, 640, 1)
    assert limited > inclusion.steady_update_s(work, 1600, 640)
    config = QueueConfig(
        workers=1600, batch_size=640, staleness="drop", max_staleness=1, ordering="completion"
    )
    result = simulate(config, work, updates=600, rng=np.random.default_rng(0))
    assert result.elapsed_s / result.updates == pytest.approx(limited, rel=0.03)


# ---- gradients -------------------------------------------------------------------------------


def goal(objective) -> torch.Tensor:
    values = (ARMS.logits, ARMS.rewards, ARMS.durations_s)
    return gradient(objective, *(torch.tensor(v, dtype=torch.float64) for v in values))


@pytest.mark.parametrize(
    ("name", "weighting", "objective"),
    [
        ("renewal", "none", expected_reward),
        ("renewal", "duration", time_average_reward),
        ("sticky", "duration", expected_reward),
        ("snapshot", "none", time_average_reward),
        ("snapshot", "inclusion", expected_reward),
    ],
)
def test_expected_updates_point_at_their_objective(name, weighting, objective):
    work, config = g.workload_of(ARMS), RULES[name].config(64, 64)
    share = closed_form(name, config, work, 1.0)
    assert g.angle(g.exact_update(ARMS, work, share, weighting), goal(objective)) < 1e-4
    other = "none" if weighting == "duration" else "duration"
    assert g.angle(g.exact_update(ARMS, work, share, other), goal(objective)) > 10


def test_estimates_are_the_exact_update_and_see_a_wrong_weight():
    work, config = g.workload_of(ARMS), RULES["sticky"].config(64, 256)
    share = closed_form("sticky", config, work, 1.0)
    common = {"share": share, "updates": 200, "per_batch": False}
    for weighting, right in (("duration", True), ("none", False)):
        estimate = g.estimated_updates(
            ARMS, work, config, weighting, rng=np.random.default_rng(0), **common
        ).mean(0)
        assert g.angle(estimate, g.exact_update(ARMS, work, share, weighting)) < 5
        assert (g.angle(estimate, goal(expected_reward)) < 5) == right


def test_normalising_per_batch_brings_the_bias_back_where_durations_cluster():
    work, config = g.workload_of(ARMS), RULES["sticky"].config(64, 64)
    share = closed_form("sticky", config, work, 1.0)
    off = {
        per_batch: g.angle(
            g.estimated_updates(
                ARMS, work, config, "duration", share=share, updates=300,
                rng=np.random.default_rng(0), per_batch=per_batch,
            ).mean(0),
            goal(expected_reward),
        )
        for per_batch in (True, False)
    }  # fmt: skip
    assert off[False] < 6 < 12 < off[True]


def test_an_unknown_weighting_lists_those_there_are():
    with pytest.raises(MleRlError, match="task_mean"):
        g.exact_update(ARMS, g.workload_of(ARMS), np.full(4, 0.25), "squared")
    with pytest.raises(MleRlError, match="importance ratio"):
        bandit.run(SMALL, bandit_table.config_of(SMALL, "asynchronous, keep all"), "squared", 0)
    with pytest.raises(MleRlError, match="strict order"):
        bandit_table.runs(SMALL, rows=["fifo"], seeds=[0])


# ---- bandit ----------------------------------------------------------------------------------


def test_a_bandit_run_is_reproducible_and_seeds_differ():
    config = bandit_table.config_of(SMALL, "drop stale, 4 updates")
    a, b, c = (bandit.run(SMALL, config, "duration", seed) for seed in (0, 0, 1))
    assert np.array_equal(a.expected_reward, b.expected_reward)
    assert not np.array_equal(a.expected_reward, c.expected_reward)
    assert (np.diff(a.updated_at_s) > 0).all()
    assert (np.diff(a.executed_s) >= 0).all()
    assert a.policy.sum() == pytest.approx(1)


def test_charging_for_time_ends_at_the_fast_arm_and_rewards_alone_at_the_best():
    problem = bandit.Bandit(updates=250)
    config = bandit_table.config_of(problem, "synchronous, wait for all")
    assert bandit.run(problem, config, "reward rate", 0).policy.argmax() == 1
    assert bandit.run(problem, config, "none", 0).policy.argmax() == 3


def test_the_age_limit_loses_the_best_arm_and_admission_keeps_it():
    problem = bandit.Bandit(updates=250)
    best = {
        row: bandit.run(problem, bandit_table.config_of(problem, row), "none", 0).policy[3]
        for row in ("drop stale, 4 updates", "admission control, 4, oldest first")
    }
    assert best["drop stale, 4 updates"] < 0.1
    assert best["admission control, 4, oldest first"] > 0.9


def test_the_table_leaves_out_what_has_no_meaning_and_summarises_with_intervals():
    rows = ("over-provision 1.5x, abort", "asynchronous, keep all")
    results = bandit_table.runs(bandit.Bandit(updates=5), rows=rows, seeds=range(3))
    pairs = set(zip(results.rule, results.weighting, strict=True))
    assert ("over-provision 1.5x, abort", "inclusion") not in pairs
    assert ("asynchronous, keep all", "inclusion") in pairs
    cells = bandit_table.summarise(results, rng=np.random.default_rng(0))
    assert len(cells) == len(pairs)
    assert ((cells.low <= cells["mean"]) & (cells["mean"] <= cells.high)).all()
    assert set(bandit_table.REFERENCE) <= {
        (r, c) for r in bandit_table.ROWS for c in bandit.COLUMNS
    }
    aborts = bandit_table.config_of(SMALL, "over-provision 1.5x, abort")
    with pytest.raises(MleRlError, match="no weight corrects it"):
        bandit.inclusion_estimate(aborts, np.ones(2), 1.0)


def test_the_table_has_rules_as_rows_and_weightings_as_columns():
    rows = ("over-provision 1.5x, abort", "asynchronous, keep all")
    table = bandit_table.table(bandit.Bandit(updates=5), rows=rows, seeds=range(3))
    assert tuple(table.index) == rows
    assert tuple(table.columns) == bandit.COLUMNS
    assert table.loc[rows[0], "inclusion"] == "", "no such weight"
    assert re.fullmatch(r"0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", table.loc[rows[1], "none"])


def test_agreement_is_within_the_spread_and_disagreement_is_said():
    rule, *_ = bandit_table.REFERENCE
    reference = bandit_table.REFERENCE[rule]
    results = pd.DataFrame(
        {"rule": rule[0], "weighting": rule[1], "expected_reward": reference + 0.01 * np.arange(3)}
    )
    for shift, within in ((0.0, True), (-0.01, True), (0.002, False), (-0.03, False)):
        moved = results.assign(expected_reward=results.expected_reward + shift)
        cells = bandit_table.summarise(moved, rng=np.random.default_rng(0))
        assert bandit_table.agreement(cells).within.tolist() == [within], shift


@pytest.mark.slow
def test_the_whole_table_agrees_with_the_reference():
    cells = bandit_table.summarise(bandit_table.runs(), rng=np.random.default_rng(0))
    known = bandit_table.agreement(cells).set_index(["rule", "weighting"])
    lottery = ("drop stale, 4 updates", "inclusion")
    assert known.drop(index=lottery).difference.abs().max() < 0.006
    assert known.within.all()
    short = bandit_table.runs(
        bandit.Bandit(interval_memory=0.9), rows=lottery[:1], columns=lottery[1:]
    )
    assert short.expected_reward.mean() < known.reference[lottery] < known["mean"][lottery]


# ---- figures ---------------------------------------------------------------------------------


def test_figures_draw_every_rule_and_return_what_they_show():
    two = Workload(scale_s=(1.0, 10.0))
    table = compare(["renewal", "window"], two, updates=60, rng=np.random.default_rng(0))
    fig, shown = figures.plot_slow_share(table, "title")
    assert [t.get_text() for t in fig.axes[0].get_yticklabels()] == [
        RULES[name].title for name in shown.rule
    ]
    panels = figures.plot_relative_share(table, "title").axes
    assert [a.get_title(loc="left") for a in panels[:2]] == [
        RULES["renewal"].title,
        RULES["window"].title,
    ]


def test_the_timeline_shows_each_device_and_nothing_overlaps():
    box = Box(gpus=2, training_gpus=1, generation_batch=4)
    config = QueueConfig(workers=4, batch_size=4, max_staleness=1, max_in_flight=8)
    work = Workload(scale_s=(20.0,), noise=LogNormal(1.0, 1.0))
    result = run_box(box, config, work, updates=6, rng=np.random.default_rng(0))
    _, bars = timeline.plot_timeline({"a": (box, result)}, (0.0, 150.0), "title")
    assert {"decoding", "training", "weight sync"} < set(bars.what)
    for device, rows in bars[~bars.device.str.startswith("sampling")].groupby("device"):
        ordered = rows.sort_values("begin_s")
        assert (ordered.begin_s.to_numpy()[1:] >= ordered.end_s.to_numpy()[:-1] - 1e-9).all(), (
            device
        )
    held = bars[bars.what == "weight sync"]
    decoding = bars[bars.what == "decoding"]
    for _, pause in held.iterrows():
        inside = (decoding.begin_s > pause.begin_s) & (decoding.end_s < pause.end_s)
        assert not inside.any(), "sampling stands still while weights are sent"


def test_bandit_figures_have_a_look_for_every_weighting():
    assert set(bandit.COLUMNS) | {bandit.FIXED_SCALE} <= set(gradient_figures.LOOKS)
    assert set(g.WEIGHTINGS) - {"task_mean"} <= set(gradient_figures.LOOKS)
    curves = bandit_table.learning_curves(
        bandit.Bandit(updates=12),
        [("asynchronous, keep all", "none")],
        seeds=range(2),
        rng=np.random.default_rng(0),
    )
    assert curves["update"].tolist() == [1, 6, 11, 12]
    gradient_figures.plot_bandit_curves(curves, "title")
