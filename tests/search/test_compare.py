"""A comparison: what is run, what is not run again, what is refused, and what it says meanwhile."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import repeat

import pytest

from mle_rl import MleRlError
from mle_rl.records import Limits, Program
from mle_rl.sandbox import LocalPool
from mle_rl.search import compare as compare_module
from mle_rl.search import recorded
from mle_rl.search.compare import compare
from mle_rl.search.fixed import once
from mle_rl.search.methods import METHODS, Method
from mle_rl.search.settings import Settings

SUBMIT = """
import shutil
shutil.copy("input/sample_submission.csv", "submission.csv")
"""
SETTINGS = Settings(
    task="doctor-visits", seconds=20.0, workers=1, tier="limits", limits=Limits(timeout_s=10.0)
)


@pytest.fixture(scope="module")
def pool():
    with LocalPool(1, "limits") as opened:
        yield opened


@pytest.fixture
def methods(monkeypatch, pool):
    """Methods of one program each; the list tells which of them ran."""
    ran = []
    # Starting workers for every search takes a second each; the command line's test does.
    monkeypatch.setattr(compare_module, "LocalPool", lambda workers, tier: nullcontext(pool))

    def good(start):
        ran.append(("good", start.seed))
        start.run(once(Program("a plan", SUBMIT)), waiting=0)

    def bad(start):
        ran.append(("bad", start.seed))
        start.run(once(Program("a plan", "raise ValueError")), waiting=0)

    monkeypatch.setitem(METHODS, "good", Method("a good one", good))
    monkeypatch.setitem(METHODS, "bad", Method("a bad one", bad))
    return ran


def test_every_method_and_seed_is_searched_once_however_often_it_is_called(methods, tmp_path):
    said = []
    programs = compare(
        SETTINGS, tmp_path, methods=("good", "bad"), seeds=(0, 1), report=said.append
    )
    assert methods == [("good", 0), ("bad", 0), ("good", 1), ("bad", 1)]
    assert programs.groupby("method").valid.mean().to_dict() == {"good": 1.0, "bad": 0.0}
    assert any("1 programs, 100% valid, best" in line and "left" in line for line in said)
    assert any("0% valid, best none yet" in line for line in said)
    before = len(methods)
    again = compare(SETTINGS, tmp_path, methods=("good",), seeds=(0, 1, 2), report=said.append)
    assert methods[before:] == [("good", 2)]
    assert len(again) == 5, "those of earlier calls are there as well"
    assert "finished before" in said[-4]


def test_a_method_that_trains_says_how_many_of_all_programs_were_valid(
    methods, monkeypatch, tmp_path
):
    def trains(start):
        for step, share in enumerate((0.0, 0.5), 1):
            start.on_step({"step": step, "valid_share": share, "score_best_so_far": 0.3})

    monkeypatch.setattr("mle_rl.search.progress.LINES", 1e9)  # a line for every step
    monkeypatch.setitem(METHODS, "trains", Method("one that trains", trains))
    said = []
    compare(SETTINGS, tmp_path, methods=("trains",), report=said.append)
    assert "128 programs, 25% valid, best 0.3000" in said[1]


def test_an_interrupted_search_starts_again_and_the_others_do_not(methods, monkeypatch, tmp_path):
    def interrupted(start):
        start.run(once(Program("a plan", SUBMIT)), waiting=0)
        raise KeyboardInterrupt

    monkeypatch.setitem(METHODS, "bad", Method("a bad one", interrupted))
    with pytest.raises(KeyboardInterrupt, match="Interrupted in the search bad, seed 0"):
        compare(SETTINGS, tmp_path, methods=("good", "bad"), report=str)
    assert list(recorded.finished(tmp_path)) == [("good", 0)]
    assert set(recorded.read(tmp_path).programs.method) == {"good"}, "half a budget is no budget"
    monkeypatch.setitem(METHODS, "bad", METHODS["good"])
    programs = compare(SETTINGS, tmp_path, methods=("good", "bad"), report=str)
    assert methods == [("good", 0), ("good", 0)]
    assert programs.method.tolist() == ["bad", "good"]


def test_searches_with_other_settings_are_not_mixed(methods, tmp_path):
    compare(SETTINGS, tmp_path, methods=("good",), report=str)
    other = Settings(**{**SETTINGS.__dict__, "seconds": 30.0})
    with pytest.raises(MleRlError, match="seconds 20.0 there, 30.0 here"):
        compare(other, tmp_path, methods=("good",), report=str)
    assert methods == [("good", 0)]


def test_a_search_from_other_weights_is_not_kept(methods, monkeypatch, tmp_path):
    class Policy:
        def digest(self):
            return self.weights

    policy = Policy()
    monkeypatch.setattr(compare_module, "load_policy", lambda name: policy)
    monkeypatch.setitem(METHODS, "good", replace(METHODS["good"], policy="a policy"))
    policy.weights = "old"
    for _ in range(2):
        compare(SETTINGS, tmp_path, methods=("good", "bad"), report=str)
    assert methods == [("good", 0), ("bad", 0)], "the same weights are the same search"
    policy.weights = "new"
    for asked_for in ("good", "bad"):  # what is returned and drawn holds both
        with pytest.raises(MleRlError, match="weights_sha256 old there, new here"):
            compare(SETTINGS, tmp_path, methods=(asked_for,), report=str)


def test_a_search_from_weights_that_nobody_knows_is_not_kept(methods, monkeypatch, tmp_path):
    class Policy:
        def digest(self):
            return "today"

    compare(SETTINGS, tmp_path, methods=("good",), report=str)
    monkeypatch.setattr(compare_module, "load_policy", lambda name: Policy())
    monkeypatch.setitem(METHODS, "good", replace(METHODS["good"], policy="a policy"))
    with pytest.raises(MleRlError, match="weights_sha256 None there, today here"):
        compare(SETTINGS, tmp_path, methods=("good",), report=str)


def test_a_recorded_search_stays_where_its_policy_cannot_be_loaded(methods, monkeypatch, tmp_path):
    class Policy:
        def digest(self):
            return "weights"

    with monkeypatch.context() as there:
        there.setattr(compare_module, "load_policy", lambda name: Policy())
        there.setitem(METHODS, "good", replace(METHODS["good"], policy="no-such-policy"))
        compare(SETTINGS, tmp_path, methods=("good",), report=str)
    monkeypatch.setitem(METHODS, "good", replace(METHODS["good"], policy="no-such-policy"))
    said = []
    assert len(compare(SETTINGS, tmp_path, methods=("good",), report=said.append)) == 1
    assert ["finished before" in line for line in said] == [True], "and is not called left out"


def test_a_method_whose_policy_is_not_installed_is_left_out_and_said_so(
    methods, monkeypatch, tmp_path
):
    absent = Method("absent", METHODS["good"].run, policy="no-such-policy")
    monkeypatch.setitem(METHODS, "absent", absent)
    said = []
    programs = compare(SETTINGS, tmp_path, methods=("absent", "good"), report=said.append)
    assert set(programs.method) == {"good"}
    (line,) = [line for line in said if "left out" in line]
    assert "no-such-policy" in line
    with pytest.raises(MleRlError, match="Every method was left out"):
        compare(SETTINGS, tmp_path / "other", methods=("absent",), report=str)


@pytest.mark.parametrize(
    ("changes", "methods", "message"),
    [
        ({}, ("rl", "magic"), "There is no method 'magic'. Known: .*grammar.*rl"),
        ({"task": "no-task"}, ("default",), "There is no task 'no-task'"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_runs(changes, methods, message, tmp_path):
    with pytest.raises(MleRlError, match=message):
        compare(Settings(**{**SETTINGS.__dict__, **changes}), tmp_path / "out", methods=methods)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "value"), [("seconds", 0.0), ("seconds", -5.0), ("workers", 0), ("rows", 0)]
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(MleRlError, match="give"):
        Settings(**{"task": "doctor-visits", "seconds": 10.0, name: value})


def test_the_budget_ends_a_method_that_never_does(methods, monkeypatch, tmp_path):
    def endless(start):
        start.run((program for program in repeat(Program("a plan", SUBMIT))), waiting=1)

    monkeypatch.setitem(METHODS, "endless", Method("endless", endless))
    settings = Settings(**{**SETTINGS.__dict__, "seconds": 1.0})
    programs = compare(settings, tmp_path, methods=("endless",), report=str)
    assert len(programs) > 1
    assert programs.ended_at_s.max() <= 1.0
