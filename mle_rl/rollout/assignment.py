"""One task as a training run has it: environment, prompts, and how outcomes are paid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mle_rl.agent import Prompt, PromptSource
from mle_rl.records import Rollout
from mle_rl.rewards import RewardWeights, reward
from mle_rl.rollout.environment import Environment


@dataclass(frozen=True)
class Assignment:
    """One task of a training run: where its programs run and where its prompts come from.

    Attributes:
        anchors: Scores of a baseline and of the best known solution, for the scale ``anchored``.
        percentile: Score to share of the leaderboard beaten, for the scale ``percentile``.
    """

    environment: Environment
    prompts: PromptSource
    anchors: tuple[float, float] | None = None
    percentile: Callable[[float], float] | None = None

    def reward(self, rollout: Rollout, weights: RewardWeights) -> float:
        """The reward of a finished rollout under these weights."""
        return reward(
            rollout.outcome,
            weights,
            higher_is_better=self.environment.task.higher_is_better,
            anchors=self.anchors,
            percentile=self.percentile,
            duration_s=rollout.execution.duration_s,
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
