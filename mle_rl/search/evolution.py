"""Evolution over the reference grammar: the long search that says what a task has to give.

It never writes a slip, revises what scored well and combines the decisions of two good programs, so
it goes far beyond the best of many independent draws. It is no rival of a language model: it holds
the whole space of programs in its hands, and only searches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mle_rl.agent import grammar
from mle_rl.agent.grammar import TaskShape
from mle_rl.agent.grammar.decisions import Sketch
from mle_rl.search.loop import Proposals


@dataclass(frozen=True)
class EvolutionSettings:
    """How a population grows: (mu + 1) selection, whose best programs never die out."""

    drafts: int = 20
    """Programs that are drawn independently, before the first child."""

    parents: int = 10
    """The best valid programs so far (mu), each of them equally likely to be revised."""

    crossover: float = 0.3
    """Probability that first the decisions of two parents are mixed: uniform crossover."""


def evolution(
    shape: TaskShape,
    rng: np.random.Generator,
    *,
    higher_is_better: bool,
    settings: EvolutionSettings = EvolutionSettings(),
) -> Proposals:
    """Draw, then revise and combine the best on the reward split, without end.

    A program that was proposed before is proposed again only if twenty revisions bring nothing new.

    Args:
        shape: Of the task.
        rng: Draws everything.
        higher_is_better: Direction of the score on the reward split.
        settings: How the population grows.
    """
    sketches: list[Sketch] = []
    written: set[str] = set()
    scores: dict[int, float] = {}  # by number of the proposal, valid programs only
    while True:
        ranked = sorted(scores, key=scores.__getitem__, reverse=higher_is_better)
        parents = [sketches[number] for number in ranked[: settings.parents]]
        drafting = len(sketches) < settings.drafts or not parents
        for _ in range(20):
            sketch = (
                grammar.sound(grammar.sketch(shape, rng))
                if drafting
                else _child(parents, shape, rng, settings.crossover)
            )
            program = grammar.write(sketch, shape)
            if program.code not in written:
                break
        written.add(program.code)
        sketches.append(sketch)
        for trial in (yield program):
            if trial.outcome.valid:
                scores[trial.number] = trial.outcome.reward_score


def _child(
    parents: list[Sketch], shape: TaskShape, rng: np.random.Generator, crossover: float
) -> Sketch:
    one = parents[rng.integers(len(parents))]
    if rng.random() < crossover:
        other = parents[rng.integers(len(parents))]
        one = {name: one[name] if rng.random() < 0.5 else other[name] for name in one}
    return grammar.sound(grammar.revise(one, shape, rng))
