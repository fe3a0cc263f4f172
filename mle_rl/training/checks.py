"""Settings of a run that cannot be meant, found when they are made, not after the first batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, get_args, get_type_hints

from mle_rl.errors import unknown_name
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.queue import QueueConfig
from mle_rl.sandbox.pool import TIERS
from mle_rl.training.weighting import DurationWeighting

if TYPE_CHECKING:
    from mle_rl.training.config import TrainConfig

LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo")
"""TRL's losses with a ratio that is clipped on both sides, token by token. The others mean another
thing by ``clip`` or leave it out; the trainer alone, without `train`, takes them."""

_WHOLE = {
    "steps": 1,
    "batch_size": 2,
    "epochs": 1,
    "micro_batches": 1,
    "length_buckets": 1,
    "max_staleness": 0,
    "workers": 1,
    "learner_threads": 1,
    "checkpoint_every": 1,
    "warmup_steps": 0,
}
"""Settings that are whole numbers, and the least that each may be."""


def problems(c: TrainConfig) -> Iterator[str]:
    """One sentence for each setting that cannot be meant."""
    # In turn, because the later ones may rely on what the earlier ones have found in order.
    return chain(
        _wrong_numbers(c), _unknown_names(c), _wrong_tasks(c), _contradictions(c), _wrong_queue(c)
    )


def charged_twice(rewards: RewardWeights, weighting: DurationWeighting) -> str | None:
    """Why time may not both cost and count, nor cost twice."""
    if rewards.time_cost_rate == 0 or (weighting.scheme == "none" and not weighting.charge_time):
        return None
    return (
        "time_cost_rate already makes time cost: set it to 0, or the weighting scheme to 'none' "
        "and charge_time to False."
    )


def _wrong_numbers(c: TrainConfig):
    for name, least in _WHOLE.items():
        if not _is_whole(getattr(c, name), least):
            yield f"{name} is {getattr(c, name)!r}; give a whole number of at least {least}."
    if c.max_completion_length is not None and not _is_whole(c.max_completion_length, 1):
        yield (
            f"max_completion_length is {c.max_completion_length!r}; give a whole number of at "
            "least 1, or None for the policy's own limit."
        )
    for name in ("learning_rate", "temperature", "clip"):
        if not (_is_finite(getattr(c, name)) and getattr(c, name) > 0):
            yield f"{name} is {getattr(c, name)!r}; give a positive number."
    for name in ("kl", "entropy", "max_grad_norm"):
        if not (_is_finite(getattr(c, name)) and getattr(c, name) >= 0):
            yield f"{name} is {getattr(c, name)!r}; give a number of at least 0."
    if not (_is_finite(c.improve_share) and 0 <= c.improve_share <= 1):
        yield f"improve_share is {c.improve_share!r}; give a share between 0 and 1."
    if c.ratio == "truncate" and not (isinstance(c.ratio_cap, Real) and c.ratio_cap >= 1):
        yield f"ratio_cap is {c.ratio_cap!r}; a cap below 1 would cut an unchanged policy."


def _unknown_names(c: TrainConfig):
    hints = get_type_hints(type(c))
    known = {name: get_args(hints[name]) for name in ("ratio", "scale_rewards")}
    known |= {"loss_type": LOSS_TYPES, "tier": TIERS}
    for name, choices in known.items():
        if getattr(c, name) not in choices:
            what = "sandbox tier" if name == "tier" else name
            yield str(unknown_name(what, str(getattr(c, name)), choices))


def _wrong_tasks(c: TrainConfig):
    if not c.tasks or isinstance(c.tasks, str):
        yield f"tasks is {c.tasks!r}; give a tuple of one task id or more."
    for number, name in enumerate(c.tasks):
        if name in c.tasks[:number]:
            yield f"tasks is {c.tasks!r}, and {name!r} is there twice: name every task once."


def _contradictions(c: TrainConfig):
    """One sentence for each pair of settings that cannot both be meant."""
    if c.batch_size % c.micro_batches:
        yield f"batch_size {c.batch_size} is not a multiple of micro_batches {c.micro_batches}."
    for name in ("loss_type", "clip"):
        if c.ratio == "truncate" and getattr(c, name) != getattr(type(c), name):
            yield (
                f"{name} has no effect with ratio='truncate', whose loss is TRL's cispo up to "
                "ratio_cap: leave it out, or choose ratio='clip'."
            )
    if c.replay and c.executions is None:
        yield "replay needs executions, the file in which executions are recorded."
    if problem := charged_twice(c.rewards, c.weighting):
        yield problem
    if c.weighting.scheme == "inclusion" and c.queue_config.staleness != "drop":
        yield (
            "The weighting scheme 'inclusion' undoes the selection of a queue that drops what is "
            "stale, and this queue does not: give a queue with staleness='drop', or another scheme."
        )


def _wrong_queue(c: TrainConfig):
    if c.queue is None:
        return
    queue: QueueConfig = c.queue
    if queue.batch_size != c.batch_size or queue.workers != c.workers:
        yield (
            f"The queue has {queue.workers} workers and batches of {queue.batch_size}, the run "
            f"{c.workers} and {c.batch_size}: give both the same."
        )
    if queue.restart_window_s is not None:
        yield "A restart window gives batches of any size, TRL needs one size: simulate that rule."


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
