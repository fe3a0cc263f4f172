"""Run several methods on one task, each for the same time, one after the other.

    programs = compare(Settings(task="library-docstrings", seconds=600), folder)

One row per program; see `mle_rl.search.record.COLUMNS`. A comparison that was interrupted goes on
with the search in which it was, and does not repeat those that had finished.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib import import_module
from pathlib import Path

import pandas as pd

from mle_rl import tasks
from mle_rl.agent import Policy, load_policy
from mle_rl.errors import MleRlError, unknown_name
from mle_rl.notebook import PRINTED_VERSIONS, version
from mle_rl.rollout.environment import Environment
from mle_rl.sandbox import LocalPool
from mle_rl.search import record, recorded
from mle_rl.search.budget import Budget
from mle_rl.search.methods import COMPARED, METHODS, Start
from mle_rl.search.progress import Progress
from mle_rl.search.settings import Settings, differences
from mle_rl.tasks import Task

Report = Callable[[str], None]

_WEIGHTS = "weights_sha256"
"""Among the recorded settings of a method that has a policy, see `mle_rl.agent.Policy.digest`."""

_IMPORTED = ("mle_rl.search.sampled", "mle_rl.search.reinforcement", "mle_rl.training.trainer")
"""What takes seconds to import, once per process, and must not be charged to whoever is first."""


def say(line: str) -> None:
    """Print a line at once, also into a file."""
    print(line, flush=True)


def compare(
    settings: Settings,
    folder: Path,
    *,
    methods: Sequence[str] = COMPARED,
    seeds: Sequence[int] = (0,),
    report: Report = say,
) -> pd.DataFrame:
    """Search with each method and each seed, unless that search has finished in this folder before.

    Args:
        settings: What all searches share.
        folder: Where searches are recorded, see `mle_rl.search.record`.
        methods: Names in `METHODS`. One whose policy cannot be loaded is left out, and said so.
        seeds: One search per method and seed.
        report: Is given lines that say how far it is.

    Returns:
        One row per program of all finished searches of the folder, columns of `record.COLUMNS`.

    Raises:
        MleRlError: A method, task or seed that cannot be, nothing to compare, a folder that cannot
            be written or that holds searches with other settings.
        KeyboardInterrupt: With a sentence on what is kept.
    """
    for name in methods:
        if name not in METHODS:
            raise unknown_name("method", name, METHODS)
    if any(seed < 0 for seed in seeds):
        raise MleRlError(f"A seed is {min(seeds)}: give whole numbers from 0 on.")
    comparison = _Comparison(settings, tasks.load(settings.task), Path(folder), report)
    searches = [(name, seed) for seed in seeds for name in dict.fromkeys(methods)]
    with record.claimed(comparison.folder):
        done = recorded.finished(comparison.folder)
        comparison.check_same(done)
        comparison.policies.clear()  # none stays in memory beside a search that has no use for it
        for position, (name, seed) in enumerate(searches, 1):
            title = f"[{position}/{len(searches)}] {name}, seed {seed}"
            if (name, seed) in done:
                report(f"{title}: finished before, not repeated")
                continue
            try:
                comparison.search(name, seed, title)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    f"Interrupted in the search {name}, seed {seed}. What had finished is kept; "
                    "the same command goes on with this search from its start."
                ) from None
    if not recorded.finished(comparison.folder):
        raise MleRlError("Every method was left out: there is nothing to compare.")
    return recorded.read(comparison.folder).programs


@dataclass
class _Comparison:
    """What the searches of one call share."""

    settings: Settings
    task: Task
    folder: Path
    report: Report
    policies: dict[str, Policy | MleRlError] = field(default_factory=dict)

    def facts_of(self, method: str, policy: Policy | None) -> dict:
        """The settings as they are recorded, with the method's own and the digest of its weights.

        A method that does not learn has no ``learning``, one without a policy no weights.
        """
        facts = self.settings.to_dict() | {"task_fingerprint": self.task.fingerprint}
        if learning := METHODS[method].learning:
            facts["learning"] = asdict(learning)
        return facts if policy is None else facts | {_WEIGHTS: policy.digest()}

    def check_same(self, done: Mapping[tuple[str, int], Mapping]) -> None:
        """Refuse to add to searches that had other settings, or started from other weights."""
        for (name, seed), facts in done.items():
            there, policy = facts["settings"], self.policy_of(name)
            if isinstance(policy, MleRlError):  # not to be had here: whatever was recorded holds
                there = {key: value for key, value in there.items() if key != _WEIGHTS}
                policy = None
            if differing := differences(self.facts_of(name, policy), there):
                raise MleRlError(
                    f"{self.folder} holds a finished search ({name}, seed {seed}) with other "
                    f"settings ({'; '.join(differing)}): choose another folder, or delete it."
                )

    def search(self, name: str, seed: int, title: str) -> None:
        """One search, from warm workers to its files; none if its policy cannot be loaded."""
        method, task, settings = METHODS[name], self.task, self.settings
        policy = self.policy_of(name)
        if isinstance(policy, MleRlError):
            self.report(f"{title}: left out. {policy}")
            return
        facts = {"settings": self.facts_of(name, policy)}
        with ExitStack() as opened:
            # A pool of its own: programs that are late must not run beside the next method's.
            pool = opened.enter_context(LocalPool(settings.workers, settings.tier))
            rows = record.RunningSearch(self.folder, name, task.id, seed, task.higher_is_better)
            opened.enter_context(closing(rows))
            if policy is not None:
                _prepare(opened)
            budget = Budget(settings.seconds)
            progress = Progress(title, budget, self.report)

            def on_trial(trial):
                rows.add(trial)
                progress.say(rows.programs, rows.valid, rows.best_reward_score)

            valid_trained = 0.0

            def on_step(row):
                nonlocal valid_trained
                valid_trained += row["valid_share"] * settings.batch_size
                trained = row["step"] * settings.batch_size
                progress.say(trained, valid_trained, row["score_best_so_far"])

            method.run(
                Start(
                    task=task,
                    environment=Environment(task, pool, settings.limits),
                    policy=policy,
                    seed=seed,
                    settings=settings,
                    learning=method.learning,
                    budget=budget,
                    work=self.folder / record.WORK / f"{name}-{seed}",
                    on_trial=on_trial,
                    on_step=on_step,
                )
            )
            rows.finish(facts | {"spent_s": round(budget.elapsed_s, 3)} | _where())
            progress.end(rows.programs, rows.valid, rows.best_reward_score)

    def policy_of(self, method: str) -> Policy | MleRlError | None:
        """The policy of a method, loaded once; why not, if it cannot be; None if it needs none."""
        name = METHODS[method].policy
        if name is not None and name not in self.policies:
            try:
                self.policies[name] = load_policy(name)
            except MleRlError as error:
                self.policies[name] = error
        return self.policies.get(name)


def _prepare(opened: ExitStack) -> None:
    """What a language model needs before the clock starts: libraries, one thread."""
    for module in _IMPORTED:
        import_module(module)
    opened.enter_context(import_module("mle_rl.training.surroundings").threads(1))


def _where() -> dict:
    """When and on what a search ran, without naming the machine."""
    return {
        "date": date.today().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": {name: version(name) for name in PRINTED_VERSIONS},
    }
