"""What arrives from a program while it runs: bounded text, and the stages that it reached."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Collection

from mle_rl.records import STAGES

_MARKER_BYTES = 1 << 20


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
    """Stages reported with this run's secret: the order of first reports, the last values.

    Args:
        nonce: The secret.
        stages: Those that are observed in this program; whatever says another does not count.
    """

    def __init__(self, nonce: str, stages: Collection[str] = STAGES) -> None:
        self._nonce = nonce
        self._stages = frozenset(stages)
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
                if nonce == self._nonce and stage in self._stages:
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
