"""The corpus of the ``tiny`` policy: an endless stream of examples of its three skills.

- solve: a task, then a plan and a program;
- improve: a task and an earlier program with its output, then a revised plan and program;
- instrument: a program with numbered lines, then where to print which stage
  (`mle_rl.instrumentation`).

Nothing is executed for the corpus. The scores in the output of an earlier program are placeholders
drawn at random, since what is learnt here is the form; what pays is for reinforcement learning to
find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mle_rl.agent import grammar
from mle_rl.agent.archive import Solution
from mle_rl.agent.grammar import TaskShape
from mle_rl.agent.prompts import instrument_prompt, tiny_completion, tiny_prompt
from mle_rl.instrumentation import anchor_target

Skill = Literal["solve", "improve", "instrument"]
SKILL_SHARES: dict[Skill, float] = {"solve": 0.5, "improve": 0.3, "instrument": 0.2}

_TARGETS = (  # noqa: SIM905 - thirty words, one a line, would hide the page
    "target label class category kind type score rating price amount count quality grade level "
    "outcome risk demand sales income age size weight species topic author language sentiment "
    "result value rank"
).split()
_TEXTS = ("text", "comment", "review", "title", "body", "message", "abstract", "question")
_OUTPUTS = ("probabilities", "probability", "label", "number")


@dataclass(frozen=True)
class Example:
    """A prompt and the completion to learn, both without the end-of-text token."""

    skill: Skill
    prompt: str
    completion: str


def invented_shape(rng: np.random.Generator) -> TaskShape:
    """A task that the suite does not have, so that names are copied from the prompt and not
    remembered."""
    output = _OUTPUTS[rng.integers(len(_OUTPUTS))]
    return TaskShape(
        kind=("text", "image", "table")[rng.integers(3)],
        target=_TARGETS[rng.integers(len(_TARGETS))],
        output=output,
        text_column=_TEXTS[rng.integers(len(_TEXTS))],
        ordinal=output == "label" and rng.random() < 0.3,
    )


def example(
    shape: TaskShape, skill: Skill, rng: np.random.Generator, slips: float = 1.0
) -> Example:
    """One example of a skill on a shape of task; ``slips`` as in `grammar.decisions`."""
    sketch = grammar.sketch(shape, rng, slips)
    if skill == "solve":
        return Example(skill, tiny_prompt(shape), tiny_completion(grammar.write(sketch, shape)))
    if skill == "instrument":
        code = grammar.write(sketch, shape).code
        return Example(skill, instrument_prompt(code), anchor_target(code))
    # Archives hold valid programs by default: a shown program seldom has slips.
    shown = sketch if rng.random() < 0.2 else grammar.sound(sketch)
    program = grammar.write(shown, shape)
    earlier = Solution(
        program, _placeholder_output(program.code, rng), round(float(rng.normal(0.5, 0.5)), 3)
    )
    revised = grammar.write(grammar.revise(shown, shape, rng), shape)
    return Example(skill, tiny_prompt(shape, earlier), tiny_completion(revised))


def examples(
    shapes: Sequence[TaskShape],
    rng: np.random.Generator,
    invented: float = 0.2,
    slips: float = 1.0,
) -> Iterator[Example]:
    """An endless stream of examples.

    Args:
        shapes: Shapes of the suite's tasks.
        invented: Share of examples on tasks that the suite does not have.
        slips: How many times as often as usual mistakes are made.
    """
    skills, shares = list(SKILL_SHARES), list(SKILL_SHARES.values())
    while True:
        known = rng.random() >= invented
        shape = shapes[rng.integers(len(shapes))] if known else invented_shape(rng)
        yield example(shape, skills[rng.choice(len(skills), p=shares)], rng, slips)


def _placeholder_output(code: str, rng: np.random.Generator) -> str:
    """One line for each score that the program would print."""
    lines = []
    for name in ("training loss", "validation score"):
        if f'print("{name}:"' in code:
            lines.append(f"{name}: {rng.normal(0.5, 0.5):.3f}\n")
    return "".join(lines)
