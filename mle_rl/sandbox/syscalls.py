"""Linux system calls that Python 3.11 does not wrap, through ctypes.

Each function raises OSError with the call's name. Nothing here decides anything; the numbers are
those of the kernel's user-space headers, for x86-64 and for the generic table that arm64 uses.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal

_libc = ctypes.CDLL(None, use_errno=True)
MACHINE = platform.machine()

# Calls younger than the common table (5.x) have one number on every architecture.
_NUMBERS = {
    "pivot_root": {"x86_64": 155, "aarch64": 41},
    "capset": {"x86_64": 126, "aarch64": 91},
    "seccomp": {"x86_64": 317, "aarch64": 277},
    "mount_setattr": {"x86_64": 442, "aarch64": 442},
    "landlock_create_ruleset": {"x86_64": 444, "aarch64": 444},
    "landlock_add_rule": {"x86_64": 445, "aarch64": 445},
    "landlock_restrict_self": {"x86_64": 446, "aarch64": 446},
}

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
_MADV_COLLAPSE, _HUGE = 25, 2 << 20
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_SECUREBITS, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 28, 36, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
# NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE and their locks: uid 0 means nothing from here on.
_SECUREBITS_LOCKED = 0x01 | 0x02 | 0x04 | 0x08 | 0x40 | 0x80


def _check(result: int, name: str) -> int:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def syscall(name: str, *arguments) -> int:
    """Calls the kernel by name; integer arguments are passed as C longs.

    Raises:
        OSError: The kernel refused, or this architecture is not in the table (ENOSYS).
    """
    number = _NUMBERS[name].get(MACHINE)
    if number is None:
        raise OSError(38, f"{name}: no system call number known for {MACHINE}")
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _check(_libc.syscall(ctypes.c_long(number), *longs), name)


def prctl(option: int, *arguments: int) -> int:
    longs = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    return _check(_libc.prctl(option, *longs), "prctl")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    encoded = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    result = _libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None)
    _check(result, f"mount {target}")


def bind(source: str, target: str) -> None:
    mount(source, target, flags=MS_BIND | MS_REC)


def protect(target: str, attributes: int = MOUNT_ATTR_RDONLY, recursive: bool = True) -> None:
    """Sets attributes of a mount and keeps those it has (mount_setattr, Linux 5.12)."""
    attr = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    path = ctypes.c_char_p(os.fsencode(target))
    size = ctypes.sizeof(attr)
    flags = _AT_RECURSIVE if recursive else 0
    syscall("mount_setattr", _AT_FDCWD, path, flags, ctypes.byref(attr), size)


def umount(target: str, flags: int = MNT_DETACH) -> None:
    _check(_libc.umount2(os.fsencode(target), flags), f"umount {target}")


def pivot_root(new_root: str, put_old: str) -> None:
    syscall("pivot_root", *(ctypes.c_char_p(os.fsencode(p)) for p in (new_root, put_old)))


def die_with_parent() -> None:
    """SIGKILL for this process when the thread that forked it ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Descendants that lose their parent become children of this process, not of init."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_new_privileges() -> None:
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def become(uid: int | None) -> None:
    """Drops to a user without any capability, for good: no later exec gets one back.

    Args:
        uid: User and group id to run as; None stays who we are.
    """
    with contextlib.suppress(PermissionError):  # only a process that has capabilities may, and must
        prctl(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
    with contextlib.suppress(OSError):  # EINVAL past the last one that exists
        for capability in range(64):
            prctl(_PR_CAPBSET_DROP, capability)
    if uid is not None and uid != os.geteuid():
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    with contextlib.suppress(OSError):  # before Linux 4.3 there is no ambient set
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    syscall("capset", ctypes.byref(header), ctypes.byref(nothing))
    # Changing user made this process a stranger to itself; /proc/self is its own again.
    prctl(_PR_SET_DUMPABLE, 1)


def collapse_pages() -> None:
    """Gathers this process's private memory in huge pages (Linux 6.1; before, nothing happens).

    A fork then copies one entry for 2 MiB instead of 512, and the end of the child drops one.
    """
    with open("/proc/self/maps") as file:
        maps = [line.split() for line in file]
    for span, access, _, _, _, *name in maps:
        if access.startswith("rw") and name in ([], ["[heap]"]):
            start, end = (int(part, 16) for part in span.split("-"))
            start = -(-start // _HUGE) * _HUGE
            if end - start >= _HUGE:
                length = (end - start) // _HUGE * _HUGE
                _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), _MADV_COLLAPSE)
