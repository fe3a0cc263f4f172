"""Watching one program from outside: time, memory, processes, disk, output, markers.

Everything here is read from the kernel by the server, a process that the program cannot reach. The
program's own interpreter is never asked how it went.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import time
from dataclasses import dataclass, field

from mle_rl.records import STAGES, Limits
from mle_rl.sandbox.jail import Jail
from mle_rl.sandbox.processes import cpu_time_s, memory_and_threads, proportional_mb

_TICK_S = 0.02
_SETUP_S = 20.0
_MARKER_BYTES = 1 << 20
_CHUNK = 1 << 16


class BoundedText:
    """Keeps the first and the last half of what arrives, and counts the rest."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head, self._tail = bytearray(), bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 4 * self._half:
            self._trim()

    def _trim(self) -> None:
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._left_out += excess

    def text(self) -> str:
        self._trim()
        note = f"\n... {self._left_out} bytes left out ...\n".encode() if self._left_out else b""
        return (bytes(self._head) + note + bytes(self._tail)).decode("utf-8", "replace")


class Markers:
    """Stages reported with this run's secret: the order of first reports, the last values."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._rest = b""
        self._read = 0
        self.reached: dict[str, float | None] = {}

    def add(self, data: bytes) -> None:
        self._read += len(data)
        if self._read > _MARKER_BYTES:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, RecursionError, OverflowError):
                nonce, stage, value = json.loads(line)
                if nonce == self._nonce and stage in STAGES:
                    self.reached[stage] = _number(value)


def _number(value: object) -> float | None:
    """A marker's value.

    Raises:
        ValueError, OverflowError: It is neither None nor a finite number.
    """
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError
    return float(value)


@dataclass
class Watched:
    """What was seen of one program."""

    ready: bool = False
    intact: bool = True
    fault: str | None = None
    started_at: float | None = None
    cpu_before_s: float = 0.0
    rss_before_mb: float = 0.0
    wait_status: int = 0
    ended_at: float = 0.0
    cpu_s: float = 0.0
    max_rss_mb: float = 0.0
    peak_mb: float = 0.0
    verdict: str | None = None
    stdout: str = ""
    stderr: str = ""
    markers: dict[str, float | None] = field(default_factory=dict)


class Orphaned(Exception):
    """The pool is gone; nobody waits for a result."""


def watch(
    pid: int, jail: Jail, limits: Limits, nonce: str, reads: dict[str, int], control_fd: int
) -> Watched:
    """Follows a program until it has ended or has to be ended; its whole tree is dead on return.

    Args:
        reads: Read ends named stdout, stderr, markers, setup.
        control_fd: The socket to the pool; its end is the end of the program too.

    Raises:
        Orphaned: The pool is gone.
    """
    return _Watch(pid, jail, limits, nonce, reads, control_fd).run()


class _Watch:
    def __init__(self, pid, jail, limits, nonce, reads, control_fd) -> None:
        self.pid, self.jail, self.limits = pid, jail, limits
        self.reads, self.control_fd = dict(reads), control_fd
        self.seen = Watched()
        self.output = {name: BoundedText(limits.output_bytes) for name in ("stdout", "stderr")}
        self.markers = Markers(nonce)
        self.setup = b""
        self.base_mb = memory_and_threads(os.getpid())[0]
        self.forked_at = time.monotonic()

    def run(self) -> Watched:
        seen = self.seen
        poll = select.poll()
        names = {fd: name for name, fd in self.reads.items()}
        for fd in names:
            os.set_blocking(fd, False)
            poll.register(fd, select.POLLIN)
        process = os.pidfd_open(self.pid)
        poll.register(process, select.POLLIN)
        poll.register(self.control_fd, select.POLLIN)
        next_tick = self.forked_at + _TICK_S
        try:
            while True:
                wait_s = max(0.0, min(next_tick, self._deadline()) - time.monotonic())
                events = poll.poll(math.ceil(wait_s * 1000))
                now = time.monotonic()
                ready = [fd for fd, _ in events]
                if process in ready:
                    seen.ended_at = now
                    break
                if self.control_fd in ready:
                    raise Orphaned
                for fd in ready:
                    if not self._read(names[fd]):
                        poll.unregister(fd)
                if now >= self._deadline():
                    seen.verdict = "timeout"
                    break
                if now >= next_tick:
                    next_tick = now + _TICK_S
                    seen.verdict = self._exceeded()
                    if seen.verdict:
                        break
        finally:
            os.close(process)
            self._end()
        for name in self.reads:
            while self._read(name):
                pass
        seen.stdout, seen.stderr = (self.output[n].text() for n in ("stdout", "stderr"))
        seen.markers = self.markers.reached
        return seen

    def _deadline(self) -> float:
        if self.seen.started_at is None:
            return self.forked_at + _SETUP_S + self.limits.timeout_s
        return self.seen.started_at + self.limits.timeout_s

    def _end(self) -> None:
        """Kills what is left and takes the exact account of time and memory from the kernel."""
        # The kernel forgets the times of those that it kills together with their namespace.
        left = [pid for pid in self.jail.processes() if pid != self.pid]
        left_cpu_s = sum(cpu_time_s(pid) for pid in left)
        self.seen.intact = self.jail.intact()
        self.jail.kill()
        _, self.seen.wait_status, usage = os.wait4(self.pid, 0)
        self.seen.ended_at = self.seen.ended_at or time.monotonic()
        self.seen.max_rss_mb = usage.ru_maxrss / 1024
        self.seen.cpu_s = usage.ru_utime + usage.ru_stime + left_cpu_s + self.jail.end()

    def _read(self, name: str) -> bool:
        """Takes what is there; False when there is no more, for now or for ever."""
        try:
            data = os.read(self.reads[name], _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            return False
        if name in self.output:
            self.output[name].add(data)
        elif name == "markers":
            self.markers.add(data)
        else:
            self.setup += data
            self._read_setup()
        return True

    def _read_setup(self) -> None:
        *lines, self.setup = self.setup.split(b"\n")
        for line in lines:
            word, _, rest = line.decode("utf-8", "replace").partition(" ")
            if word == "ready":
                self.seen.ready, self.seen.rss_before_mb = True, float(rest)
            elif word == "go":
                started, cpu = rest.split()
                self.seen.started_at, self.seen.cpu_before_s = float(started), float(cpu)
            else:
                self.seen.fault = rest

    def _exceeded(self) -> str | None:
        """Takes a sample; says how the program has to end if it exceeds a limit."""
        pids = self.jail.processes()
        samples = [memory_and_threads(pid) for pid in pids]
        threads = sum(count for _, count in samples)
        scratch_mb = self.jail.scratch_used_mb()
        files_mb = scratch_mb if self.jail.scratch_in_memory else 0.0
        # Every process counts pages it still shares with the server; one share is the server's.
        used_mb = sum(memory for memory, _ in samples) - self.base_mb + files_mb
        if used_mb > self.limits.memory_mb and len(pids) > 1:
            used_mb = sum(proportional_mb(pid) for pid in pids) + files_mb
        self.seen.peak_mb = max(self.seen.peak_mb, used_mb)
        if used_mb > self.limits.memory_mb:
            return "out_of_memory"
        if threads > self.limits.processes + 1 or scratch_mb > 1.05 * self.limits.disk_mb:
            return "killed"
        return None
