"""Programs that fork without end: bounded by the kernel or by the watch, and all of them killed.

The programs here hold tokens, one for each fork: whatever fails, no machine is taken down.
"""

from __future__ import annotations

import os
import shutil
import threading

import pytest

from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool, jail, processes
from mle_rl.sandbox.meter import Meter
from mle_rl.sandbox.output import Markers
from mle_rl.sandbox.processes import descendants
from mle_rl.sandbox.watch import _Watcher

TOKENS = 300
LIMITS = Limits(timeout_s=8.0, processes=64)
# Each in a session of its own, so that no signal to a group reaches two of them.
FORKING = f"""
import os, signal, time
end = time.monotonic() + 20
tokens, given = os.pipe()
os.write(given, b"x" * {TOKENS})
os.set_blocking(tokens, False)
while time.monotonic() < end:
    try:
        if os.read(tokens, 1) and os.fork() == 0:
            signal.alarm(20)
            os.setsid()
            os.write(1, b".")
    except OSError:
        pass
"""


NO_BWRAP = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.mark.parametrize(
    "tier", ["isolated", "limits", pytest.param("bubblewrap", marks=[NO_BWRAP, pytest.mark.slow])]
)
def test_the_watch_ends_a_program_that_forks_without_end(world, tier):
    before = set(descendants(os.getpid()))
    with LocalPool(1, tier=tier) as pool:
        pool.run(Job("pass", world.public))
        sandbox = set(descendants(os.getpid()))
        execution = pool.run(Job(FORKING, world.public, limits=LIMITS))
        assert execution.status == "killed", "the watch stood still"
        forks = execution.stdout.count(".")
        if tier == "isolated":
            assert forks <= LIMITS.processes + jail.OWN_TASKS, "the kernel counts too"
        assert forks < TOKENS
        left = set(descendants(os.getpid())) - sandbox
        assert len(left) <= 1, "only the next namespace's first process"
        assert pool.run(Job("print(1)", world.public)).stdout == "1\n"
    assert set(descendants(os.getpid())) <= before


def test_killing_goes_on_until_nothing_new_appears(monkeypatch):
    sent = []
    monkeypatch.setattr(processes.os, "kill", lambda pid, number: sent.append(pid))
    looks = iter([[1, 2], [2, 3], [3, 4], [4], pytest.fail])
    processes.kill_all(lambda: next(looks))
    assert sorted(sent) == [1, 2, 3, 4], "each once, and those that were forked meanwhile"


def test_threads_of_this_user_are_counted():
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(50)]
    for thread in threads:
        thread.start()
    counted = processes.threads_of_user()
    stop.set()
    for thread in threads:
        thread.join()
    assert counted >= 51
    plain = object.__new__(jail.PlainJail)  # making one would have this process adopt orphans
    assert plain.process_limit(Limits(processes=7)) > jail._FOREIGN_TASKS + 7


class StuckMeter(Meter):
    """Waits for a process that never lets go of its memory."""

    waited_s = 0.0

    def begin(self, pids):
        pass

    def waiting_s(self):
        return self.waited_s


def test_a_watch_whose_meter_is_stuck_takes_the_rough_sum():
    watcher = _Watcher(os.getpid(), None, Limits(memory_mb=100), Markers(""), {})
    watcher.meter, watcher.base_mb = StuckMeter(), 50.0
    assert watcher._memory_of_several([1, 2], [130.0, 45.0], seldom=False) == 0.0
    watcher.meter.waited_s = 3600.0
    assert watcher._memory_of_several([1, 2], [130.0, 45.0], seldom=False) == 80.0


def test_a_meter_gives_each_sum_once_and_leaves_no_thread():
    threads = threading.active_count()  # other tests leave some
    meter = Meter()
    assert meter.take() is None
    assert meter.waiting_s() == 0.0
    meter.begin([os.getpid()])
    meter.join()
    assert meter.take() > 10
    assert meter.take() is None
    assert threading.active_count() == threads
