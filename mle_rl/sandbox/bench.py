"""What the sandbox costs, beside a cold interpreter: ``python -m mle_rl.sandbox.bench``.

Cold and warm runs alternate, so that a busy machine slows both alike. A cold run is
``python program.py`` with the same environment; its time is what running programs one by one would
cost. A warm run is the time from submitting a job to having its result, all isolation included.

Two workers are compared with one on programs of a fixed amount of work. What two cores can give at
best is measured beside it, with the same work in plain processes: cores share caches, clocks and
sometimes the core itself, and a machine that does other work has less than two.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mle_rl.sandbox.environment import environment
from mle_rl.sandbox.job import Job
from mle_rl.sandbox.pool import LocalPool

TRIVIAL = "import pandas\nfrom sklearn.ensemble import RandomForestClassifier\n"
WORK = "x = 0\nfor i in range(6_000_000): x += i * i\n"
PLAIN = f"""
import time
began = time.perf_counter()
for _ in range({{}}):
    exec(compile({WORK!r}, "work", "exec"), {{{{}}}})
print(time.perf_counter() - began)
"""
_ROUNDS = 15
_WARM_PER_ROUND = 4
_JOBS = 4
_REPEATS = 8


def cold_run_s(code: str, folder: Path) -> float:
    """Seconds of one ``python program.py``."""
    (folder / "program.py").write_text(code)
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=environment(str(folder), 1), check=True
    )
    return time.perf_counter() - began


def warm_run_s(pool: LocalPool, job: Job) -> float:
    """Seconds from submitting a job to its result."""
    began = time.perf_counter()
    execution = pool.run(job)
    if execution.status != "ok":
        raise RuntimeError(execution.stderr)
    return time.perf_counter() - began


def overhead(folder: Path) -> tuple[float, float]:
    """Median seconds of a trivial program: cold, and in the sandbox."""
    job = Job(TRIVIAL, folder)
    cold, warm = [], []
    with LocalPool(1) as pool:
        print(f"isolation: {pool.isolation}")
        warm_run_s(pool, job)
        for _ in range(_ROUNDS):
            cold.append(cold_run_s(TRIVIAL, folder))
            warm += [warm_run_s(pool, job) for _ in range(_WARM_PER_ROUND)]
    return statistics.median(cold), statistics.median(warm)


def sandboxed(pool: LocalPool, workers: int, folder: Path) -> float:
    """Programs a second that a pool runs."""
    began = time.perf_counter()
    futures = [pool.submit(Job(WORK, folder)) for _ in range(workers * _JOBS)]
    for future in futures:
        future.result()
    return workers * _JOBS / (time.perf_counter() - began)


def plain(processes: int) -> float:
    """The same without a sandbox: times a second that plain processes do the same work."""
    command = [sys.executable, "-c", PLAIN.format(_JOBS)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
    took_s = max(float(process.communicate()[0]) for process in running)
    return processes * _JOBS / took_s


def scaling(folder: Path) -> None:
    """Prints what a second worker adds, and what a second core adds.

    All four take turns, and the best of each counts: other work on the machine only ever slows.
    """
    best: dict[tuple[str, int], float] = {}
    with LocalPool(1) as single, LocalPool(2) as double:
        for _ in range(_REPEATS):
            for count, pool in ((1, single), (2, double)):
                for name, rate in (
                    ("sandbox", sandboxed(pool, count, folder)),
                    ("plain", plain(count)),
                ):
                    best[name, count] = max(rate, best.get((name, count), 0.0))
    for name in ("sandbox", "plain"):
        one, two = best[name, 1], best[name, 2]
        print(f"{name:<8} one {one:6.2f}, two {two:6.2f} programs a second, ratio {two / one:5.2f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cold, warm = overhead(folder)
        print(f"cold python program.py   {1000 * cold:8.1f} ms (median of {_ROUNDS})")
        print(f"in the sandbox           {1000 * warm:8.1f} ms (of {_ROUNDS * _WARM_PER_ROUND})")
        print(f"ratio                    {cold / warm:8.1f}")
        if len(os.sched_getaffinity(0)) < 2:
            print("two workers              not measured: one core")
        else:
            scaling(folder)


if __name__ == "__main__":
    main()
