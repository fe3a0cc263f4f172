"""Files that are whole whenever the process is killed, and locks that end with it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO

from mle_rl.errors import MleRlError


def write_whole(path: Path, text: str) -> None:
    """Write a text file that is there as a whole or not at all, whenever the process is killed."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def hold(file: TextIO, otherwise: str) -> None:
    """Lock an open file; the lock goes with the process, however it ends.

    Raises:
        MleRlError: Another process holds it; the message is ``otherwise``.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MleRlError(otherwise) from None
