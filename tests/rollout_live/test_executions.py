"""Recorded executions: the first one of a program is what everybody replays."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from mle_rl.instrumentation import insert_by_syntax
from mle_rl.records import Limits, Program
from mle_rl.rollout.environment import Environment
from mle_rl.rollout.executions import ExecutionStore, key
from mle_rl.sandbox import Job

CODE = "import pandas as pd\n"


@pytest.fixture
def store(tmp_path):
    opened = ExecutionStore(tmp_path / "executions.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def job(tmp_path):
    return Job(CODE, tmp_path / "some-task/prepared/public", insert_by_syntax(CODE).insertions)


def test_what_comes_back_is_marked_and_else_the_same(store, job, result):
    execution, outcome = result(3)
    assert store.get(job, "files") is None
    assert store.put(job, "files", execution, outcome) == (execution, outcome)
    recorded = replace(execution, submission=None, replayed=True)
    assert store.get(job, "files") == (recorded, outcome)


def test_the_first_execution_stays(store, job, result):
    first = result(1, duration_s=0.125)
    store.put(job, "files", *first)
    taken, outcome = store.put(job, "files", *result(2, status="error", duration_s=9.0))
    assert (taken.duration_s, taken.replayed, outcome) == (0.125, True, first[1])


def test_a_fault_of_the_machine_is_not_recorded(store, job, result):
    store.put(job, "files", *result(1, status="killed", duration_s=0.0))
    assert store.get(job, "files") is None
    store.put(job, "files", *result(1, status="killed"))  # for what it did, after a second
    assert store.get(job, "files") is not None


@pytest.mark.parametrize(
    "change",
    [
        {"code": CODE + "\n"},
        {"insertions": ()},
        {"limits": Limits(timeout_s=9.0)},
        {"seed": 1},
    ],
)
def test_whatever_decides_what_a_program_does_is_in_its_key(job, change):
    assert key(replace(job, **change), "files") != key(job, "files")


def test_key_of_files_and_versions(job, monkeypatch):
    before = key(job, "files")
    assert key(job, "other files") != before
    monkeypatch.setattr("mle_rl.rollout.executions._versions", lambda: {"python": "2.7"})
    assert key(job, "files") != before


def test_a_program_that_is_no_text_has_a_key(job):
    """The policy may write half a surrogate pair; the sandbox rejects it, which is an outcome."""
    assert key(replace(job, code="print('\ud800')"), "files")


def test_many_connections_record_at_once(tmp_path, job, result):
    """Each as another process would: the same programs, with durations of its own."""
    path = tmp_path / "executions.sqlite"

    def record(who):
        store = ExecutionStore(path)
        own = result(duration_s=float(who))
        jobs = [replace(job, code=f"print({number})") for number in range(25)]
        taken = [store.put(each, "files", *own)[0].duration_s for each in jobs]
        store.close()
        return taken

    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(record, range(4)))
    assert taken == [taken[0]] * 4, "all take what the first of them recorded"


class Pool:
    def __init__(self, execution):
        self.execution, self.jobs = execution, []

    def submit(self, job):
        self.jobs.append(job)
        future = Future()
        future.set_result(self.execution)
        return future


@pytest.fixture
def environment(tmp_path, store, result):
    """Over a pool whose executions differ, as those of real programs do."""

    class Task:
        public_dir = tmp_path / "some-task/prepared/public"
        fingerprint = "files"

    def build(duration_s, **options):
        pool = Pool(result(status="error", duration_s=duration_s)[0])
        return Environment(Task, pool, executions=store, **options)

    return build


def test_replay_runs_a_program_once(environment):
    program = Program("a plan", CODE)
    first, _ = environment(1.0, replay=True).run(program)
    again = environment(2.0, replay=True)
    execution, outcome = again.run(program)
    assert (execution.duration_s, execution.replayed) == (1.0, True)
    assert not first.replayed
    assert not again.pool.jobs
    assert outcome.problem == "The program ended with an error."
    again.run(Program("a plan", CODE + "#"))
    assert len(again.pool.jobs) == 1


def test_recording_alone_replays_nothing(environment):
    program = Program("a plan", CODE)
    environment(1.0).run(program)
    execution, _ = environment(2.0).run(program)
    assert (execution.duration_s, execution.replayed) == (2.0, False)


def test_a_twin_that_ran_at_the_same_time_gets_the_same(environment):
    """Neither had been recorded when they started; who replays must not see two durations."""
    slow, fast = environment(5.0, replay=True), environment(1.0, replay=True)
    program, pending = Program("a plan", CODE), Future()
    slow.pool.submit = lambda job: pending
    running = slow.submit(program)
    fast.run(program)
    pending.set_result(slow.pool.execution)
    assert running.result()[0].duration_s == 1.0
