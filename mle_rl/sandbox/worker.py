"""One worker, seen from the pool: a launcher with its server, and the socket to it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import BinaryIO

from mle_rl.errors import MleRlError
from mle_rl.records import Execution, Marker
from mle_rl.sandbox import job as wire
from mle_rl.sandbox import launcher
from mle_rl.sandbox.backlog import WorkerLost
from mle_rl.sandbox.environment import environment
from mle_rl.sandbox.job import Job
from mle_rl.sandbox.slots import Slot

_PATIENCE_S = 120.0
_GRACE_S = 2.0
_STARTS = 10


class LocalWorker:
    """Starts a server, talks to it, starts another when it is gone.

    Args:
        tier, packages: As for `LocalPool`.
        slot: Chooses the cores of its programs; freed with the worker.
        probe: Start only as much as it takes to know the isolation, for `greet`.

    `run` and `replace` belong to one thread; `stop` may be called from any.

    Attributes:
        isolation, versions: What the server reported; empty before `greet`.
    """

    def __init__(
        self, tier: str, packages: Sequence[str], slot: Slot | None = None, probe: bool = False
    ) -> None:
        self._tier, self._packages, self._slot, self._probe = tier, list(packages), slot, probe
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen | None = None
        self.isolation = ""
        self.versions: dict[str, str] = {}

    def start(self) -> None:
        """Starts the processes, without waiting for them.

        Raises:
            WorkerLost: The worker has been stopped.
            OSError: The system allows no more processes or open files; none is left open.
        """
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as opened:
            opened.enter_context(ours)
            errors = opened.enter_context(tempfile.TemporaryFile())
            self._launch(ours, theirs, errors)
            opened.pop_all()  # they stay open as long as the server

    def _launch(self, ours: socket.socket, theirs: socket.socket, errors: BinaryIO) -> None:
        arguments = {
            "root": launcher.package_root(),
            "control_fd": theirs.fileno(),
            "tier": self._tier,
            "pool_pid": os.getpid(),
            "packages": self._packages,
            "slot": self._slot.number if self._slot else 0,
            "probe": self._probe,
        }
        with self._lock:
            if self._stopped:
                raise WorkerLost
            self._process = subprocess.Popen(
                launcher.command(),
                env=environment("/", 1),
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            self._socket, self._errors = ours, errors
            with contextlib.suppress(BrokenPipeError), self._process.stdin as stdin:
                stdin.write(json.dumps(arguments).encode())

    def greet(self) -> None:
        """Waits until the server is warm; one that is killed before that is started anew.

        Raises:
            MleRlError: It does not start, or this machine cannot enforce the tier.
            WorkerLost: The worker has been stopped.
        """
        for _ in range(_STARTS):
            hello = self._hello()
            if hello is not None:
                break
            self.start()
        else:
            raise MleRlError(f"A sandbox server was killed {_STARTS} times while it started.")
        if "missing" in hello:
            raise MleRlError(
                f"The sandbox tier {self._tier!r} needs {hello['missing']}; this machine does not "
                "give it. `python -m mle_rl check` shows what it gives; "
                "tier='limits' runs here, but isolates nothing."
            )
        self.isolation, self.versions = hello["isolation"], hello["versions"]

    def _hello(self) -> dict | None:
        """What a server says when it is warm; None when it was killed before that.

        Raises:
            MleRlError: It ended by an error of its own, or takes too long.
        """
        try:
            self._socket.settimeout(_PATIENCE_S)
            return wire.receive(self._socket)[0]
        except TimeoutError:
            self._end()
            raise MleRlError(
                f"A sandbox server was not ready within {_PATIENCE_S:.0f} s; is the machine busy?"
            ) from None
        except (EOFError, OSError):
            words = self._end()
            if self._process.returncode == launcher.FAILED:
                raise MleRlError(f"A sandbox server did not start: {words}.") from None
            return None

    def run(self, job: Job) -> Execution:
        """Runs one job.

        Raises:
            WorkerLost: The server was killed, or what holds the program, or there is no answer long
                after the time limit.
            MleRlError: The sandbox failed to set the program up.
        """
        try:
            self._socket.settimeout(job.limits.timeout_s + _PATIENCE_S)
            wire.send(self._socket, job.to_wire())
            answer, blobs = wire.receive(self._socket)
        except (EOFError, OSError):
            raise WorkerLost from None
        if "lost" in answer:  # killed by somebody else, before it began or together with its jail
            raise WorkerLost
        if "fault" in answer:
            raise MleRlError(f"The sandbox could not set a program up: {answer['fault']}.")
        return Execution(
            status=answer["status"],
            stdout=answer["stdout"],
            stderr=answer["stderr"],
            duration_s=answer["duration_s"],
            cpu_s=answer["cpu_s"],
            peak_memory_mb=answer["peak_memory_mb"],
            isolation=self.isolation,
            markers=tuple(Marker(*pair) for pair in answer["markers"]),
            submission=blobs[0] if blobs else None,
            submission_problem=answer["submission_problem"],
            versions=self.versions,
            reason=answer["reason"],
        )

    def replace(self) -> None:
        """Starts a new server for one that is lost, and waits for it.

        Raises:
            WorkerLost: The worker has been stopped.
            MleRlError: The server ended by an error of its own, which is a bug of this library.
            OSError: The system allows no more processes or open files.
        """
        words = self._end()
        if self._process.returncode == launcher.FAILED:
            raise MleRlError(f"A sandbox server failed: {words}.")
        self.start()
        self.greet()

    def stop(self) -> None:
        """Ends all processes, for good."""
        with self._lock:
            self._stopped = True
        self._end()
        if self._slot:
            self._slot.free()

    def _end(self) -> str:
        """Asks for the end by closing the socket, does not wait long; returns the last words."""
        if self._process is None:
            return ""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(ValueError):  # closed by another thread that ends the worker too
            self._errors.seek(0)
            words = self._errors.read().decode("utf-8", "replace").split("\n")
            self._errors.close()
            self._socket.close()
            return next((line for line in reversed(words) if line.strip()), "it left no word")
        return ""
