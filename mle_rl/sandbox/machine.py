"""Cores and memory that this process may use: the machine's, or less in a container."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Whole cores: those that this process is bound to, or what its container's quota comes to."""
    bound = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, ValueError):  # version 2; "max" is no number
        quota, period = (CGROUPS / "cpu.max").read_text().split()
        return max(1, min(bound, int(quota) // int(period)))
    with contextlib.suppress(OSError, ValueError):  # version 1; -1 is no quota
        quota = int((CGROUPS / "cpu/cpu.cfs_quota_us").read_text())
        period = int((CGROUPS / "cpu/cpu.cfs_period_us").read_text())
        return max(1, min(bound, quota // period)) if quota > 0 else bound
    return bound


def memory_mb() -> float:
    """MiB: what is built in, or what the container may use."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int((CGROUPS / name).read_text()))
    return min(found) / 2**20
