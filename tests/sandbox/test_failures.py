"""Every failure has one status and one sentence, and the documentation shows the pair."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from mle_rl import sandbox
from mle_rl.records import Limits, Status
from mle_rl.rollout.environment import Environment
from mle_rl.sandbox import Job, LocalPool, failures, submission

LIMITS = Limits(timeout_s=20.0, memory_mb=256, processes=8)
ENDS = [
    ("1 / 0", failures.EXIT, 1),
    ("raise SystemExit(3)", failures.EXIT, 3),
    ("def broken(:", failures.EXIT, 1),
    ("import ctypes; ctypes.string_at(0)", failures.SIGNAL, "SIGSEGV"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 3)", failures.SIGNAL, "signal 37"),
    ("while True: pass", failures.TIME, None),
    ("x = [bytearray(1 << 20) for _ in range(1200)]", failures.MEMORY, None),
    (
        "import threading, time\n"
        "for _ in range(12): threading.Thread(target=time.sleep, args=(100,)).start()",
        failures.PROCESSES,
        None,
    ),
    ("import os; os.kill(os.getpid(), 9)", failures.SIGKILL, None),
    ("x = '\ud800'", failures.NOT_TEXT, None),
    ("#" * (2 << 20), failures.TOO_LONG, None),
]
DETAILS = {failures.EXIT: 1, failures.SIGNAL: "SIGSEGV"}


@pytest.mark.parametrize(("code", "failure", "detail"), ENDS)
def test_each_end_has_its_status_and_its_sentence(pool, world, code, failure, detail):
    limits = replace(LIMITS, timeout_s=0.5) if failure is failures.TIME else LIMITS
    execution = pool.run(Job(code, world.public, limits=limits))
    assert (execution.status, execution.reason) == (failure.status, failure.reason(limits, detail))


def test_files_beyond_a_watched_quota_have_their_sentence(world):
    limits = Limits(timeout_s=60.0, disk_mb=4)
    code = (
        "import time\nfor n in range(3): open(str(n), 'wb').write(b'x' * (3 << 20))\ntime.sleep(60)"
    )
    with LocalPool(1, tier="limits") as pool:
        execution = pool.run(Job(code, world.public, limits=limits))
    assert (execution.status, execution.reason) == ("killed", failures.DISK.reason(limits))


def test_a_good_end_has_no_reason(pool, world):
    execution = pool.run(Job("pass", world.public))
    assert (execution.status, execution.reason) == ("ok", "")


def test_a_completion_without_a_program_has_its_sentence():
    execution, outcome = Environment(None, None).run(None)
    assert execution.status == failures.NO_PROGRAM.status
    assert execution.reason == outcome.problem == failures.NO_PROGRAM.reason()


def test_every_status_but_ok_has_a_failure():
    assert {failure.status for failure in failures.FAILURES} == {*get_args(Status)} - {"ok"}
    named = {value for value in vars(failures).values() if isinstance(value, failures.Failure)}
    assert named == set(failures.FAILURES)


def test_the_documentation_shows_every_pair():
    shown = " ".join(sandbox.__doc__.split())
    for failure in failures.FAILURES:
        sentence = failure.reason(detail=DETAILS.get(failure))
        assert f"{failure.status} {sentence}" in shown
        assert sentence.endswith(".")
    fields = {"names": 2, "why": "Permission denied"}
    for name, sentence in submission.PROBLEMS.items():
        filled = sentence.format(name=submission.FILE_NAME, max_mb=submission.MAX_MB, **fields)
        assert f"{name} {filled}" in shown
