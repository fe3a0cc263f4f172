"""Many programs in a row, with a line that says how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Protocol, TextIO

from mle_rl.records import Execution
from mle_rl.sandbox.job import Job

_EVERY_S = 2.0


class Pool(Protocol):
    """What runs jobs: `LocalPool`, or another with the same two calls."""

    def submit(self, job: Job) -> Future[Execution]: ...

    def close(self) -> None: ...


def run_all(
    pool: Pool, jobs: Sequence[Job], progress: TextIO | None = sys.stderr
) -> list[Execution]:
    """Runs all jobs; the executions come in the order of the jobs.

    Args:
        progress: Where to say how many are done, running and failed, and how many a minute; None
            says nothing.

    Raises:
        MleRlError: The sandbox failed for one of them; what waits is cancelled.
    """
    futures = [pool.submit(job) for job in jobs]
    waiting = set(futures)
    began = said = time.monotonic()
    failed = 0
    try:
        while waiting:
            done, waiting = wait(waiting, timeout=_EVERY_S, return_when=FIRST_COMPLETED)
            failed += sum(future.result().status != "ok" for future in done)
            now = time.monotonic()
            if progress is not None and (now - said >= _EVERY_S or not waiting):
                said = now
                counts = (len(jobs) - len(waiting), sum(f.running() for f in waiting), failed)
                progress.write("\r" + progress_line(*counts, now - began))
                progress.flush()
    finally:
        for future in waiting:
            future.cancel()
        if progress is not None and jobs:
            progress.write("\n")
    return [future.result() for future in futures]


def progress_line(done: int, running: int, failed: int, elapsed_s: float) -> str:
    """The state of a batch in one line."""
    rate = 60 * done / elapsed_s if elapsed_s > 0 else 0.0
    return f"programs: {done} done, {running} running, {failed} failed, {rate:.0f} per minute"
