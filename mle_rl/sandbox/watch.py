"""Watching one program from outside: time, memory, processes, disk, output, markers.

Everything here is read from the kernel by the server, a process that the program cannot reach. The
program's own interpreter is never asked how it went.
"""

from __future__ import annotations

import math
import os
import select
import time
from dataclasses import dataclass, field

from mle_rl.records import Limits
from mle_rl.sandbox import failures
from mle_rl.sandbox.failures import Failure
from mle_rl.sandbox.jail import Jail
from mle_rl.sandbox.meter import Meter
from mle_rl.sandbox.output import BoundedText, Markers
from mle_rl.sandbox.processes import cpu_time_s, memory_and_threads

_TICK_S = 0.02
_SELDOM = 10
_SETUP_S = 20.0
_BLIND_S = 1.0
"""After so long without an exact sum of memory a rough one has to do."""
_CHUNK = 1 << 16


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
    verdict: Failure | None = None
    stdout: str = ""
    stderr: str = ""
    markers: dict[str, float | None] = field(default_factory=dict)


class Orphaned(Exception):
    """The pool is gone; nobody waits for a result."""


def watch(
    pid: int, jail: Jail, limits: Limits, markers: Markers, reads: dict[str, int], control_fd: int
) -> Watched:
    """Follows a program until it has ended or has to be ended; its whole tree is dead on return.

    Args:
        markers: Takes what comes over the marker channel.
        reads: Read ends named stdout, stderr, markers, setup.
        control_fd: The socket to the pool; its end is the end of the program too.

    Raises:
        Orphaned: The pool is gone.
    """
    watcher = _Watcher(pid, jail, limits, markers, reads)
    process = os.pidfd_open(pid)
    try:
        watcher.follow(process, control_fd)
    finally:
        os.close(process)
        watcher.end()
    return watcher.seen


class _Watcher:
    def __init__(
        self, pid: int, jail: Jail, limits: Limits, markers: Markers, reads: dict[str, int]
    ) -> None:
        self.pid, self.jail, self.limits, self.reads = pid, jail, limits, reads
        self.seen = Watched()
        self.output = {name: BoundedText(limits.output_bytes) for name in ("stdout", "stderr")}
        self.markers = markers
        self.setup = b""
        self.meter = Meter()
        self.base_mb = memory_and_threads(os.getpid())[0]
        self.forked_at = time.monotonic()
        self.ticks = 0

    def follow(self, process: int, control_fd: int) -> None:
        """Reads and takes samples until the program ends by itself or a limit is exceeded."""
        names = {fd: name for name, fd in self.reads.items()}
        poll = select.poll()
        for fd in (*names, process, control_fd):
            poll.register(fd, select.POLLIN)
        for fd in names:
            os.set_blocking(fd, False)
        next_tick = self.forked_at + _TICK_S
        while not self.seen.verdict:
            wait_s = max(0.0, min(next_tick, self._deadline()) - time.monotonic())
            ready = [fd for fd, _ in poll.poll(math.ceil(1000 * wait_s))]
            now = time.monotonic()
            if process in ready:
                self.seen.ended_at = now
                return
            if control_fd in ready:
                raise Orphaned
            for fd in ready:
                if self._read(names[fd]) == b"":
                    poll.unregister(fd)
            if now >= self._deadline():
                self.seen.verdict = failures.TIME
            elif now >= next_tick:
                next_tick = now + _TICK_S
                self.seen.verdict = self._exceeded()

    def end(self) -> None:
        """Kills what is left, then takes what the pipes hold and the kernel's account."""
        seen = self.seen
        # The kernel forgets the times of those that it kills together with their namespace.
        left = [pid for pid in self.jail.processes() if pid != self.pid]
        left_cpu_s = sum(cpu_time_s(pid) for pid in left)
        seen.intact = self.jail.intact()
        self.jail.kill()
        _, seen.wait_status, usage = os.wait4(self.pid, 0)
        seen.ended_at = seen.ended_at or time.monotonic()
        seen.max_rss_mb = usage.ru_maxrss / 1024
        seen.cpu_s = usage.ru_utime + usage.ru_stime + left_cpu_s + self.jail.end()
        self.meter.join()
        for name in self.reads:
            while self._read(name):
                pass
        seen.stdout, seen.stderr = (self.output[n].text() for n in ("stdout", "stderr"))
        seen.markers = self.markers.reached

    def _deadline(self) -> float:
        if self.seen.started_at is None:
            return self.forked_at + _SETUP_S + self.limits.timeout_s
        return self.seen.started_at + self.limits.timeout_s

    def _read(self, name: str) -> bytes | None:
        """Takes a piece of what is there: None when there is nothing now, empty at the end."""
        try:
            data = os.read(self.reads[name], _CHUNK)
        except BlockingIOError:
            return None
        if name in self.output:
            self.output[name].add(data)
        elif name == "markers":
            self.markers.add(data)
        else:
            self.setup += data
            self._read_setup()
        return data

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

    def _exceeded(self) -> Failure | None:
        """Takes a sample; says how the program has to end if it exceeds a limit."""
        self.ticks += 1
        seldom = self.ticks % _SELDOM == 0
        limits, jail = self.limits, self.jail
        pids = jail.processes()
        samples = [memory_and_threads(pid) for pid in pids]
        if sum(threads for _, threads in samples) > limits.processes + 1:
            return failures.PROCESSES
        files_mb = 0.0
        if jail.scratch_in_memory or seldom:  # a folder on disk takes long to add up
            used_mb = jail.scratch_used_mb()
            if used_mb > 1.05 * limits.disk_mb:
                return failures.DISK
            files_mb = used_mb if jail.scratch_in_memory else 0.0
        memories = [memory for memory, _ in samples]
        memory_mb = sum(memories) - self.base_mb + files_mb
        if len(pids) > 1:
            memory_mb = self._memory_of_several(pids, memories, seldom) + files_mb
        self.seen.peak_mb = max(self.seen.peak_mb, memory_mb)
        return failures.MEMORY if memory_mb > limits.memory_mb else None

    def _memory_of_several(self, pids: list[int], memories: list[float], seldom: bool) -> float:
        """What several processes take beyond the server's share, in MiB; 0 if not known now.

        Each counts the pages that it shares with the server and with the others: too much, but
        quick. The exact sum is taken now and then, and when it matters.
        """
        if seldom or sum(memories) - self.base_mb > self.limits.memory_mb:
            self.meter.begin([os.getpid(), *pids])
        if (exact_mb := self.meter.take()) is not None:
            return exact_mb - self.base_mb
        if self.meter.waiting_s() > _BLIND_S:
            return sum(max(0.0, memory - self.base_mb) for memory in memories)
        return 0.0
