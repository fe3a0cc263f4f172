"""What the sandbox costs, beside a cold interpreter: ``python -m mle_rl.sandbox.bench``.

Cold and warm runs alternate, so that a busy machine slows both alike. A cold run is
``python program.py`` with the same environment; its time is what running programs one by one would
cost. A warm run is the time from submitting a job to having its result, all isolation included.
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
BUSY = "import time\nb = time.process_time()\nwhile time.process_time() < b + 0.3: pass\n"
_ROUNDS = 15
_WARM_PER_ROUND = 4
_BUSY_JOBS = 16


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


def throughput(workers: int, folder: Path) -> float:
    """Busy programs a second that a pool runs."""
    with LocalPool(workers) as pool:
        began = time.perf_counter()
        futures = [pool.submit(Job(BUSY, folder)) for _ in range(_BUSY_JOBS)]
        for future in futures:
            future.result()
        return _BUSY_JOBS / (time.perf_counter() - began)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cold, warm = overhead(folder)
        print(f"cold python program.py   {1000 * cold:8.1f} ms (median of {_ROUNDS})")
        print(f"in the sandbox           {1000 * warm:8.1f} ms (of {_ROUNDS * _WARM_PER_ROUND})")
        print(f"ratio                    {cold / warm:8.1f}")
        if len(os.sched_getaffinity(0)) < 2:
            print("two workers              not measured: one core")
            return
        one, two = throughput(1, folder), throughput(2, folder)
        print(f"one worker               {one:8.2f} programs of 0.3 CPU seconds a second")
        print(f"two workers              {two:8.2f}")
        print(f"ratio                    {two / one:8.2f}")


if __name__ == "__main__":
    main()
