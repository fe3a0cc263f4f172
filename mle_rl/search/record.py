"""Writing a comparison down: every program that was run, as it ends.

::

    searches/<method>-<seed>.csv    one row per program, see `COLUMNS`
    searches/<method>-<seed>.json   settings, date, cores, versions, the best program
    work/                           what is running, and the folders of training runs

Rows are written as programs end, in ``work/``. A search that has finished moves to ``searches/``
and is never done again; one that was interrupted starts afresh, for half a budget is no budget.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mle_rl.agent.family import NO_MODEL, model_family
from mle_rl.errors import MleRlError
from mle_rl.files import hold, write_whole
from mle_rl.search.loop import Trial

SEARCHES, WORK = "searches", "work"
"""Folders of a comparison, see above."""

COLUMNS = {
    "method": "Which method proposed it.",
    "task": "Id of the competition.",
    "seed": "Of the method.",
    "ended_at_s": "Seconds from the start of the method to its grading.",
    "duration_s": "Execution time of the program.",
    "status": "How its execution ended, see `mle_rl.sandbox`; 'rejected' if there was no program.",
    "valid": "Whether it left a valid submission.",
    "reward_score": "Score on the reward split, empty if not valid. This one chooses.",
    "final_score": "Score on the final split, empty if not valid. For reporting.",
    "family": "Estimators that it makes, see `mle_rl.agent.family`.",
    "code": "Digest of its text, see `mle_rl.records.Program.digest`.",
}
"""Columns of a recorded search, and what they mean."""


class RunningSearch:
    """Writes the rows of one search while it runs.

    Args:
        folder: Of the comparison.
        method: Name of the method.
        task: Id of the competition.
        seed: Of the method.
        higher_is_better: Direction of its score.
    """

    def __init__(self, folder: Path, method: str, task: str, seed: int, higher_is_better: bool):
        self._folder, self._name = folder, f"{method}-{seed}"
        self._who = (method, task, seed)
        self._sign = 1 if higher_is_better else -1
        self._best: Trial | None = None
        self.programs = self.valid = 0
        self._file = (folder / WORK / f"{self._name}.csv").open("w", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file, lineterminator="\n")
        self._write(COLUMNS)

    @property
    def best_reward_score(self) -> float | None:
        """The best score on the reward split so far."""
        return None if self._best is None else self._best.outcome.reward_score

    def add(self, trial: Trial) -> None:
        """Write one row."""
        self.programs += 1
        self.valid += trial.outcome.valid
        self._write([*self._who, *_row(trial)])
        score = trial.outcome.reward_score
        if trial.outcome.valid and (
            self._best is None or self._sign * score > self._sign * self.best_reward_score
        ):
            self._best = trial

    def finish(self, facts: Mapping) -> None:
        """The search has finished; ``facts`` are kept beside its rows."""
        method, task, seed = self._who
        code = None if self._best is None else self._best.program.code
        named = {"method": method, "task": task, "seed": seed, "programs": self.programs}
        os.fsync(self._file.fileno())
        self.close()
        rows, facts_file = files(self._folder, self._name)
        Path(self._file.name).replace(rows)
        write_whole(
            facts_file, json.dumps({**named, **facts, "best_program": code}, indent=1) + "\n"
        )

    def close(self) -> None:
        """Nothing more is written; without `finish` the rows do not count."""
        self._file.close()

    def _write(self, row) -> None:
        self._rows.writerow(row)
        self._file.flush()


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold the folder of a comparison; the lock goes with the process, however it ends.

    Raises:
        MleRlError: It cannot be written, or another process compares in it.
    """
    try:
        for part in (SEARCHES, WORK):
            (folder / part).mkdir(parents=True, exist_ok=True)
        lock = (folder / WORK / "lock").open("w")
    except OSError as error:
        raise MleRlError(
            f"The folder of the comparison, {folder}, cannot be written ({error.strerror}): choose "
            "one where you may write."
        ) from None
    with lock:
        hold(
            lock,
            f"Another process is comparing in {folder}: wait until it ends, end it, or choose "
            "another folder.",
        )
        yield


def _row(trial: Trial) -> tuple:
    program = trial.program
    scores = (trial.outcome.reward_score, trial.outcome.final_score)
    return (
        f"{trial.ended_at_s:.3f}",
        f"{trial.execution.duration_s:.3f}",
        trial.execution.status,
        trial.outcome.valid,
        *("" if score is None else f"{score:.10g}" for score in scores),
        NO_MODEL if program is None else model_family(program.code),
        "" if program is None else program.digest,
    )


def files(folder: Path, name: str) -> tuple[Path, Path]:
    """Rows and facts of a finished search."""
    return folder / SEARCHES / f"{name}.csv", folder / SEARCHES / f"{name}.json"
