"""Two ways to hold a program: `NamespaceJail` isolates, `PlainJail` only limits.

A jail makes the scratch folder, forks the program's process, confines it, finds all processes that
came of it, kills them, and removes what they left. The server uses one jail for all its programs,
one program at a time.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from typing import Protocol

from mle_rl.records import Limits
from mle_rl.sandbox import landlock, namespaces, seccomp, view
from mle_rl.sandbox import syscalls as sys_
from mle_rl.sandbox.reaper import Reaper


class Jail(Protocol):
    isolation: str
    home: str

    def open_scratch(self, limits: Limits) -> int: ...

    def fork(self) -> int: ...

    def confine(self, public_dir: str) -> None: ...

    def processes(self) -> list[int]: ...

    def scratch_used_mb(self) -> float: ...

    def kill(self) -> None: ...

    def end(self) -> float: ...

    def close_scratch(self) -> None: ...


class NamespaceJail:
    """A mount and a PID namespace per program, Landlock and a system call filter on top.

    Args:
        reaper: Makes the PID namespaces.
        landlock_abi: 0 leaves Landlock out.
    """

    home = namespaces.HOME

    def __init__(self, reaper: Reaper, landlock_abi: int) -> None:
        self._reaper = reaper
        self._landlock_abi = landlock_abi
        self._filter = seccomp.program()
        self._scratch_fd = -1
        self._permanent = {1, os.getpid(), reaper.pid}
        folders = [*view.SYSTEM_FOLDERS, *view.interpreter_folders(), "/etc", "/proc"]
        self._readable = [folder for folder in folders if os.path.exists(folder)]
        with_landlock = f"landlock {landlock_abi}" if landlock_abi else "no landlock"
        self.isolation = (
            f"isolated: user, pid, net, mount, ipc namespaces; {with_landlock}; seccomp"
        )

    def open_scratch(self, limits: Limits) -> int:
        """Makes the scratch folder; returns a descriptor of the program's working folder."""
        namespaces.mount_scratch(limits.disk_mb)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        self._scratch_fd = os.open(f"{namespaces.SCRATCH}/home", flags)
        return self._scratch_fd

    def fork(self) -> int:
        return self._reaper.fork_into_new_namespace()

    def confine(self, public_dir: str) -> None:
        """In the program's process. Nothing of what is given up here can be had back."""
        os.setsid()
        namespaces.enter_program(public_dir)
        sys_.drop_capabilities()
        sys_.forbid_new_privileges()
        if self._landlock_abi:
            write = (self.home, "/tmp", "/dev/shm")
            read = [*self._readable, "/dev"]
            landlock.restrict(self._landlock_abi, read, write, ("/dev/null", "/dev/full"))
        seccomp.install(self._filter)

    def processes(self) -> list[int]:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in pids if pid not in self._permanent and pid != self._reaper.first]

    def scratch_used_mb(self) -> float:
        usage = os.fstatvfs(self._scratch_fd)
        return (usage.f_blocks - usage.f_bfree) * usage.f_frsize / 2**20

    def kill(self) -> None:
        self._reaper.kill()

    def end(self) -> float:
        """Call once the program's own process has been waited for; returns the orphans' CPU."""
        return self._reaper.end()

    def close_scratch(self) -> None:
        os.close(self._scratch_fd)
        namespaces.unmount_scratch()


class PlainJail:
    """Resource limits and nothing else: a program can read whatever this user can."""

    isolation = "limits: resource limits only, nothing is isolated"

    def __init__(self) -> None:
        sys_.adopt_orphans()
        self.home = ""
        self._program = 0

    def open_scratch(self, limits: Limits) -> int:
        self.home = tempfile.mkdtemp(prefix="mle-rl-")
        return os.open(self.home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def fork(self) -> int:
        self._program = os.fork()
        return self._program

    def confine(self, public_dir: str) -> None:
        os.setsid()
        sys_.die_with_parent()
        os.chdir(self.home)
        os.symlink(public_dir, "input")

    def processes(self) -> list[int]:
        """All descendants of the server: orphans are adopted by it, so none can leave."""
        parents = {}
        for name in os.listdir("/proc"):
            if name.isdigit() and (parent := _parent(int(name))):
                parents[int(name)] = parent
        found, frontier = [], {os.getpid()}
        while frontier:
            frontier = {pid for pid, parent in parents.items() if parent in frontier}
            found += frontier
        return found

    def scratch_used_mb(self) -> float:
        total = 0
        for folder, _, files in os.walk(self.home):
            for name in files:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except OSError:
                    pass  # removed while we looked
        return total / 2**20

    def kill(self) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def end(self) -> float:
        """Kills until nothing is left: a fork can outrun one round."""
        cpu_s = 0.0
        while True:
            self.kill()
            try:
                pid, _, usage = os.wait4(-1, 0)
            except ChildProcessError:
                return cpu_s
            cpu_s += usage.ru_utime + usage.ru_stime

    def close_scratch(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
