"""The program's own process: from a fork of the warm server to ``python program.py``.

`prepare` runs between the fork and the first line of the program. Nothing hostile has run yet, so
what it reports over the setup pipe (that isolation is in force, when the program starts) is true;
the pipe is closed before the program starts. `prepare` returns a function without arguments, and
the server unwinds its whole call stack before that is called: a program that walks its frames finds
no job, no socket and no marker secret in the frames below.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import linecache
import os
import random
import resource
import signal
import site
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mle_rl.errors import MleRlError
from mle_rl.instrumentation import Insertion, weave
from mle_rl.records import Limits
from mle_rl.sandbox.environment import environment
from mle_rl.sandbox.jail import Jail
from mle_rl.sandbox.syscalls import collapse_pages

SOURCE_NAME = "program.py"
_SETUP_FD, _MARKER_FD, _SPARE_FD = 3, 100, 200
_OPEN_FILES = 512
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True)
class Pipes:
    """Write ends that the program's process takes over from the server."""

    stdout: int
    stderr: int
    markers: int
    setup: int


def prepare(job: dict, jail: Jail, pipes: Pipes, nonce: str, slot: int) -> Callable[[], None]:
    """Turns this fork into the program's process.

    Args:
        job: The job as it travels, see `Job.to_wire`.
        jail: Confines this process.
        pipes: Write ends for output, markers and the report of this set-up.
        nonce: Secret of this run, proves that a marker comes from woven code.
        slot: Number of this worker; chooses its cores.

    Returns:
        Runs the program and never returns.
    """
    report_fd = pipes.setup
    try:
        limits = Limits(**job["limits"])
        _rearrange_descriptors(pipes)
        report_fd = _SETUP_FD
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.environ.clear()
        os.environ.update(environment(jail.home, limits.cpu_cores))
        _limit_resources(limits, jail.process_limit(limits))
        _limit_cores(limits.cpu_cores, slot)
        with contextlib.suppress(OSError):  # the peak of memory starts here, not in the server
            Path("/proc/self/clear_refs").write_text("5")
        memory_mb = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_MB
        jail.confine(job["public_dir"])
        _freshen_interpreter(job["seed"], jail.home)
        main = _fresh_main(jail.home, job["code"])
        _report(report_fd, "ready", memory_mb)
        code, error = _compile(job, nonce)
    except BaseException as fault:
        _report(report_fd, "fault", type(fault).__name__, fault)
        os._exit(70)
    job.clear()
    _report(report_fd, "go", time.monotonic(), time.process_time())
    os.close(report_fd)
    if error is not None:
        return lambda: _finish(error)
    namespace = main.__dict__
    return lambda: _run(code, namespace)


def _report(fd: int, *words: object) -> None:
    line = " ".join(str(word) for word in words).replace("\n", " ")
    os.write(fd, line.encode("utf-8", "replace")[:4000] + b"\n")


def _compile(job: dict, nonce: str) -> tuple[types.CodeType | None, Exception | None]:
    """The program's code, or how Python fails to compile it."""
    insertions = [Insertion.from_json(fields) for fields in job["insertions"]]
    try:
        return weave(job["code"], insertions, SOURCE_NAME, _marker(nonce)), None
    except MleRlError:
        raise
    except Exception as error:
        error.__traceback__ = None
        return None, error


def _rearrange_descriptors(pipes: Pipes) -> None:
    """0 null, 1 stdout, 2 stderr, _SETUP_FD, _MARKER_FD; every other descriptor is closed."""
    # First out of the way, so that no target is a source that is still needed.
    sources = (pipes.stdout, pipes.stderr, pipes.setup, pipes.markers)
    stdout, stderr, setup, markers = (
        os.dup2(fd, _SPARE_FD + index) for index, fd in enumerate(sources)
    )
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.dup2(setup, _SETUP_FD, inheritable=False)
    os.dup2(markers, _MARKER_FD, inheritable=False)
    os.closerange(_SETUP_FD + 1, _MARKER_FD)
    os.closerange(_MARKER_FD + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_blocking(_MARKER_FD, False)


def _limit_resources(limits: Limits, process_limit: int) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_FSIZE: limits.disk_mb << 20,
        resource.RLIMIT_MEMLOCK: 8 << 20,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 1024,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_NPROC: process_limit,
    }
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _limit_cores(count: int, slot: int) -> None:
    """Binds the program to its share of the cores, and lets numerical libraries use all of it."""
    cores = sorted(os.sched_getaffinity(0))
    if count < len(cores):
        mine = {cores[(slot * count + i) % len(cores)] for i in range(count)}
        os.sched_setaffinity(0, mine)
    if count > 1:
        sys.modules["threadpoolctl"].threadpool_limits(min(count, len(cores)))


def _freshen_interpreter(seed: int, home: str) -> None:
    """What a fork inherits and a new interpreter would not have."""
    random.seed(seed)
    sys.modules["numpy"].random.seed(seed % 2**32)
    sys.argv[:] = [SOURCE_NAME]
    sys.path.insert(0, home)
    sys.stdin = sys.__stdin__ = _text(0, "r", "surrogateescape")
    sys.stdout = sys.__stdout__ = _text(1, "w", "surrogateescape")
    sys.stderr = sys.__stderr__ = _text(2, "w", "backslashreplace")
    warnings.onceregistry.clear()
    site.USER_BASE = site.USER_SITE = None  # found for the server's HOME; found anew when asked for
    for name in [name for name in sys.modules if name.partition(".")[0] == "mle_rl"]:
        del sys.modules[name]


def _text(fd: int, mode: str, errors: str) -> io.TextIOWrapper:
    """Line by line, so that what was printed before a time-out is there to be shown."""
    raw = io.FileIO(fd, mode)
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=True)


def _fresh_main(home: str, code: str) -> types.ModuleType:
    main = types.ModuleType("__main__")
    path = os.path.join(home, SOURCE_NAME)
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = main
    # Lines as the compiler counts them: str.splitlines also ends one at form feeds and the like.
    lines = list(io.StringIO(code if code.endswith("\n") else code + "\n", newline=None))
    for name in (SOURCE_NAME, path):
        linecache.cache[name] = (len(code), None, lines, name)
    return main


def _marker(nonce: str) -> Callable[[str, float | None], None]:
    """The function that woven code calls; it never raises and never prints."""
    write, dumps = os.write, json.dumps

    def mark(stage: str, value: float | None = None) -> None:
        with contextlib.suppress(OSError):  # the program closed the descriptor: its loss
            write(_MARKER_FD, (dumps([nonce, stage, value]) + "\n").encode())

    return mark


def _run(code: types.CodeType, namespace: dict) -> None:
    try:
        exec(code, namespace)
    except BaseException as error:
        # Tracebacks begin in the program, as if nothing had called it.
        error.__traceback__ = error.__traceback__.tb_next
        _finish(error)
    _finish(None)


def _finish(error: BaseException | None, exit_now: Callable[[int], None] = os._exit) -> None:
    """What the interpreter does at the end of a script, then the end of the process.

    Whatever the program has made of the interpreter, the process ends here, and not with success
    unless everything went well.
    """
    status = 1
    try:
        status = 0 if error is None else _report_error(error)
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BaseException:
        status = status or 120
    finally:
        exit_now(status)


def _report_error(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    original = type(error), error, error.__traceback__
    try:
        sys.excepthook(*original)
    except BaseException as another:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(another), another, another.__traceback__.tb_next)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(*original)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def settle() -> None:
    """In the server, once everything is imported: forks get cheap and share what they can."""
    gc.collect()
    gc.freeze()
    collapse_pages()
