"""Removing a folder that a hostile program has filled, without being led out of it.

A recursive removal follows mounts: a program that binds ``/`` into its scratch folder would have
the sandbox delete the machine. Programs have no capability to mount, in any tier; this is the
second lock on the same door.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from mle_rl.sandbox import syscalls as sys_

_MOUNTS = Path("/proc/self/mountinfo")


def mount_points_below(folder: str) -> list[str]:
    """Mount points inside a folder, or the folder itself, in the order in which they were made."""
    root = os.path.realpath(folder)
    # Bytes: the kernel escapes its own separators, but not the many others that text has.
    lines = _MOUNTS.read_bytes().split(b"\n")
    points = [_unescaped(os.fsdecode(line.split(b" ")[4])) for line in lines if line]
    return [point for point in points if point == root or point.startswith(root + "/")]


def remove_tree(folder: str) -> None:
    """Removes a folder and all that is in it; what is mounted there is detached, never entered.

    Raises:
        OSError: Something is mounted inside and cannot be detached, or the table of mounts cannot
            be read; nothing is removed then.
    """
    for point in reversed(mount_points_below(folder)):
        sys_.umount(point)
    if left := mount_points_below(folder):
        raise OSError(f"{left[0]} is mounted inside a scratch folder, which is therefore kept")
    # shutil.rmtree gives up on folders that are nested too deep or not writable.
    for remove in (["chmod", "-R", "u+rwX"], ["rm", "-rf", "--one-file-system"]):
        subprocess.run([*remove, folder], capture_output=True, check=False)


def _unescaped(path: str) -> str:
    """Octal escapes of the mount table (space, tab, newline, backslash)."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path
