"""Numbers that tell the workers of a machine apart, in whichever process they are.

The number of a worker chooses the cores that its programs are bound to. If every pool counted from
0, programs of two pools would share a core while another idles.

A number is claimed by giving a Unix socket its name. The kernel gives a name away once, and takes
it back when the process that has it ends, however it ends: there is no file that could be left
behind, belong to another user or not be writable. Processes that do not share a network, as those
of two containers, do not see each other's names and may choose the same cores.
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

NAME = "mle-rl-worker"


@dataclass(frozen=True)
class Slot:
    """The number of a worker, from 0, and what keeps it from others.

    Child processes that are forked, without a new program, keep it too.
    """

    number: int
    name: socket.socket

    def free(self) -> None:
        """Lets others have it."""
        self.name.close()


def claim(count: int) -> list[Slot]:
    """The first ``count`` consecutive numbers that no worker on this machine has.

    Consecutive, for then they are spread evenly over the cores, whatever else is there.
    """
    slots: list[Slot] = []
    number = 0
    while len(slots) < count:
        slot = _claim(number)
        if slot is not None:
            slots.append(slot)
        else:
            for earlier in slots:
                earlier.free()
            slots = []
        number += 1
    return slots


def _claim(number: int) -> Slot | None:
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0{NAME}-{number}")
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            name.close()
            return None
        # Names are not to be had here: the worker shares its cores with whoever comes.
    return Slot(number, name)
