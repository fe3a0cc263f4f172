"""First process of a worker: enters the namespaces, starts the server, and outlives nobody.

    pool --exec--> launcher --fork--> server --fork--> program

Run by the pool with a clean environment. It stays small and only waits: when the pool's process
ends, however it ends, it kills the server and with it every program. The server is the first
process of a PID namespace where there is one; its end ends whatever is left there.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from mle_rl.sandbox import job, landlock, namespaces, processes, rank, reaper, seccomp, server, view
from mle_rl.sandbox import syscalls as sys_
from mle_rl.sandbox.jail import Jail, LandlockJail, NamespaceJail, PlainJail

BOOT = (
    "import json,sys;a=json.load(sys.stdin);sys.path.insert(0,a.pop('root'));"
    "from mle_rl.sandbox.launcher import main;del sys.path[0];run=main(**a);del a;run and run()"
)
"""What the interpreter is started with; the arguments of `main` come as JSON on standard input."""

ENOUGH_LANDLOCK = 6
"""The first Landlock version that closes signals; without namespaces less is not isolation."""

FAILED = 1
"""Exit status when the server ended with an error of its own, rather than being killed."""

_INSIDE_BUBBLEWRAP = "inside bubblewrap"
_BUBBLEWRAP = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--as-pid-1"),
    *("--cap-add", "ALL", "--dev-bind", "/", "/", "--chdir", "/"),
)


class Missing(Exception):
    """What this machine does not give, as the end of a sentence."""


def command() -> list[str]:
    """The command line of a launcher: nothing is in it that a program should not read."""
    return [interpreter(), "-s", "-P", "-c", BOOT]


def interpreter() -> str:
    """This Python, by a path without links to its environment.

    What is shown to programs and what is hidden from them is told apart by path: of a folder that
    has two names, one would be hidden. The last part of the path may be a link, to the base Python;
    that is how an environment is known as one.
    """
    inside = os.path.relpath(sys.executable, sys.prefix)
    if inside.startswith(".."):
        return sys.executable
    return os.path.join(os.path.realpath(sys.prefix), inside)


def package_root() -> str:
    """The folder that ``mle_rl`` is imported from."""
    return str(Path(__file__).resolve().parents[2])


def main(
    control_fd: int, tier: str, pool_pid: int, packages: list[str], slot: int, probe: bool
) -> Callable[[], None] | None:
    """Splits into the launcher, which never returns, and the server.

    Args:
        control_fd: Socket to the pool.
        tier: As for `LocalPool`.
        pool_pid: The process whose end is ours.
        packages: Installed distributions that programs may import.
        slot: Number of this worker.
        probe: Only say what isolation there is, and end.

    Returns:
        In a program's process, the function that runs the program.
    """
    _forget_inherited_signals()
    control = socket.socket(fileno=control_fd)
    try:
        if tier != _INSIDE_BUBBLEWRAP:
            _launch(control, tier, pool_pid, packages, slot, probe)
        jail = PlainJail() if tier == "limits" else _isolate(tier, packages)
    except Missing as missing:
        job.send(control, {"missing": str(missing)})
        os._exit(1)
    if probe:
        job.send(control, {"isolation": jail.isolation, "versions": {}})
        os._exit(0)
    return server.serve(control, jail, slot)


def _forget_inherited_signals() -> None:
    """Ignored and blocked signals pass through exec; an ignored SIGCHLD would lose our children."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _launch(
    control: socket.socket,
    tier: str,
    pool_pid: int,
    packages: list[str],
    slot: int,
    probe: bool,
) -> None:
    """Starts the server's process and waits for its end; returns in the server."""
    pool = os.pidfd_open(pool_pid)
    if os.getppid() != pool_pid:
        os._exit(0)  # the pool ended before we could watch it
    sys_.adopt_orphans()
    rank.allow()
    if tier == "bubblewrap":
        pid = _start_bubblewrap(control.fileno(), packages, slot, probe)
    else:
        if tier == "isolated":
            with contextlib.suppress(OSError):  # `_isolate` finds out and says what is missing
                namespaces.enter()
        pid = os.fork()
    if pid:
        control.close()
        _wait(pid, pool)
    os.close(pool)
    sys_.die_with_parent()


def _wait(pid: int, pool: int) -> NoReturn:
    poll = select.poll()
    poll.register(os.pidfd_open(pid), select.POLLIN)
    poll.register(pool, select.POLLIN)
    poll.poll()
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    processes.kill_descendants()
    failed = ended is not None and ended.si_code == os.CLD_EXITED and ended.si_status != 0
    os._exit(FAILED if failed else 0)


def _start_bubblewrap(control_fd: int, packages: list[str], slot: int, probe: bool) -> int:
    """Bubblewrap makes the namespaces; where it is set up to, it may when we may not."""
    if shutil.which("bwrap") is None:
        raise Missing("bubblewrap (the program `bwrap`; a package of that name in most systems)")
    arguments = {
        "root": package_root(),
        "control_fd": control_fd,
        "tier": _INSIDE_BUBBLEWRAP,
        "pool_pid": 0,
        "packages": packages,
        "slot": slot,
        "probe": probe,
    }
    process = subprocess.Popen(
        [*_BUBBLEWRAP, *command()], stdin=subprocess.PIPE, pass_fds=[control_fd]
    )
    with process.stdin as stdin:
        stdin.write(json.dumps(arguments).encode())
    return process.pid


def _isolate(tier: str, packages: list[str]) -> Jail:
    """The strongest jail that keeps the promises of the isolated tier.

    Raises:
        Missing: There is none.
    """
    if not seccomp.supported():
        raise Missing("seccomp filters, for a kernel and a processor that this library knows")
    landlock_abi, entries = landlock.abi(), view.package_entries(packages)
    try:
        uid = namespaces.program_uid()
        namespaces.build_root(entries)
    except OSError as error:
        if tier == "isolated" and landlock_abi >= ENOUGH_LANDLOCK:
            return LandlockJail(landlock_abi, entries)
        raise Missing(
            f"user namespaces that may mount ({error}), or Landlock {ENOUGH_LANDLOCK} "
            f"(Linux 6.12; here it is {landlock_abi or 'off'})"
        ) from None
    name = "isolated" if tier == "isolated" else "bubblewrap"
    return NamespaceJail(name, reaper.Reaper(), landlock_abi, uid)
