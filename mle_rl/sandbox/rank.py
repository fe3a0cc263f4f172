"""The server outranks the programs that it watches, where the kernel does not count them.

RLIMIT_NPROC does not bind root. Where a program keeps root's number, only the server ends a fork
bomb, and it is one process among all those of the bomb that want the cores: the more there are, the
later it looks. With a real-time priority it looks in time, however many there are.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable


def allow() -> None:
    """In the launcher, while it has root's powers: the server may rise when it has them no more."""
    with contextlib.suppress(OSError, ValueError):  # only root may, and only root's server needs it
        resource.setrlimit(resource.RLIMIT_RTPRIO, (1, 1))


def fork_below(fork: Callable[[], int]) -> int:
    """Forks a process that keeps the rank this one had in the beginning, and rises above it.

    Returns:
        What fork returns.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)  # that of the beginning: rising does not change it
    pid = fork()
    with contextlib.suppress(PermissionError):  # where `allow` was not allowed
        if pid == 0:
            os.setpriority(os.PRIO_PROCESS, 0, nice)
        else:
            policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, policy, os.sched_param(1))
    return pid
