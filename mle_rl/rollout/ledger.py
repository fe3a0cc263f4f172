"""The ledger of rollouts: every one that was dispatched, and what became of it, in SQLite.

States: ``dispatched``, ``started``, ``finished``, ``trained``, ``dropped`` and ``rewound``. A run
that is killed goes on from its last checkpoint, and the steps after that checkpoint never happened
for its parameters. `Ledger.rewind` makes the same true here: what the lost steps trained on or
dropped is open again, and what they sampled is ``rewound``, with a row each. At every moment

    dispatched = trained + dropped + rewound + in flight + ready.

An execution is a fact whatever happens to the learner: results that arrived after the checkpoint
are kept and not run again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from mle_rl.errors import MleRlError
from mle_rl.records import Rollout
from mle_rl.rollout.database import Database
from mle_rl.rollout.queue import Counts
from mle_rl.rollout.rows import COLUMNS, new_row, read_row, to_json

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rollouts (
    row INTEGER PRIMARY KEY,
    id INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('dispatched', 'started', 'finished', 'trained', 'dropped', 'rewound')),
    reason TEXT,
    task TEXT NOT NULL,
    prompt_kind TEXT NOT NULL,
    baseline TEXT NOT NULL,
    model_version INTEGER NOT NULL,
    trained_version INTEGER,
    dispatched_at REAL NOT NULL,
    started_at REAL,
    finished_at REAL,
    duration_s REAL,
    reward REAL,
    prompt_ids BLOB NOT NULL,
    completion_ids BLOB NOT NULL,
    logprobs BLOB NOT NULL,
    program TEXT,
    execution TEXT,
    outcome TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS one_of_an_id ON rollouts (id) WHERE state != 'rewound';
"""


class Ledger:
    """Rollouts of one run on disk. Safe to use from several threads.

    Args:
        path: The file; made if it does not exist. ``":memory:"`` keeps it for this process only.

    Raises:
        MleRlError: The file cannot be written, or is no ledger.
    """

    def __init__(self, path: str | Path):
        self.path = path
        self._database = Database(path, _SCHEMA, "ledger")

    def close(self) -> None:
        """Close the file. Nothing is lost: every change is already in it."""
        self._database.close()

    def sync(self) -> None:
        """Wait until every change so far would survive a power failure, as a checkpoint must."""
        self._database.sync()

    # ---- what happens to a rollout ---------------------------------------------------------------

    def dispatched(self, rollouts: Iterable[Rollout]) -> None:
        """Rollouts were sampled and are waiting for a worker."""
        with self._database.transaction() as cursor:
            cursor.executemany(
                "INSERT INTO rollouts (id, state, task, prompt_kind, baseline, model_version,"
                " dispatched_at, prompt_ids, completion_ids, logprobs, program)"
                " VALUES (?, 'dispatched', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [new_row(rollout) for rollout in rollouts],
            )

    def started(self, id: int, at: float) -> None:
        """A worker began to execute it."""
        with self._database.transaction() as cursor:
            self._change(cursor, "state = 'started', started_at = ?", (at,), id)

    def finished(self, rollout: Rollout) -> None:
        """It has an execution and an outcome."""
        result = (
            rollout.finished_at,
            rollout.execution.duration_s,
            to_json(rollout.execution),
            to_json(rollout.outcome),
        )
        with self._database.transaction() as cursor:
            self._change(
                cursor,
                "state = 'finished', finished_at = ?, duration_s = ?, execution = ?, outcome = ?",
                result,
                rollout.id,
            )

    def trained(self, rollouts: Iterable[Rollout], version: int) -> None:
        """They make up the batch that turns model ``version`` into the next one."""
        with self._database.transaction() as cursor:
            for rollout in rollouts:
                values = (version, rollout.reward)
                self._change(
                    cursor, "state = 'trained', trained_version = ?, reward = ?", values, rollout.id
                )

    def dropped(self, id: int, reason: str) -> None:
        """It will never be trained on."""
        with self._database.transaction() as cursor:
            self._change(cursor, "state = 'dropped', reason = ?", (reason,), id)

    def ran_on(self, id: int, duration_s: float) -> None:
        """Its program has ended, after it had been dropped."""
        with self._database.transaction() as cursor:
            self._change(cursor, "duration_s = ?", (duration_s,), id)

    # ---- what a resumed run needs ----------------------------------------------------------------

    def rewind(
        self, *, in_flight: Sequence[int], ready: Sequence[int], next_id: int, now: float
    ) -> dict[int, Rollout]:
        """Go back to a checkpoint.

        Args:
            in_flight: Ids that were dispatched and not finished when it was written.
            ready: Ids that were finished and not trained on.
            next_id: The first id that had not been given to a rollout.
            now: Clock of the run when it was written, which goes on from there. What finished
                later is moved back in time to then, for nothing may end in the future.

        Returns:
            The rollouts of ``in_flight`` and ``ready`` by id. One that has an ``execution`` need
            not run again, even if it finished only after the checkpoint.

        Raises:
            MleRlError: Ledger and checkpoint are not of the same run.
        """
        wanted = [*in_flight, *ready]
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE rollouts SET state = 'rewound' WHERE id >= ? AND state != 'rewound'",
                (next_id,),
            )
            for id in wanted:
                self._change(
                    cursor,
                    "state = iif(outcome IS NULL, 'dispatched', 'finished'), reason = NULL,"
                    " started_at = iif(outcome IS NULL, NULL,"
                    "  max(dispatched_at, started_at - max(0, finished_at - ?))),"
                    " finished_at = min(finished_at, ?),"
                    " trained_version = NULL, reward = NULL",
                    (now, now),
                    id,
                )
            restored = {id: _read(cursor, id) for id in wanted}
            open_states = cursor.execute(
                "SELECT count(*) FROM rollouts WHERE state IN ('dispatched', 'started', 'finished')"
            )
            consistent = open_states.fetchone()[0] == len(wanted) and all(
                restored[id].outcome is not None for id in ready
            )
            if not consistent:
                raise MleRlError(
                    f"The checkpoint does not belong to the ledger {self.path}: resume with the "
                    "files of one and the same run, or start a new run in an empty folder."
                )
        return restored

    def rewind_to_start(self) -> None:
        """Go back to before the first step: a run that was killed before its first checkpoint."""
        self.rewind(in_flight=(), ready=(), next_id=-1, now=0.0)

    # ---- questions -------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Where every rollout is that was ever dispatched; rewound ones count as dropped."""
        with self._database.connection() as connection:
            states = dict(
                connection.execute(
                    "SELECT CASE state WHEN 'dropped' THEN reason ELSE state END, count(*)"
                    " FROM rollouts GROUP BY 1"
                )
            )
        in_flight = states.pop("dispatched", 0) + states.pop("started", 0)
        trained, ready = states.pop("trained", 0), states.pop("finished", 0)
        total = in_flight + trained + ready + sum(states.values())
        return Counts(total, trained, states, in_flight, ready)

    def table(self) -> pd.DataFrame:
        """One row per rollout, in the order of dispatch, without texts and tokens.

        Columns: those of the ledger, times in seconds on the clock of the run, and ``valid``,
        ``reward_score`` and ``final_score`` of the outcome; empty where there is none.
        """
        query = (
            "SELECT id, state, reason, task, prompt_kind, model_version, trained_version,"
            " dispatched_at, started_at, finished_at, duration_s, reward,"
            " json_extract(execution, '$.status') AS status,"
            " json_extract(outcome, '$.valid') AS valid,"
            " json_extract(outcome, '$.reward_score') AS reward_score,"
            " json_extract(outcome, '$.final_score') AS final_score"
            " FROM rollouts ORDER BY row"
        )
        with self._database.connection() as connection:
            return pd.read_sql_query(query, connection)

    def durations(self) -> tuple[np.ndarray, np.ndarray]:
        """Execution times in seconds: of all whose fate is decided, and of those trained on.

        What has finished and waits for the learner is not decided; what was dropped before its
        program began has no duration. Both columns are in the order of dispatch.
        """
        with self._database.connection() as connection:
            rows = connection.execute(
                "SELECT duration_s, state = 'trained' FROM rollouts"
                " WHERE duration_s IS NOT NULL AND state IN ('trained', 'dropped') ORDER BY row"
            ).fetchall()
        seconds, trained = np.array(rows, dtype=float).reshape(-1, 2).T
        return seconds, seconds[trained == 1]

    def last_moments(self, versions: range, *, in_order_of_completion: bool) -> dict[int, float]:
        """For the batch of each version: when a rollout had to have finished to be in it.

        The end of the last one that was taken. In an order other than that of completion, one that
        finished later, but before the batch was handed over, could still have come before others;
        the last dispatch of that version, right before, tells when that was.
        """
        moments = (
            "SELECT trained_version AS version, finished_at AS at FROM rollouts"
            " WHERE state = 'trained'"
        )
        if not in_order_of_completion:
            moments += (
                " UNION ALL SELECT model_version, dispatched_at FROM rollouts"
                " WHERE state != 'rewound'"
            )
        query = (
            f"SELECT version, max(at) FROM ({moments})"
            " WHERE version >= ? AND version < ? GROUP BY version"
        )
        with self._database.connection() as connection:
            return dict(connection.execute(query, (versions.start, versions.stop)))

    def starts(self, versions: range) -> list[tuple[int, float | None]]:
        """Model version and start of all rollouts of these versions; None if it never began."""
        with self._database.connection() as connection:
            return connection.execute(
                "SELECT model_version, started_at FROM rollouts"
                " WHERE state != 'rewound' AND model_version >= ? AND model_version < ?",
                (versions.start, versions.stop),
            ).fetchall()

    def rollouts(self, state: str = "trained") -> list[Rollout]:
        """All rollouts in a state, in the order in which they were dispatched."""
        with self._database.connection() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM rollouts WHERE state = ? ORDER BY row", (state,)
            )
            return [read_row(row) for row in rows]

    # ---- internals -------------------------------------------------------------------------------

    def _change(self, cursor: sqlite3.Cursor, assignment: str, values: tuple, id: int) -> None:
        cursor.execute(
            f"UPDATE rollouts SET {assignment} WHERE id = ? AND state != 'rewound'", (*values, id)
        )
        if cursor.rowcount != 1:
            raise MleRlError(
                f"The ledger {self.path} has no rollout {id}: it is of another run. Resume with "
                "the files of one and the same run, or start a new run in an empty folder."
            )


def _read(cursor: sqlite3.Cursor, id: int) -> Rollout:
    query = f"SELECT {COLUMNS} FROM rollouts WHERE id = ? AND state != 'rewound'"
    return read_row(cursor.execute(query, (id,)).fetchone())
