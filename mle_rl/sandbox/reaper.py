"""A small process that makes the first process of each program's PID namespace.

The first process of a PID namespace adopts every orphan in it and takes all of them with it when it
is killed: that is what ends a program's whole tree, daemons included. It needs none of the warm
server's memory, so it is forked from here, a process that was split off before anything was
imported. The program itself is forked by the server, into the namespace, and stays the server's own
child. The next namespace is made while nobody waits for it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct

from mle_rl.sandbox import processes
from mle_rl.sandbox import syscalls as sys_

_COMMAND = struct.Struct("!i")  # 0: make a namespace; otherwise: wait for this first process
_REPLY = struct.Struct("!id")


class Reaper:
    """The server's end.

    Attributes:
        pid: The small process.
        first: First process of the namespace in use, 0 between programs.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _serve(theirs)
        theirs.close()
        self.first = 0
        self._socket = ours
        self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._request(0)

    def fork_into_namespace(self) -> int:
        """Forks this process into a PID namespace that holds nothing else.

        Returns:
            0 in the child, its process id in the parent.

        Raises:
            ConnectionError: Somebody has killed the namespace's first process.
        """
        self.first, _ = self._answer()
        try:
            inner = os.open(f"/proc/{self.first}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            sys_.setns(inner, sys_.CLONE_NEWPID)
            os.close(inner)
            pid = os.fork()
        except OSError as error:
            raise ConnectionError(f"the PID namespace that was ready is gone: {error}") from None
        if pid:
            sys_.setns(self._own_namespace, sys_.CLONE_NEWPID)
        else:
            self._socket.detach()  # the descriptor is closed with all others
        return pid

    def intact(self) -> bool:
        """Whether the namespace's first process lives: no program can kill it, others can."""
        return processes.running(self.first)

    def kill(self) -> None:
        """Kills the namespace's processes; the program's own is to be waited for before `end`."""
        if self.first:
            os.kill(self.first, signal.SIGKILL)

    def end(self) -> float:
        """Waits until the namespace is empty; the next is made meanwhile.

        Returns:
            CPU seconds of processes that had been orphaned.
        """
        self._request(self.first)
        _, cpu_s = self._answer()
        self.first = 0
        self._request(0)
        return cpu_s

    def _request(self, command: int) -> None:
        self._socket.sendall(_COMMAND.pack(command))

    def _answer(self) -> tuple[int, float]:
        data = self._socket.recv(_REPLY.size, socket.MSG_WAITALL)
        if len(data) != _REPLY.size:
            raise ConnectionError("the process that makes PID namespaces is gone")
        return _REPLY.unpack(data)


def _serve(sock: socket.socket) -> None:
    sys_.die_with_parent()
    own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    while data := sock.recv(_COMMAND.size, socket.MSG_WAITALL):
        (first,) = _COMMAND.unpack(data)
        if first:
            _, _, usage = os.wait4(first, 0)
            sock.sendall(_REPLY.pack(first, usage.ru_utime + usage.ru_stime))
        else:
            sys_.unshare(sys_.CLONE_NEWPID)
            first = os.fork()
            if first == 0:
                _be_first()
            sys_.setns(own_namespace, sys_.CLONE_NEWPID)
            sock.sendall(_REPLY.pack(first, 0.0))
    os._exit(0)


def _be_first() -> None:
    # A program can neither trace nor read this process: it has capabilities that the program lacks.
    os.closerange(0, 256)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        signal.sigwait({signal.SIGCHLD})
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
