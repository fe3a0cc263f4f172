"""Pools: workers, each served by a thread here, and what waits for them."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Literal, Self

from mle_rl.errors import MleRlError
from mle_rl.records import Execution, Limits
from mle_rl.sandbox import machine, slots, view
from mle_rl.sandbox.backlog import Backlog, Waiting, Worker, serve
from mle_rl.sandbox.job import Job
from mle_rl.sandbox.worker import LocalWorker

Tier = Literal["isolated", "limits", "bubblewrap"]
TIERS = ("isolated", "limits", "bubblewrap")


def fitting_workers(limits: Limits | None = None) -> int:
    """How many workers this machine carries: one per core share, and no more than memory allows.

    In a container, what the container may use counts.

    Args:
        limits: What each program may use.
    """
    limits = limits or Limits()
    cores = machine.cores() // limits.cpu_cores
    server_mb = 256
    return max(1, min(cores, int(machine.memory_mb() * 0.8 / (limits.memory_mb + server_mb))))


class WorkerPool:
    """Runs jobs on workers, first come, first served.

    Args:
        workers: Not started yet.

    Attributes:
        isolation: The isolation in force, in words.

    Raises:
        MleRlError: A worker does not start.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._backlog = Backlog(len(workers))
        # Also when the pool is forgotten or the interpreter ends.
        self._end = weakref.finalize(self, _end, os.getpid(), workers, self._backlog)
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.greet()
        except BaseException:
            self._end()
            raise
        self.isolation = workers[0].isolation
        self._threads = [
            threading.Thread(target=serve, args=(worker, self._backlog), daemon=True)
            for worker in workers
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> Future[Execution]:
        """Queues a job. Thread-safe.

        Returns:
            A future of the Execution. Its exception is an MleRlError when the sandbox itself
            failed, which says nothing about the program.

        Raises:
            MleRlError: The pool is closed, or the job names no public folder.
        """
        _check(Path(job.public_dir))
        future: Future[Execution] = Future()
        self._backlog.put(Waiting(job, future))
        return future

    def run(self, job: Job) -> Execution:
        """Runs one job and waits for it."""
        return self.submit(job).result()

    def close(self) -> None:
        """Cancels what waits, kills what runs, ends every process of the pool."""
        self._end()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LocalPool(WorkerPool):
    """Runs programs on this machine, isolated.

    Each program is bound to ``Limits.cpu_cores`` cores, those of its worker. Workers share out the
    cores also with those of other pools and processes, as far as all of their programs are given
    equally many; when a pool closes, the others stay where they are.

    Args:
        workers: Programs that run at the same time; see `fitting_workers`.
        tier: See `mle_rl.sandbox`. A tier that the machine cannot enforce is refused.
        packages: Installed distributions that programs may import, with what these require.

    Raises:
        MleRlError: The tier is not to be had here, a server does not start, or the system allows
            no more processes or open files.
    """

    def __init__(
        self,
        workers: int,
        tier: Tier = "isolated",
        packages: tuple[str, ...] = view.PROGRAM_PACKAGES,
    ) -> None:
        check_choice(workers, tier)
        try:
            super().__init__([LocalWorker(tier, packages, slot) for slot in slots.claim(workers)])
        except OSError as error:
            raise MleRlError(
                f"{workers} workers cannot be started ({error.strerror}): ask for fewer."
            ) from None


def check_choice(workers: int, tier: str) -> None:
    """Refuses a system, a number of workers or a tier that cannot be.

    Raises:
        MleRlError: Says which, and what there is.
    """
    if sys.platform != "linux":
        raise MleRlError("The sandbox needs Linux: use a container or a virtual machine there.")
    if workers < 1:
        raise MleRlError(f"A pool needs at least 1 worker, not {workers}.")
    if tier not in TIERS:
        raise MleRlError(f"There is no sandbox tier {tier!r}. Known: {', '.join(TIERS)}.")


def _check(public_dir: Path) -> None:
    if not public_dir.is_dir():
        raise MleRlError(f"The public folder {public_dir} does not exist.")
    if around := view.visible_folder_around(public_dir):
        raise MleRlError(
            f"{public_dir} lies in {around}, which programs can see, and so what lies beside it. "
            "Move the tasks to another folder."
        )
    if (public_dir / "private").exists():
        raise MleRlError(
            f"{public_dir} holds a folder `private`: programs would see the answers. "
            "Give the task's `public` folder."
        )


def _end(owner: int, workers: Sequence[Worker], backlog: Backlog) -> None:
    if os.getpid() != owner:
        return  # a fork of the owner has ended, not the owner
    backlog.close()
    for worker in workers:
        worker.stop()
