"""Record many samples of a policy on a task, one row per sample; see `mle_rl.analysis.headroom`.

Sampling is in chunks, each from random numbers of its own, so a sample depends on its number alone:
2,000 samples begin with the first 1,000, and a recording that was interrupted goes on with the
samples that are missing. What is running when it is interrupted, at most a chunk and a half, is
sampled and run again.
"""

from __future__ import annotations

import csv
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TextIO

import numpy as np
import torch

from mle_rl.agent import Policy
from mle_rl.agent.family import model_family
from mle_rl.analysis.samples import COLUMNS, read_table
from mle_rl.errors import MleRlError
from mle_rl.files import hold, write_whole
from mle_rl.notebook import version
from mle_rl.records import Execution, Outcome, Program
from mle_rl.rollout.environment import Environment
from mle_rl.rollout.executions import machine_failed
from mle_rl.rollout.sampling import sample
from mle_rl.training.assembly import sampling_settings
from mle_rl.training.surroundings import threads

CHUNK = 64
"""Completions sampled at once. Another size gives other samples."""

_DECISIVE = ("torch", "numpy", "scikit-learn")
Say = Callable[[str], None]


def record_samples(
    policy: Policy,
    environment: Environment,
    folder: Path,
    samples: int = 2000,
    *,
    seed: int = 0,
    say: Say = print,
    every_s: float = 60.0,
) -> Path:
    """Sample, run and grade until ``samples`` rows are recorded; what is recorded is not redone.

    Args:
        policy: Who writes.
        environment: Task and sandbox.
        folder: Receives ``<task>.csv`` (see `mle_rl.analysis.samples.COLUMNS`), and
            ``<task>.json`` with the settings that the rows belong to.
        samples: Rows that are wanted.
        seed: Of all sampling.
        say: Receives a line of progress, every ``every_s`` seconds and at the end.

    Returns:
        The file of samples, sorted by number.

    Raises:
        MleRlError: ``samples`` is not positive, the folder holds samples of other settings or
            cannot be used, another process records there, or the sandbox failed on some samples,
            which are then left out.
    """
    if samples < 1:
        raise MleRlError(f"{samples} samples are none: give a positive number.")
    task = environment.task
    file = folder / f"{task.id}.csv"
    settings = _settings(policy, environment, seed)
    with _claimed(folder, file, settings) as table, threads(1):
        done = _recorded(table, file)
        known = sum(number < samples for number in done)
        progress = _Progress(task.id, samples, say, every_s, known)
        finished: SimpleQueue = SimpleQueue()
        lost = running = 0
        try:
            for numbers in _missing(done, samples):
                for number, program in _sampled(policy, task, numbers, seed):
                    _run(environment, number, program, finished)
                    running += 1
                while running > CHUNK // 2:  # what is left keeps the workers busy meanwhile
                    lost += not _write(table, *finished.get(), progress)
                    running -= 1
            while running:
                lost += not _write(table, *finished.get(), progress)
                running -= 1
        finally:
            _rescue(table, finished, progress)
        progress.tell()
        _sort(table, file)
    if lost:
        raise MleRlError(
            f"The sandbox failed on {lost} samples of {task.id}, which are not recorded: call "
            "again to run them."
        )
    return file


def _settings(policy: Policy, environment: Environment, seed: int) -> str:
    """What decides a row, as text."""
    fields = {
        "task": environment.task.id,
        "task_fingerprint": environment.task.fingerprint,
        "policy": policy.name,
        "weights_sha256": policy.digest(),
        "seed": seed,
        "chunk": CHUNK,
        "limits": asdict(environment.limits),
        "versions": {name: version(name) for name in _DECISIVE},
    }
    return json.dumps(fields, indent=1) + "\n"


@contextmanager
def _claimed(folder: Path, file: Path, settings: str) -> Iterator[TextIO]:
    """The file of samples, open for appending and locked; the lock goes with the process."""
    beside = file.with_suffix(".json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        table = file.open("a+", encoding="utf-8", newline="")
    except OSError as error:
        raise MleRlError(
            f"The folder of samples {folder} cannot be used ({error.strerror}): choose one where "
            "you may write."
        ) from None
    with table:
        hold(table, f"Another process records {file.name}: wait until it ends, or end it.")
        if not beside.is_file():
            write_whole(beside, settings)
        if beside.read_bytes() != settings.encode():
            raise MleRlError(
                f"{file} holds samples of other settings (see {beside.name} there): move both "
                "away, or give this recording a folder of its own."
            )
        yield table


def _recorded(table: TextIO, file: Path) -> set[int]:
    """Numbers of the recorded samples; a row that a kill cut short is removed."""
    begun = file.read_bytes()
    whole = begun[: begun.rfind(b"\n") + 1]
    if whole != begun:
        table.truncate(len(whole))
    if not whole:
        table.write(",".join(COLUMNS) + "\n")
        table.flush()
    return set(read_table(file)["sample"])


def _missing(done: set[int], samples: int) -> Iterator[list[int]]:
    """By chunk: the numbers that are not recorded yet."""
    for first in range(0, samples, CHUNK):
        numbers = [n for n in range(first, min(first + CHUNK, samples)) if n not in done]
        if numbers:
            yield numbers


def _sampled(
    policy: Policy, task, numbers: list[int], seed: int
) -> list[tuple[int, Program | None]]:
    """The programs of some samples of one chunk. All of it is sampled: the rows share a stream."""
    chunk = numbers[0] // CHUNK
    name = int.from_bytes(hashlib.sha256(task.id.encode()).digest()[:8], "big")
    state = np.random.SeedSequence([seed, name, chunk]).generate_state(1, np.uint64)
    generator = torch.Generator().manual_seed(int(state[0]) >> 1)
    prompts = [policy.prompt_ids(task, "scratch")] * CHUNK
    rows = sample(policy.model, prompts, sampling_settings(policy), generator)
    return [(n, policy.parse(rows[n - chunk * CHUNK].ids)) for n in numbers]


def _run(environment: Environment, number: int, program: Program | None, finished: SimpleQueue):
    """Start a program; when it has ended its future is in the queue."""
    future = environment.submit(program)
    future.add_done_callback(lambda ended: finished.put((number, program, ended)))


def _write(table: TextIO, number: int, program, future, progress: _Progress) -> bool:
    """Record what a sample came to; False if the machine failed and nothing is known of it."""
    execution, outcome = future.result()
    if machine_failed(execution):
        return False
    csv.writer(table, lineterminator="\n").writerow(_row(number, program, execution, outcome))
    table.flush()
    progress.add(outcome)
    return True


def _row(number: int, program: Program | None, execution: Execution, outcome: Outcome) -> tuple:
    digits = "{:.6f}".format
    return (
        number,
        int(outcome.valid),
        digits(outcome.reward_score) if outcome.valid else "",
        digits(outcome.final_score) if outcome.valid else "",
        f"{execution.duration_s:.3f}",
        model_family(program.code) if program else "",
        program.digest if program else "",
    )


def _rescue(table: TextIO, finished: SimpleQueue, progress: _Progress) -> None:
    """Record what had ended by the time of an interruption."""
    while True:
        try:
            number, program, future = finished.get_nowait()
        except Empty:
            return
        if not future.cancelled() and future.exception() is None:
            _write(table, number, program, future, progress)


def _sort(table: TextIO, file: Path) -> None:
    """By number, so that the table does not depend on which program was faster."""
    table.seek(0)
    header, *rows = table.read().splitlines(keepends=True)
    rows.sort(key=lambda row: int(row.split(",", 1)[0]))
    write_whole(file, header + "".join(rows))


@dataclass
class _Progress:
    """What is said while people wait."""

    task: str
    samples: int
    say: Say
    every_s: float
    done: int
    run: int = 0
    valid: int = 0
    started: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)

    def add(self, outcome: Outcome) -> None:
        """A sample has been recorded."""
        self.done += 1
        self.run += 1
        self.valid += outcome.valid
        if time.monotonic() - self.said >= self.every_s:
            self.tell()

    def tell(self) -> None:
        """Say how far it is."""
        self.said = time.monotonic()
        minutes = (self.said - self.started) / 60
        line = f"{self.task}: {self.done} of {self.samples} samples"
        if self.run:
            left = minutes / self.run * max(0, self.samples - self.done)
            line += f"; {self.run} now in {minutes:.1f} min, {self.valid / self.run:.0%} valid"
            line += f", {left:.0f} min left" if left else ""
        self.say(line)
