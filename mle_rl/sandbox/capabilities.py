"""What this machine can enforce, found out by starting each tier as a pool would."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from mle_rl.errors import MleRlError
from mle_rl.sandbox import machine
from mle_rl.sandbox.pool import TIERS, fitting_workers
from mle_rl.sandbox.worker import LocalWorker


@dataclass(frozen=True)
class TierReport:
    """One tier: whether it is to be had here, and what it enforces or lacks, in words."""

    name: str
    available: bool
    words: str


@dataclass(frozen=True)
class Report:
    """What this machine can enforce; printing it gives a table.

    Attributes:
        machine: Kernel, processor, cores, memory.
        tiers: One report for each, the default first.
        workers: How many workers fit with the default limits.
    """

    machine: str
    tiers: tuple[TierReport, ...]
    workers: int

    def __str__(self) -> str:
        lines = [f"Sandbox on {self.machine}"]
        for tier in self.tiers:
            lines.append(f"  {tier.name:<11}{'yes' if tier.available else 'no':<5}{tier.words}")
        lines.append(f"  workers that fit with default limits: {self.workers}")
        return "\n".join(lines)


def check() -> Report:
    """Tries every tier. Takes about a second, and starts nothing that lasts."""
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    memory_gb = machine.memory_mb() / 1024
    return Report(
        machine=f"{system}, {machine.cores()} cores, {memory_gb:.0f} GiB",
        tiers=tuple(_try(name) for name in TIERS),
        workers=fitting_workers(),
    )


def _try(name: str) -> TierReport:
    worker = LocalWorker(name, packages=(), probe=True)
    try:
        worker.start()
        worker.greet()
    except MleRlError as error:
        return TierReport(name, False, str(error))
    finally:
        worker.stop()
    return TierReport(name, True, worker.isolation.removeprefix(f"{name}: "))
