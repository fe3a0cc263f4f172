"""Which cores programs are bound to, beside those of other pools and other processes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from mle_rl import MleRlError
from mle_rl.sandbox import Job, LocalPool, slots


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """Other work on the machine may have pools too, which come and go."""
    monkeypatch.setattr(slots, "NAME", f"mle-rl-test-{os.getpid()}")


def _numbers(claimed: list[slots.Slot]) -> list[int]:
    return [slot.number for slot in claimed]


@pytest.fixture
def elsewhere():
    """Starts another process that claims numbers and says which; it ends when it is killed."""
    started = []

    def claim(count: int) -> tuple[subprocess.Popen, list[int]]:
        code = (
            "import sys\nfrom mle_rl.sandbox import slots\n"
            f"slots.NAME = {slots.NAME!r}\nclaimed = slots.claim({count})\n"
            "print(*[slot.number for slot in claimed], flush=True)\nsys.stdin.read()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process, [int(number) for number in process.stdout.readline().split()]

    yield claim
    for process in started:
        process.kill()
        process.communicate()


def test_processes_have_different_numbers_and_kill_9_gives_them_back(elsewhere):
    mine = slots.claim(1)
    process, theirs = elsewhere(2)
    assert (_numbers(mine), theirs) == ([0], [1, 2])
    more = slots.claim(1)
    assert _numbers(more) == [3]
    process.kill()
    process.wait()
    again = slots.claim(2)
    assert _numbers(again) == [1, 2]
    for slot in [*mine, *more, *again]:
        slot.free()


def test_numbers_of_one_pool_are_consecutive_and_none_is_kept_in_vain():
    """With a gap, two workers of one pool could get the same core while another has none."""
    first, second = slots.claim(1), slots.claim(1)
    first[0].free()
    pair = slots.claim(2)
    assert _numbers(pair) == [2, 3]
    gap = slots.claim(1)
    assert _numbers(gap) == [0], "tried for the pair and given back"
    for slot in [*second, *pair, *gap]:
        slot.free()


def test_where_names_are_refused_everybody_counts_from_0(monkeypatch):
    monkeypatch.setattr(slots, "NAME", "longer than the name of a socket may be" * 9)
    claimed = slots.claim(2) + slots.claim(1)
    assert _numbers(claimed) == [0, 1, 0]
    for slot in claimed:
        slot.free()


@pytest.mark.parametrize("what", ["socket.socket", "subprocess.Popen"])
def test_more_workers_than_the_system_allows_are_one_sentence_and_keep_no_number(what, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(what, refuse)
        with pytest.raises(MleRlError, match=r"3 workers cannot be started .*open files.*fewer"):
            LocalPool(3)
    (slot,) = slots.claim(1)
    assert slot.number == 0
    slot.free()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_two_pools_do_not_share_a_core_while_another_is_free(world):
    job = Job("import os; print(*os.sched_getaffinity(0))", world.public)
    with LocalPool(1) as one, LocalPool(1) as two:
        cores = {pool.run(job).stdout for pool in (one, two)}
    assert len(cores) == 2
    claimed = slots.claim(2)
    assert _numbers(claimed) == [0, 1], "closed pools give their numbers back"
    for slot in claimed:
        slot.free()
