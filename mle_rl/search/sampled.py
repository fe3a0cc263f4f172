"""A language model as the writer of programs: best of n, and one completion at a time."""

from __future__ import annotations

from collections.abc import Callable

import torch

from mle_rl.agent import Policy, Solution
from mle_rl.records import Program
from mle_rl.rollout.sampling import sample
from mle_rl.search.loop import Proposals
from mle_rl.tasks import Task
from mle_rl.training.assembly import sampling_settings


def best_of_n(policy: Policy, task: Task, seed: int, rows: int) -> Proposals:
    """Completions of the scratch prompt at temperature 1, without end, whatever they score.

    Args:
        policy: Is never trained.
        task: The competition.
        seed: Of the tokens.
        rows: Completions sampled at once.
    """
    settings = sampling_settings(policy)
    generator = torch.Generator().manual_seed(seed)
    prompts = [policy.prompt_ids(task, "scratch")] * rows
    while True:
        for completion in sample(policy.model, prompts, settings, generator):
            yield policy.parse(completion.ids)


def writer(policy: Policy, task: Task, seed: int) -> Callable[[Solution | None], Program | None]:
    """A function that samples one program: from scratch, or shown an earlier solution."""
    settings = sampling_settings(policy)
    generator = torch.Generator().manual_seed(seed)

    def write(earlier: Solution | None) -> Program | None:
        prompt = policy.prompt_ids(task, "scratch" if earlier is None else "improve", earlier)
        (completion,) = sample(policy.model, [prompt], settings, generator)
        return policy.parse(completion.ids)

    return write
