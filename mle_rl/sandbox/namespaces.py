"""Namespaces: a machine of its own for the server, and in it one for every program.

`enter` runs once per server: new user, mount, PID, network, IPC and UTS namespaces, no root needed.
`build_root` then gives the server a root folder that holds only what `view` lists; the host's files
stay below `/host` for the server alone, so that it can bind each job's public folder, and every
program unmounts that before it starts. A program gets a mount and a PID namespace of its own within.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from mle_rl.sandbox import syscalls as sys_
from mle_rl.sandbox import view

HOME = "/home/agent"
"""Working folder and HOME of every program, its own scratch folder."""
HOST = "/host"
SCRATCH = "/scratch"
USER_ID = 1000
_STAGING = ("/tmp", "/run", "/mnt", "/var")
_ALL = (
    sys_.CLONE_NEWUSER
    | sys_.CLONE_NEWNS
    | sys_.CLONE_NEWPID
    | sys_.CLONE_NEWNET
    | sys_.CLONE_NEWIPC
    | sys_.CLONE_NEWUTS
    | sys_.CLONE_NEWCGROUP
)


def enter() -> None:
    """Moves this process into new namespaces; its next child is the first of the PID namespace.

    Raises:
        OSError: The machine does not allow it.
    """
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    if outer_uid == 0:
        os.setgroups([])
    sys_.unshare(_ALL)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{USER_ID} {outer_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{USER_ID} {outer_gid} 1")


def build_root(packages: Iterable[str]) -> None:
    """Makes the server's root folder and moves into it. Call as the PID namespace's first process.

    Args:
        packages: Names of the distributions that programs may import.
    """
    entries = view.package_entries(packages)
    site_folders = view.site_folders()
    sys_.mount("none", "/", flags=sys_.MS_REC | sys_.MS_PRIVATE)
    base = next(folder for folder in _STAGING if os.path.isdir(folder))
    sys_.mount("tmpfs", base, "tmpfs", sys_.MS_NOSUID | sys_.MS_NODEV, "mode=755,size=4m")
    os.chdir(base)
    os.mkdir(HOST[1:], 0o700)
    sys_.pivot_root(".", HOST[1:])
    os.chdir("/")
    for folder in ("/proc", "/dev/shm", "/tmp", "/etc", "/scratch", HOME):
        os.makedirs(folder, 0o755, exist_ok=True)
    sys_.mount("proc", "/proc", "proc", sys_.MS_NOSUID | sys_.MS_NODEV | sys_.MS_NOEXEC)
    for path in (*view.SYSTEM_FOLDERS, *view.interpreter_folders(), *view.SYSTEM_FILES):
        _show(path)
    for path in view.DEVICES:
        _show(path, attributes=sys_.MOUNT_ATTR_NOSUID)
    for folder in ("/dev/shm", "/tmp"):  # the server's own, for its imports; programs get theirs
        sys_.mount("tmpfs", folder, "tmpfs", sys_.MS_NOSUID | sys_.MS_NODEV, "size=1m")
    _write_etc()
    for folder in site_folders:
        _show_only(folder, entries)
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        os.symlink(f"/proc/self/fd/{fd}", f"/dev/{name}")
    os.symlink("/proc/self/fd", "/dev/fd")
    sys_.mount("none", "/", flags=sys_.MS_BIND | 32 | sys_.MS_RDONLY | sys_.MS_NOSUID)


def _show(path: str, attributes: int | None = None) -> None:
    """Shows one file or folder of the host at its own path, read-only unless told otherwise."""
    source = HOST + path
    if os.path.islink(source):
        with contextlib.suppress(FileExistsError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(os.readlink(source), path)
        return
    if not os.path.exists(source):
        return
    if not os.path.exists(path):
        _make_like(source, path)
    sys_.bind(source, path)
    readonly = sys_.MOUNT_ATTR_RDONLY | sys_.MOUNT_ATTR_NOSUID | sys_.MOUNT_ATTR_NODEV
    sys_.protect(path, readonly if attributes is None else attributes)


def _make_like(source: str, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(source):
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _show_only(folder: Path, entries: set[str]) -> None:
    """Covers a folder of installed packages so that only some entries are left, none of the rest."""
    sys_.mount("tmpfs", str(folder), "tmpfs", sys_.MS_NOSUID | sys_.MS_NODEV, "mode=755,size=4m")
    for entry in sorted(entries):
        if os.path.exists(HOST + str(folder / entry)):
            _show(str(folder / entry))
    for inner in view.ANSWER_SOURCES:
        if os.path.isdir(folder / inner):
            sys_.mount("tmpfs", str(folder / inner), "tmpfs", sys_.MS_RDONLY, "size=4k,mode=755")
    sys_.protect(str(folder), sys_.MOUNT_ATTR_RDONLY)


def _write_etc() -> None:
    user = f"agent:x:{USER_ID}:{USER_ID}::{HOME}:/bin/sh\n"
    files = {
        "passwd": user,
        "group": f"agent:x:{USER_ID}:\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "hosts": "127.0.0.1 localhost\n",
    }
    for name, text in files.items():
        Path("/etc", name).write_text(text)


def enter_program(public_dir: str) -> None:
    """In a program's process, before anything hostile: own mounts, the host's files gone.

    The server has mounted the program's scratch space at `/scratch`; it appears as the home folder,
    `/tmp` and `/dev/shm`, all within one quota.
    """
    sys_.unshare(sys_.CLONE_NEWNS)
    for inner, target in (("home", HOME), ("tmp", "/tmp"), ("shm", "/dev/shm")):
        sys_.bind(f"{SCRATCH}/{inner}", target)
    sys_.bind(HOST + public_dir, f"{HOME}/input")
    readonly = sys_.MOUNT_ATTR_RDONLY | sys_.MOUNT_ATTR_NOSUID | sys_.MOUNT_ATTR_NODEV
    sys_.protect(f"{HOME}/input", readonly)
    flags = sys_.MS_NOSUID | sys_.MS_NODEV | sys_.MS_NOEXEC | sys_.MS_RDONLY
    sys_.mount("proc", "/proc", "proc", flags)
    sys_.umount(HOST)
    sys_.umount(SCRATCH)
    os.chdir(HOME)


def mount_scratch(size_mb: int) -> None:
    """In the server: the next program's scratch space, with a quota that the kernel enforces."""
    options = f"size={size_mb}m,nr_inodes={max(1024, size_mb * 256)},mode=755"
    flags = sys_.MS_NOSUID | sys_.MS_NODEV
    sys_.mount("tmpfs", SCRATCH, "tmpfs", flags, options)
    os.mkdir(f"{SCRATCH}/home", 0o755)
    os.mkdir(f"{SCRATCH}/home/input", 0o755)
    os.mkdir(f"{SCRATCH}/tmp", 0o1777)
    os.mkdir(f"{SCRATCH}/shm", 0o1777)


def unmount_scratch() -> None:
    sys_.umount(SCRATCH)
