"""What to run, and how the pool and its servers tell each other about it."""

from __future__ import annotations

import dataclasses
import json
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mle_rl.records import Limits

if TYPE_CHECKING:
    from mle_rl.instrumentation import Insertion

_LENGTHS = struct.Struct("!II")


@dataclass(frozen=True)
class Job:
    """One program to run.

    Attributes:
        code: The program as the policy wrote it, without instrumentation.
        public_dir: The task's public folder; the program sees it, read-only, as ``./input``.
        insertions: Where stage markers go; see `mle_rl.instrumentation`.
        limits: What the program may use.
        seed: Seeds ``random`` and ``numpy.random`` of the program.
    """

    code: str
    public_dir: Path
    insertions: tuple[Insertion, ...] = ()
    limits: Limits = field(default_factory=Limits)
    seed: int = 0

    def to_wire(self) -> dict[str, Any]:
        """Plain values for JSON; the public folder with every link resolved."""
        return {
            "code": self.code,
            "public_dir": str(Path(self.public_dir).resolve()),
            "insertions": [dataclasses.asdict(insertion) for insertion in self.insertions],
            "limits": dataclasses.asdict(self.limits),
            "seed": self.seed,
        }


def send(sock: socket.socket, message: dict[str, Any], *blobs: bytes) -> None:
    """Sends one message: JSON, then byte strings whose lengths it carries."""
    header = json.dumps({**message, "blobs": [len(blob) for blob in blobs]}).encode()
    body = b"".join(blobs)
    sock.sendall(_LENGTHS.pack(len(header), len(body)) + header + body)


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[bytes]]:
    """Receives one message.

    Raises:
        EOFError: The other side is gone.
    """
    header_length, body_length = _LENGTHS.unpack(_exactly(sock, _LENGTHS.size))
    message = json.loads(_exactly(sock, header_length))
    body = _exactly(sock, body_length)
    blobs, start = [], 0
    for length in message.pop("blobs"):
        blobs.append(body[start : start + length])
        start += length
    return message, blobs


def _exactly(sock: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        chunk = sock.recv(min(length - len(data), 1 << 20))
        if not chunk:
            raise EOFError("the other side of the socket is gone")
        data += chunk
    return bytes(data)
