"""The collector: TRL's rollout function over the live driver.

TRL asks for a batch once per generation. The collector samples as many completions as the queue
admits with the model of this moment, sends their programs to the workers, and returns the batch
that the queue decides: rollouts of this or of earlier model versions, each with the
log-probabilities of the policy that sampled it. While TRL trains, the workers go on with the rest.

Rewards are computed when a batch is handed over, from the outcomes and the reward weights of that
moment, so weights that are changed during training count from the next step on.

An evaluation of TRL's goes through the same function, and past everything else: its programs run
at once, and neither queue, ledger, archive nor statistics hear of them.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from mle_rl.agent import Prompt
from mle_rl.errors import MleRlError
from mle_rl.records import SHORTEST_S, Program, Rollout
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.assignment import Assignment
from mle_rl.rollout.environment import settled
from mle_rl.rollout.kept import kept_probability
from mle_rl.rollout.live import LiveDriver
from mle_rl.rollout.sampling import SamplingSettings, sample


@dataclass(frozen=True)
class Batch:
    """What the learner was given, for whoever keeps the history.

    Attributes:
        version: Model version that trains on it.
        rollouts: In the order of the batch, with rewards.
        sampling_s: Time the learner spent sampling new completions for later batches.
        waiting_s: Time it waited for programs to end.
        at_s: Clock of the run when it was handed over.
    """

    version: int
    rollouts: tuple[Rollout, ...]
    sampling_s: float
    waiting_s: float
    at_s: float


@dataclass
class RolloutCollector:
    """A ``rollout_func`` for TRL's trainers.

    Attributes:
        assignments: The tasks, by id; rollouts go to them in turn.
        driver: Runs the programs.
        parse: Finds the program in a completion, None if there is none.
        sampling: Length and ends of completions; the temperature must be the trainer's.
        generator: Randomness of the sampled tokens.
        reward_weights: May be replaced at any time, from any thread.
        on_batch: Called with every batch of training before the learner gets it.
        sampling_rows: Most completions sampled at once.
        version: Batches handed over so far.
    """

    assignments: Mapping[str, Assignment]
    driver: LiveDriver
    parse: Callable[[tuple[int, ...]], Program | None]
    sampling: SamplingSettings
    generator: torch.Generator
    reward_weights: RewardWeights = field(default_factory=RewardWeights)
    on_batch: Callable[[Batch], None] | None = None
    sampling_rows: int = 64
    version: int = 0

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list]:
        """As many rollouts as ``prompts``; what the prompts say is up to the prompt sources."""
        self._check(trainer)
        model = trainer.accelerator.unwrap_model(trainer.model)
        if not trainer.model.training:
            return self._evaluate(len(prompts), model)
        batch = self._next_batch(len(prompts), model)
        self.driver.ledger.trained(batch.rollouts, self.version)
        for rollout in batch.rollouts:
            self.assignments[rollout.task].remember(rollout)
        if self.on_batch is not None:
            self.on_batch(batch)
        columns = self._columns(batch.rollouts)
        config = self.driver.queue.config
        if config.staleness == "drop":
            kept = kept_probability(self.driver.ledger, config, batch.rollouts, self.version)
            columns["inclusion"] = kept.tolist()
        self.version += 1
        return columns

    # ---- a batch for training --------------------------------------------------------------------

    def _next_batch(self, n: int, model) -> Batch:
        began, sampling_s = time.perf_counter(), 0.0

        def timed(ids: Sequence[int]) -> list[Rollout]:
            nonlocal sampling_s
            start = time.perf_counter()
            rollouts = self._sample(ids, model)
            sampling_s += time.perf_counter() - start
            return rollouts

        finished = self.driver.next_batch(n, self.version, timed)
        weights = self.reward_weights  # one value for the whole batch, whoever changes it meanwhile
        rewarded = tuple(
            replace(r, reward=self.assignments[r.task].reward(r, weights)) for r in finished
        )
        waiting_s = time.perf_counter() - began - sampling_s
        return Batch(self.version, rewarded, sampling_s, waiting_s, self.driver.now())

    def _sample(self, ids: Sequence[int], model) -> list[Rollout]:
        names = self._tasks_of(ids)
        prompts = [self.assignments[name].prompts.next() for name in names]
        return self._complete(ids, names, prompts, model, self.generator)

    def _tasks_of(self, ids: Sequence[int]) -> list[str]:
        tasks = list(self.assignments)
        return [tasks[id % len(tasks)] for id in ids]

    def _complete(self, ids, names, prompts: Sequence[Prompt], model, generator) -> list[Rollout]:
        """A new rollout for each prompt, not yet dispatched."""
        completions = []
        for start in range(0, len(prompts), self.sampling_rows):
            rows = [prompt.ids for prompt in prompts[start : start + self.sampling_rows]]
            completions += sample(model, rows, self.sampling, generator)
        return [
            Rollout(
                id=id,
                task=name,
                prompt_kind=prompt.kind,
                group=prompt.group,
                prompt_ids=prompt.ids,
                completion_ids=completion.ids,
                logprobs=completion.logprobs,
                model_version=self.version,
                dispatched_at=0.0,  # the driver's clock tells
                program=self.parse(completion.ids),
            )
            for id, name, prompt, completion in zip(ids, names, prompts, completions, strict=True)
        ]

    def _columns(self, rollouts: Sequence[Rollout]) -> dict[str, list]:
        """What TRL requires, and the columns that rewards, weights and baselines are read from."""
        return {
            "prompt_ids": [list(r.prompt_ids) for r in rollouts],
            "completion_ids": [list(r.completion_ids) for r in rollouts],
            "logprobs": [list(r.logprobs) for r in rollouts],
            "reward": [r.reward for r in rollouts],
            "duration_s": [max(r.execution.duration_s, SHORTEST_S) for r in rollouts],
            "group": [r.group for r in rollouts],
            "task": [r.task for r in rollouts],
            "rollout_id": [r.id for r in rollouts],
            "model_version": [r.model_version for r in rollouts],
            "valid": [r.outcome.valid for r in rollouts],
            "stages": [list(r.outcome.stages) for r in rollouts],
        }

    # ---- TRL's evaluation ------------------------------------------------------------------------

    def _evaluate(self, n: int, model) -> dict[str, list]:
        """Fresh rollouts from scratch, with the same random numbers at each evaluation."""
        ids = range(n)
        names = self._tasks_of(ids)
        prompts = [self.assignments[name].scratch() for name in names]
        generator = torch.Generator().manual_seed(0)
        rollouts = self._complete(ids, names, prompts, model, generator)
        running = [self.assignments[r.task].environment.submit(r.program) for r in rollouts]
        finished = []
        for rollout, future in zip(rollouts, running, strict=True):
            assignment = self.assignments[rollout.task]
            execution, outcome = settled(assignment.environment, rollout.program, future)
            done = replace(rollout, execution=execution, outcome=outcome)
            paid = assignment.reward(done, self.reward_weights)
            finished.append(replace(done, reward=paid))
        return self._columns(finished)

    def _check(self, trainer) -> None:
        if trainer.args.temperature != self.sampling.temperature:
            raise MleRlError(
                f"Completions are sampled at temperature {self.sampling.temperature} and the loss "
                f"is computed at {trainer.args.temperature}: the ratio of an unchanged policy "
                "would not be 1. Give both the same temperature."
            )

    # ---- saving ----------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """What a resumed run needs beside the ledger and the trainer's checkpoint; plain JSON."""
        return {
            "version": self.version,
            "generator": base64.b64encode(bytes(self.generator.get_state().tolist())).decode(),
            "prompts": {name: a.state_dict() for name, a in self.assignments.items()},
            "driver": self.driver.state_dict(),
        }

    def load_state_dict(self, state: Mapping) -> None:
        """Go on where `state_dict` was taken; programs that had not ended are started again.

        Raises:
            MleRlError: The state is of another configuration or of another ledger.
        """
        self.version = state["version"]
        stored = base64.b64decode(state["generator"])
        self.generator.set_state(torch.tensor(list(stored), dtype=torch.uint8))
        for name, assignment in self.assignments.items():
            assignment.load_state_dict(state["prompts"][name])
        self.driver.resume(state["driver"])


def rollout_reward(reward: Sequence[float], **_: Any) -> list[float]:
    """TRL's reward function: the rewards that came with the rollouts."""
    return list(reward)
