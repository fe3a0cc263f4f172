"""A novice: a policy that makes most of its programs fail, for questions about failing programs.

`tiny` writes a valid program in every third or fourth attempt. Whether credit for stages helps is
asked where hardly any attempt succeeds, so the novice is `tiny` trained on, for a minute, with
programs in which every mistake is made several times as often. Its decisions stay as varied.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np

from mle_rl.agent.corpus import examples
from mle_rl.agent.grammar import TaskShape
from mle_rl.agent.policy import Policy
from mle_rl.training.next_token import PretrainConfig, batches, new_optimizer, schedule, update


def novice(
    policy: Policy,
    shapes: Sequence[TaskShape],
    *,
    slips: float = 4.0,
    steps: int = 120,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> Policy:
    """A copy of ``policy`` that makes mistakes ``slips`` times as often.

    Args:
        policy: Of the style ``tiny``; it stays as it is.
        shapes: Shapes of the tasks that it is asked about.
        slips: See `mle_rl.agent.grammar.decisions`.
        steps: Updates of about 4,096 tokens, half a second each on one core.
        learning_rate: Its peak.
        seed: Of the examples.
    """
    config = PretrainConfig(learning_rate=learning_rate, steps=steps, seed=seed)
    model = deepcopy(policy.model).train()
    rng = np.random.default_rng([seed, 3])
    stream = batches(policy.tokenizer, examples(shapes, rng, slips=slips), config, rng)
    optimizer = new_optimizer(model, config)
    for step in range(1, steps + 1):
        update(model, optimizer, next(stream), learning_rate * schedule(step, steps))
    return replace(policy, name=f"{policy.name}-novice", model=model.eval())
