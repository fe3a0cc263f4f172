"""What is the program's fault is an outcome; what is ours raises."""

from concurrent.futures import CancelledError, Future
from dataclasses import replace

import pytest

from mle_rl import MleRlError
from mle_rl.records import Execution, Limits, Marker, Program
from mle_rl.rollout import environment
from mle_rl.rollout.environment import PROBLEMS, Environment, settled
from mle_rl.tasks import load_folder

PROGRAM = Program("a plan", "import pandas as pd\n")
GOOD = b"id,label\n0,a\n1,b\n2,a\n3,b\n"


@pytest.fixture
def task(tmp_path):
    """Four rows, two in each hidden split."""
    public, private = tmp_path / "toy/prepared/public", tmp_path / "toy/prepared/private"
    public.mkdir(parents=True)
    private.mkdir()
    (public / "train.csv").write_text("id,label\n9,a\n8,b\n")
    (public / "sample_submission.csv").write_text("id,label\n0,a\n1,a\n2,a\n3,a\n")
    (private / "test.csv").write_text(
        "id,label,split\n0,a,reward\n1,b,reward\n2,a,final\n3,a,final\n"
    )
    return load_folder(tmp_path / "toy", "accuracy")


class Pool:
    """Gives the execution it was told to give, and remembers the job."""

    def __init__(self, **changes):
        ended = Execution(
            "ok", "", "", 0.5, 0.5, 1.0, "limits", (Marker("data_loaded"),), submission=GOOD
        )
        self.execution = replace(ended, **changes)
        self.jobs = []

    def submit(self, job):
        self.jobs.append(job)
        future = Future()
        future.set_result(self.execution)
        return future


def test_a_good_program_is_graded_on_both_splits(task):
    pool = Pool()
    execution, outcome = Environment(task, pool, Limits(timeout_s=3.0)).run(PROGRAM)
    assert execution == pool.execution
    assert (outcome.valid, outcome.reward_score, outcome.final_score) == (True, 1.0, 0.5)
    assert outcome.stages == ("data_loaded",)
    (job,) = pool.jobs
    assert job.code == PROGRAM.code
    assert job.limits.timeout_s == 3.0
    assert [insertion.stage for insertion in job.insertions] == ["packages_imported"]


@pytest.mark.parametrize("status", list(PROBLEMS))
def test_a_submission_left_by_a_program_that_did_not_end_well_is_no_solution(task, status):
    _, outcome = Environment(task, Pool(status=status)).run(PROGRAM)
    assert not outcome.valid
    assert outcome.reward_score is None
    assert outcome.problem.startswith(PROBLEMS[status][:-1])
    assert outcome.stages == ("data_loaded",), "stages that were reached are credited"


def test_a_bad_submission_says_why(task):
    _, outcome = Environment(task, Pool(submission=b"id,label\n0,a\n")).run(PROGRAM)
    assert not outcome.valid
    assert outcome.problem


def test_a_completion_without_a_program_runs_nothing(task):
    pool = Pool()
    execution, outcome = Environment(task, pool).run(None)
    assert pool.jobs == []
    assert execution.status == "rejected"
    assert not outcome.valid
    assert outcome.problem


def test_a_bug_of_the_grader_is_raised(task, monkeypatch):
    def broken(*_):
        raise KeyError("a bug")

    monkeypatch.setattr(environment, "grade", broken)
    with pytest.raises(KeyError, match="a bug"):
        Environment(task, Pool()).run(PROGRAM)


def test_replay_without_a_file_of_executions_is_refused(task):
    with pytest.raises(MleRlError, match="executions"):
        Environment(task, Pool(), replay=True)


def test_a_fault_of_the_sandbox_is_raised(task):
    class Broken:
        def submit(self, job):
            future = Future()
            future.set_exception(OSError("no space left"))
            return future

    with pytest.raises(OSError, match="no space left"):
        Environment(task, Broken()).run(PROGRAM)


def test_a_pool_that_closes_cancels(task):
    class Closing:
        def submit(self, job):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(CancelledError):
        Environment(task, Closing()).run(PROGRAM)


class Dying(Pool):
    """Sandboxes are killed, twice each, under the first ``times`` programs."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def submit(self, job):
        killed = len(self.jobs) < self.times
        ended = self.execution
        if killed:
            self.execution = replace(ended, status="killed", duration_s=0.0, submission=None)
        try:
            return super().submit(job)
        finally:
            self.execution = ended


def test_a_program_whose_sandbox_was_killed_gets_another(task):
    pool = Dying(times=1)
    environment = Environment(task, pool)
    _, outcome = settled(environment, PROGRAM, environment.submit(PROGRAM))
    assert outcome.valid
    assert len(pool.jobs) == 2


def test_a_program_of_which_nothing_can_be_known_is_no_failed_program(task):
    environment = Environment(task, Dying(times=2))
    with pytest.raises(MleRlError, match="killed"):
        settled(environment, PROGRAM, environment.submit(PROGRAM))


def test_a_program_that_was_killed_for_what_it_did_is_not_run_again(task):
    pool = Pool(status="killed")
    environment = Environment(task, pool)
    _, outcome = settled(environment, PROGRAM, environment.submit(PROGRAM))
    assert not outcome.valid
    assert len(pool.jobs) == 1
