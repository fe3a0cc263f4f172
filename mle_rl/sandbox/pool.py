"""A pool of local workers, each driven by a thread here."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import weakref
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Literal

from mle_rl.errors import MleRlError
from mle_rl.records import Execution, Limits
from mle_rl.sandbox import view
from mle_rl.sandbox.job import Job
from mle_rl.sandbox.worker import Worker, WorkerLost

Tier = Literal["isolated", "limits", "bubblewrap"]
TIERS = ("isolated", "limits", "bubblewrap")


def fitting_workers(limits: Limits | None = None) -> int:
    """How many workers this machine carries: one per core share, and no more than memory allows.

    Args:
        limits: What each program may use.
    """
    limits = limits or Limits()
    cores = len(os.sched_getaffinity(0)) // limits.cpu_cores
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    server_mb = 256
    return max(1, min(cores, int(pages * 0.8 / (limits.memory_mb + server_mb))))


class LocalPool:
    """Runs programs on this machine, isolated, first come, first served.

    Args:
        workers: Programs that run at the same time; see `fitting_workers`.
        tier: See `mle_rl.sandbox`. A tier that the machine cannot enforce is refused.
        packages: Installed distributions that programs may import, with what these require.

    Attributes:
        isolation: The isolation in force, in words.

    Raises:
        MleRlError: The tier is not to be had here, or a server does not start.
    """

    def __init__(
        self,
        workers: int,
        tier: Tier = "isolated",
        packages: tuple[str, ...] = view.PROGRAM_PACKAGES,
    ) -> None:
        if workers < 1:
            raise MleRlError(f"A pool needs at least 1 worker, not {workers}.")
        if tier not in TIERS:
            raise MleRlError(f"There is no sandbox tier {tier!r}. Known: {', '.join(TIERS)}.")
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._closed = threading.Event()
        everyone = [Worker(tier, packages, slot) for slot in range(workers)]
        # Also when the pool is forgotten or the interpreter ends.
        self._end = weakref.finalize(self, _end, os.getpid(), everyone, self._jobs, self._closed)
        try:
            for worker in everyone:
                worker.start()
            for worker in everyone:
                worker.greet()
        except BaseException:
            self._end()
            raise
        self.isolation = everyone[0].isolation
        self._threads = [
            threading.Thread(target=_drive, args=(worker, self._jobs, self._closed), daemon=True)
            for worker in everyone
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
        if self._closed.is_set():
            raise MleRlError("This pool is closed; make a new LocalPool.")
        _check(Path(job.public_dir))
        future: Future[Execution] = Future()
        self._jobs.put((job, future))
        return future

    def run(self, job: Job) -> Execution:
        """Runs one job and waits for it."""
        return self.submit(job).result()

    def close(self) -> None:
        """Cancels what waits, kills what runs, ends every process of the pool."""
        self._end()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def _end(
    owner: int, workers: list[Worker], jobs: queue.SimpleQueue, closed: threading.Event
) -> None:
    if os.getpid() != owner:
        return  # a fork of the owner has ended, not the owner
    closed.set()
    with contextlib.suppress(queue.Empty):
        while True:
            _, future = jobs.get_nowait()
            future.cancel()
    for _ in workers:
        jobs.put(None)
    for worker in workers:
        worker.stop()


def _drive(worker: Worker, jobs: queue.SimpleQueue, closed: threading.Event) -> None:
    """One worker's thread: takes jobs until the pool is closed."""
    while (item := jobs.get()) is not None:
        job, future = item
        if closed.is_set():
            future.cancel()
        elif future.set_running_or_notify_cancel():
            try:
                execution = _attempt_twice(worker, job, closed)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(execution)


def _attempt_twice(worker: Worker, job: Job, closed: threading.Event) -> Execution:
    """Runs a job; a server that is killed under it is replaced, and the job tried once more."""
    for _ in range(2):
        try:
            return worker.run(job)
        except WorkerLost:
            if closed.is_set():
                raise CancelledError from None
            try:
                worker.replace()
            except WorkerLost:  # closed in between
                raise CancelledError from None
    return Execution(
        status="killed",
        stdout="",
        stderr="The sandbox was killed twice while this program ran.",
        duration_s=0.0,
        cpu_s=0.0,
        peak_memory_mb=0.0,
        isolation=worker.isolation,
        versions=worker.versions,
    )
