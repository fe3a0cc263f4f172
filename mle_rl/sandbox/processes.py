"""What the kernel says about processes: who descends from whom, memory, threads."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

_PF_EXITING = 4
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def all_processes() -> list[int]:
    """Every process that /proc shows: those of this PID namespace."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root: int) -> list[int]:
    """All processes that descend from one; complete when root adopts orphans (a subreaper)."""
    parents = {pid: _parent(pid) for pid in all_processes()}
    found: list[int] = []
    frontier = {root}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found += frontier
    return found


def kill_all(find: Callable[[], list[int]]) -> None:
    """SIGKILL to all processes that find returns, until it returns no new ones.

    What has been sent the signal forks no more, but it may have forked while others were looked up.
    """
    sent: set[int] = set()
    while new := set(find()) - sent:
        sent |= new
        for pid in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def kill_descendants() -> float:
    """Kills and reaps all descendants of this process until none is left.

    Returns:
        Their CPU time in seconds.
    """
    cpu_s = 0.0
    try:
        while True:
            kill_all(lambda: descendants(os.getpid()))
            pid, _, usage = os.wait4(-1, 0)
            while pid:  # all that have ended by now; looking anew after each would take too long
                cpu_s += usage.ru_utime + usage.ru_stime
                pid, _, usage = os.wait4(-1, os.WNOHANG)
    except ChildProcessError:
        return cpu_s


def running(pid: int) -> bool:
    """Whether a process is there and has not begun to end."""
    fields = _stat(pid)
    return fields[0] not in (b"0", b"Z", b"X") and not int(fields[6]) & _PF_EXITING


def cpu_time_s(pid: int) -> float:
    """CPU time of a process and of children that it has waited for; 0 when it is gone."""
    return sum(int(ticks) for ticks in _stat(pid)[11:15]) / _TICKS_PER_S


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[bytes]:
    """Fields of /proc/<pid>/stat from the third on; zeros when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return [b"0"] * 50


def memory_and_threads(pid: int) -> tuple[float, int]:
    """Anonymous resident memory in MiB and number of threads; zeros when the process is gone."""
    anonymous_kb = threads = 0
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file.read().splitlines():
                if line.startswith(b"RssAnon:"):
                    anonymous_kb = int(line.split()[1])
                elif line.startswith(b"Threads:"):
                    threads = int(line.split()[1])
    except OSError:
        return 0.0, 0
    return anonymous_kb / 1024, threads


def threads_of_user() -> int:
    """Threads that run under this process's real user, as far as /proc shows them."""
    uid, threads = os.getuid(), 0
    for pid in all_processes():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file.read().splitlines())
            threads += int(fields[b"Threads"]) if int(fields[b"Uid"].split()[0]) == uid else 0
    return threads


def proportional_mb(pid: int) -> float:
    """Anonymous memory in MiB, a page that several processes share split among them.

    Exact but slow, for the kernel walks the page tables; 0 when the process is gone.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss_Anon:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass  # ended meanwhile
    return 0.0
