"""One task as a training run has it: environment, prompts, and how outcomes are paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from mle_rl import tasks
from mle_rl.agent import Prompt, PromptSource
from mle_rl.records import Rollout
from mle_rl.rewards import RewardWeights, reward
from mle_rl.rollout.environment import Environment
from mle_rl.tasks import Task


@dataclass(frozen=True)
class Assignment:
    """One task of a training run: where its programs run and where its prompts come from."""

    environment: Environment
    prompts: PromptSource

    def reward(self, rollout: Rollout, weights: RewardWeights) -> float:
        """The reward of a finished rollout under these weights.

        Raises:
            MleRlError: Scores are to be compared with those of a leaderboard, and there is none.
        """
        task = self.environment.task
        return reward(
            rollout.outcome,
            weights,
            higher_is_better=task.higher_is_better,
            duration_s=rollout.execution.duration_s,
            **_compared(task, weights.score_scale),
        )

    def scratch(self) -> Prompt:
        """The prompt that shows no earlier solution; takes no random number."""
        ids = self.prompts.encode("scratch", None)
        return Prompt("scratch", ids, f"{self.prompts.task_id}/scratch")

    def remember(self, rollout: Rollout) -> None:
        """Let later prompts show the program of a rollout that was trained on."""
        if rollout.program is not None:
            self.prompts.archive.add(rollout.program, rollout.execution, rollout.outcome)

    def state_dict(self) -> dict:
        """The archive and the randomness of the prompts, as plain JSON."""
        return {
            "archive": self.prompts.archive.state_dict(),
            "rng": self.prompts.rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping) -> None:
        """Restore what `state_dict` returned."""
        self.prompts.archive.load_state_dict(state["archive"])
        self.prompts.rng.bit_generator.state = state["rng"]


@cache
def _compared(task: Task, scale: str) -> Mapping:
    """What a scale compares scores with; looked up when it is first used, for it may be changed
    while a run trains."""
    if scale == "anchored":
        return {"anchors": tasks.anchors(task)}
    if scale == "percentile":
        return {"percentile": tasks.leaderboard(task).percentile}
    return {}
