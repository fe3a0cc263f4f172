"""Greedy tree search over a language model that is not trained.

The idea of AIDE (Jiang et al. 2025, arXiv 2502.13138), with its published defaults, in code of our
own: write a few drafts; then, again and again, either debug a program that failed or improve the
best program so far, each step one new leaf.

Departures. Two workers run programs, so a step is chosen before the results of the last one or two
are known. A language model judges nothing: whether a program failed, and what it scores, comes from
the sandbox and the grader (reward split). The ``tiny`` policy has no skill of its own for
debugging: it goes through the improve prompt, where ``tiny`` learnt to mend slips in programs that
it is shown. That prompt has a place for an output and a score, and none for an error, so a failed
program is shown with the end of its standard output and with the worst score of the tree, as AIDE
ranks it. Shown the error instead, fewer of its answers are valid (2 of 24 against 7 of 24 on
library-docstrings), and without a score most are not even Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mle_rl.agent import Solution
from mle_rl.agent.archive import shown_output
from mle_rl.records import Program
from mle_rl.search.loop import Proposals, Trial

Action = Literal["draft", "improve", "debug"]


@dataclass(frozen=True)
class TreeSettings:
    """How the tree grows."""

    drafts: int = 5
    """Programs written from scratch before anything else."""

    debug_probability: float = 0.5
    """How often a failed leaf is debugged instead of the best program improved, if there is one."""

    max_debug_depth: int = 3
    """Attempts at debugging in a row, each on the result of the last."""


@dataclass
class Node:
    """One program of the tree.

    Attributes:
        action: What it came from.
        parent: The program that was shown; None for a draft.
        trial: None until it has ended.
        leaf: Whether nothing was made of it yet, be it still running.
    """

    action: Action
    parent: Node | None = None
    trial: Trial | None = None
    leaf: bool = True

    @property
    def debug_depth(self) -> int:
        """Attempts at debugging in a row that led here."""
        return 0 if self.action != "debug" else 1 + self.parent.debug_depth

    @property
    def valid(self) -> bool:
        """Whether it has ended with a valid submission."""
        return self.trial is not None and self.trial.outcome.valid

    @property
    def failed(self) -> bool:
        """Whether it has ended without one, and there is a program to show."""
        return self.trial is not None and not self.valid and self.trial.program is not None


def choose(
    nodes: Sequence[Node],
    settings: TreeSettings,
    rng: np.random.Generator,
    *,
    higher_is_better: bool,
) -> tuple[Action, Node | None]:
    """The next step, and the program that it starts from.

    Args:
        nodes: The tree so far, in the order in which it grew; those still running count as drafts.
        settings: How it grows.
        rng: Draws whether to debug, and what.
        higher_is_better: Direction of the score on the reward split.
    """
    if sum(node.action == "draft" for node in nodes) < settings.drafts:
        return "draft", None
    failed = [
        node
        for node in nodes
        if node.failed and node.leaf and node.debug_depth < settings.max_debug_depth
    ]
    if rng.random() < settings.debug_probability and failed:
        return "debug", failed[rng.integers(len(failed))]
    valid = [node for node in nodes if node.valid]
    if not valid:
        return "draft", None
    best = max if higher_is_better else min
    return "improve", best(valid, key=lambda node: node.trial.outcome.reward_score)


def tree_search(
    write: Callable[[Solution | None], Program | None],
    rng: np.random.Generator,
    *,
    higher_is_better: bool,
    settings: TreeSettings = TreeSettings(),
) -> Proposals:
    """Grow a tree without end.

    Args:
        write: Writes a program: from scratch, or shown an earlier one.
        rng: See `choose`.
        higher_is_better: Direction of the score on the reward split.
        settings: How the tree grows.
    """
    nodes: list[Node] = []
    while True:
        action, parent = choose(nodes, settings, rng, higher_is_better=higher_is_better)
        earlier = None if parent is None else shown(parent, nodes, higher_is_better)
        program = write(earlier)
        if parent is not None:
            parent.leaf = False
        nodes.append(Node(action, parent))
        for trial in (yield program):
            nodes[trial.number].trial = trial


def shown(node: Node, nodes: Sequence[Node], higher_is_better: bool) -> Solution:
    """What a prompt shows of a program: its output and score; the worst of all if it failed.

    Without a valid program in the tree there is no score to show.
    """
    worst = min if higher_is_better else max
    scores = [each.trial.outcome.reward_score for each in nodes if each.valid]
    score = node.trial.outcome.reward_score if node.valid else worst(scores, default=None)
    return Solution(node.trial.program, shown_output(node.trial.execution), score)
