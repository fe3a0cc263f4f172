"""Thousands of programs in a row: nothing is lost, nothing grows."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from pathlib import Path

import pytest

from mle_rl.records import Execution, Limits
from mle_rl.sandbox import Job, LocalPool
from mle_rl.sandbox.processes import descendants, memory_and_threads

RUNS = 10_000
DISTINCT = 100


def program(number: int) -> str:
    return (
        "import pandas, numpy, random\n"
        f"y = numpy.random.rand(5) * {number % DISTINCT}\n"
        "table = pandas.DataFrame({'id': range(5), 'y': y})\n"
        "table.to_csv('submission.csv', index=False)\n"
        "print(random.random(), table.y.sum())\n"
    )


def job(number: int, public: Path) -> Job:
    limits = Limits(timeout_s=300.0)  # the machine may be busy; nothing here depends on time
    return Job(program(number), public, limits=limits, seed=number % DISTINCT)


def result(execution: Execution) -> tuple:
    return execution.status, execution.stdout, execution.stderr, execution.submission


def results(pool: LocalPool, public: Path, count: int) -> list:
    futures = [pool.submit(job(number, public)) for number in range(count)]
    return [result(future.result()) for future in futures]


def ours(pid: int) -> bool:
    """Whether a process is part of the sandbox, not a program: one that is dies as "killed"."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    inner = status.partition("NSpid:")[2].split("\n")[0].split()
    return len(inner) < 3 or inner[2] == "1"


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.slow
def test_killed_workers_change_no_result(world):
    with LocalPool(2) as pool:
        quiet = results(pool, world.public, DISTINCT)
    assert all(status == "ok" for status, *_ in quiet)
    before, rng = set(descendants(os.getpid())), random.Random(1)
    open_before = descriptors(os.getpid())
    with LocalPool(2) as pool:
        open_in_use = descriptors(os.getpid())
        futures = [pool.submit(job(number, world.public)) for number in range(RUNS)]
        unlucky = kills = 0
        for number, future in enumerate(futures):
            execution = future.result()
            if execution.status == "killed" and execution.duration_s == 0.0:
                unlucky += 1  # lost two workers, and says so: whoever asked asks again
                execution = pool.run(job(number, world.public))
            assert result(execution) == quiet[number % DISTINCT], number
            if rng.random() < 1 / 50:
                mine = [pid for pid in descendants(os.getpid()) if pid not in before]
                targets = [pid for pid in mine if ours(pid)]
                if targets:  # none for a moment when both workers are being replaced
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(rng.choice(targets), signal.SIGKILL)
                        kills += 1
        print(f"{kills} processes of the sandbox killed, {unlucky} programs lost two workers")
        print(f"descriptors of the pool: {open_in_use} at first, {descriptors(os.getpid())} now")
        assert kills > RUNS / 100
        assert unlucky < RUNS / 500
        assert descriptors(os.getpid()) <= open_in_use
    assert descriptors(os.getpid()) == open_before
    assert set(descendants(os.getpid())) <= before
    assert threading.active_count() == 1


@pytest.mark.slow
def test_a_server_does_not_grow(world):
    before = set(descendants(os.getpid()))
    with LocalPool(1) as pool:
        _, server, *_ = (pid for pid in descendants(os.getpid()) if pid not in before)
        results(pool, world.public, 200)
        memory, files = memory_and_threads(server)[0], descriptors(server)
        mounts = Path(f"/proc/{server}/mounts").read_text()
        results(pool, world.public, RUNS)
        grown = memory_and_threads(server)[0]
        print(f"server: {memory:.2f} MiB and {files} descriptors, after {RUNS} programs", end=" ")
        print(f"{grown:.2f} MiB and {descriptors(server)} descriptors")
        assert grown < 1.05 * memory
        assert descriptors(server) == files
        assert Path(f"/proc/{server}/mounts").read_text() == mounts
        left = set(descendants(server))
    assert len(left) == 2  # the process that makes namespaces, and the next one's first process
