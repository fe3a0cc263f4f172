"""Landlock: a process gives up the file system, TCP, and signals to others, for good.

No privilege and no package is needed (Linux 5.13). What a kernel's version of Landlock does not
know is left out of the ruleset. Version 6 and newer close everything that matters here (signals and
abstract sockets came with it); older ones need namespaces beside them.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

from mle_rl.sandbox.syscalls import syscall

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE = 1 << 14
_ALL_OF_ABI_1 = (1 << 13) - 1
# Rights that an ABI version adds: 2 REFER, 3 TRUNCATE, 5 IOCTL_DEV.
_ADDED = {2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
_TCP = (1 << 0) | (1 << 1)  # ABI 4: bind, connect
_SCOPES = (1 << 0) | (1 << 1)  # ABI 6: abstract Unix sockets, signals
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | (1 << 15)
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_CREATE_RULESET_VERSION, _RULE_PATH_BENEATH = 1, 1


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def abi() -> int:
    """The kernel's Landlock version, 0 where there is none or it is switched off."""
    try:
        return syscall("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def restrict(
    version: int,
    read: Iterable[str],
    write: Iterable[str],
    devices: Iterable[str] = (),
    listing: Iterable[str] = (),
) -> None:
    """Confines the calling thread and all it starts; needs no_new_privs to be set.

    Args:
        version: What `abi` returned.
        read: Folders and files that stay readable and executable.
        write: Folders that stay writable too, device nodes excepted.
        devices: Files that may be opened for reading and writing.
        listing: Folders whose names may be listed, all the way down, though nothing is readable.

    Raises:
        OSError: A path is missing or the kernel refused.
    """
    handled = _ALL_OF_ABI_1
    for since, right in _ADDED.items():
        handled |= right if version >= since else 0
    ruleset = _Ruleset(handled, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    fd = syscall("landlock_create_ruleset", ctypes.byref(ruleset), size, 0)
    try:
        for path in read:
            _allow(fd, path, handled & _READ)
        for path in write:
            _allow(fd, path, handled & ~(_MAKE_CHAR | _MAKE_BLOCK))
        for path in devices:
            _allow(fd, path, handled & (_READ_FILE | _WRITE_FILE))
        for path in listing:
            _allow(fd, path, _READ_DIR)
        syscall("landlock_restrict_self", fd, 0)
    finally:
        os.close(fd)


def _allow(ruleset_fd: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _OF_A_FILE
        rule = _PathBeneath(rights, fd)
        syscall("landlock_add_rule", ruleset_fd, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(fd)
