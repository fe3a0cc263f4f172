"""The warm server: imports the scientific libraries once, then forks per program.

Started by `launcher` with a clean environment. It never runs anything that a policy wrote, and it
is told only the public folder of a task.
"""

from __future__ import annotations

import importlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable

from mle_rl.records import Limits
from mle_rl.sandbox import child, failures, job, submission
from mle_rl.sandbox.failures import Failure
from mle_rl.sandbox.jail import Jail
from mle_rl.sandbox.output import Markers
from mle_rl.sandbox.watch import Orphaned, Watched, watch

WARM_MODULES = (
    "numpy",
    "pandas",
    "scipy.sparse",
    "scipy.stats",
    "scipy.optimize",
    "sklearn.calibration",
    "sklearn.cluster",
    "sklearn.compose",
    "sklearn.decomposition",
    "sklearn.dummy",
    "sklearn.ensemble",
    "sklearn.feature_extraction.text",
    "sklearn.feature_selection",
    "sklearn.impute",
    "sklearn.kernel_approximation",
    "sklearn.linear_model",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.naive_bayes",
    "sklearn.neighbors",
    "sklearn.neural_network",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "sklearn.svm",
    "sklearn.tree",
)
_NOT_RUN = {
    "status": "rejected",
    "stdout": "",
    "duration_s": 0.0,
    "cpu_s": 0.0,
    "peak_memory_mb": 0.0,
    "markers": [],
    "submission_problem": None,
}
_NOTED_VERSIONS = ("numpy", "pandas", "scipy", "sklearn")


def serve(control: socket.socket, jail: Jail, slot: int) -> Callable[[], None] | None:
    """Runs jobs until the pool is gone.

    Returns:
        In a program's process, the function that runs the program; in the server, None at the end.
    """
    versions = warm_up()
    try:
        job.send(control, {"isolation": jail.isolation, "versions": versions})
        while True:
            message, _ = job.receive(control)
            program = _execute(message, jail, control, slot)
            if program is not None:
                return program
    except (EOFError, ConnectionError, Orphaned):
        return None


def warm_up() -> dict[str, str]:
    """Imports the libraries; returns their versions.

    Raises:
        RuntimeError: A library started a thread, which no fork would inherit.
    """
    for name in WARM_MODULES:
        importlib.import_module(name)
    threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
    if threads > 1:
        raise RuntimeError(f"importing the libraries started {threads - 1} threads")
    child.settle()
    versions = {name: sys.modules[name].__version__ for name in _NOTED_VERSIONS}
    return {"python": sys.version.split()[0], **versions}


def _execute(
    message: dict, jail: Jail, control: socket.socket, slot: int
) -> Callable[[], None] | None:
    """Runs one job and sends the result; in the program's process, returns what runs it."""
    limits = Limits(**message["limits"])
    source = message["code"].encode("utf-8", "surrogatepass")
    if refused := _refused(message["code"], source):
        reason = refused.reason()
        job.send(control, {**_NOT_RUN, "stderr": reason, "reason": reason})
        return None
    folder = jail.open_scratch(limits)
    _write_source(source, folder)
    nonce = secrets.token_hex(16)
    ends = {name: os.pipe() for name in ("stdout", "stderr", "markers", "setup")}
    pid = jail.fork()
    if pid == 0:
        control.detach()  # the descriptor is closed with all others
        pipes = child.Pipes(**{name: write for name, (_, write) in ends.items()})
        return child.prepare(message, jail, pipes, nonce, slot)
    for _, write in ends.values():
        os.close(write)
    reads = {name: read for name, (read, _) in ends.items()}
    try:
        seen = watch(pid, jail, limits, _markers(message, nonce), reads, control.fileno())
        answer, blobs = _answer(seen, limits, folder)
    finally:
        for read in reads.values():
            os.close(read)
        jail.close_scratch()
    job.send(control, answer, *blobs)
    return None


def _markers(message: dict, nonce: str) -> Markers:
    """Reads the marker channel of one run: only stages that it observes count."""
    return Markers(nonce, {insertion["stage"] for insertion in message["insertions"]})


def _refused(code: str, source: bytes) -> Failure | None:
    """Why a program is not even started, if so."""
    if len(source) > failures.LONGEST_SOURCE:
        return failures.TOO_LONG
    if any("\ud800" <= character <= "\udfff" for character in code):
        return failures.NOT_TEXT
    return None


def _write_source(source: bytes, folder: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(child.SOURCE_NAME, flags, 0o644, dir_fd=folder), "wb") as file:
        file.write(source)


def _answer(seen: Watched, limits: Limits, folder: int) -> tuple[dict, list[bytes]]:
    """The result as it travels to the pool."""
    if seen.fault:
        return {"fault": seen.fault}, []
    if not seen.ready or not seen.intact:
        return {"lost": f"its process ended with wait status {seen.wait_status}"}, []
    started = seen.started_at if seen.started_at is not None else seen.ended_at
    duration_s = seen.ended_at - started
    failure, detail = _failure(seen, duration_s > limits.timeout_s)
    duration_s = limits.timeout_s if failure is failures.TIME else min(duration_s, limits.timeout_s)
    data, problem = submission.read(folder)
    answer = {
        "status": failure.status if failure else "ok",
        "reason": failure.reason(limits, detail) if failure else "",
        "duration_s": duration_s,
        "cpu_s": max(0.0, seen.cpu_s - seen.cpu_before_s),
        "peak_memory_mb": max(seen.peak_mb, seen.max_rss_mb - seen.rss_before_mb),
        "markers": list(seen.markers.items()),
        "submission_problem": problem,
        "stdout": seen.stdout,
        "stderr": seen.stderr,
    }
    return answer, [data] if data is not None else []


def _failure(seen: Watched, late: bool) -> tuple[Failure | None, object]:
    """How the program failed, if it did, and what its sentence has to name."""
    if seen.verdict:
        return seen.verdict, None
    if late:
        return failures.TIME, None
    if os.WIFSIGNALED(seen.wait_status):
        number = os.WTERMSIG(seen.wait_status)
        if number == signal.SIGKILL:
            return failures.SIGKILL, None
        return failures.SIGNAL, failures.signal_name(number)
    code = os.WEXITSTATUS(seen.wait_status)
    return (failures.EXIT, code) if code else (None, None)
