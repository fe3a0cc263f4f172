"""The program's own process: from a fork of the warm server to ``python program.py``.

`prepare` runs between the fork and the first line of the program. Nothing hostile has run yet, so
what it reports over the setup pipe (that isolation is in force, when the program starts) is true;
the pipe is closed before the program starts. `prepare` returns a function without arguments, and the
server unwinds its whole call stack before that is called: a program that walks its frames finds no
job, no socket and no marker secret in the frames below.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import linecache
import os
import random
import resource
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy

from mle_rl.records import Limits
from mle_rl.sandbox.environment import environment

SOURCE_NAME = "program.py"
_MARKER_FD = 100
_OPEN_FILES = 512


@dataclass(frozen=True)
class Pipes:
    """Write ends that the program's process takes over from the server."""

    stdout: int
    stderr: int
    markers: int
    setup: int


def prepare(
    job: dict, home: str, pipes: Pipes, nonce: str, confine: Callable[[], None], weave: Callable
) -> Callable[[], None]:
    """Turns this fork into the program's process.

    Args:
        job: The job as it travels, see `Job.to_wire`.
        home: The scratch folder; the process is in it once confine has returned.
        pipes: Write ends for output, markers and the report of this set-up.
        nonce: Secret of this run, proves that a marker comes from woven code.
        confine: Applies the isolation that the tier promises, or raises.
        weave: `mle_rl.instrumentation.weave`.

    Returns:
        Runs the program and never returns.
    """
    limits = Limits(**job["limits"])
    _rearrange_descriptors(pipes)
    setup_fd = 3
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.environ.clear()
        os.environ.update(environment(home, limits.cpu_cores))
        _limit_resources(limits)
        confine()
        _freshen_interpreter(job["seed"], home)
        main = _fresh_main(home, job["code"])
    except BaseException as error:
        os.write(setup_fd, f"fault {type(error).__name__}: {error}\n".encode()[:4000])
        os._exit(70)
    os.write(setup_fd, b"ready\n")
    mark = _marker(nonce)
    try:
        code = weave(job["code"], job["insertions"], SOURCE_NAME, mark)
    except BaseException:
        error = sys.exc_info()
        code = None
    finally:
        job.clear()
    started = f"go {time.monotonic()!r} {time.process_time()!r}\n"
    os.write(setup_fd, started.encode())
    os.close(setup_fd)
    if code is None:
        return lambda: _finish(error)
    namespace = main.__dict__
    return lambda: _run(code, namespace)


def _rearrange_descriptors(pipes: Pipes) -> None:
    """0 null, 1 stdout, 2 stderr, 3 setup, _MARKER_FD markers; every other descriptor closed."""
    high = [os.dup2(fd, 200 + i) for i, fd in enumerate((pipes.stdout, pipes.stderr, pipes.setup))]
    os.dup2(pipes.markers, _MARKER_FD, inheritable=False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for target, fd in enumerate(high, start=1):
        os.dup2(fd, target, inheritable=target != 3)
    os.closerange(4, _MARKER_FD)
    os.closerange(_MARKER_FD + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_blocking(_MARKER_FD, False)


def _limit_resources(limits: Limits) -> None:
    bytes_of_disk = limits.disk_mb << 20
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_FSIZE: bytes_of_disk,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_MEMLOCK: 8 << 20,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 1024,
    }
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _freshen_interpreter(seed: int, home: str) -> None:
    """What a fork inherits and a new interpreter would not have."""
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    sys.argv[:] = [SOURCE_NAME]
    sys.path.insert(0, home)
    sys.stdin = io.TextIOWrapper(io.FileIO(0), encoding="utf-8")
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(1, "w")), encoding="utf-8", line_buffering=True
    )
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w")),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )
    warnings.resetwarnings()
    warnings.filters[:] = _WARNING_FILTERS
    for name in [n for n in sys.modules if n.partition(".")[0] == "mle_rl"]:
        del sys.modules[name]


_WARNING_FILTERS = list(warnings.filters)


def _fresh_main(home: str, code: str) -> types.ModuleType:
    main = types.ModuleType("__main__")
    path = os.path.join(home, SOURCE_NAME)
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = main
    lines = code.splitlines(keepends=True)
    for name in (SOURCE_NAME, path):
        linecache.cache[name] = (len(code), None, lines, name)
    return main


def _marker(nonce: str) -> Callable[[str, float | None], None]:
    """The function that woven code calls; it never raises and never prints."""
    write, dumps = os.write, json.dumps

    def mark(stage: str, value: float | None = None) -> None:
        try:
            write(_MARKER_FD, (dumps([nonce, stage, value]) + "\n").encode())
        except OSError:
            pass  # the program closed the descriptor, or flooded it: its loss

    return mark


def _run(code: types.CodeType, namespace: dict) -> None:
    try:
        exec(code, namespace)
    except BaseException:
        kind, value, traceback = sys.exc_info()
        # Tracebacks begin in the program, as if nothing had called it.
        value.__traceback__ = traceback.tb_next
        _finish((kind, value, traceback.tb_next))
    _finish(None)


def _finish(error: tuple | None) -> None:
    """What the interpreter does at the end of a script, then the end of the process."""
    status = 0
    if error is not None:
        status = _report(*error)
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            status = status or 120
    os._exit(status)


def _report(kind: type, value: BaseException, traceback: types.TracebackType | None) -> int:
    if issubclass(kind, SystemExit):
        if value.code is None:
            return 0
        if isinstance(value.code, int):
            return value.code & 0xFF
        print(value.code, file=sys.stderr)
        return 1
    try:
        sys.excepthook(kind, value, traceback)
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
    return 130 if issubclass(kind, KeyboardInterrupt) else 1


def settle() -> None:
    """In the server, once everything is imported: memory that forks will share stays shared."""
    gc.collect()
    gc.freeze()
