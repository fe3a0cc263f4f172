"""One pool for the whole room, and a world with things worth stealing around it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from mle_rl.records import Execution, Limits
from mle_rl.sandbox import Job, LocalPool
from mle_rl.sandbox.processes import descendants, running

PATIENT = Limits(timeout_s=120.0)
"""For programs that are quick, on a machine that may be busy: nothing may depend on that."""

PRELUDE = """\
import os, sys, ctypes, socket, signal, subprocess, time, threading, errno
from pathlib import Path
PRIVATE, ANSWERS, HOME_FILE, VICTIM, TCP, UDP, ABSTRACT, UNIX_PATH = {values!r}
WORD = b"CAN" + b"ARY-"
libc = ctypes.CDLL(None, use_errno=True)

def syscall(number, *arguments):
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return libc.syscall(ctypes.c_long(number), *longs)

def escaped(happened=True):
    if happened:
        print("ESCAPED")
"""


@dataclass(frozen=True)
class World:
    """What a hostile program would like to reach.

    Attributes:
        public: The task's public folder; the private one lies beside it.
        secret: Stands in the answers, in a file of the home folder, in the trainer's environment
            and memory.
        prelude: Tells an attack where everything is, and nothing else.
    """

    public: Path
    secret: str
    prelude: str
    victim: subprocess.Popen
    knocks: list[socket.socket]

    def untouched(self) -> bool:
        """Whether the other process lives and nobody has knocked at a socket."""
        for listener in self.knocks:
            try:
                listener.recv(1) if listener.type == socket.SOCK_DGRAM else listener.accept()
            except BlockingIOError:
                continue
            return False
        return self.victim.poll() is None


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("task") / "prepared"
    public, private = folder / "public", folder / "private"
    public.mkdir(parents=True)
    private.mkdir()
    secret = f"CANARY-{secrets.token_hex(8)}"
    (public / "train.csv").write_text("id,x\n1,2\n2,4\n")
    (public / "shortcut.csv").symlink_to(private / "answers.csv")
    (public / "detour.csv").symlink_to("../private/answers.csv")
    (private / "answers.csv").write_text(secret)
    home_file = folder.parent / "token"
    home_file.write_text(secret)
    os.environ["MLE_RL_TEST_TOKEN"] = secret
    knocks, unix_path = _listeners(folder.parent)
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10_000)"])
    tcp, udp, abstract, _ = (listener.getsockname() for listener in knocks)
    values = (
        str(private),
        str(private / "answers.csv"),
        str(home_file),
        victim.pid,
        tcp[1],
        udp[1],
        abstract,
        unix_path,
    )
    yield World(public, secret, PRELUDE.format(values=values), victim, knocks)
    victim.kill()
    victim.wait()
    for listener in knocks:
        listener.close()
    del os.environ["MLE_RL_TEST_TOKEN"]


def _listeners(folder: Path) -> tuple[list[socket.socket], str]:
    unix_path = str(folder / "s")
    addresses = [
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        (socket.AF_UNIX, socket.SOCK_STREAM, f"\0mle-rl-test-{os.getpid()}"),
        (socket.AF_UNIX, socket.SOCK_STREAM, unix_path),
    ]
    listeners = []
    for family, kind, address in addresses:
        listener = socket.socket(family, kind)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        listeners.append(listener)
    return listeners, unix_path


@pytest.fixture(scope="session")
def pool(world):
    """One for all attacks: at the end it has the same server, with nothing around it."""
    before = set(descendants(os.getpid()))
    honest = Job(FINGERPRINT, world.public, limits=PATIENT, seed=7)
    with LocalPool(1) as pool:
        mine = [pid for pid in descendants(os.getpid()) if pid not in before]
        launcher, server, *_ = mine
        mounts, files = Path(f"/proc/{server}/mounts").read_text(), contents(world.public.parent)
        result = pool.run(honest).stdout
        yield pool
        assert running(launcher)
        assert running(server)
        assert pool.run(honest).stdout == result
        assert Path(f"/proc/{server}/mounts").read_text() == mounts
        assert contents(world.public.parent) == files
        left = descendants(server)
        assert len(left) <= 2, "only what makes namespaces, and the next namespace's first process"
    assert set(descendants(os.getpid())) <= before
    assert str(world.public) not in Path("/proc/self/mountinfo").read_text()


def contents(folder: Path) -> dict[str, tuple]:
    """What lies below a folder: names, kinds, modes, times and bytes."""
    return {
        str(path): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.is_file() and path.read_bytes(),
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(scope="session")
def attack(pool, world):
    """Runs an attack as a program, checks what no program may do, and returns the execution."""

    def run(code: str, limits: Limits | None = None) -> Execution:
        limits = limits or PATIENT
        execution = pool.run(Job(world.prelude + code, world.public, limits=limits))
        everything = execution.stdout + execution.stderr + repr(execution.submission)
        assert world.secret not in everything, "the program has seen a secret"
        assert "ESCAPED" not in execution.stdout, execution.stdout
        assert world.untouched(), "the program reached another process or a socket"
        return execution

    return run


FINGERPRINT = """\
import builtins, gc, os, random, signal, sys, tempfile, threading, time, warnings
import numpy, pandas, sklearn.linear_model
from sklearn.linear_model import LinearRegression
print(sorted(os.environ.items()))
print(sys.path, sys.argv, sys.flags, sorted(sys.modules)[:5000])
print(os.getcwd(), sorted(os.listdir('.')))
print(os.listdir(tempfile.gettempdir()), os.listdir('/dev/shm'))
print({s: str(signal.getsignal(s)).split(' at ')[0] for s in signal.valid_signals()})
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getitimer(signal.ITIMER_REAL))
print(random.random(), numpy.random.random(), numpy.geterr(), gc.isenabled(), gc.get_threshold())
print(threading.active_count(), len(os.listdir('/proc/self/fd')), os.umask(0o22), os.nice(0))
print(pandas.read_csv('input/train.csv').to_dict(), sys.getrecursionlimit(), warnings.filters)
print(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]).predict([[3.0]]), len(dir(builtins)))
print(sorted(os.listdir('/proc')).count('1'), sum(n.isdigit() for n in os.listdir('/proc')))
"""


@pytest.fixture(scope="session")
def fingerprint(pool, world):
    """What an honest program sees; the same before and after whatever ran in between."""

    def take() -> str:
        execution = pool.run(Job(FINGERPRINT, world.public, limits=PATIENT, seed=7))
        assert execution.status == "ok", execution.stderr
        return execution.stdout

    return take
