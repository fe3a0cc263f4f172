"""What happens to jobs when workers are lost, with workers that are lost on purpose."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from mle_rl import MleRlError
from mle_rl.records import Execution
from mle_rl.sandbox import Job
from mle_rl.sandbox.backlog import WorkerLost
from mle_rl.sandbox.failures import LOST
from mle_rl.sandbox.pool import WorkerPool


class Fake:
    """Runs by name: "lost" loses the worker, "fault" is a fault of the sandbox, "wait" waits."""

    isolation, versions = "none", {"python": "3"}

    def __init__(self, replaceable=True, lose_once=False):
        self.replaceable, self.lose_once = replaceable, lose_once
        self.ran: list[str] = []
        self.go_on, self.begun = threading.Event(), threading.Event()
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
        if self.stopped:
            raise WorkerLost
        if not self.replaceable:
            raise MleRlError("no other")

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


def test_when_no_worker_is_left_nothing_waits_for_ever(jobs):
    worker = Fake(replaceable=False)
    with WorkerPool([worker]) as pool:
        futures = [pool.submit(job) for job in jobs("wait", "lost", "a")]
        worker.go_on.set()
        for future in futures[1:]:
            with pytest.raises(MleRlError, match="no other"):
                future.result(timeout=60)
        with pytest.raises(MleRlError, match="no other"):
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
    worker, answers = Fake(replaceable=False), []
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


def test_another_worker_takes_over(jobs):
    frail, sound = Fake(replaceable=False), Fake(lose_once=True)
    sound.ran.append("lost")  # has had its turn: runs "lost" like any other
    with WorkerPool([frail, sound]) as pool:
        futures = [pool.submit(job) for job in jobs("lost", "lost", "a", "b", "c")]
        assert {future.result(timeout=60).status for future in futures} == {"ok"}


def test_closing_cancels_what_waits_and_what_runs(jobs):
    worker = Fake()
    pool = WorkerPool([worker])
    futures = [pool.submit(job) for job in jobs("wait", "a")]
    worker.begun.wait()
    pool.close()
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(timeout=60)
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
