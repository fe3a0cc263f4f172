"""Rollouts as rows of the ledger, and back."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np

from mle_rl.records import Execution, Marker, Outcome, Program, Rollout

COLUMNS = (
    "id, task, prompt_kind, baseline, prompt_ids, completion_ids, logprobs, model_version,"
    " dispatched_at, started_at, finished_at, program, execution, outcome, reward"
)


def new_row(rollout: Rollout) -> tuple:
    """Values of a row for a rollout that has just been dispatched."""
    return (
        rollout.id,
        rollout.task,
        rollout.prompt_kind,
        rollout.group,
        rollout.model_version,
        rollout.dispatched_at,
        np.array(rollout.prompt_ids, np.int32).tobytes(),
        np.array(rollout.completion_ids, np.int32).tobytes(),
        # Models compute in 32 bits or fewer: nothing is lost, and a resumed run is exact.
        np.array(rollout.logprobs, np.float32).tobytes(),
        to_json(rollout.program),
    )


def read_row(row: tuple) -> Rollout:
    """The rollout of a row that was selected with `COLUMNS`."""
    id, task, kind, group, prompt, completion, logprobs, version, *times = row[:11]
    program, execution, outcome, reward = row[11:]
    return Rollout(
        id,
        task,
        kind,
        group,
        tuple(np.frombuffer(prompt, np.int32).tolist()),
        tuple(np.frombuffer(completion, np.int32).tolist()),
        tuple(np.frombuffer(logprobs, np.float32).tolist()),
        version,
        *times,
        program=None if program is None else Program(**json.loads(program)),
        execution=None if execution is None else read_execution(execution),
        outcome=None if outcome is None else read_outcome(outcome),
        reward=reward,
    )


def to_json(record: Program | Execution | Outcome | None) -> str | None:
    """A record as JSON; an execution without its submission, which is graded by now."""
    if record is None:
        return None
    if isinstance(record, Execution):
        record = replace(record, submission=None)
    return json.dumps(asdict(record), default=dict)


def read_execution(text: str) -> Execution:
    """The execution that `to_json` wrote."""
    fields = json.loads(text)
    markers = tuple(Marker(**marker) for marker in fields["markers"])
    return Execution(**{**fields, "markers": markers})


def read_outcome(text: str) -> Outcome:
    """The outcome that `to_json` wrote."""
    fields = json.loads(text)
    return Outcome(**{**fields, "stages": tuple(fields["stages"])})
