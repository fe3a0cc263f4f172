"""The methods of a comparison, each with what it needs before its clock starts.

All run their programs in the same sandbox, on as many workers, under the same limits, and are
judged by the same grader. Before the clock of a method starts, its policy is loaded, libraries are
imported and workers are warm; from then on everything counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mle_rl.agent import Policy, task_shape
from mle_rl.rollout.environment import Environment
from mle_rl.search import fixed
from mle_rl.search.budget import Budget
from mle_rl.search.evolution import evolution
from mle_rl.search.loop import Proposals, Trial, search
from mle_rl.search.settings import Learning, Settings
from mle_rl.tasks import Task


@dataclass(frozen=True)
class Start:
    """One search that is about to begin.

    Attributes:
        task: The competition.
        environment: Its sandbox and grader.
        policy: Loaded; None for a method without one.
        seed: Of everything that the method draws.
        settings: Of the comparison.
        learning: Of the method.
        budget: Runs already.
        work: Folder for whatever the method writes.
        on_trial: Told of every program that counts.
        on_step: Called with the history of every update, by a method that trains.
    """

    task: Task
    environment: Environment
    policy: Policy | None
    seed: int
    settings: Settings
    learning: Learning | None
    budget: Budget
    work: Path
    on_trial: Callable[[Trial], None]
    on_step: Callable[[Mapping], None]

    def run(self, proposals: Proposals, waiting: int) -> None:
        """Run what is proposed, with up to ``waiting`` programs ready when a worker gets free."""
        most = self.settings.workers + waiting
        search(proposals, self.environment.submit, self.budget, self.on_trial, most=most)


@dataclass(frozen=True)
class Method:
    """A way to find a good program.

    Attributes:
        label: For people.
        run: Searches until the budget is used up, or there is nothing more to do.
        policy: What is loaded for it.
        learning: How it learns; None for a method that does not.
        asked_for: Whether it is left out unless somebody names it.
    """

    label: str
    run: Callable[[Start], None]
    policy: str | None = None
    learning: Learning | None = None
    asked_for: bool = False


def _reinforcement_learning(start: Start) -> None:
    from mle_rl.search.reinforcement import configuration, learn

    config = configuration(start.work, start.settings, start.seed, start.learning)
    pool = start.environment.pool
    for trial in learn(config, start.policy, pool, start.budget, start.on_step):
        start.on_trial(trial)


def _best_of_n(start: Start) -> None:
    from mle_rl.search.sampled import best_of_n

    tiny = start.policy.style == "tiny"
    rows = start.settings.rows if tiny else start.settings.chat_rows
    start.run(best_of_n(start.policy, start.task, start.seed, rows), waiting=rows)


def _tree_search(start: Start) -> None:
    from mle_rl.search.sampled import writer
    from mle_rl.search.tree import tree_search

    write = writer(start.policy, start.task, start.seed)
    rng = np.random.default_rng(start.seed)
    higher = start.task.higher_is_better
    start.run(tree_search(write, rng, higher_is_better=higher), waiting=1)


def _random_search(start: Start) -> None:
    rng = np.random.default_rng(start.seed)
    start.run(fixed.random_search(task_shape(start.task), rng), waiting=1)


def _evolution(start: Start) -> None:
    rng = np.random.default_rng(start.seed)
    shape, higher = task_shape(start.task), start.task.higher_is_better
    start.run(evolution(shape, rng, higher_is_better=higher), waiting=1)


def _default(start: Start) -> None:
    start.run(fixed.once(fixed.default_program(task_shape(start.task))), waiting=0)


def _learner(label: str, learning: Learning, asked_for: bool = False) -> Method:
    return Method(label, _reinforcement_learning, "tiny", learning, asked_for)


METHODS = {
    "rl": _learner("reinforcement learning", Learning()),
    "static": Method("static policy, best of n", _best_of_n, "tiny"),
    "tree": Method("static policy, tree search", _tree_search, "tiny"),
    "smollm2": Method("static SmolLM2-135M, best of n", _best_of_n, "smollm2-135m"),
    "grammar": Method("random search over the grammar", _random_search),
    "default": Method("scikit-learn's defaults", _default),
    "evolution": Method("evolution over the grammar", _evolution, asked_for=True),
    "rl-duration": _learner(
        "RL, weighted by duration", Learning(weighting="paper"), asked_for=True
    ),
    "rl-scratch": _learner("RL, scratch only", Learning(improve_share=0.0), asked_for=True),
    "rl-penalty": _learner(
        "RL, failure penalty 0.8", Learning(failure=-0.8, stage=0.1), asked_for=True
    ),
    "rl-penalty-scratch": _learner(
        "RL, failure penalty 0.8, scratch only",
        Learning(failure=-0.8, stage=0.1, improve_share=0.0),
        asked_for=True,
    ),
}
"""The methods by name."""

COMPARED = tuple(name for name, method in METHODS.items() if not method.asked_for)
"""Those that are compared unless somebody names others."""
