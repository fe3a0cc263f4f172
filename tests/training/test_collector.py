"""The collector inside TRL's training loop, with programs that a stub runs at once."""

import json
from concurrent.futures import Future

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig

from mle_rl import MleRlError
from mle_rl.agent import Archive, PromptSource
from mle_rl.records import Execution, Outcome, Program
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.assignment import Assignment
from mle_rl.rollout.collector import RolloutCollector, rollout_reward
from mle_rl.rollout.ledger import Ledger
from mle_rl.rollout.live import LiveDriver
from mle_rl.rollout.queue import QueueConfig, RolloutQueue
from mle_rl.rollout.sampling import SamplingSettings
from mle_rl.training.trainer import DurationAwareGRPOTrainer

BATCH = 6


class Grader:
    """Stands for an environment: the score of a program is its length, empty ones fail."""

    class task:
        higher_is_better = True

    def __init__(self):
        self.ran = []

    def submit(self, program):
        self.ran.append(program)
        valid = program is not None and len(program.code) > 4
        score = len(program.code) / 10 if valid else None
        status = "ok" if valid else "rejected" if program is None else "error"
        execution = Execution(status, "", "", 0.1 if valid else 0.0, 0.1, 1.0, "limits")
        future = Future()
        future.set_result((execution, Outcome((), valid, score, score)))
        return future


def parse(ids):
    """A completion that ends is a program."""
    return Program("", "x" * len(ids)) if ids[-1] == 1 else None


@pytest.fixture
def make(make_llama, tokenizer, tmp_path):
    """A trainer with a collector over ``tasks``; all parts are reachable from the collector."""

    def build(
        tasks=("one",), staleness=1, improve_share=0.5, ledger=":memory:", evaluated=None, **changes
    ):
        ledger = Ledger(ledger)
        assignments = {
            name: Assignment(
                Grader(),
                PromptSource(
                    name,
                    lambda kind, earlier: (2, 3) if kind == "scratch" else (4, 5, 6, 7),
                    Archive(),
                    improve_share,
                ),
            )
            for name in tasks
        }
        rule = QueueConfig(
            workers=2,
            batch_size=BATCH,
            max_staleness=staleness,
            ordering="window",
            order_window=1,
            max_in_flight=(staleness + 1) * BATCH,
        )
        driver = LiveDriver(
            RolloutQueue(rule),
            lambda rollout: assignments[rollout.task].environment.submit(rollout.program),
            ledger,
        )
        collector = RolloutCollector(
            assignments, driver, parse, SamplingSettings(8, (1,), 0), torch.Generator()
        )
        batches = []
        collector.on_batch = batches.append
        collector.batches = batches
        args = {
            "output_dir": str(tmp_path / "run"),
            "per_device_train_batch_size": BATCH,
            "num_generations": BATCH,
            "max_completion_length": 8,
            "learning_rate": 3e-2,
            "max_steps": 4,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": "none",
            "use_cpu": True,
            "bf16": False,
            "activation_checkpointing": False,
            "disable_tqdm": True,
        }
        trainer = DurationAwareGRPOTrainer(
            model=make_llama(),
            reward_funcs=rollout_reward,
            args=GRPOConfig(**args | changes),
            train_dataset=Dataset.from_dict({"prompt": ["-"] * 8}),
            eval_dataset=evaluated,
            processing_class=tokenizer,
            rollout_func=collector,
        )
        return trainer, collector

    return build


def test_every_rollout_is_trained_once_and_in_order(make):
    trainer, collector = make()
    trainer.train()
    ids = [r.id for batch in collector.batches for r in batch.rollouts]
    assert ids == list(range(4 * BATCH))
    counts = collector.driver.ledger.counts()
    assert (counts.trained, counts.ready + counts.in_flight) == (4 * BATCH, BATCH)
    assert counts.conserved


def test_the_ratio_of_a_fresh_batch_is_one_and_of_a_stale_one_is_not(make):
    """Recorded log-probabilities against those of the model that trains on them."""
    ratios = []

    class Watched(DurationAwareGRPOTrainer):
        def _compute_loss(self, model, inputs):
            ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
            mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
            with torch.no_grad():
                now, _, _ = self._get_per_token_logps_and_entropies(
                    model, ids, mask, inputs["completion_ids"].shape[1]
                )
            difference = (now - inputs["old_per_token_logps"])[inputs["completion_mask"].bool()]
            ratios.append(difference.abs().max().item())
            return super()._compute_loss(model, inputs)

    trainer, collector = make(temperature=1.0)
    trainer.__class__ = Watched
    trainer.train()
    ages = [{b.version - r.model_version for r in b.rollouts} for b in collector.batches]
    assert ages == [{0}, {1}, {1}, {1}]
    assert ratios[0] < 1e-5
    assert min(ratios[1:]) > 1e-3


def test_rewards_follow_the_weights_of_the_step(make):
    trainer, collector = make(staleness=1)
    collector.reward_weights = RewardWeights(failure=-3.0)

    def change(batch):
        collector.batches.append(batch)
        collector.reward_weights = RewardWeights(failure=-7.0)

    collector.on_batch = change
    trainer.train()
    failed = [
        {r.reward for r in batch.rollouts if not r.outcome.valid} for batch in collector.batches
    ]
    assert failed[0] == {-3.0}
    assert failed[1] <= {-7.0}, "sampled before the change, paid after it"
    assert any(failed[1:])


def test_prompt_kinds_have_baselines_of_their_own(make):
    trainer, collector = make(improve_share=0.5)
    trainer.train()
    rollouts = [r for batch in collector.batches for r in batch.rollouts]
    assert {r.group for r in rollouts} == {"one/scratch", "one/improve"}
    for r in rollouts:
        assert r.prompt_ids == ((2, 3) if r.prompt_kind == "scratch" else (4, 5, 6, 7))
    first = collector.batches[0].rollouts
    assert {r.prompt_kind for r in first} == {"scratch"}, "nothing to improve yet"


def test_tasks_take_turns(make):
    trainer, collector = make(tasks=("one", "two"))
    trainer.train()
    for batch in collector.batches:
        assert [r.task for r in batch.rollouts] == ["one", "two"] * (BATCH // 2)


def test_evaluation_leaves_training_alone(make):
    """TRL's evaluation goes through the same function; a twin without it trains the same."""
    quiet, quiet_collector = make()
    quiet.train()
    trainer, collector = make(
        evaluated=Dataset.from_dict({"prompt": ["-"]}),
        eval_strategy="steps",
        eval_steps=1,
        per_device_eval_batch_size=BATCH,
    )
    trainer.train()
    ran, ran_quietly = (
        len(c.assignments["one"].environment.ran) for c in (collector, quiet_collector)
    )
    assert ran - ran_quietly == 4 * BATCH
    for name in ("trained", "dispatched", "in_flight"):
        assert getattr(collector.driver.counts(), name) == getattr(
            quiet_collector.driver.counts(), name
        )
    completions, quiet_completions = (
        [r.completion_ids for batch in c.batches for r in batch.rollouts]
        for c in (collector, quiet_collector)
    )
    assert completions == quiet_completions
    # TRL shuffles rows with the global generator, from which evaluation draws: rounding differs.
    for ours, twin in zip(trainer.model.parameters(), quiet.model.parameters(), strict=True):
        torch.testing.assert_close(ours, twin, atol=1e-4, rtol=1e-4)


def killed(submit, times):
    """Sandboxes are killed, twice each, under the first ``times`` programs."""

    def submit_or_kill(program):
        nonlocal times
        times -= 1
        future = submit(program)
        if times < 0:
            return future
        execution = Execution("killed", "", "", 0.0, 0.0, 1.0, "limits")
        future = Future()
        future.set_result((execution, Outcome((), False)))
        return future

    return submit_or_kill


def test_evaluation_takes_a_killed_sandbox_for_no_failed_program(make):
    trainer, collector = make()
    environment, prompts = collector.assignments["one"].environment, ["-"] * 40
    submit = environment.submit
    trainer.model.eval()
    undisturbed = collector(prompts, trainer)["reward"]
    assert max(undisturbed) > min(undisturbed), "some are valid"
    environment.submit = killed(submit, times=40)
    assert collector(prompts, trainer)["reward"] == undisturbed
    assert len(environment.ran) == 3 * 40
    environment.submit = killed(submit, times=41)
    with pytest.raises(MleRlError, match="killed again"):
        collector(prompts, trainer)


def test_another_temperature_is_refused(make):
    trainer, _ = make(temperature=0.7)
    with pytest.raises(MleRlError, match="temperature"):
        trainer.train()


def test_a_program_that_never_ran_has_a_duration(make):
    """Duration weights refuse zero."""
    trainer, collector = make()
    seen = []
    columns = collector._columns

    def watched(rollouts):
        seen.append(columns(rollouts))
        return seen[-1]

    collector._columns = watched
    trainer.train()
    durations = [d for batch in seen for d in batch["duration_s"]]
    assert min(durations) > 0
    assert any(not valid for batch in seen for valid in batch["valid"])


def test_state_survives_json(make, tmp_path):
    """Saved as JSON and loaded into a new collector: the next prompts and tokens are the same."""
    trainer, collector = make(ledger=tmp_path / "ledger.sqlite")
    trainer.train()
    state = json.loads(json.dumps(collector.state_dict()))
    _, twin = make(ledger=tmp_path / "ledger.sqlite")
    twin.load_state_dict(state)
    assert twin.version == 4
    kinds = [[c.assignments["one"].prompts.next() for _ in range(9)] for c in (collector, twin)]
    assert kinds[0] == kinds[1]
    assert torch.equal(collector.generator.get_state(), twin.generator.get_state())
    ready = [c.driver.queue.ready_ids() for c in (collector, twin)]
    assert ready[0] == ready[1] == tuple(range(4 * BATCH, 5 * BATCH))
