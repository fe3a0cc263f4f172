"""Three ways to hold a program, one interface.

A jail makes the scratch folder, forks the program's process, confines it, finds all processes that
came of it, kills them, and removes what they left. The server has one jail for all its programs,
one program at a time.

`NamespaceJail` gives each program a file system and a process table of its own. `LandlockJail` is
for machines that forbid namespaces, containers mostly: the program can see that other processes
exist and cannot touch them. `PlainJail` limits and isolates nothing.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Protocol

from mle_rl.records import Limits
from mle_rl.sandbox import landlock, namespaces, processes, rank, seccomp, view
from mle_rl.sandbox import syscalls as sys_
from mle_rl.sandbox.reaper import Reaper
from mle_rl.sandbox.removal import remove_tree

OWN_TASKS = 8
"""Threads of the sandbox itself that the kernel may count against the program's process limit."""
_FOREIGN_TASKS = 1024
"""Room for threads of this user that nobody here can count, where the kernel counts them all."""
_MOST_FILES = 20_000


class Jail(Protocol):
    """Holds one program at a time.

    Attributes:
        isolation: What is in force, in words.
        home: The program's working folder, as it sees it.
        scratch_in_memory: Whether what lies in the scratch folder takes memory.
    """

    isolation: str
    home: str
    scratch_in_memory: bool

    def open_scratch(self, limits: Limits) -> int:
        """Makes an empty scratch folder; returns a descriptor of the program's working folder."""

    def fork(self) -> int:
        """Forks the program's process: 0 in it, its process id in the server."""

    def confine(self, public_dir: str) -> None:
        """In the program's process: isolates it for good, shows public_dir as ``./input``."""

    def process_limit(self, limits: Limits) -> int:
        """RLIMIT_NPROC for the program; it does not bind root, see `rank`."""

    def processes(self) -> list[int]:
        """The program's processes, all of them."""

    def scratch_used_mb(self) -> float:
        """Size of everything in the scratch folder in MiB; infinite with far too many files."""

    def intact(self) -> bool:
        """Whether nobody but the server or the program itself can have ended the program."""

    def kill(self) -> None:
        """Sends SIGKILL to all of the program's processes."""

    def end(self) -> float:
        """After `kill` and waiting for the program's process: waits for all others.

        Returns:
            CPU seconds of those that were no children of the program's process any more.
        """

    def close_scratch(self) -> None:
        """Removes the scratch folder."""


class NamespaceJail:
    """A mount and a PID namespace per program; Landlock and a system call filter on top.

    Args:
        tier: Name of the tier.
        reaper: Makes the PID namespaces.
        landlock_abi: 0 leaves Landlock out.
        program_uid: User and group id of programs.
    """

    home = namespaces.HOME
    scratch_in_memory = True

    def __init__(self, tier: str, reaper: Reaper, landlock_abi: int, program_uid: int) -> None:
        self._reaper = reaper
        self._landlock_abi = landlock_abi
        self._uid = program_uid
        self._filter = seccomp.program()
        self._scratch_fd = -1
        self._permanent = {os.getpid(), reaper.pid}
        # The root that `namespaces.build_root` made holds nothing else.
        packages = [str(folder) for folder in view.site_folders()]
        folders = [*view.SYSTEM_FOLDERS, *view.interpreter_folders(), *packages]
        folders += ["/etc", "/proc", "/dev"]
        self._readable = [folder for folder in folders if os.path.exists(folder)]
        extra = f"landlock {landlock_abi}; " if landlock_abi else ""
        self.isolation = f"{tier}: user, pid, net, mount, ipc namespaces; {extra}seccomp"

    def open_scratch(self, limits: Limits) -> int:
        namespaces.mount_scratch(limits.disk_mb, self._uid)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        self._scratch_fd = os.open(f"{namespaces.SCRATCH}/home", flags)
        return self._scratch_fd

    def fork(self) -> int:
        fork = self._reaper.fork_into_namespace
        return rank.fork_below(fork) if self._uid == 0 else fork()

    def confine(self, public_dir: str) -> None:
        os.setsid()
        namespaces.enter_program(public_dir)
        os.environ["TMPDIR"] = namespaces.TEMPORARY
        sys_.become(self._uid)
        sys_.forbid_new_privileges()
        _check_readable("input")
        if self._landlock_abi:
            write = (self.home, namespaces.TEMPORARY, "/dev/shm")
            # The scratch space may lie over a folder of packages that was there before.
            readable = [folder for folder in self._readable if os.path.exists(folder)]
            landlock.restrict(self._landlock_abi, readable, write, ("/dev/null", "/dev/full"))
        seccomp.install(self._filter)

    def process_limit(self, limits: Limits) -> int:
        return limits.processes + OWN_TASKS

    def processes(self) -> list[int]:
        others = {*self._permanent, self._reaper.first}
        return [pid for pid in processes.all_processes() if pid not in others]

    def scratch_used_mb(self) -> float:
        usage = os.fstatvfs(self._scratch_fd)
        return (usage.f_blocks - usage.f_bfree) * usage.f_frsize / 2**20

    def intact(self) -> bool:
        return self._reaper.intact()

    def kill(self) -> None:
        self._reaper.kill()

    def end(self) -> float:
        return self._reaper.end()

    def close_scratch(self) -> None:
        os.close(self._scratch_fd)
        namespaces.unmount_scratch()


class PlainJail:
    """Resource limits and no capabilities: a program can read and kill what this user can."""

    isolation = "limits: resource limits only, nothing is isolated"
    scratch_in_memory = False

    def __init__(self) -> None:
        sys_.adopt_orphans()
        self.home = ""
        self._scratch_fd = -1

    def open_scratch(self, limits: Limits) -> int:
        self.home = tempfile.mkdtemp(prefix="mle-rl-")
        self._scratch_fd = os.open(self.home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._scratch_fd

    def fork(self) -> int:
        return rank.fork_below(os.fork)

    def confine(self, public_dir: str) -> None:
        os.setsid()
        sys_.die_with_parent()
        os.chdir(self.home)
        os.symlink(public_dir, "input")
        os.environ["TMPDIR"] = tempfile.tempdir = self.home
        # Even here no program keeps what root can do to a machine: mounts, modules, raw disks.
        sys_.become(None)
        sys_.forbid_new_privileges()

    def process_limit(self, limits: Limits) -> int:
        # The kernel counts everything that this user runs, in other containers too. So this only
        # ends what grows without end; `watch` counts exactly.
        return limits.processes + processes.threads_of_user() + _FOREIGN_TASKS

    def processes(self) -> list[int]:
        return processes.descendants(os.getpid())

    def scratch_used_mb(self) -> float:
        used, files, folders = 0, 0, [self.home]
        while folders:
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    files += 1
                    with contextlib.suppress(OSError):
                        used += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                    if files > _MOST_FILES:
                        return float("inf")
        return used / 2**20

    def intact(self) -> bool:
        return True

    def kill(self) -> None:
        processes.kill_all(self.processes)

    def end(self) -> float:
        return processes.kill_descendants()

    def close_scratch(self) -> None:
        os.close(self._scratch_fd)
        remove_tree(self.home)


class LandlockJail(PlainJail):
    """Landlock and a system call filter, where namespaces are not allowed.

    Poorer than `NamespaceJail`: no /proc; no semaphores, for /dev/shm is everybody's (joblib runs
    serially, multiprocessing.Lock raises); no Unix sockets; the disk quota is watched instead of
    enforced; names and sizes of the host's files can be seen, though nothing in them.
    """

    def __init__(self, landlock_abi: int, entries: set[str]) -> None:
        super().__init__()
        self._landlock_abi = landlock_abi
        self._filter = seccomp.program(own_view=False)
        self._readable = view.readable_paths(entries)
        folders = [*view.SYSTEM_FOLDERS, *view.interpreter_folders(), *view.site_folders()]
        self._listable = [str(folder) for folder in folders if os.path.exists(folder)]
        self.isolation = f"isolated: landlock {landlock_abi}; seccomp; no namespaces"
        os.environ["JOBLIB_MULTIPROCESSING"] = "0"  # read when the server imports joblib

    def confine(self, public_dir: str) -> None:
        super().confine(public_dir)
        os.environ["JOBLIB_MULTIPROCESSING"] = "0"
        landlock.restrict(
            self._landlock_abi,
            [*self._readable, public_dir],
            [self.home],
            view.DEVICES,
            self._listable,
        )
        seccomp.install(self._filter)


def _check_readable(folder: str) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_symlink() and not os.access(entry.path, os.R_OK):
                raise PermissionError(
                    f"{entry.name} of the public folder is closed to other users, and programs do "
                    "not run as root; run chmod -R a+rX on that folder"
                )
