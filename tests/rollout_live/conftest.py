"""Rollouts without a model, and executions that the test ends itself, in any order."""

from concurrent.futures import Future

import pytest

from mle_rl.records import Execution, Marker, Outcome, Program, Rollout
from mle_rl.rollout.ledger import Ledger


def make_rollout(id, version=0, **changes):
    fields = {
        "task": "some-task",
        "prompt_kind": "scratch",
        "group": "some-task/scratch",
        "prompt_ids": (2, 3),
        "completion_ids": (4, 5 + id % 7, 1),
        "logprobs": (-0.25, -1.5, -0.125),
        "model_version": version,
        "dispatched_at": 0.0,
        "program": Program("a plan", f"print({id})"),
    }
    return Rollout(id, **fields | changes)


def make_result(id=0, status="ok", duration_s=1.0):
    execution = Execution(
        status,
        f"printed by {id}",
        "",
        duration_s,
        duration_s,
        50.0,
        "limits",
        markers=(Marker("data_loaded"), Marker("training_loss_seen", 0.5)),
        submission=b"id,label\n",
        versions={"python": "3.11"},
    )
    valid = status == "ok"
    score = id / 100 if valid else None
    outcome = Outcome(("data_loaded", "training_loss_seen"), valid, score, score)
    return execution, outcome


class Workers:
    """Executions that the test ends itself; `started` is the order in which they began."""

    def __init__(self):
        self.futures = {}
        self.started = []

    def __call__(self, rollout):
        self.started.append(rollout.id)
        self.futures[rollout.id] = Future()
        return self.futures[rollout.id]

    def end(self, id, **result):
        self.futures.pop(id).set_result(make_result(id, **result))

    def fail(self, id, error):
        self.futures.pop(id).set_exception(error)


@pytest.fixture
def workers():
    return Workers()


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger(tmp_path / "rollouts.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def rollout():
    return make_rollout


@pytest.fixture
def result():
    return make_result
