"""What happens to jobs when workers are lost, with workers that are lost on purpose."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
import threading
from concurrent.futures import CancelledError

import pytest

from mle_rl import MleRlError
from mle_rl.records import Execution
from mle_rl.sandbox import Job
from mle_rl.sandbox.backlog import WorkerLost
from mle_rl.sandbox.failures import LOST
from mle_rl.sandbox.pool import WorkerPool
from mle_rl.sandbox.worker import LocalWorker

NO_OTHER = MleRlError("There is no other.")
NO_FILES = OSError(errno.EMFILE, "Too many open files")


class Fake:
    """Runs by name: "lost" loses the worker, "fault" is a fault of the sandbox, "wait" waits.

    Args:
        no_other: Raised in place of starting another.
        lose_once: Whether "lost" runs like any other the second time.
    """

    isolation, versions = "none", {"python": "3"}

    def __init__(self, no_other=None, lose_once=False):
        self.no_other, self.lose_once = no_other, lose_once
        self.ran: list[str] = []
        self.begun, self.go_on, self.replacing = (threading.Event() for _ in range(3))
        self.stopped = False

    def start(self):
        pass

    def greet(self):
        pass

    def run(self, job):
        self.ran.append(job.code)
        if job.code == "wait":
            self.begun.set()
            self.go_on.wait()
            if self.stopped:
                raise WorkerLost
        if job.code == "fault":
            raise MleRlError("fault")
        if job.code == "lost" and not (self.lose_once and self.ran.count("lost") > 1):
            raise WorkerLost
        return Execution("ok", job.code, "", 1.0, 1.0, 1.0, isolation="none")

    def replace(self):
        self.replacing.set()
        if self.no_other:
            raise self.no_other
        if self.stopped:
            raise WorkerLost

    def stop(self):
        self.stopped = True
        self.go_on.set()


@pytest.fixture
def jobs(tmp_path):
    return lambda *codes: [Job(code, tmp_path) for code in codes]


def test_a_job_is_tried_again_before_those_that_wait(jobs):
    worker = Fake(lose_once=True)
    with WorkerPool([worker]) as pool:
        futures = [pool.submit(job) for job in jobs("wait", "lost", "a", "b")]
        worker.go_on.set()
        assert [future.result().stdout for future in futures] == ["wait", "lost", "a", "b"]
    assert worker.ran == ["wait", "lost", "lost", "a", "b"]


def test_a_job_that_loses_two_workers_is_killed_and_the_next_one_runs(jobs):
    worker = Fake()
    with WorkerPool([worker]) as pool:
        killed, following = (pool.submit(job) for job in jobs("lost", "a"))
        assert (killed.result().status, killed.result().duration_s) == ("killed", 0.0)
        assert killed.result().reason == LOST.reason()
        assert following.result().stdout == "a"
    assert worker.ran == ["lost", "lost", "a"]


def test_a_fault_of_the_sandbox_is_raised_and_the_next_job_runs(jobs):
    with WorkerPool([Fake()]) as pool:
        fault, following = (pool.submit(job) for job in jobs("fault", "a"))
        with pytest.raises(MleRlError, match="fault"):
            fault.result()
        assert following.result().stdout == "a"


@pytest.mark.parametrize(
    ("no_other", "sentence"),
    [
        (NO_OTHER, r"^There is no other\.$"),
        (
            NO_FILES,
            r"^A sandbox worker was lost.*\(\[Errno 24\] Too many open files\): .*fewer.*\.$",
        ),
        (RuntimeError("the cluster is gone\nand more"), r"\(the cluster is gone\): "),
    ],
    ids=["failed", "refused by the system", "anything else"],
)
def test_when_no_worker_is_left_nothing_waits_for_ever(jobs, no_other, sentence):
    worker = Fake(no_other)
    with WorkerPool([worker]) as pool:
        futures = [pool.submit(job) for job in jobs("wait", "lost", "a")]
        worker.go_on.set()
        for future in futures[1:]:
            with pytest.raises(MleRlError, match=sentence):
                future.result(timeout=60)
        with pytest.raises(MleRlError, match=sentence):
            pool.submit(*jobs("b"))


def ask_from_another_thread(pool, job, answers):
    """A callback that needs a thread which is just submitting, as one that holds a lock does."""

    def submit():
        with pytest.raises(MleRlError):
            pool.submit(job)

    def ask(future):
        thread = threading.Thread(target=submit, daemon=True)
        thread.start()
        thread.join(5.0)
        answers.append(not thread.is_alive())

    return ask


@pytest.mark.parametrize("end", ["close", "no worker left"])
def test_who_hears_that_nothing_runs_any_more_may_wait_for_who_submits(jobs, end):
    worker, answers = Fake(NO_OTHER), []
    pool = WorkerPool([worker])
    pool.submit(*jobs("wait"))
    worker.begun.wait()
    lost = pool.submit(*jobs("lost"))
    waiting = pool.submit(*jobs("a"))
    waiting.add_done_callback(ask_from_another_thread(pool, *jobs("b"), answers))
    if end == "no worker left":
        worker.go_on.set()
        with pytest.raises(MleRlError, match="no other"):
            lost.result(timeout=60)
    pool.close()
    assert answers == [True]


@pytest.mark.parametrize("no_other", [NO_OTHER, NO_FILES], ids=["failed", "refused"])
def test_another_worker_takes_over_and_it_is_said(jobs, no_other, recwarn):
    frail, sound = Fake(no_other), Fake(lose_once=True)
    sound.ran.append("lost")  # has had its turn: runs "lost" like any other
    with WorkerPool([frail, sound]) as pool:
        futures = [pool.submit(job) for job in jobs("wait", "wait", "lost", "lost", "a", "b", "c")]
        sound.begun.wait()
        frail.go_on.set()  # has the other "wait": it is the one that takes "lost"
        frail.replacing.wait()
        sound.go_on.set()
        assert {future.result(timeout=60).status for future in futures} == {"ok"}
    said = str(recwarn.pop(RuntimeWarning).message)
    assert no_other.args[-1] in said
    assert said.endswith(". Of the pool's workers 1 is left.")


def close_and_see_cancelled(pool, futures):
    pool.close()
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(timeout=60)


def test_nothing_is_said_of_a_worker_that_is_lost_because_the_pool_closes(jobs, recwarn):
    worker = Fake(NO_FILES)
    pool = WorkerPool([worker, Fake()])
    futures = [pool.submit(job) for job in jobs("wait", "wait")]
    worker.begun.wait()
    close_and_see_cancelled(pool, futures)
    assert worker.replacing.is_set()
    assert not recwarn.list


@pytest.mark.parametrize("refused", [(tempfile, "TemporaryFile"), (subprocess, "Popen")])
def test_a_worker_that_cannot_be_started_leaves_nothing_open(monkeypatch, refused):
    def refuse(*args, **kwargs):
        raise NO_FILES

    monkeypatch.setattr(*refused, refuse)
    worker = LocalWorker("limits", ())
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="Too many"):
        worker.start()
    assert os.listdir("/proc/self/fd") == before
    worker.stop()


def test_closing_cancels_what_waits_and_what_runs(jobs):
    worker = Fake()
    pool = WorkerPool([worker])
    futures = [pool.submit(job) for job in jobs("wait", "a")]
    worker.begun.wait()
    close_and_see_cancelled(pool, futures)
    with pytest.raises(MleRlError, match="closed"):
        pool.submit(*jobs("b"))


def test_a_job_that_is_cancelled_while_it_waits_never_runs(jobs):
    worker = Fake()
    with WorkerPool([worker]) as pool:
        futures = [pool.submit(job) for job in jobs("wait", "a", "b")]
        assert futures[1].cancel()
        worker.go_on.set()
        assert futures[2].result().stdout == "b"
    assert worker.ran == ["wait", "b"]


def test_a_worker_that_has_been_stopped_is_lost_to_who_uses_it(jobs):
    worker = LocalWorker("limits", ())
    worker.start()
    worker.stop()
    for use in (lambda: worker.run(*jobs("pass")), worker.greet, worker.replace):
        with pytest.raises(WorkerLost):
            use()
