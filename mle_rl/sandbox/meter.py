"""The memory of several processes, measured beside the watch and not in it.

What processes share counts once only if the kernel walks their page tables, and it does so when the
process that it looks at is not changing its memory. One that forks without end is nearly always
changing it, and keeps the machine so busy that it rarely goes on: measured from within, the watch
stood still for four seconds, past a time limit of two, while the number of processes grew. So a
thread waits instead. It never lives while the server forks: `join` is called when the program's
processes are dead, and then nothing holds it up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from mle_rl.sandbox.processes import proportional_mb


class Meter:
    """Takes one measurement at a time."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._began = 0.0
        self._sum_mb: float | None = None

    def begin(self, pids: Sequence[int]) -> None:
        """Begins to add up the anonymous memory of some processes, unless it is at it already."""
        if self._thread is None:
            self._began = time.monotonic()
            self._thread = threading.Thread(target=self._measure, args=(pids,), daemon=True)
            self._thread.start()

    def take(self) -> float | None:
        """The sum in MiB, once, after it is there; else None."""
        if self._sum_mb is None:
            return None
        self.join()
        sum_mb, self._sum_mb = self._sum_mb, None
        return sum_mb

    def waiting_s(self) -> float:
        """How long the present measurement has been taking, 0 when there is none."""
        busy = self._thread is not None and self._sum_mb is None
        return time.monotonic() - self._began if busy else 0.0

    def join(self) -> None:
        """Waits for its thread."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _measure(self, pids: Sequence[int]) -> None:
        self._sum_mb = sum(proportional_mb(pid) for pid in pids)
