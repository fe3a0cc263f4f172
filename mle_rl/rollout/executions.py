"""Recorded executions: what each program did, kept for runs that replay instead of running it.

One file serves many runs and processes. The first execution of a program is the one that is kept,
so all who replay see the same, down to the measured duration: two runs with equal settings and one
file train the same parameters.

What the machine and not the program caused is never kept, see `machine_failed`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

import mle_rl
from mle_rl.errors import MleRlError
from mle_rl.records import Execution, Outcome
from mle_rl.rollout.database import Database
from mle_rl.rollout.rows import read_execution, read_outcome, to_json
from mle_rl.sandbox import Job
from mle_rl.sandbox.view import PROGRAM_PACKAGES

_SCHEMA = """
CREATE TABLE IF NOT EXISTS executions (
    key TEXT PRIMARY KEY,
    task TEXT NOT NULL,
    execution TEXT NOT NULL,
    outcome TEXT NOT NULL
) WITHOUT ROWID;
"""

_RECORD = ("key", "task", "execution", "outcome")
_FACTS = {
    "status": pa.string(),
    "duration_s": pa.float64(),
    "cpu_s": pa.float64(),
    "peak_memory_mb": pa.float64(),
    "valid": pa.bool_(),
    "reward_score": pa.float64(),
    "final_score": pa.float64(),
}


class ExecutionStore:
    """Executions by program, in SQLite. Safe to use from many threads and processes.

    Args:
        path: The file; made if it does not exist.

    Raises:
        MleRlError: The file cannot be written, or holds something else.
    """

    def __init__(self, path: str | Path):
        self._database = Database(path, _SCHEMA, "file of executions")

    def close(self) -> None:
        """Close the file; every execution is already on disk."""
        self._database.close()

    def get(self, job: Job, task_fingerprint: str) -> tuple[Execution, Outcome] | None:
        """What is known of a program, marked as replayed and without its submission; else None."""
        with self._database.connection() as connection:
            row = connection.execute(
                "SELECT execution, outcome FROM executions WHERE key = ?",
                (key(job, task_fingerprint),),
            ).fetchone()
        return None if row is None else _replayed(row)

    def put(
        self, job: Job, task_fingerprint: str, execution: Execution, outcome: Outcome
    ) -> tuple[Execution, Outcome]:
        """Keep what a program did, unless it has been recorded before.

        Returns:
            What whoever replays must take: the earlier record, marked as replayed, if there was one
            (another worker may have run the same program meanwhile); else what was given.
        """
        if machine_failed(execution):
            return execution, outcome
        name = key(job, task_fingerprint)
        values = (name, job.public_dir.parents[1].name, to_json(execution), to_json(outcome))
        with self._database.transaction() as cursor:
            cursor.execute("INSERT OR IGNORE INTO executions VALUES (?, ?, ?, ?)", values)
            if cursor.rowcount == 1:
                return execution, outcome
            row = cursor.execute(
                "SELECT execution, outcome FROM executions WHERE key = ?", (name,)
            ).fetchone()
        return _replayed(row)

    def export_parquet(self, path: str | Path) -> int:
        """Writes all records, ordered by key: the same records give the same bytes.

        What figures need stands in columns of its own (task, status, duration_s, cpu_s,
        peak_memory_mb, valid, reward_score, final_score); the records themselves are JSON.

        Returns:
            The number of records.

        Raises:
            MleRlError: The file cannot be written.
        """
        table = self._table()
        try:
            parquet.write_table(table, path, compression="zstd")
        except OSError as error:
            raise MleRlError(f"The executions cannot be written to {path}: {error}.") from None
        return len(table)

    def table(self) -> pd.DataFrame:
        """One row per record, ordered by key: the columns that figures need, as in Parquet."""
        return self._table().select(["task", *_FACTS]).to_pandas()

    def _table(self) -> pa.Table:
        with self._database.connection() as connection:
            rows = connection.execute(
                "SELECT key, task, execution, outcome FROM executions ORDER BY key"
            ).fetchall()
        columns = {name: [row[i] for row in rows] for i, name in enumerate(_RECORD)}
        facts = [{**json.loads(row[2]), **json.loads(row[3])} for row in rows]
        for name, kind in _FACTS.items():
            columns[name] = pa.array([fact[name] for fact in facts], kind)
        return pa.table(columns)

    def import_parquet(self, path: str | Path) -> int:
        """Adds the records of a file that `export_parquet` wrote; those that are known stay.

        Returns:
            The number of records that were new.

        Raises:
            MleRlError: The file cannot be read, or holds something else.
        """
        try:
            table = parquet.read_table(path, columns=list(_RECORD)).to_pylist()
            rows = [tuple(record[name] for name in _RECORD) for record in table]
            for _, _, execution, outcome in rows:
                read_execution(execution), read_outcome(outcome)
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise MleRlError(f"{path} holds no recorded executions: {error}.") from None
        with self._database.transaction() as cursor:
            before = cursor.execute("SELECT count(*) FROM executions").fetchone()[0]
            cursor.executemany("INSERT OR IGNORE INTO executions VALUES (?, ?, ?, ?)", rows)
            after = cursor.execute("SELECT count(*) FROM executions").fetchone()[0]
        return after - before

    def __len__(self) -> int:
        """Number of programs recorded."""
        with self._database.connection() as connection:
            return connection.execute("SELECT count(*) FROM executions").fetchone()[0]


def machine_failed(execution: Execution) -> bool:
    """Whether the sandbox itself was killed, twice, so that nothing is known of the program.

    A program that was killed for what it did has a duration.
    """
    return execution.status == "killed" and execution.duration_s == 0.0


def key(job: Job, task_fingerprint: str) -> str:
    """SHA-256 of everything that decides what a program does and how it is graded.

    Program, insertions, limits, seed, the task's files, and the versions of Python, of this package
    (which grades) and of the packages that programs may import.
    """
    decisive = {
        "code": job.code,
        "insertions": [asdict(insertion) for insertion in job.insertions],
        "limits": asdict(job.limits),
        "seed": job.seed,
        "task": task_fingerprint,
        "versions": _versions(),
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


@cache
def _versions() -> Mapping[str, str]:
    versions = {"python": sys.version.split()[0], "mle_rl": mle_rl.__version__}
    for name in PROGRAM_PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # a program that needs it fails, which is recorded
            versions[name] = "absent"
    return versions


def _replayed(row: tuple[str, str]) -> tuple[Execution, Outcome]:
    execution, outcome = row
    return replace(read_execution(execution), replayed=True), read_outcome(outcome)
