"""Reinforcement learning as a method of search: what of a run counts within a budget."""

import shutil
import time

import pytest
import small_run

from mle_rl.records import STAGES
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.ledger import Ledger
from mle_rl.search.budget import Budget
from mle_rl.search.methods import METHODS
from mle_rl.search.reinforcement import ENDLESS, configuration, learn, trace
from mle_rl.search.settings import Learning, Settings

SET_UP_S = 5.0
BATCH = 8


class Clock:
    """The clock of the machine, and what a test adds to it."""

    added_s = 0.0

    def __call__(self):
        return time.monotonic() + self.added_s


def learnt(run_dir, policy, pool, on_step=None):
    """Trials and steps of a run whose budget of 1,000 s is over after the second update."""
    clock = Clock()
    budget = Budget(1000.0, clock)
    clock.added_s = SET_UP_S  # as if setting up took so long
    steps = []

    def step(row):
        steps.append(row["step"])
        if on_step:
            on_step()
        if len(steps) == 2:
            clock.added_s = 2000.0

    config = small_run.settings(run_dir, steps=ENDLESS, checkpoint_every=50)
    return learn(config, policy, pool, budget, step), steps


@pytest.fixture(scope="module")
def finished(tmp_path_factory, make_policy, pool):
    run_dir = tmp_path_factory.mktemp("search") / "rl-0"
    trials, steps = learnt(run_dir, make_policy(), pool)
    with_ledger = Ledger(run_dir / "rollouts.sqlite")
    table = with_ledger.table()
    with_ledger.close()
    return trials, steps, table, run_dir


def test_training_ends_after_the_update_in_which_the_budget_ends(finished):
    _, steps, _, _ = finished
    assert steps == [1, 2, 3]


def test_every_program_that_was_executed_counts_at_the_time_at_which_it_ended(finished):
    trials, _, table, _ = finished
    ended = table[table.finished_at.notna()].sort_values("finished_at")
    assert len(ended) >= 3 * BATCH, "also those that nothing was trained on yet"
    assert [trial.number for trial in trials] == ended.id.tolist()
    assert [trial.outcome.valid for trial in trials] == ended.valid.astype(bool).tolist()
    assert {trial.outcome.valid for trial in trials} == {True, False}


def test_the_time_to_set_up_is_charged(finished):
    trials, _, table, _ = finished
    ended = table[table.finished_at.notna()].sort_values("finished_at")
    offsets = [trial.ended_at_s - at for trial, at in zip(trials, ended.finished_at, strict=True)]
    assert max(offsets) - min(offsets) < 1e-9
    assert min(offsets) >= SET_UP_S


def test_a_program_that_ended_after_the_budget_does_not_count(finished):
    trials, _, _, run_dir = finished
    half = trials[len(trials) // 2].ended_at_s
    offset_s = trials[0].ended_at_s - finished[2].finished_at.min()
    cut = trace(run_dir / "rollouts.sqlite", offset_s, half)
    assert [t.number for t in cut] == [t.number for t in trials if t.ended_at_s <= half]
    assert 0 < len(cut) < len(trials)


def test_a_search_never_goes_on_with_an_earlier_run(finished, tmp_path, policy, pool):
    """An interrupted one is an interrupt, not a sentence on how to go on with training."""

    def interrupt():
        raise KeyboardInterrupt

    run_dir = tmp_path / "rl-0"
    shutil.copytree(finished[3], run_dir)  # with a checkpoint to go on from
    with pytest.raises(KeyboardInterrupt):
        learnt(run_dir, policy, pool, interrupt)
    trials, steps = learnt(run_dir, policy, pool)
    assert steps == [1, 2, 3]
    assert min(trial.number for trial in trials) == 0
    assert [t.program for t in trials[:BATCH]] == [t.program for t in finished[0][:BATCH]]


def test_the_strict_one_from_scratch_trains_as_notebook_05_does(tmp_path):
    import nbformat

    from mle_rl.notebook import project_root

    content = nbformat.read(project_root() / "notebooks" / "05_train_with_trl.ipynb", as_version=4)
    (cell,) = [
        c.source
        for c in content.cells
        if "TrainConfig(" in c.source and "rewards" in c.source and c.cell_type == "code"
    ]
    settings = Settings(task="library-docstrings", seconds=600.0)
    config = configuration(tmp_path, settings, 0, METHODS["rl-penalty-scratch"].learning)
    for setting in ("learning_rate", "entropy", "improve_share"):
        (written,) = [line for line in cell.splitlines() if f" {setting}=" in line]
        assert float(written.split("=")[1].rstrip(",")) == getattr(config, setting)
    assert f"failure={config.rewards.failure}" in cell
    assert config.rewards.stage == RewardWeights().stage
    assert "stage=" not in cell
    assert f'score_scale="{config.rewards.score_scale}"' in cell


def test_a_comparison_trains_with_the_settings_that_it_records(tmp_path):
    settings = Settings(task="doctor-visits", seconds=60.0, workers=3, tier="limits", batch_size=16)
    learning = Learning(
        failure=-0.3,
        stage=0.02,
        improve_share=0.25,
        learning_rate=0.1,
        entropy=0.2,
        weighting="paper",
    )
    config = configuration(tmp_path, settings, 4, learning)
    assert (config.rewards.failure, config.rewards.stage) == (-0.3, 0.02)
    assert (config.improve_share, config.learning_rate, config.entropy) == (0.25, 0.1, 0.2)
    assert config.weighting.scheme == "paper"
    assert (config.tasks, config.seed, config.batch_size) == (("doctor-visits",), 4, 16)
    assert (config.workers, config.tier, config.limits) == (3, "limits", settings.limits)


@pytest.mark.parametrize("name", [name for name, each in METHODS.items() if each.learning])
def test_no_failure_earns_more_than_a_valid_program(name):
    learning = METHODS[name].learning
    assert learning.failure + len(STAGES) * learning.stage <= 0
