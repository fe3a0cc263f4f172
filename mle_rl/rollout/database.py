"""One SQLite file that many threads and processes may use at once.

Changes are transactions that take the write lock first (``BEGIN IMMEDIATE``): one that reads first
and writes later would fail at once, whatever the time-out, when another process writes in between.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mle_rl.errors import MleRlError

PATIENCE_S = 60.0
"""How long a change waits for those of other processes."""


class Database:
    """A connection to one file, shared by the threads of this process.

    Args:
        path: The file; made if it does not exist. ``":memory:"`` keeps it for this process only.
        schema: Statements that make what is missing.
        kind: What the file is, for messages.

    Raises:
        MleRlError: The file cannot be written, or is no such database.
    """

    def __init__(self, path: str | Path, schema: str, kind: str):
        self.path = path
        self._kind = kind
        self._lock = threading.Lock()
        self._owner = os.getpid()
        try:
            self._connection = sqlite3.connect(
                path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
            )
            _write_ahead(self._connection)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.executescript(schema)
        except sqlite3.Error as error:
            raise MleRlError(
                f"The {kind} {path} cannot be used ({error}): check that its folder exists and can "
                "be written, or remove the file to start a new one."
            ) from None

    def close(self) -> None:
        """Close the file. Nothing is lost: every change is already in it."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """The connection, for questions; no other thread uses it meanwhile.

        Raises:
            MleRlError: The disk is full, the file is damaged or cannot be read or written, or
                another process has held it for too long.
        """
        if os.getpid() != self._owner:
            raise RuntimeError("A database was carried across a fork; open it in each process.")
        with self._lock:
            try:
                yield self._connection
            except sqlite3.DatabaseError as error:
                # Broken rules of the schema and wrong calls are bugs of whoever writes here.
                if type(error) not in (sqlite3.DatabaseError, sqlite3.OperationalError):
                    raise
                raise MleRlError(
                    f"The {self._kind} {self.path} cannot be used any more ({error}): see that the "
                    "disk has room, and that no other process holds the file or writes into it."
                ) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """A change that happens as a whole or not at all.

        A process that is killed loses no change. A machine that fails loses none that was made
        before the last :meth:`sync`; the file is whole in any case.

        Raises:
            MleRlError: See :meth:`connection`.
        """
        with self.connection() as connection:
            cursor = connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise

    def sync(self) -> None:
        """Wait until every change so far would survive a power failure.

        Raises:
            MleRlError: See :meth:`connection`.
        """
        with self.connection() as connection:
            connection.execute("PRAGMA synchronous = FULL")
            try:
                # The log is one file: a commit that waits for the disk takes all before it along,
                # and unlike moving the log into the file it waits for no reader.
                (number,) = connection.execute("PRAGMA user_version").fetchone()
                connection.execute(f"PRAGMA user_version = {(number + 1) % 2**31}")
            finally:
                connection.execute("PRAGMA synchronous = NORMAL")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log, which a file keeps.

    SQLite does not wait for this switch: several processes that open a new file at once would find
    it locked and fail, whatever the time-out.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
