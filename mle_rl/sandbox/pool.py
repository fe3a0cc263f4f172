"""A pool of local workers: each a warm server process, driven by a thread here."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import subprocess
import tempfile
import threading
import weakref
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Literal

from mle_rl.errors import MleRlError
from mle_rl.records import Execution, Marker
from mle_rl.sandbox import job as wire
from mle_rl.sandbox import launcher, view
from mle_rl.sandbox.environment import environment
from mle_rl.sandbox.job import Job

Tier = Literal["isolated", "limits", "bubblewrap"]
TIERS = ("isolated", "limits", "bubblewrap")
_PATIENCE_S = 60.0
_GRACE_S = 2.0


class LocalPool:
    """Runs programs on this machine, isolated, first come, first served.

    Args:
        workers: Programs that run at the same time.
        tier: See `mle_rl.sandbox`. A tier that the machine cannot enforce is refused.
        packages: Installed distributions that programs may import, with what these require.

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
        self.tier = tier
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._closed = threading.Event()
        self._workers = [_Worker(tier, packages, slot) for slot in range(workers)]
        self._finalizer = weakref.finalize(self, _stop, self._workers)
        try:
            for worker in self._workers:
                worker.start()
            for worker in self._workers:
                worker.greet()
        except BaseException:
            _stop(self._workers)
            raise
        self.isolation = self._workers[0].isolation
        self._threads = [
            threading.Thread(target=_drive, args=(worker, self._queue, self._closed), daemon=True)
            for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> Future[Execution]:
        """Queues a job. Thread-safe.

        Returns:
            A future of the Execution. Its exception is an MleRlError when the sandbox itself
            failed twice, which says nothing about the program.
        """
        if self._closed.is_set():
            raise MleRlError("This pool is closed; make a new LocalPool.")
        if not Path(job.public_dir).is_dir():
            raise MleRlError(f"The public folder {job.public_dir} does not exist.")
        future: Future[Execution] = Future()
        self._queue.put((job, future))
        return future

    def run(self, job: Job) -> Execution:
        """Runs one job and waits for it."""
        return self.submit(job).result()

    def close(self) -> None:
        """Cancels what waits, kills what runs, ends every process of the pool."""
        if self._closed.is_set():
            return
        self._closed.set()
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()[1].cancel()
        for _ in self._threads:
            self._queue.put(None)
        self._finalizer()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.stop()


def _drive(worker: _Worker, jobs: queue.SimpleQueue, closed: threading.Event) -> None:
    """One worker's thread: takes jobs until the pool is closed."""
    while (item := jobs.get()) is not None:
        job, future = item
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(_attempt_twice(worker, job, closed))
        except BaseException as error:
            future.set_exception(error)


def _attempt_twice(worker: _Worker, job: Job, closed: threading.Event) -> Execution:
    """Runs a job; a server that dies under it is replaced, and the job tried once more."""
    for _ in range(2):
        try:
            return worker.run(job)
        except (EOFError, OSError):
            if closed.is_set():
                raise CancelledError from None
            worker.replace()  # raises when it was no accident
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


class _Worker:
    """One launcher with its server, and the socket to it."""

    def __init__(self, tier: str, packages: tuple[str, ...], slot: int) -> None:
        self._tier, self._packages, self._slot = tier, packages, slot
        self._process: subprocess.Popen | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self.isolation = ""
        self.versions: dict[str, str] = {}

    def start(self) -> None:
        ours, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - read after the process ended
        with self._lock:
            if self._stopped:
                raise EOFError("the pool is closed")
            self._process = subprocess.Popen(
                launcher.command(),
                env=environment("/", 1),
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            self._socket = ours
        theirs_fd = theirs.fileno()
        arguments = {
            "root": launcher.package_root(),
            "control_fd": theirs_fd,
            "tier": self._tier,
            "pool_pid": os.getpid(),
            "packages": list(self._packages),
            "slot": self._slot,
        }
        with self._process.stdin as stdin:
            stdin.write(json.dumps(arguments).encode())
        theirs.close()

    def greet(self) -> None:
        """Waits until the server is warm."""
        self._socket.settimeout(_PATIENCE_S)
        try:
            hello, _ = wire.receive(self._socket)
        except (EOFError, OSError):
            raise MleRlError(f"A sandbox server did not start: {self._last_words()}") from None
        if "missing" in hello:
            raise MleRlError(
                f"The sandbox tier {self._tier!r} needs {hello['missing']}, which this machine "
                "does not give. `python -m mle_rl.sandbox.check` shows what it gives; "
                "tier='limits' runs here, but isolates nothing."
            )
        self.isolation, self.versions = hello["isolation"], hello["versions"]

    def _last_words(self) -> str:
        self._errors.seek(0)
        text = self._errors.read().decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else "it ended without a word"

    def run(self, job: Job) -> Execution:
        self._socket.settimeout(job.limits.timeout_s + _PATIENCE_S)
        wire.send(self._socket, job.to_wire())
        answer, blobs = wire.receive(self._socket)
        if "fault" in answer:
            raise MleRlError(f"The sandbox could not set a program up: {answer['fault']}.")
        if "rejected" in answer:
            answer = {"status": "rejected", "stderr": answer["rejected"]}
        return Execution(
            status=answer["status"],
            stdout=answer.get("stdout", ""),
            stderr=answer.get("stderr", ""),
            duration_s=answer.get("duration_s", 0.0),
            cpu_s=answer.get("cpu_s", 0.0),
            peak_memory_mb=answer.get("peak_memory_mb", 0.0),
            isolation=self.isolation,
            markers=tuple(Marker(*pair) for pair in answer.get("markers", ())),
            submission=blobs[0] if answer.get("has_submission") else None,
            submission_problem=answer.get("submission_problem"),
            versions=self.versions,
        )

    def replace(self) -> None:
        """Starts a new server for one that is gone.

        Raises:
            MleRlError: The server ended by an error of its own, a fault of this library.
        """
        words = self._end()
        if self._process.returncode == launcher.FAILED:
            raise MleRlError(f"A sandbox server failed: {words}")
        self.start()
        self.greet()

    def stop(self) -> None:
        """Ends the worker for good; safe to call from another thread while it runs a job."""
        with self._lock:
            self._stopped = True
        self._end()

    def _end(self) -> str:
        """Ends the worker's processes: asks by closing the socket, and does not wait for long.

        Returns:
            The last line that they wrote.
        """
        if self._process is None:
            return ""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._socket.close()
        return self._last_words()
