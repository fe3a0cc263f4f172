"""The ledger keeps what it is told, and goes back to a checkpoint without losing a rollout."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from mle_rl import MleRlError
from mle_rl.rollout import diagnostics
from mle_rl.rollout.ledger import Ledger


def finish(ledger, rollout, result):
    ledger.started(rollout.id, 1.0)
    execution, outcome = result(rollout.id)
    done = replace(
        rollout, started_at=1.0, finished_at=2.5, execution=execution, outcome=outcome, reward=None
    )
    ledger.finished(done)
    return done


def test_a_rollout_comes_back_as_it_was(tmp_path, rollout, result):
    """Through a closed and reopened file; only the graded submission is left out."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    logprobs = np.array([-1 / 3, -1e-12, -40.0], dtype=np.float32)
    one = rollout(0, version=3, logprobs=tuple(logprobs.tolist()))
    ledger.dispatched([one])
    done = finish(ledger, one, result)
    ledger.trained([replace(done, reward=-0.5)], version=4)
    ledger.close()
    (found,) = Ledger(tmp_path / "ledger.sqlite").rollouts("trained")
    expected = replace(done, reward=-0.5, execution=replace(done.execution, submission=None))
    assert found == expected


def test_counts_follow_every_state(ledger, rollout, result):
    ledger.dispatched([rollout(id) for id in range(5)])
    for id in (0, 1, 2):
        finish(ledger, rollout(id), result)
    ledger.trained([rollout(0)], version=0)
    ledger.dropped(1, "stale")
    ledger.started(3, 2.0)
    counts = ledger.counts()
    assert (counts.dispatched, counts.trained, counts.in_flight, counts.ready) == (5, 1, 2, 1)
    assert counts.dropped == {"stale": 1}
    assert counts.conserved


def test_rewinding_opens_what_the_lost_steps_closed(ledger, rollout, result):
    """Checkpoint with 0 in flight, 1 ready, 2 trained; then 0 and 1 are used up, 3 is sampled."""
    ledger.dispatched([rollout(id) for id in range(3)])
    for id in (1, 2):
        finish(ledger, rollout(id), result)
    ledger.trained([rollout(2)], version=0)
    checkpoint = {"in_flight": [0], "ready": [1], "next_id": 3, "now": 2.5}

    ledger.dispatched([rollout(3)])
    finish(ledger, rollout(0), result)
    ledger.trained([replace(rollout(1), reward=9.0)], version=1)
    ledger.dropped(0, "stale")

    restored = ledger.rewind(**checkpoint)
    assert restored.keys() == {0, 1}
    assert restored[0].execution is not None, "it finished after the checkpoint: a fact"
    assert restored[1].reward is None
    counts = ledger.counts()
    assert (counts.trained, counts.ready, counts.in_flight) == (1, 2, 0)
    assert counts.dropped == {"rewound": 1}
    assert counts.conserved

    ledger.dispatched([rollout(3, version=7)])  # the id is sampled again
    assert [r.model_version for r in ledger.rollouts("dispatched")] == [7]


def test_an_interrupted_execution_is_to_be_run_again(ledger, rollout):
    ledger.dispatched([rollout(0)])
    ledger.started(0, 1.0)
    restored = ledger.rewind(in_flight=[0], ready=[], next_id=1, now=1.0)
    assert restored[0].started_at is None
    assert restored[0].execution is None


@pytest.mark.parametrize(
    ("now", "times"), [(2.0, (0.5, 2.0)), (1.2, (0.0, 1.2)), (9.0, (1.0, 2.5))]
)
def test_what_is_known_has_not_ended_after_the_resumed_clock(ledger, rollout, result, now, times):
    """The clock goes back to the checkpoint: it took as long, and its end is in the past."""
    ledger.dispatched([rollout(0)])
    finish(ledger, rollout(0), result)
    restored = ledger.rewind(in_flight=[0], ready=[], next_id=1, now=now)[0]
    assert (restored.started_at, restored.finished_at) == pytest.approx(times)
    assert restored.execution.duration_s == 1.0


def test_durations_are_those_of_rollouts_whose_fate_is_decided(ledger, rollout, result):
    """Of five that ended one is trained on, one dropped, one aborted; two still wait."""
    ledger.dispatched([rollout(id) for id in range(6)])
    for id in (0, 1, 3, 4):
        execution, outcome = result(id, duration_s=id + 1.0)
        ledger.finished(replace(rollout(id), execution=execution, outcome=outcome))
    ledger.trained([replace(rollout(0), reward=1.0)], version=0)
    ledger.dropped(1, "stale")
    ledger.dropped(2, "aborted")
    ledger.dropped(5, "aborted")  # had not begun
    ledger.ran_on(2, 30.0)
    decided, trained = ledger.durations()
    assert (decided.tolist(), trained.tolist()) == ([1.0, 2.0, 30.0], [1.0])


def test_rewinding_to_the_start_leaves_nothing_open(ledger, rollout, result):
    ledger.dispatched([rollout(0), rollout(1)])
    finish(ledger, rollout(0), result)
    ledger.rewind_to_start()
    assert ledger.counts().dropped == {"rewound": 2}


@pytest.mark.parametrize(
    "checkpoint",
    [
        {"in_flight": [], "ready": [], "next_id": 1},  # knows nothing of 0
        {"in_flight": [0, 5], "ready": [], "next_id": 6},  # knows one too many
        {"in_flight": [], "ready": [0], "next_id": 1},  # says 0 has finished
    ],
)
def test_a_checkpoint_of_another_run_is_refused_and_changes_nothing(ledger, rollout, checkpoint):
    ledger.dispatched([rollout(0)])
    with pytest.raises(MleRlError, match="one and the same run"):
        ledger.rewind(**checkpoint, now=0.0)
    assert ledger.counts().in_flight == 1


def test_one_id_is_never_in_the_ledger_twice(ledger, rollout):
    ledger.dispatched([rollout(0)])
    with pytest.raises(sqlite3.IntegrityError):
        ledger.dispatched([rollout(1), rollout(0)])
    assert ledger.counts().dispatched == 1, "the transaction is undone as a whole"


def test_two_connections_can_write_at_once(tmp_path, rollout):
    """Each as another process would have; reading before writing fails with "is locked"."""
    path = tmp_path / "ledger.sqlite"
    ledgers = [Ledger(path), Ledger(path)]

    def write(ledger, ids):
        for id in ids:
            ledger.dispatched([rollout(id)])
            ledger.started(id, 1.0)

    with ThreadPoolExecutor(2) as threads:
        jobs = [
            threads.submit(write, ledger, range(start, start + 100))
            for ledger, start in zip(ledgers, (0, 100), strict=True)
        ]
        for job in jobs:
            job.result()
    assert ledgers[0].counts().in_flight == 200


def test_a_file_that_is_no_ledger_is_one_sentence(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no database, just text\n" * 100)
    with pytest.raises(MleRlError, match="cannot be used"):
        Ledger(path)


def test_a_run_is_reported_like_a_simulation(ledger, rollout, result):
    """Three trained on, one of which never ran, a slow one dropped; one still runs, one waits."""
    seconds = [0.0, 2.0, 3.0, 40.0]
    ledger.dispatched([rollout(id) for id in range(5)])
    for id, duration in enumerate(seconds):
        ledger.started(id, 0.5)
        execution, outcome = result(id, duration_s=duration)
        ledger.finished(
            replace(
                rollout(id), started_at=0.5, finished_at=0.5 + duration, execution=execution,
                outcome=outcome,
            )
        )  # fmt: skip
    ledger.trained([replace(rollout(id), reward=0.0) for id in range(3)], version=2)
    ledger.dropped(3, "stale")
    ledger.dispatched([rollout(5)])
    finish(ledger, rollout(5), result)  # may yet be trained on
    table = diagnostics.of_ledger(ledger, workers=4, weights=lambda d: d).value
    assert table["KS distance"] == 0.25
    assert table["included: tenth 1"] == "100.0%"
    assert table["included: tenth 10"] == "0.0%"
    assert table["largest weight"] == 1.8
    assert table["effective sample size"] == pytest.approx(25 / 13, abs=0.05)
    assert table["time in queue"] == "0.5 s"
    assert table["dropped: stale"] == 1
    assert table["in flight"] == 1
    assert table["conserved"] == "yes"
    assert table["busy: workers"] == f"{46 / (4 * 40.5):.0%}"
    unweighted = diagnostics.of_ledger(ledger, workers=4).index
    assert set(table.index) - set(unweighted) == {"largest weight", "effective sample size"}
