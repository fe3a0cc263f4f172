"""TRL's GRPOTrainer with duration weights, baselines by identity and the true behaviour policy.

Paper, section 1: the gradient of each sample is multiplied by the time its program ran, divided by
the mean of the batch. Every loss of TRL is linear in the advantage for a positive factor (min and
clip commute with it), so the weights multiply the advantages on their way into TRL's own loss and
nothing of TRL is copied. With all weights 1 the parameters are TRL's, bit for bit.

Departures from TRL's GRPOTrainer, each inside one wrapped method:

1. Groups that share a baseline are told by the label ``group`` of each row, not by position: an
   asynchronous queue returns rollouts in another order and with prompts of several kinds. A group
   may have any size; a group of one has no baseline, and so advantage 0.
2. The baseline is the mean reward weighted by the duration weights. With any other constant, adding
   a number to all rewards would move the gradient towards slower or faster programs.
3. The ratio is taken against the policy that sampled: log-probabilities recorded with the rollout
   become ``old_per_token_logps``. TRL would take the ratio as 1, or against today's weights.
   (A truncated instead of a clipped ratio is TRL's ``loss_type="cispo"`` with ``epsilon_high`` as
   the largest ratio.)
4. Optionally, the forward pass runs over a few buckets of similar length without their padding.

Rows are the dictionaries of the data set, updated with what the rollout function returned beside
token ids. Read here: ``duration_s``, ``group``, ``task`` and ``inclusion``; see
:class:`DurationWeighting` for which are needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import torch
from accelerate.utils import gather_object
from torch import Tensor
from trl import GRPOTrainer

from mle_rl.errors import MleRlError
from mle_rl.losses import checked_durations, duration_weights, effective_sample_size
from mle_rl.losses.advantages import RewardRate, reward_rate_advantages
from mle_rl.training.baselines import grouped_advantages, labels_of
from mle_rl.training.consistency import contradictions
from mle_rl.training.weighting import DurationWeighting


class DurationAwareGRPOTrainer(GRPOTrainer):
    """GRPO on rollouts of unequal duration and age.

    Args:
        weighting: Which duration weights.
        behaviour_ratio: Take the importance ratio against the policy that sampled (3 above). False
            leaves it to TRL, and an asynchronous learner may collapse: for experiments.
        length_buckets: Forward passes per batch, over rows of similar length (4 above). 1 is TRL's
            own single pass.
        **kwargs: Those of ``trl.GRPOTrainer``; ``peft_config`` works as there.

    Raises:
        MleRlError: Settings under which recorded log-probabilities are not those that the loss
            computes, or rewards that cannot be regrouped.
    """

    def __init__(
        self,
        *args,
        weighting: DurationWeighting | None = None,
        behaviour_ratio: bool = True,
        length_buckets: int = 1,
        **kwargs,
    ):
        super().__init__(*args, **kwargs)
        self.weighting = weighting or DurationWeighting()
        self.reward_rate = RewardRate()
        self._warned_of_rate = False
        self.behaviour_ratio = behaviour_ratio
        self.length_buckets = length_buckets
        for problem in contradictions(self):
            raise MleRlError(problem)

    # ---- rows to weighted advantages -------------------------------------------------------------

    def _calculate_rewards(self, *args, **kwargs):
        # Gathered over processes; TRL keeps only the advantages that it makes of them.
        self._rewards_per_function = super()._calculate_rewards(*args, **kwargs)
        return self._rewards_per_function

    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        if not self.model.training:
            return output
        if self.behaviour_ratio and "sampling_per_token_logps" in output:
            output["old_per_token_logps"] = output["sampling_per_token_logps"]
        elif self.behaviour_ratio and self.rollout_func is not None:
            raise MleRlError(
                "The rollout function gave no logprobs, so there is no policy that sampled to take "
                "the ratio against: return the log-probability of every token when it was sampled, "
                "or set behaviour_ratio=False."
            )
        rewards = self._rewards()
        if self.weighting.charge_time:
            rewards = self._charged(rewards, inputs)
        weights = self._weights(inputs, rewards)
        advantages = grouped_advantages(rewards, weights, self._groups(inputs), self.scale_rewards)
        start = self.accelerator.process_index * len(inputs)
        output["advantages"] = advantages[start : start + len(inputs)]
        output["duration_weights"] = weights[start : start + len(inputs)]
        self._metrics["train"]["weights/max"].append(weights.max().item())
        self._metrics["train"]["weights/ess_share"].append(
            effective_sample_size(weights) / len(weights)
        )
        return output

    def _rewards(self) -> Tensor:
        """Weighted sum of the reward functions, (gathered batch,); NaN where none gave a reward."""
        rewards = self._rewards_per_function
        total = (rewards * self.reward_weights.to(rewards.device)).nansum(dim=1)
        return total.masked_fill(rewards.isnan().all(dim=1), torch.nan)

    def _charged(self, rewards: Tensor, inputs: Sequence[Mapping]) -> Tensor:
        """Rewards less what their time was worth, by the rate up to and including this batch."""
        durations = self._durations(inputs).to(rewards)
        scored = ~rewards.isnan()
        rho = self.reward_rate.update(rewards[scored], durations[scored])
        if rho < 0 and not self._warned_of_rate:
            self._warned_of_rate = True
            warnings.warn(
                f"Time is charged at {rho:.3g} per second, and what is negative is paid: slow "
                "failures pay until the mean reward is positive. Set failure to 0 and use a scale "
                "without negative scores ('percentile'), or leave out charge_time.",
                stacklevel=2,
            )
        self._metrics["train"]["reward_rate"].append(rho)
        return reward_rate_advantages(rewards, durations, rho)

    def _durations(self, inputs: Sequence[Mapping]) -> Tensor:
        """Execution times of the gathered batch in seconds, at least ``floor_s``."""
        durations = torch.tensor(self._column(inputs, "duration_s"), dtype=torch.float32)
        return checked_durations(durations, self.weighting.floor_s)

    def _weights(self, inputs: Sequence[Mapping], rewards: Tensor) -> Tensor:
        """Duration weights, (gathered batch,): mean 1 over the rows that have a reward, else 0."""
        scored = ~rewards.isnan()
        weights = scored.to(rewards.dtype)
        if self.weighting.scheme == "none" or not scored.any():
            return weights
        options = {}
        if self.weighting.scheme == "task_mean":
            options["groups"] = labels_of(self._column(inputs, "task"))[scored.cpu()]
        if self.weighting.scheme == "inclusion":
            options["inclusion"] = torch.tensor(self._column(inputs, "inclusion"))[scored.cpu()]
        weights[scored] = duration_weights(
            self._durations(inputs)[scored.cpu()],
            self.weighting.scheme,
            inclusion_floor=self.weighting.inclusion_floor,
            **options,
        ).to(weights)
        return weights

    def _groups(self, inputs: Sequence[Mapping]) -> list:
        """Baseline label of each gathered row; TRL's positions where rows have none."""
        if "group" in inputs[0]:
            return self._column(inputs, "group")
        rows = len(inputs) * self.accelerator.num_processes
        return [row // self.num_generations for row in range(rows)]

    def _column(self, inputs: Sequence[Mapping], name: str) -> list:
        """One value of every row, over the gathered batch."""
        if not all(name in row for row in inputs):
            raise MleRlError(
                f"These settings of weighting need {name!r} in every row: return it from the "
                "rollout function, or add it as a column of the data set."
            )
        return gather_object([row[name] for row in inputs])

    # ---- into TRL's loss -------------------------------------------------------------------------

    def _compute_loss(self, model, inputs):
        if "duration_weights" in inputs:
            weights, advantages = inputs["duration_weights"], inputs["advantages"]
            weights = weights if advantages.dim() == 1 else weights[:, None]
            inputs = {**inputs, "advantages": advantages * weights}
        return super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(
        self,
        model,
        input_ids,
        attention_mask,
        logits_to_keep,
        batch_size=None,
        compute_entropy=False,
        compute_aux_loss=False,
        **media,
    ):
        score = super()._get_per_token_logps_and_entropies
        plain = all(value is None for value in media.values()) and not compute_aux_loss
        if self.length_buckets == 1 or not plain:
            return score(
                model,
                input_ids,
                attention_mask,
                logits_to_keep,
                batch_size=batch_size,
                compute_entropy=compute_entropy,
                compute_aux_loss=compute_aux_loss,
                **media,
            )
        order = attention_mask.sum(dim=1).argsort(stable=True)
        logps, entropies = [], []
        for rows in order.chunk(self.length_buckets):
            ids, mask, kept, read = _unpadded(input_ids[rows], attention_mask[rows], logits_to_keep)
            scores = score(model, ids, mask, kept, batch_size, compute_entropy=compute_entropy)
            logps.append(scores[0].gather(1, read))
            if compute_entropy:
                entropies.append(scores[1].gather(1, read))
        restored = order.argsort()
        return (
            torch.cat(logps)[restored],
            torch.cat(entropies)[restored] if compute_entropy else None,
            None,
        )


def _unpadded(
    input_ids: Tensor,  # (rows, width), prompt padded left, completion right
    attention_mask: Tensor,  # (rows, width)
    logits_to_keep: int,  # width of the completions
) -> tuple[Tensor, Tensor, int, Tensor]:
    """The same rows moved left and cut to the longest of them.

    Rotary and relative positions do not change when a row moves; a model with absolute positions
    sees the positions that it sees without padding.

    Returns:
        Ids and mask (rows, new width), completion positions to keep there, and for each completion
        token of the old layout its place among those kept (rows, logits_to_keep).
    """
    width = input_ids.shape[1]
    padding = attention_mask.argmax(dim=1, keepdim=True)
    prompts = width - logits_to_keep - padding
    longest = int(attention_mask.sum(dim=1).max())
    source = torch.arange(longest, device=input_ids.device) + padding
    inside = source < width
    source = source.clamp(max=width - 1)
    kept = longest - int(prompts.min())
    read = torch.arange(logits_to_keep, device=input_ids.device) + prompts - prompts.min()
    return (
        input_ids.gather(1, source),
        attention_mask.gather(1, source) * inside,
        kept,
        read.clamp(max=kept - 1),
    )
