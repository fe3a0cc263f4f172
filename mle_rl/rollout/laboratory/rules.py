"""The collection rules by name: what each is in the queue's terms, and who uses it.

Nine questions of who gets into the batch, as settings of the one queue. Two of them are not about
the queue's batches: ``snapshot`` reads what is in flight instead of what is taken, and a policy
that moves while rollouts are in flight is a property of every asynchronous rule here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mle_rl.errors import unknown_name
from mle_rl.rollout.queue import QueueConfig


@dataclass(frozen=True)
class Rule:
    """A collection rule.

    Attributes:
        title: In words, for a table or a legend.
        share: Share of action ``a`` among the rollouts that are trained on, up to a constant.
        unbiased: Whether that is the policy's own share, for every law of durations.
        right_weight: What the loss must multiply by; "none needed", or "none exists".
        config: Makes the queue's configuration from workers and batch size.
        observed: Whose durations the rule shows: those of batches, or those in flight.
    """

    title: str
    share: str
    unbiased: bool
    right_weight: str
    config: Callable[[int, int], QueueConfig]
    observed: Literal["trained", "in flight"] = "trained"


def _with(**settings) -> Callable[[int, int], QueueConfig]:
    return lambda workers, batch_size: QueueConfig(
        workers=workers, batch_size=batch_size, **settings
    )


def _started_at_once(**settings) -> Callable[[int, int], QueueConfig]:
    """Rounds in which every rollout has a worker: the first to finish are the shortest."""

    def config(workers: int, batch_size: int) -> QueueConfig:
        needed = math.ceil(settings["over_provision"] * batch_size)
        return _with(**settings)(max(workers, needed), batch_size)

    return config


_KEEP = {"staleness": "keep", "ordering": "completion"}

RULES: dict[str, Rule] = {
    "synchronous": Rule(
        "synchronous: wait for all",
        "pi(a)",
        True,
        "none needed",
        _with(staleness="admit", max_staleness=0, ordering="completion"),
    ),
    "renewal": Rule(
        "asynchronous, keep all",
        "pi(a)",
        True,
        "none needed",
        _with(**_KEEP),
    ),
    "snapshot": Rule(
        "snapshot of what runs",
        "pi(a) D(a)",
        False,
        "1 / D",
        _with(**_KEEP),
        observed="in flight",
    ),
    "window": Rule(
        "restart window, 12 s",
        "pi(a) U(T - D(a)), 0 if D > T",
        False,
        "1 / U(T - D); none exists for D > T",
        _with(**_KEEP, restart_window_s=12.0),
    ),
    "over_provision": Rule(
        "over-provision 1.5x, abort",
        "pi(a) P(D <= B-th shortest)",
        False,
        "none exists; recycle",
        _started_at_once(**_KEEP, over_provision=1.5),
    ),
    "recycle": Rule(
        "over-provision 1.5x, recycle",
        "pi(a)",
        True,
        "none needed",
        _started_at_once(**_KEEP, over_provision=1.5, unfinished="recycle"),
    ),
    "drop_stale": Rule(
        "drop stale, 4 updates",
        "pi(a) clip(eta + 1 - D / tau, 0, 1)",
        False,
        "its inverse, while above 0",
        _with(staleness="drop", max_staleness=4, ordering="completion"),
    ),
    "admission_first": Rule(
        "admission, first finished",
        "pi(a)",
        True,
        "none needed",
        _with(staleness="admit", max_staleness=4, ordering="completion"),
    ),
    "admission": Rule(
        "admission, oldest first",
        "pi(a)",
        True,
        "none needed",
        _with(staleness="admit", max_staleness=4, ordering="dispatch"),
    ),
    "admission_in_order": Rule(
        "admission, strict order",
        "pi(a)",
        True,
        "none needed",
        _with(staleness="admit", max_staleness=4, ordering="window", order_window=1),
    ),
    "admission_window": Rule(
        "admission, windowed order",
        "pi(a)",
        True,
        "none needed",
        _with(staleness="admit", max_staleness=4, ordering="window", order_window=128),
    ),
    "sticky": Rule(
        "sticky, 20 s (the paper)",
        "pi(a) / D(a)",
        False,
        "D",
        _with(**_KEEP, worker_rule="sticky", sticky_window_s=20.0),
    ),
    "per_task": Rule(
        "one worker per task",
        "pi(a | task) / E[D | task]",
        False,
        "E[D | task]",
        _with(**_KEEP, worker_rule="per_task"),
    ),
    "timeouts_scored": Rule(
        "time-outs scored",
        "pi(a)",
        True,
        "none needed",
        _with(**_KEEP, timeouts="score"),
    ),
    "timeouts_masked": Rule(
        "time-outs masked",
        "pi(a) P(D <= limit | a)",
        False,
        "none exists for D > limit",
        _with(**_KEEP, timeouts="mask"),
    ),
}
"""By name. All are the same queue; only settings differ."""


def rule(name: str) -> Rule:
    """The rule of that name.

    Raises:
        MleRlError: There is none; the message lists those there are.
    """
    if name not in RULES:
        raise unknown_name("collection rule", name, RULES)
    return RULES[name]


@dataclass(frozen=True)
class Engine:
    """What a published system does, in the queue's terms.

    Attributes:
        name: The system.
        does: Its rule in its own settings.
        rule: Name of the nearest rule in :data:`RULES`.
        source: Where that is said.
    """

    name: str
    does: str
    rule: str
    source: str


ENGINES = (
    Engine(
        "TRL GRPOTrainer",
        "each step waits for all its completions",
        "synchronous",
        "TRL 1.16, trl/trainer/grpo_trainer.py",
    ),
    Engine(
        "TRL AsyncGRPOTrainer",
        "takes what finished first; max_staleness = 4, older is dropped",
        "drop_stale",
        "TRL 1.16, trl/experimental/async_grpo",
    ),
    Engine(
        "AReaL",
        "starts a rollout only if it can still be used: max_head_offpolicyness = 4",
        "admission",
        "arXiv 2505.24298, section 5.1",
    ),
    Engine(
        "SkyRL",
        "the same inequality, max_staleness_steps; trains on what finished first",
        "admission_first",
        "documentation of fully async training, 2026",
    ),
    Engine(
        "verl",
        "at most (1 + staleness_threshold) batches begun per update, left-overs counted; the "
        "unfinished go on",
        "admission_first",
        "documentation of the fully async policy trainer, May 2026",
    ),
    Engine(
        "Tinker cookbook",
        "at most groups_per_step (sampling_steps_ahead + 1) begun and untrained; oldest first",
        "admission",
        "documentation of AsyncConfig, 2026",
    ),
    Engine(
        "NeMo RL",
        "each rollout is meant for one later step, which waits for it: max_trajectory_age_steps",
        "admission_in_order",
        "documentation of async GRPO 0.7, replay_buffer",
    ),
    Engine(
        "MiniMax Forge",
        "windowed first-in-first-out: greedy inside a window, never beyond it",
        "admission_window",
        "MiniMax, Forge: Scalable Agent RL Framework, Feb 2026",
    ),
    Engine(
        "APRIL",
        "starts more than it needs, keeps the first, the rest goes on next time",
        "recycle",
        "arXiv 2509.18521",
    ),
    Engine(
        "Agent Lightning",
        "keeps async_train_batch_size > train_batch_size groups active; unfinished ones carry over",
        "recycle",
        "documentation of asynchronous training 1.0",
    ),
)
"""Published systems as of 2026, as their papers and documentation describe them."""
