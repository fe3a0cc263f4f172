"""Run the reference programs and write the leaderboards that this package ships.

``python -m mle_rl.tasks.measure [TASK ...]`` runs every reference program twice in the sandbox, one
at a time and single-threaded, and records both scores and the duration. The duration is the smaller
of the two CPU times: for a program on one thread that waits for nothing, this is the wall clock it
would take on a core of its own, whatever else the machine does meanwhile. With ``--publish`` the
content hashes of the tasks are recorded as well. Only a maintainer needs this, after a task or a
program has changed.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

from mle_rl.errors import MleRlError
from mle_rl.records import Limits
from mle_rl.tasks.building import prepare
from mle_rl.tasks.grading import grade
from mle_rl.tasks.leaderboards import COLUMNS, Entry
from mle_rl.tasks.loading import load, names
from mle_rl.tasks.references import REFERENCES, Reference
from mle_rl.tasks.suite import COMPETITIONS
from mle_rl.tasks.task import Task, hash_files

_PACKAGE = Path(__file__).parent
_REPEATS = 2
_LIMITS = Limits(timeout_s=600.0, memory_mb=4096)


def measure(task: Task, reference: Reference, pool) -> Entry:
    """Runs one reference program and grades what it wrote.

    Args:
        task: The competition.
        reference: The program.
        pool: Anything with ``run(job) -> Execution``.

    Raises:
        MleRlError: When the program fails, or its submission is not valid or varies.
    """
    from mle_rl.sandbox import Job

    job = Job(code=reference.program.code, public_dir=task.public_dir, limits=_LIMITS)
    runs = [pool.run(job) for _ in range(_REPEATS)]
    last = runs[-1]
    outcome = grade(task, last.submission, last.submission_problem)
    if last.status != "ok" or not outcome.valid:
        reason = last.stderr.strip().splitlines()[-1:] or [outcome.problem]
        raise MleRlError(f"{task.id}/{reference.name} ended with {last.status}: {reason[0]}")
    if len({run.submission for run in runs}) > 1:
        raise MleRlError(f"{task.id}/{reference.name} is not deterministic; fix its seeds.")
    duration_s = min(run.cpu_s for run in runs)
    return Entry(reference.name, outcome.reward_score, outcome.final_score, duration_s)


def write_entries(path: Path, entries: list[Entry]) -> None:
    """Writes a leaderboard file; scores to 6 digits, durations to milliseconds."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for e in entries:
            writer.writerow(
                (
                    e.program,
                    f"{e.reward_score:.6f}",
                    f"{e.final_score:.6f}",
                    f"{e.duration_s:.3f}",
                )
            )


def publish_hashes(path: Path = _PACKAGE / "published.json") -> None:
    """Records the content hash of every task, and the versions of the packages it came from."""
    record = {
        c.id: {"sha256": hash_files(sorted(prepare(c).items())), "versions": c.versions()}
        for c in COMPETITIONS.values()
    }
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """The command line; see the module."""
    parser = argparse.ArgumentParser(prog="python -m mle_rl.tasks.measure", description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"default: {', '.join(names())}")
    parser.add_argument("--publish", action="store_true", help="record the content hashes, too")
    options = parser.parse_args(arguments)
    if options.publish:
        publish_hashes()

    from mle_rl.sandbox import LocalPool

    with LocalPool(workers=1) as pool:
        for name in options.tasks or names():
            task = load(name)
            entries = []
            for reference in REFERENCES[name]:
                entries.append(measure(task, reference, pool))
                e = entries[-1]
                print(
                    f"{name:20s} {e.program:32s} {e.reward_score:8.4f} {e.final_score:8.4f} "
                    f"{e.duration_s:7.2f} s",
                    flush=True,
                )
            write_entries(_PACKAGE / "leaderboards" / f"{name}.csv", entries)


if __name__ == "__main__":
    try:
        main()
    except MleRlError as error:
        sys.exit(str(error))
