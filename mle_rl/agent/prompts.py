"""Prompts and completions: what the policy reads, and how a program is found in what it writes.

Two styles. ``tiny`` is the compact form that notebook 90 trains a small model to read: one line
about the task, and for the improve kind an earlier program with its output. ``chat`` is for
instruction-tuned models: the task's whole description, in messages. Both ask for a plan of a
sentence or more and one Python program.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mle_rl.agent.archive import Archive, Solution
from mle_rl.agent.grammar import TaskShape
from mle_rl.errors import MleRlError
from mle_rl.instrumentation.anchors import numbered
from mle_rl.records import Program, PromptKind
from mle_rl.tasks.task import Task, read_header

SOLVE, IMPROVE, REVISED, INSTRUMENT, ANCHORS = (
    "<|solve|>",
    "<|improve|>",
    "<|revised|>",
    "<|instrument|>",
    "<|anchors|>",
)
PAD, END = "<|pad|>", "<|end|>"
SPECIAL_TOKENS = (PAD, END, SOLVE, IMPROVE, REVISED, INSTRUMENT, ANCHORS)

_PLAN = "# plan: "
_FENCE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Prompt:
    """One prompt of a task.

    Attributes:
        kind: ``scratch`` or ``improve``.
        ids: Token ids, ready for the model.
        group: Prompts with the same text here share a baseline: the same task and the same kind.
    """

    kind: PromptKind
    ids: tuple[int, ...]
    group: str


@dataclass
class PromptSource:
    """Draws the next prompt of a task: from scratch, or improve an earlier solution.

    Attributes:
        encode: Turns (kind, earlier solution or None) into token ids; a policy's `prompt_ids`,
            bound to the task.
        improve_share: Probability of the improve kind, once the archive holds a solution (paper:
            one half).
    """

    task_id: str
    encode: Callable[[PromptKind, Solution | None], tuple[int, ...]]
    archive: Archive
    improve_share: float = 0.5
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def next(self) -> Prompt:
        """The next prompt; from scratch as long as there is nothing to improve."""
        wanted = self.rng.random() < self.improve_share
        earlier = self.archive.draw(self.rng) if wanted else None
        kind: PromptKind = "scratch" if earlier is None else "improve"
        return Prompt(kind, self.encode(kind, earlier), f"{self.task_id}/{kind}")


_OUTPUTS = {
    "log_loss": "probabilities",
    "roc_auc": "probability",
    "accuracy": "label",
    "quadratic_weighted_kappa": "label",
    "rmsle": "number",
    "clipped_rmsle": "number",
    "rmse": "number",
    "pearson": "number",
}


def task_shape(task: Task) -> TaskShape:
    """What a program must know of its task, read from its metric and the headers of its public
    tables.

    Raises:
        MleRlError: The program grammar, and with it the ``tiny`` style, has no form for such a
            task.
    """
    train, test = (read_header(task.public_dir / name) for name in ("train.csv", "test.csv"))
    targets = [column for column in train if column not in test]
    inputs = [column for column in test if column != "id"]
    if (
        task.metric not in _OUTPUTS
        or len(targets) != 1
        or (task.kind == "text" and len(inputs) != 1)
    ):
        raise MleRlError(
            f"The tiny policy cannot be prompted for {task.id!r}: it needs one target column, one "
            f"text column for a text task, and one of the metrics {', '.join(_OUTPUTS)}. Use a "
            "chat model."
        )
    return TaskShape(
        kind=task.kind,
        target=targets[0],
        output=_OUTPUTS[task.metric],
        text_column=inputs[0] if task.kind == "text" else "text",
        ordinal=task.metric == "quadratic_weighted_kappa",
    )


def tiny_prompt(shape: TaskShape, earlier: Solution | None = None) -> str:
    """The prompt of the ``tiny`` style, for both kinds."""
    source = shape.text_column if shape.kind == "text" else shape.kind
    order = ", ordered" if shape.ordinal else ""
    header = f"task: {shape.kind}, {source} to {shape.target}, {shape.output}{order}\n"
    if earlier is None:
        return header + SOLVE
    score = "" if earlier.score is None else f"score: {earlier.score:.3f}\n"
    return f"{header}{IMPROVE}{tiny_completion(earlier.program)}{earlier.output}{score}{REVISED}"


def tiny_completion(program: Program) -> str:
    """What the ``tiny`` style expects as an answer."""
    return f"{_PLAN}{program.plan}\n{program.code}"


def instrument_prompt(code: str) -> str:
    """The prompt that asks the ``tiny`` policy where to print what
    (`mle_rl.instrumentation.anchors`)."""
    return f"{INSTRUMENT}{numbered(code)}{ANCHORS}"


def chat_messages(task: Task, earlier: Solution | None = None) -> list[dict[str, str]]:
    """The messages of the ``chat`` style: instructions, the task as a person reads it, an earlier
    solution."""
    rules = (
        "You are a machine-learning engineer. Write a plan of two to four sentences, then one "
        "complete Python program in a ```python fence. The data lies in ./input/ and is read-only. "
        "The program writes ./submission.csv in the form of ./input/sample_submission.csv. Print "
        "the training loss and a validation score. There is no network, and one processor core."
    )
    if earlier is None:
        request = "Solve the competition from scratch."
    else:
        score = "no valid submission" if earlier.score is None else f"{earlier.score:.5f}"
        request = (
            f"Here is an earlier solution.\n\nPlan: {earlier.program.plan}\n\n"
            f"```python\n{earlier.program.code}```\n\n"
            f"It printed:\n{earlier.output}\nScore: {score}\n\nWrite a better one."
        )
    return [
        {"role": "system", "content": rules},
        {"role": "user", "content": f"{task.description}\n\n{request}"},
    ]


def parse_completion(text: str) -> Program | None:
    """Find the plan and the program in a completion of either style.

    Returns:
        None when there is no program in it: no code fence and no ``# plan:`` line, or nothing after
        it.
    """
    fence = _FENCE.search(text)
    if fence is not None:
        return _program(text[: fence.start()].strip(), fence.group(1))
    if text.startswith(_PLAN):
        plan, _, code = text[len(_PLAN) :].partition("\n")
        return _program(plan, code)
    return None


def _program(plan: str, code: str) -> Program | None:
    code = code.strip("\n")
    return Program(plan, code + "\n") if code.strip() else None
