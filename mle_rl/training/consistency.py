"""Settings under which the loss would not see the policy that sampled.

The importance ratio of a policy that has not changed must be 1. It is not when completions are
drawn from another distribution than the loss computes, and nothing would say so later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from mle_rl.training.trainer import DurationAwareGRPOTrainer


def contradictions(trainer: DurationAwareGRPOTrainer) -> Iterator[str]:
    """One sentence for each setting under which ratio or baseline would be wrong."""
    args = trainer.args
    if trainer.length_buckets < 1:
        yield f"length_buckets is {trainer.length_buckets}; give 1 or more."
    if args.multi_objective_aggregation != "sum_then_normalize":
        yield (
            "Baselines by group label need one reward per sample: set "
            "multi_objective_aggregation='sum_then_normalize'."
        )
    if trainer.rollout_func is None or not trainer.behaviour_ratio:
        return
    if args.top_p < 1 or args.top_k or args.min_p or args.repetition_penalty != 1:
        yield (
            "top_p, top_k, min_p and repetition_penalty bend the distribution that completions are "
            "sampled from, so the ratio of an unchanged policy is not 1: set top_p=1.0, top_k=0, "
            "min_p=None, repetition_penalty=1.0; temperature is free."
        )
    if args.generation_kwargs:
        yield (
            "generation_kwargs can change the sampling distribution without the loss knowing: "
            "leave it out and set temperature and max_completion_length instead."
        )
    if args.use_vllm and args.vllm_importance_sampling_correction:
        yield (
            "The ratio would be corrected twice: set vllm_importance_sampling_correction=False, or "
            "behaviour_ratio=False."
        )
    if not args.disable_dropout and _has_dropout(trainer.model):
        yield (
            "The model has dropout, off while sampling and on in the loss, so the ratio of an "
            "unchanged policy is not 1: set disable_dropout=True, and attention_dropout=0 in its "
            "config."
        )


def _has_dropout(model: nn.Module) -> bool:
    layers = any(isinstance(m, nn.Dropout) and m.p > 0 for m in model.modules())
    return layers or bool(getattr(model.config, "attention_dropout", 0.0))
