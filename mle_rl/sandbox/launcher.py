"""First process of a worker: enters the namespaces, starts the server, and outlives nobody.

Run by the pool as ``python -c`` with a clean environment. It stays small and only waits: when the
pool's process ends, however it ends, the server and with it every program is killed.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable

from mle_rl.sandbox import job, landlock, namespaces
from mle_rl.sandbox import syscalls as sys_


def main(control_fd: int, tier: str, pool_pid: int, packages: list[str]) -> Callable | None:
    """Splits into the launcher, which never returns, and the server.

    Returns:
        In a program's process, the function that runs the program.
    """
    pool = os.pidfd_open(pool_pid)
    if os.getppid() != pool_pid:
        os._exit(0)  # the pool ended before we could watch it
    control = socket.socket(fileno=control_fd)
    if tier == "isolated":
        try:
            namespaces.enter()
        except OSError as error:
            job.send(control, {"missing": f"user namespaces ({error.strerror})"})
            os._exit(1)
    else:
        sys_.adopt_orphans()
    server = os.fork()
    if server:
        control.close()
        _wait(server, pool)
    os.close(pool)
    sys_.die_with_parent()
    return _server(control, tier, packages)


def _wait(server: int, pool: int) -> None:
    poll = select.poll()
    poll.register(os.pidfd_open(server), select.POLLIN)
    poll.register(pool, select.POLLIN)
    poll.poll()
    for pid in [server]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os.waitpid(server, 0)
    os._exit(0)


def _server(control: socket.socket, tier: str, packages: list[str]) -> Callable | None:
    from mle_rl.sandbox.jail import NamespaceJail, PlainJail

    if tier == "isolated":
        try:
            from mle_rl.sandbox import reaper, server

            namespaces.build_root(packages)
        except OSError as error:
            job.send(control, {"missing": f"mount namespaces ({error})"})
            os._exit(1)
        jail = NamespaceJail(reaper.Reaper(), landlock.abi())
    else:
        from mle_rl.sandbox import server

        jail = PlainJail()
    return server.serve(control, jail)
