"""Namespaces: a machine of its own for the server, and in it one for every program.

`enter` runs once per server: new user, mount, PID, network, IPC and UTS namespaces, no root needed.
`build_root` then gives the server a root folder that holds only what `view` lists; the host's files
stay below `/host` for the server alone, so that it can bind each job's public folder, and every
program unmounts that before it starts. Each program gets a mount and a PID namespace of its own.

Started by root, the server stays root inside its namespaces, so that it can read what root can, and
programs run as a user that exists nowhere else on the machine. Started by anybody else, both have
that user's identity, stripped of all it could do outside.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from mle_rl.sandbox import syscalls as sys_
from mle_rl.sandbox import view

HOME = "/home/agent"
"""Working folder and HOME of every program, its own scratch folder."""
HOST = "/host"
SCRATCH = "/scratch"
_NEEDED = (*view.interpreter_folders(), *map(str, view.site_folders()))
TEMPORARY = "/var/tmp" if any(folder.startswith("/tmp/") for folder in _NEEDED) else "/tmp"
"""The program's folder for temporary files: not one that hides this Python."""
PROGRAM_UID = 1000
_STAGING = ("/tmp", "/run", "/mnt", "/var")
_FIRST_FOREIGN_UID = 0x70000000
_MOST_ENTRIES = 64
_READ_ONLY = sys_.MOUNT_ATTR_RDONLY | sys_.MOUNT_ATTR_NOSUID | sys_.MOUNT_ATTR_NODEV
_TMPFS = sys_.MS_NOSUID | sys_.MS_NODEV
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
    uid, gid = os.geteuid(), os.getegid()
    map_two_users = _helper_that_maps_users() if uid == 0 else None
    sys_.unshare(_ALL)
    if map_two_users is None or not map_two_users():
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid and PROGRAM_UID} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{uid and PROGRAM_UID} {gid} 1")


def _helper_that_maps_users() -> Callable[[], bool]:
    """Root may map a second user into the namespace, but only from outside of it: forks for that.

    Returns:
        A function to call inside the namespace; True when root and the second user are mapped.
    """
    os.setgroups([])
    first, _, count = (int(n) for n in Path("/proc/self/uid_map").read_text().split()[:3])
    foreign = min(_FIRST_FOREIGN_UID + os.getpid(), first + count - 1)
    target, (read, write) = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(write)
        if not os.read(read, 1):
            os._exit(1)
        try:
            for kind in ("uid_map", "gid_map"):
                both = f"0 0 1\n{PROGRAM_UID} {foreign} 1\n"
                Path(f"/proc/{target}/{kind}").write_text(both)
        except OSError:
            os._exit(1)
        os._exit(0)
    os.close(read)

    def map_two_users() -> bool:
        os.write(write, b"x")
        os.close(write)
        return os.waitpid(helper, 0)[1] == 0

    return map_two_users


def program_uid() -> int:
    """The user that programs run as, in a process of the namespace.

    Root's server has a second user for them, unless what it must read is closed to other users.
    """
    uid = os.geteuid()
    mapped = {int(line.split()[0]) for line in Path("/proc/self/uid_map").read_text().splitlines()}
    return PROGRAM_UID if PROGRAM_UID in mapped and view.readable_by_others() else uid


def build_root(entries: Iterable[str]) -> None:
    """Makes the server's root folder and moves into it. Call as the PID namespace's first process.

    Args:
        entries: What remains visible in the folders of installed packages.

    Raises:
        OSError: The machine does not allow it, and nothing has changed.
        RuntimeError: It began and could not be ended; this process must not go on.
    """
    if os.getpid() != 1:
        raise PermissionError("no PID namespace")
    sys_.unshare(sys_.CLONE_NEWNS)  # the launcher keeps its view: it must see whom to kill
    site_folders, others = view.site_folders(), view.other_site_folders()
    interpreter = view.interpreter_folders()  # links lead elsewhere once the root has changed
    _pivot(next(folder for folder in _STAGING if os.path.isdir(folder)))
    try:
        _fill_root(interpreter, site_folders, others, entries)
    except OSError as error:
        raise RuntimeError(f"the program's view of files could not be made: {error}") from error


def _fill_root(
    interpreter: Iterable[str],
    site_folders: Iterable[Path],
    others: Iterable[Path],
    entries: Iterable[str],
) -> None:
    for folder in ("/dev/shm", "/tmp", TEMPORARY, "/etc", SCRATCH, HOME):
        os.makedirs(folder, 0o755, exist_ok=True)
    for path in (*view.SYSTEM_FOLDERS, *interpreter, *view.SYSTEM_FILES):
        _show(path)
    for path in view.DEVICES:
        _show(path, attributes=sys_.MOUNT_ATTR_NOSUID)
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        os.symlink(f"/proc/self/fd/{fd}", f"/dev/{name}")
    os.symlink("/proc/self/fd", "/dev/fd")
    for folder in ("/dev/shm", TEMPORARY):  # the server's own, for its imports; programs get theirs
        sys_.mount("tmpfs", folder, "tmpfs", _TMPFS, "size=1m")
    _write_etc()
    for folder in site_folders:
        _show_only(folder, entries)
    for folder in others:
        _show_only(folder, ())
    sys_.protect("/", recursive=False)


def _pivot(staging: str) -> None:
    """Moves to an empty root folder with a /proc of its own; on failure nothing has changed."""
    sys_.mount("none", "/", flags=sys_.MS_REC | sys_.MS_PRIVATE)
    sys_.mount("tmpfs", staging, "tmpfs", _TMPFS, "mode=755,size=4m")
    try:
        os.mkdir(f"{staging}/proc")
        os.mkdir(staging + HOST, 0o700)
        sys_.mount("proc", f"{staging}/proc", "proc", _TMPFS | sys_.MS_NOEXEC)
        os.chdir(staging)
        sys_.pivot_root(".", HOST[1:])
    except OSError:
        os.chdir("/")
        sys_.umount(staging)
        raise
    os.chdir("/")


def _show(path: str, attributes: int = _READ_ONLY) -> None:
    """Shows one file or folder of the host at its own path; one that does not exist is left out."""
    source = HOST + path
    if os.path.islink(source):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.symlink(os.readlink(source), path)
    elif os.path.exists(source):
        _bind(source, path, attributes)


def _bind(source: str, path: str, attributes: int = _READ_ONLY) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    elif not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    sys_.bind(source, path)
    sys_.protect(path, attributes)


def _show_only(folder: Path, entries: Iterable[str]) -> None:
    """Covers a folder of installed packages so that of all that is in it only some is left."""
    os.makedirs(folder, exist_ok=True)  # not below a folder that is visible: has to be made
    sys_.mount("tmpfs", str(folder), "tmpfs", _TMPFS, "mode=755,size=4m")
    for entry in sorted(entries):
        _show(str(folder / entry))
    for source in view.ANSWER_SOURCES:
        if os.path.isdir(folder / source):
            sys_.mount("tmpfs", str(folder / source), "tmpfs", sys_.MS_RDONLY, "size=4k,mode=755")
    sys_.protect(str(folder), recursive=False)


def _write_etc() -> None:
    uid = os.geteuid() or PROGRAM_UID
    files = {
        "passwd": f"agent:x:{uid}:{uid}::{HOME}:/bin/sh\n",
        "group": f"agent:x:{uid}:\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "hosts": "127.0.0.1 localhost\n",
    }
    for name, text in files.items():
        Path("/etc", name).write_text(text)


def enter_program(public_dir: str) -> None:
    """In a program's process, before anything hostile: own mounts, the host's files gone.

    The server has mounted the program's scratch space at `/scratch`; it appears as the home folder,
    `TEMPORARY` and `/dev/shm`, all within one quota.
    """
    sys_.unshare(sys_.CLONE_NEWNS)
    for inner, target in (("home", HOME), ("tmp", TEMPORARY), ("shm", "/dev/shm")):
        sys_.bind(f"{SCRATCH}/{inner}", target)
    _show_public(HOST + public_dir, f"{HOME}/input")
    sys_.mount("proc", "/proc", "proc", _TMPFS | sys_.MS_NOEXEC | sys_.MS_RDONLY)
    sys_.umount(HOST)
    sys_.umount(SCRATCH)
    os.chdir(HOME)


def _show_public(source: str, target: str) -> None:
    """Binds the public folder; one that only its owner may enter is bound entry by entry."""
    entries = os.listdir(source)
    if os.stat(source).st_mode & 0o005 == 0o005 or len(entries) > _MOST_ENTRIES:
        _bind(source, target)
    else:
        for entry in entries:
            # A link stays a link, and leads nowhere but inside; binding would follow it.
            if os.path.islink(f"{source}/{entry}"):
                os.symlink(os.readlink(f"{source}/{entry}"), f"{target}/{entry}")
            else:
                _bind(f"{source}/{entry}", f"{target}/{entry}")


def mount_scratch(size_mb: int, owner: int) -> None:
    """In the server: the next program's scratch space, with a quota that the kernel enforces."""
    options = f"size={size_mb}m,nr_inodes={max(1024, size_mb * 256)},mode=755"
    sys_.mount("tmpfs", SCRATCH, "tmpfs", _TMPFS, options)
    for folder, mode in (("home", 0o755), ("home/input", 0o755), ("tmp", 0o1777), ("shm", 0o1777)):
        os.mkdir(f"{SCRATCH}/{folder}")
        os.chmod(f"{SCRATCH}/{folder}", mode)
    os.chown(f"{SCRATCH}/home", owner, owner)


def unmount_scratch() -> None:
    """In the server, after the program's end."""
    sys_.umount(SCRATCH)
