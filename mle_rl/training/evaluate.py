"""Evaluate a policy on fresh samples, honestly: select on the reward split, report the final split.

`evaluate` samples programs from scratch, or such that improve earlier ones; `self_improve` does
both, one after the other, and keeps the better, as the paper does at test time (section 3).

Nothing here knows of a training run: no queue, ledger, archive or statistics of one is touched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from mle_rl.agent import Archive, Policy, Solution
from mle_rl.errors import MleRlError
from mle_rl.records import PromptKind
from mle_rl.rollout.environment import Environment, settled
from mle_rl.rollout.sampling import sample
from mle_rl.training.assembly import sampling_settings
from mle_rl.training.evaluation import Evaluation, Sample

ROWS = 64
"""Completions sampled at once."""


@dataclass(frozen=True)
class SelfImprovement:
    """Samples from scratch, and samples that improve the valid ones among them.

    Attributes:
        scratch: The samples from scratch.
        improved: As many again, each shown one of the valid ones; None if there was none to show.
    """

    scratch: Evaluation
    improved: Evaluation | None

    @property
    def kept(self) -> Sample | None:
        """The better of the two best samples on the reward split; the one from scratch in a tie.

        None if nothing is valid.
        """
        return self.together.best

    @property
    def together(self) -> Evaluation:
        """All samples as one evaluation, those from scratch first."""
        if self.improved is None:
            return self.scratch
        return replace(self.scratch, samples=self.scratch.samples + self.improved.samples)


def evaluate(
    policy: Policy,
    environment: Environment,
    n: int = 128,
    *,
    earlier: Archive | None = None,
    temperature: float = 1.0,
    seed: int = 0,
) -> Evaluation:
    """Sample ``n`` programs, run them and grade them.

    Args:
        policy: Who writes.
        environment: Task and sandbox.
        n: Number of samples.
        earlier: Solutions to improve, one drawn for each sample; None solves from scratch.
        temperature: Of sampling.
        seed: Of tokens and of the solutions drawn.

    Raises:
        MleRlError: ``n`` is not positive, there is no solution to improve, or a sandbox was killed
            again and again.
    """
    if n < 1:
        raise MleRlError(f"An evaluation needs at least one sample, not {n}.")
    shown = _drawn(n, earlier, seed)
    kind: PromptKind = "scratch" if earlier is None else "improve"
    prompts = [policy.prompt_ids(environment.task, kind, solution) for solution in shown]
    settings = sampling_settings(policy, temperature)
    generator = torch.Generator().manual_seed(seed)
    running = []
    for start in range(0, n, ROWS):  # programs of the first rows run while the next are sampled
        rows = sample(policy.model, prompts[start : start + ROWS], settings, generator)
        programs = [policy.parse(row.ids) for row in rows]
        running += [(program, environment.submit(program)) for program in programs]
    samples = tuple(
        Sample(kind, program, *settled(environment, program, future), solution)
        for (program, future), solution in zip(running, shown, strict=True)
    )
    task = environment.task
    return Evaluation(task.id, task.higher_is_better, samples)


def self_improve(
    policy: Policy,
    environment: Environment,
    n: int = 128,
    *,
    temperature: float = 1.0,
    seed: int = 0,
) -> SelfImprovement:
    """Solve from scratch ``n`` times, then improve the valid solutions ``n`` times.

    The test-time protocol of the paper's section 3. It runs 2 n programs: compare it with 2 n
    samples from scratch, not with n.

    Args:
        policy: Who writes.
        environment: Task and sandbox.
        n: Samples of each kind; each of the second kind is shown one of the distinct valid
            solutions, drawn at random.
        temperature: Of sampling.
        seed: Of everything.

    Raises:
        MleRlError: ``n`` is not positive.
    """
    settings = {"temperature": temperature}
    scratch = evaluate(policy, environment, n, seed=seed, **settings)
    archive = Archive(capacity=n)
    for found in scratch.valid:
        archive.add(found.program, found.execution, found.outcome)
    if not archive.solutions:
        return SelfImprovement(scratch, None)
    other = int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])
    return SelfImprovement(
        scratch, evaluate(policy, environment, n, earlier=archive, seed=other, **settings)
    )


def _drawn(n: int, earlier: Archive | None, seed: int) -> list[Solution | None]:
    """What each of n prompts shows."""
    if earlier is None:
        return [None] * n
    if not earlier.solutions:
        raise MleRlError("There is no earlier solution to improve: the archive is empty.")
    rng = np.random.default_rng(seed)
    return [earlier.draw(rng) for _ in range(n)]
