"""Methods without a language model: random search over the grammar, and an untuned default.

Both write through the reference grammar (`mle_rl.agent.grammar`), the space of programs from which
the ``tiny`` policy learnt to write.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mle_rl.agent import grammar
from mle_rl.agent.grammar import TaskShape
from mle_rl.records import Program
from mle_rl.search.loop import Proposals, Trial


def random_search(shape: TaskShape, rng: np.random.Generator) -> Proposals:
    """Independent draws from the grammar, without end, whatever they score.

    Slips are left out: they are the mistakes that a language model makes, and a search over the
    grammar makes none. So this baseline knows the space of programs that the policy had to learn,
    and never pays for sampling.
    """
    while True:
        yield grammar.write(grammar.sound(grammar.sketch(shape, rng)), shape)


def default_program(shape: TaskShape) -> Program:
    """What one writes without a thought: every decision plain, every keyword scikit-learn's own.

    TF-IDF of words with logistic regression (ridge for a number) for texts; a random forest on the
    columns of a table or the pixels of images. Chosen by kind of task, never by a score.
    """
    plain = {decision.name: decision.plain for decision in grammar.decisions(shape)}
    if shape.kind != "text":
        plain["m1.family"] = "forest"
    return grammar.write(grammar.sound(plain), shape)


def once(program: Program) -> Proposals:
    """One program, and nothing after it."""
    _: Sequence[Trial] | None = yield program
