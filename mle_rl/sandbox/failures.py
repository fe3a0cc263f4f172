"""Every way in which a program can fail: one status and one sentence.

The sentence travels in `Execution.reason`. Like the status it comes from the kernel and from what
the server saw, never from the program. `mle_rl.sandbox` shows all of them in its documentation.
"""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass
from typing import Any

from mle_rl.records import Limits, Status

LONGEST_SOURCE = 1 << 20
"""Bytes that a program may have."""


@dataclass(frozen=True)
class Failure:
    """A way to fail. Its sentence has places for fields of `Limits` and, for some, for `detail`."""

    status: Status
    sentence: str

    def reason(self, limits: Limits | None = None, detail: object = None) -> str:
        """The sentence with its places filled."""
        fields: dict[str, Any] = asdict(limits or Limits())
        return self.sentence.format(**fields, detail=detail)


EXIT = Failure("error", "The program ended with exit status {detail}.")
SIGNAL = Failure("error", "The program crashed: the kernel sent it {detail}.")
TIME = Failure("timeout", "The program did not end within {timeout_s:g} s.")
MEMORY = Failure("out_of_memory", "The program used more than {memory_mb} MiB of memory.")
PROCESSES = Failure("killed", "The program had more than {processes} processes and threads.")
DISK = Failure("killed", "The program's files took more than {disk_mb} MiB, or were far too many.")
SIGKILL = Failure("killed", "The program was killed by a SIGKILL of its own or of the machine.")
LOST = Failure("killed", "The sandbox was killed twice while the program ran.")
NOT_TEXT = Failure("rejected", "The program is not text: it holds half a surrogate pair.")
TOO_LONG = Failure("rejected", f"The program is longer than {LONGEST_SOURCE} bytes.")
NO_PROGRAM = Failure("rejected", "The completion holds no complete program.")

FAILURES = (
    *(EXIT, SIGNAL, TIME, MEMORY, PROCESSES, DISK, SIGKILL, LOST),
    *(NOT_TEXT, TOO_LONG, NO_PROGRAM),
)


def signal_name(number: int) -> str:
    """How a signal is called, real-time signals included."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
