"""`train` end to end: real sandbox, grader, queue and TRL, with a model of 2,000 parameters."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import small_run
import torch
from small_run import descendants, settings

from mle_rl import MleRlError, tasks
from mle_rl.agent import load_policy
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.ledger import Ledger
from mle_rl.rollout.queue import QueueConfig
from mle_rl.training import checkpoint, run
from mle_rl.training.by_task import history_by_task
from mle_rl.training.history import GLOSSARY
from mle_rl.training.run import Controls, train
from mle_rl.training.weighting import DurationWeighting

SCRIPT = Path(small_run.__file__)
BATCH = 8


class Killed(BaseException):
    """Ends a run at a point of the test's choosing, as a kill would; nothing handles it."""


class Unused:
    """A pool that must not be asked."""

    def submit(self, job):
        raise AssertionError("a program was run")


def quiet(row):
    """Print nothing."""


def parameters(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def trained_ids(run_dir):
    """Ids by the version that trained on them; ledger and history must agree with each other."""
    ledger = Ledger(run_dir / "rollouts.sqlite")
    table = ledger.table()
    assert ledger.counts().conserved
    ledger.close()
    table = table[table.state == "trained"]
    history = pd.read_csv(run_dir / "history.csv")
    assert history.step.tolist() == list(range(1, len(history) + 1))
    assert history.conserved.all()
    assert history.wall_s.is_monotonic_increasing, "the clock goes on where it stopped"
    return [sorted(table.id[table.trained_version == v]) for v in range(len(history))]


def expected_ids(steps):
    return [list(range(v * BATCH, (v + 1) * BATCH)) for v in range(steps)]


# ---- a run ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory, make_policy, pool):
    """A run of four steps: its result, and the policy that it started from."""
    start = make_policy()
    run_dir = tmp_path_factory.mktemp("finished") / "run"
    return train(settings(run_dir), policy=start, pool=pool, on_step=quiet), start


def test_history_has_the_columns_of_the_glossary(finished):
    history = finished[0].history
    assert tuple(history) == tuple(GLOSSARY)
    always = history.drop(columns=["score_mean", "score_best", "score_best_so_far"])
    assert not always.isna().any().any()
    assert history.valid_share.between(0.01, 0.99).all(), "programs of both kinds ran"
    best = history.score_best_so_far.dropna()
    assert best.is_monotonic_decreasing, "the metric is an error"


def test_every_rollout_is_accounted_for_and_trained_once(finished):
    result, _ = finished
    assert trained_ids(result.run_dir) == expected_ids(4)
    assert result.counts.dispatched == 5 * BATCH
    assert result.history.staleness_max.tolist() == [0, 1, 1, 1]


def test_recorded_logprobs_are_those_of_the_version_that_sampled(finished):
    """Of the start for version 0, of the kept checkpoints for 3; of another version they differ."""
    result, start = finished
    ledger = Ledger(result.run_dir / "rollouts.sqlite")
    rollouts = [r for state in ("trained", "finished", "started") for r in ledger.rollouts(state)]
    ledger.close()
    models = {0: start.model, 3: load_policy(result.run_dir / "checkpoint-3").model}
    for version, model in models.items():
        sampled = [r for r in rollouts if r.model_version == version]
        other = models[3 - version]
        assert sampled
        assert max(difference(model, r) for r in sampled) < 1e-5
        assert max(difference(other, r) for r in sampled) > 1e-2


@torch.no_grad()
def difference(model, rollout):
    ids = torch.tensor([rollout.prompt_ids + rollout.completion_ids])
    logprobs = torch.log_softmax(model(ids).logits[0, len(rollout.prompt_ids) - 1 : -1], -1)
    chosen = logprobs.gather(1, torch.tensor(rollout.completion_ids)[:, None])[:, 0]
    return float((chosen - torch.tensor(rollout.logprobs)).abs().max())


def test_the_trained_policy_is_saved_and_the_start_is_left_alone(finished, make_policy):
    result, start = finished
    saved = parameters(load_policy(result.run_dir / "policy").model)
    assert torch.equal(saved, parameters(result.policy.model))
    assert not torch.allclose(saved, parameters(start.model), atol=1e-3)
    assert torch.equal(parameters(start.model), parameters(make_policy().model))


def test_a_run_that_has_ended_is_returned_and_a_longer_one_goes_on(finished, tmp_path, pool):
    result, start = finished
    run_dir = shutil.copytree(result.run_dir, tmp_path / "run")
    again = train(settings(run_dir), policy=start, pool=Unused())
    pd.testing.assert_frame_equal(again.history, result.history)
    # Killed between the last checkpoint and the policy: nothing is trained on again.
    shutil.rmtree(run_dir / "policy")
    again = train(settings(run_dir), policy=start, pool=pool, on_step=quiet)
    assert torch.equal(parameters(again.policy.model), parameters(result.policy.model))
    longer = train(settings(run_dir, steps=5), policy=start, pool=pool, on_step=quiet)
    assert trained_ids(run_dir) == expected_ids(5)
    assert not torch.equal(parameters(longer.policy.model), parameters(result.policy.model))


DROP = {
    "queue": QueueConfig(
        workers=1, batch_size=BATCH, max_in_flight=3 * BATCH, staleness="drop", max_staleness=1
    ),
    "weighting": DurationWeighting("inclusion"),
}
OVER_PROVISION = {
    "queue": QueueConfig(
        workers=1,
        batch_size=BATCH,
        ordering="completion",
        staleness="keep",
        over_provision=1.5,
    )
}


@pytest.mark.parametrize(
    ("rule", "reason"), [(DROP, "stale"), (OVER_PROVISION, "aborted")], ids=["drop", "abort"]
)
def test_rules_that_drop_rollouts_train_and_account_for_them(tmp_path, policy, pool, rule, reason):
    """Stopped half-way and gone on with, so that dropped ones are not opened again."""
    config = settings(tmp_path / "run", steps=4, **rule)
    for stop in (True, True, False):
        controls = Controls(RewardWeights(), stop=stop)
        result = train(config, policy=policy, pool=pool, controls=controls, on_step=quiet)
    assert [len(ids) for ids in trained_ids(tmp_path / "run")] == [BATCH] * 4
    assert result.history.staleness_max.max() <= 1
    assert result.counts.dropped[reason] > 0
    assert result.history.dropped.iloc[-1] > 0


# ---- several tasks -------------------------------------------------------------------------------


def test_one_policy_trains_on_two_tasks_weighted_by_their_mean_durations(tmp_path, policy, pool):
    names = ("doctor-visits", "function-length")
    weighting = DurationWeighting("task_mean")
    rewards = RewardWeights(failure=-0.8, score_scale="percentile")
    config = settings(tmp_path / "run", tasks=names, steps=2, weighting=weighting, rewards=rewards)
    result = train(config, policy=policy, pool=pool, on_step=quiet)
    assert trained_ids(tmp_path / "run") == expected_ids(2)
    ledger = Ledger(tmp_path / "run/rollouts.sqlite")
    table = ledger.table().query("state == 'trained'")
    ledger.close()
    by_task = history_by_task(tmp_path / "run")
    assert by_task.rollouts.tolist() == [BATCH // 2] * 4, "rollouts go to the tasks in turn"
    for step, batch in table.groupby(table.trained_version + 1):
        durations = batch.duration_s.clip(lower=weighting.floor_s)
        means = durations.groupby(batch.task).mean()
        row = result.history.set_index("step").loc[step]
        assert row.weights_max == pytest.approx(means.max() / durations.mean(), rel=1e-3)
        parts = by_task[by_task.step == step].set_index("task")
        for name in names:
            rows = batch[batch.task == name]
            assert parts.reward_mean[name] == pytest.approx(rows.reward.mean())
            assert parts.valid_share[name] == rows.valid.mean()
            valid = rows[rows.valid == 1]
            percentile = tasks.leaderboard(tasks.load(name)).percentile
            assert valid.reward.tolist() == [percentile(score) for score in valid.reward_score]
    assert (table[table.valid == 1].groupby("task").size() > 0).sum() == 2
    best = by_task[by_task.step == 2].set_index("task").score_best_so_far
    scores = table[table.valid == 1].groupby("task").reward_score
    assert best.to_dict() == {names[0]: scores.min()[names[0]], names[1]: scores.max()[names[1]]}
    assert result.history.score_best_so_far.iloc[-1] == pytest.approx(best[names[0]])


def test_a_folder_without_a_run_has_no_history_by_task(tmp_path):
    with pytest.raises(MleRlError, match="no run in"):
        history_by_task(tmp_path)


# ---- what may be changed -------------------------------------------------------------------------


def test_reward_weights_take_effect_at_the_next_step(tmp_path, policy, pool):
    """Even on rollouts that were sampled before, and for a scale that needs a leaderboard."""
    controls = Controls(RewardWeights(failure=-3.0, stage=0.0))

    def change(row):
        controls.rewards = RewardWeights(failure=-7.0, stage=0.0, score_scale="anchored")
        controls.stop = row["step"] == 2

    config = settings(tmp_path / "run", rewards=controls.rewards)
    train(config, policy=policy, pool=pool, controls=controls, on_step=change)
    ledger = Ledger(tmp_path / "run/rollouts.sqlite")
    table = ledger.table()
    ledger.close()
    table = table[table.state == "trained"]
    failed = [set(table.reward[(table.trained_version == v) & (table.valid == 0)]) for v in (0, 1)]
    assert failed == [{-3.0}, {-7.0}]
    valid = table[table.valid == 1]
    first, second = (valid[valid.trained_version == v] for v in (0, 1))
    assert (first.reward == -first.reward_score).all()
    baseline, best = tasks.anchors(tasks.load("doctor-visits"))
    anchored = (second.reward_score - baseline) / (best - baseline)
    assert second.reward.tolist() == pytest.approx(anchored.tolist())
    assert table.trained_version.max() == 1, "stopped when asked to"


def test_a_run_that_was_stopped_goes_on_to_its_end_with_the_same_controls(tmp_path, policy, pool):
    """Running the cell again goes on with the run: the stop was asked of the run that it ended."""
    config = settings(tmp_path / "run")
    controls = Controls(config.rewards)

    def stop(row):
        controls.stop = True

    stopped = train(config, policy=policy, pool=pool, controls=controls, on_step=stop)
    assert stopped.history.step.tolist() == [1]
    assert not controls.stop
    result = train(config, policy=policy, pool=pool, controls=controls, on_step=quiet)
    assert result.history.step.tolist() == [1, 2, 3, 4]


def test_a_run_that_failed_was_stopped_too(tmp_path):
    (tmp_path / "run").write_text("a file")
    controls = Controls(RewardWeights(), stop=True)
    with pytest.raises(MleRlError, match="cannot be used"):
        train(settings(tmp_path / "run"), controls=controls)
    assert not controls.stop


@pytest.mark.parametrize("elsewhere", [True, False], ids=["another file", "no file"])
def test_the_divergence_is_measured_from_the_policy_that_training_started_from(
    tmp_path, policy, pool, make_llama, monkeypatch, elsewhere
):
    """TRL would read it from the file that the model once came from."""
    if elsewhere:
        make_llama(seed=1).save_pretrained(tmp_path / "other")
        policy.model.config._name_or_path = str(tmp_path / "other")
    made = []
    make = run._Run._make_trainer
    monkeypatch.setattr(
        run._Run, "_make_trainer", lambda self, peft: made.append(make(self, peft)) or made[0]
    )
    config = settings(tmp_path / "run", steps=2, kl=0.1)
    result = train(config, policy=policy, pool=pool, on_step=quiet)
    reference = parameters(made[0].ref_model)
    assert torch.equal(reference, parameters(policy.model))
    assert not torch.equal(parameters(result.policy.model), reference)
    assert not list((tmp_path / "run").glob("reference*"))
    assert made[0].model.config._name_or_path == policy.model.config._name_or_path
    first = made[0].state.log_history[0]
    assert first["kl"] == pytest.approx(0.0, abs=1e-6), "nothing had been learnt yet"


def test_adapters_train_and_base_weights_do_not(tmp_path, policy, pool):
    from peft import LoraConfig

    lora = LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights="gaussian")
    config = settings(tmp_path / "run", steps=2)
    result = train(config, policy=policy, pool=pool, peft_config=lora, on_step=quiet)
    before, after = (dict(p.model.named_parameters()) for p in (policy, result.policy))
    assert before.keys() == after.keys(), "merged: a plain model, whatever it was trained with"
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if "q_proj" in name}
    longer = replace(config, steps=3)
    train(longer, policy=policy, pool=pool, peft_config=lora, on_step=quiet)
    assert trained_ids(tmp_path / "run") == expected_ids(3)
    wider = LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights="gaussian")
    one_sentence(longer, "other settings", policy=policy, pool=pool, peft_config=wider)


# ---- interrupted and killed ----------------------------------------------------------------------


def test_an_interrupted_run_ends_in_a_sentence_and_goes_on(tmp_path, policy, pool):
    """With a pool of its own, which it must take along."""
    before = descendants(os.getpid())
    during = set()

    def interrupt(row):
        during.update(descendants(os.getpid()) - before)
        if row["step"] == 2:
            raise KeyboardInterrupt

    config = settings(tmp_path / "run", steps=3)
    with pytest.raises(MleRlError, match=r"^Training was interrupted; .*go on from step 1\.$"):
        train(config, policy=policy, on_step=interrupt)
    assert during
    assert not descendants(os.getpid()) & during
    train(config, policy=policy, pool=pool, on_step=quiet)
    assert trained_ids(tmp_path / "run") == expected_ids(3)


def kill_in(monkeypatch, where, name, at):
    """Kill the run when a function is called for the `at`-th time, before it does anything."""
    calls, original = [], getattr(where, name)

    def killed(*args, **kwargs):
        calls.append(1)
        if len(calls) == at:
            raise Killed
        return original(*args, **kwargs)

    monkeypatch.setattr(where, name, killed)


REPLAYED = {"weighting": DurationWeighting("paper"), "replay": True}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, make_policy, pool):
    """An uninterrupted run that recorded its executions: the file, and the final parameters."""
    folder = tmp_path_factory.mktemp("recorded")
    config = settings(folder / "run", executions=folder / "executions.sqlite", **REPLAYED)
    result = train(config, policy=make_policy(), pool=pool, on_step=quiet)
    return config.executions, parameters(result.policy.model)


@pytest.mark.parametrize(
    ("where", "name", "at"),
    [
        (Ledger, "dispatched", 1),  # before the first checkpoint
        (Ledger, "trained", 3),  # the batch is taken, and not yet written down
        (checkpoint, "complete", 3),  # TRL's half of a checkpoint is there, ours is not
    ],
)
def test_a_killed_run_resumes_exactly(
    tmp_path, make_policy, recorded, pool, monkeypatch, where, name, at
):
    """With durations in the loss and executions replayed, parameters are equal bit for bit.

    The pool is there for the last batch, which the recorded run had sampled and did not wait for.
    """
    executions, uninterrupted = recorded
    config = settings(tmp_path / "run", executions=executions, **REPLAYED)
    with monkeypatch.context() as patch:
        kill_in(patch, where, name, at)
        with pytest.raises(Killed):
            train(config, policy=make_policy(), pool=pool, on_step=quiet)
    result = train(config, policy=make_policy(), pool=pool, on_step=quiet)
    assert torch.equal(parameters(result.policy.model), uninterrupted)
    assert trained_ids(tmp_path / "run") == expected_ids(4)
    ledger = Ledger(tmp_path / "run/rollouts.sqlite")
    ran = [r for r in ledger.rollouts("trained") if r.program is not None]
    ledger.close()
    assert all(rollout.execution.replayed for rollout in ran)


def test_kill_9_of_the_learner_loses_nothing(tmp_path, policy, finished, pool):
    """Programs really run. No duration is in this loss, so parameters are equal here too."""
    policy.model.save_pretrained(tmp_path / "minute")
    policy.tokenizer.save_pretrained(tmp_path / "minute")
    command = [sys.executable, SCRIPT, tmp_path / "run", tmp_path / "minute", "3"]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    processes = [int(pid) for pid in killed.stdout.split()]
    assert processes
    wait_until(lambda: not any(map(alive, processes)))
    result = train(settings(tmp_path / "run"), policy=policy, pool=pool, on_step=quiet)
    assert trained_ids(tmp_path / "run") == expected_ids(4)
    uninterrupted = finished[0]
    assert torch.equal(parameters(result.policy.model), parameters(uninterrupted.policy.model))
    assert result.counts.dropped.keys() <= {"rewound"}


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, patience_s=60.0):
    give_up_at = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def test_kill_9_of_a_sandbox_server_is_made_good(tmp_path, policy, finished):
    """After the first step every process of the run's own pool is killed; it is replaced."""
    before = descendants(os.getpid())

    def kill(row):
        if row["step"] == 1:
            for pid in descendants(os.getpid()) - before:
                os.kill(pid, signal.SIGKILL)

    result = train(settings(tmp_path / "run"), policy=policy, on_step=kill)
    assert trained_ids(tmp_path / "run") == expected_ids(4)
    assert torch.equal(parameters(result.policy.model), parameters(finished[0].policy.model)), (
        "no failure of the machine was paid to the policy"
    )


# ---- mistakes ------------------------------------------------------------------------------------


def one_sentence(config, match, **arguments):
    with pytest.raises(MleRlError, match=match) as raised:
        train(config, on_step=quiet, **arguments)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_unknown_names_list_what_exists(tmp_path, policy):
    one_sentence(
        settings(tmp_path / "a", tasks=("titanic",)),
        "no task 'titanic'.*doctor-visits.*library-docstrings",
        policy=policy,
        pool=Unused(),
    )
    one_sentence(settings(tmp_path / "b", policy="huge"), "no policy 'huge'.*tiny", pool=Unused())


def test_several_processes_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    """Each would have workers and a ledger of its own in the same folder."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    one_sentence(settings(tmp_path / "run"), "WORLD_SIZE is 2.*one process")
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv("WORLD_SIZE", "1")
    one_sentence(settings(tmp_path / "run", policy="huge"), "no policy 'huge'", pool=Unused())


def test_corrupt_weights(tmp_path, policy):
    policy.model.save_pretrained(tmp_path / "minute")
    policy.tokenizer.save_pretrained(tmp_path / "minute")
    weights = tmp_path / "minute/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    config = settings(tmp_path / "run", policy=str(tmp_path / "minute"))
    one_sentence(config, "cannot be loaded", pool=Unused())


def test_missing_data(tmp_path, policy, monkeypatch):
    (tmp_path / "doctor-visits").mkdir()
    monkeypatch.setattr("mle_rl.tasks.loading.default_data_dir", lambda: tmp_path)
    one_sentence(
        settings(tmp_path / "run"), "not a complete task folder", policy=policy, pool=Unused()
    )


def test_unusable_files_of_the_run(tmp_path, policy):
    """Below a file there can be no folder, whoever asks."""
    (tmp_path / "file").write_text("no database, just text\n" * 100)
    one_sentence(settings(tmp_path / "file/run"), "cannot be used", policy=policy)
    config = settings(tmp_path / "run", executions=tmp_path / "file")
    one_sentence(config, "file of executions .* cannot be used", policy=policy, pool=Unused())


def test_a_folder_with_another_run_is_refused(tmp_path, policy, finished):
    result, _ = finished
    config = settings(result.run_dir, learning_rate=1e-3)
    one_sentence(config, "other settings", policy=policy, pool=Unused())
    assert replace(config, steps=1).to_json() not in (result.run_dir / "settings.txt").read_text()


def test_two_runs_in_one_folder_at_a_time_are_refused(tmp_path, policy, pool):
    """As two notebooks would; the second has a file handle of its own, like another process."""
    config = settings(tmp_path / "run", steps=1)

    def start_another(row):
        one_sentence(config, "Another process is training", policy=policy, pool=Unused())

    train(config, policy=policy, pool=pool, on_step=start_another)
    assert trained_ids(tmp_path / "run") == expected_ids(1)


# ---- the shipped policy --------------------------------------------------------------------------


@pytest.mark.slow
def test_tiny_trains_on_programs_of_its_own(tmp_path):
    config = settings(tmp_path / "run", steps=2, tier="isolated", max_completion_length=None)
    result = train(config, on_step=quiet)
    assert trained_ids(tmp_path / "run") == expected_ids(2)
    assert result.history.stages_mean.max() > 0
    assert result.policy.style == "tiny"
