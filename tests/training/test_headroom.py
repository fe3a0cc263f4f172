"""Recording samples: nothing is redone, nothing is lost, and an interruption leaves no trace."""

import hashlib
from concurrent.futures import Future
from types import SimpleNamespace

import pandas as pd
import pytest
import small_run
import torch

from mle_rl import MleRlError
from mle_rl.agent import Policy
from mle_rl.analysis.samples import read_table
from mle_rl.records import Execution, Limits, Outcome
from mle_rl.training.headroom import CHUNK, record_samples

SAMPLES = 2 * CHUNK + 20


class Stub:
    """Programs end at once, in pairs in reverse order, or raise what the test wants raised."""

    def __init__(self, name="some-task", stop_after=None, killed=(), pairs=True):
        self.task = SimpleNamespace(id=name, fingerprint="f")
        self.limits = Limits()
        self.stop_after = stop_after
        self.killed = killed
        self.pairs = pairs
        self.submitted = []
        self._held = None

    def submit(self, program):
        if len(self.submitted) == self.stop_after:
            raise KeyboardInterrupt
        self.submitted.append(program)
        future = Future()
        result = self._result(program, len(self.submitted) - 1)
        if not self.pairs:
            future.set_result(result)
        elif self._held is None:
            self._held = future, result
        else:
            future.set_result(result)
            self._held[0].set_result(self._held[1])
            self._held = None
        return future

    def _result(self, program, place):
        if place in self.killed:
            return Execution("killed", "", "", 0.0, 0.0, 0.0, ""), Outcome((), False)
        if program is None:
            return Execution("rejected", "", "", 0.0, 0.0, 0.0, ""), Outcome((), False)
        number = hashlib.sha256(program.code.encode()).digest()[0]
        valid = number % 3 == 0
        score = number / 256 if valid else None
        execution = Execution("ok", "", "", number / 100, 0.0, 0.0, "")
        return execution, Outcome((), valid, score, score and -score)


@pytest.fixture
def policy(make_llama, tokenizer):
    return small_run.writer(Policy("minute", make_llama(), tokenizer, "chat", 6))


def quiet(line):
    """Say nothing."""


@pytest.fixture
def record(policy, tmp_path):
    def run(environment, folder="whole", samples=SAMPLES, **changes):
        changes = {"say": quiet} | changes
        return record_samples(policy, environment, tmp_path / folder, samples, **changes)

    return run


def test_each_sample_is_recorded_once_in_order(record):
    environment = Stub()
    table = read_table(record(environment))
    assert table["sample"].tolist() == list(range(SAMPLES))
    assert len(environment.submitted) == SAMPLES
    for program, row in zip(environment.submitted, table.itertuples(), strict=True):
        _, outcome = environment._result(program, None)
        assert row.valid == outcome.valid
        if row.valid:
            assert row.reward_score == pytest.approx(outcome.reward_score, abs=1e-6)
            assert row.final_score == pytest.approx(outcome.final_score, abs=1e-6)
        code = program.code.encode() if program else b""
        assert row.program == (hashlib.sha256(code).hexdigest()[:12] if program else "")
    assert 0.1 < table.valid.mean() < 0.5
    chunks = [table.program[start : start + CHUNK].tolist() for start in (0, CHUNK)]
    assert chunks[0] != chunks[1], "each from random numbers of its own"


@pytest.mark.parametrize("stop_after", [1, CHUNK - 1, CHUNK + 7, 2 * CHUNK + 19])
def test_an_interrupted_recording_goes_on_where_it_stopped(record, stop_after, tmp_path):
    whole = record(Stub()).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        record(Stub(stop_after=stop_after), "resumed")
    file = tmp_path / "resumed" / "some-task.csv"
    rows = len(read_table(file))
    assert rows == stop_after - stop_after % 2, "what had ended is recorded"
    rest = Stub()
    assert record(rest, "resumed").read_bytes() == whole
    assert len(rest.submitted) == SAMPLES - rows, "nothing is redone"


def test_a_row_cut_short_by_a_kill_is_run_again(record):
    file = record(Stub())
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    rest = Stub(pairs=False)
    assert record(rest).read_bytes() == whole
    assert len(rest.submitted) == 1


def test_more_samples_begin_with_the_same_ones(record):
    some = record(Stub(), "few", samples=30).read_text()
    assert record(Stub()).read_text().startswith(some)
    assert record(Stub(), "few").read_text() == record(Stub(), "whole").read_text()


def test_tasks_and_seeds_have_samples_of_their_own(record):
    programs = [
        tuple(read_table(record(Stub(name), f"{name}{seed}", 40, seed=seed)).program)
        for name, seed in (("a", 0), ("b", 0), ("a", 1), ("a", 0))
    ]
    assert len(set(programs)) == 3


def test_what_the_machine_did_is_not_recorded_as_a_failure_of_the_program(record, tmp_path):
    whole = record(Stub()).read_bytes()
    with pytest.raises(MleRlError, match="failed on 2 samples"):
        record(Stub(killed=(3, 90)), "killed")
    assert len(read_table(tmp_path / "killed" / "some-task.csv")) == SAMPLES - 2
    assert record(Stub(), "killed").read_bytes() == whole


def test_samples_of_other_weights_are_not_mixed(record, policy):
    record(Stub(), samples=2)
    with torch.no_grad():
        next(policy.model.parameters()).add_(0.01)
    with pytest.raises(MleRlError, match="other settings"):
        record(Stub())


def test_samples_of_other_settings_are_not_mixed(record):
    record(Stub())
    with pytest.raises(MleRlError, match="other settings"):
        record(Stub(), seed=1)
    other = Stub()
    other.limits = Limits(timeout_s=3.0)
    with pytest.raises(MleRlError, match="other settings"):
        record(other)


@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: rows.replace(b"\n3,", b"\nthree,"),
        lambda rows: rows.replace(b"\n3,", b"\n\xff,"),
        lambda rows: rows.replace(b"\n3,", b"\n2,"),
        lambda rows: rows.replace(b"sample", b"number"),
        lambda rows: b"<<<<<<< HEAD\n" + rows,
    ],
)
def test_a_damaged_recording_is_one_sentence_and_stays_as_it_is(record, damage):
    file = record(Stub(), samples=6)
    damaged = damage(file.read_bytes())
    file.write_bytes(damaged)
    environment = Stub()
    with pytest.raises(MleRlError, match="some-task.csv .*restore it"):
        record(environment)
    assert file.read_bytes() == damaged
    assert not environment.submitted


def test_settings_that_cannot_be_read_are_other_settings(record):
    file = record(Stub(), samples=6)
    file.with_suffix(".json").write_bytes(b"\xff")
    with pytest.raises(MleRlError, match="other settings"):
        record(Stub())


def test_no_samples_are_refused_and_leave_nothing(record, tmp_path):
    with pytest.raises(MleRlError, match="positive number"):
        record(Stub(), samples=0)
    assert not (tmp_path / "whole").exists()


def test_two_at_once_are_refused(record, tmp_path):
    class Nested(Stub):
        def submit(self, program):
            with pytest.raises(MleRlError, match="Another process records"):
                record(Stub())
            return super().submit(program)

    record(Nested(), samples=2)


def test_a_fault_of_the_grader_is_raised_and_nothing_is_recorded_for_it(record, tmp_path):
    class Broken(Stub):
        def submit(self, program):
            if len(self.submitted) < 6:
                return super().submit(program)
            future = Future()
            future.set_exception(ZeroDivisionError("the grader"))
            return future

    with pytest.raises(ZeroDivisionError):
        record(Broken())
    assert len(pd.read_csv(tmp_path / "whole" / "some-task.csv")) == 6


def test_progress_counts_what_was_recorded_before(record):
    lines = []
    record(Stub(), samples=10)
    record(Stub(), samples=24, say=lines.append, every_s=0.0)
    assert len(lines) == 14 + 1
    assert lines[0].startswith("some-task: 11 of 24 samples; 1 now")
    assert lines[-1].startswith("some-task: 24 of 24 samples; 14 now")
