"""A small process that makes the first process of each program's PID namespace.

The first process of a PID namespace adopts every orphan in it and takes all of them with it when it
is killed: that is what ends a program's whole tree, daemons included. It needs none of the warm
server's memory, so it is forked from here, a process that was split off before anything was
imported, and costs a fraction of a millisecond. The program itself is forked by the server, into
the namespace, and stays the server's own child.
"""

from __future__ import annotations

import os
import signal
import socket
import struct

from mle_rl.sandbox import syscalls as sys_

_REPLY = struct.Struct("!id")


class Reaper:
    """The server's end. One namespace exists at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _serve(theirs)
        theirs.close()
        self._socket = ours
        self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self.first: int | None = None

    def fork_into_new_namespace(self) -> int:
        """Makes a PID namespace and forks this process into it.

        Returns:
            0 in the child, its process id in the parent.
        """
        self._socket.sendall(b"n")
        self.first, _ = self._answer()
        inner = os.open(f"/proc/{self.first}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        sys_.setns(inner, sys_.CLONE_NEWPID)
        os.close(inner)
        pid = os.fork()
        if pid:
            sys_.setns(self._own_namespace, sys_.CLONE_NEWPID)
        return pid

    def kill(self) -> None:
        """Kills every process of the namespace; the program's own must be waited for before `end`."""
        if self.first is not None:
            os.kill(self.first, signal.SIGKILL)

    def end(self) -> float:
        """Waits until the namespace is empty.

        Returns:
            CPU seconds of processes that had been orphaned.
        """
        self._socket.sendall(b"w")
        _, cpu_s = self._answer()
        self.first = None
        return cpu_s

    def _answer(self) -> tuple[int, float]:
        data = self._socket.recv(_REPLY.size, socket.MSG_WAITALL)
        if len(data) != _REPLY.size:
            raise ChildProcessError("the process that makes PID namespaces is gone")
        return _REPLY.unpack(data)


def _serve(sock: socket.socket) -> None:
    sys_.die_with_parent()
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    first = 0
    while command := sock.recv(1):
        if command == b"n":
            sys_.unshare(sys_.CLONE_NEWPID)
            first = os.fork()
            if first == 0:
                _be_first()
            sys_.setns(own, sys_.CLONE_NEWPID)
            sock.sendall(_REPLY.pack(first, 0.0))
        else:
            _, _, usage = os.wait4(first, 0)
            sock.sendall(_REPLY.pack(0, usage.ru_utime + usage.ru_stime))
    os._exit(0)


def _be_first() -> None:
    sys_.forbid_inspection()
    os.closerange(0, 256)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        signal.sigwait({signal.SIGCHLD})
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            pass
