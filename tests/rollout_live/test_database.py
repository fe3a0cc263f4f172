"""What SQLite cannot do is one sentence; what is a bug of ours stays one."""

import sqlite3

import pytest

from mle_rl import MleRlError
from mle_rl.rollout import database
from mle_rl.rollout.database import Database

SCHEMA = "CREATE TABLE IF NOT EXISTS notes (text TEXT PRIMARY KEY);"


@pytest.fixture
def notes(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE_S", 0.01)
    opened = Database(tmp_path / "notes.sqlite", SCHEMA, "book of notes")
    yield opened
    opened.close()


def write(notes, text="a"):
    with notes.transaction() as cursor:
        cursor.execute("INSERT INTO notes VALUES (?)", (text,))


def all_notes(notes):
    with notes.connection() as connection:
        return [text for (text,) in connection.execute("SELECT text FROM notes")]


def test_a_full_disk_is_a_sentence_and_changes_nothing(notes):
    write(notes)
    with notes.connection() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(MleRlError, match=r"book of notes .* full"):
        write(notes, "b" * 100_000)
    assert all_notes(notes) == ["a"]


def test_a_file_that_another_process_holds_is_a_sentence(notes):
    other = sqlite3.connect(notes.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(MleRlError, match=r"book of notes .* locked"):
        write(notes)
    other.execute("ROLLBACK")
    write(notes)
    other.close()


def test_sync_writes_into_the_log_and_waits_for_the_disk(notes):
    """A commit under FULL makes what came before it durable; a commit of nothing would not."""
    write(notes)
    log, statements = notes.path.with_name("notes.sqlite-wal"), []
    before = log.stat().st_size
    with notes.connection() as connection:
        connection.set_trace_callback(statements.append)
    notes.sync()
    assert log.stat().st_size > before
    full, *_, write_, normal = statements
    assert (full, normal) == ("PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL")
    assert write_.startswith("PRAGMA user_version =")


def test_a_reader_does_not_hold_up_sync_and_a_writer_does(notes):
    write(notes)
    other = sqlite3.connect(notes.path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT * FROM notes").fetchall()
    write(notes, "b")
    notes.sync()
    other.execute("COMMIT")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(MleRlError, match=r"book of notes .* locked"):
        notes.sync()
    other.execute("ROLLBACK")
    write(notes, "c")
    other.close()


def test_a_question_to_a_broken_file_is_a_sentence(notes):
    write(notes)
    with notes.connection() as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    with open(notes.path, "r+b") as file:
        file.seek(4096)
        file.write(b"no page of a database" * 300)
    with pytest.raises(MleRlError, match="book of notes"):
        all_notes(Database(notes.path, "", "book of notes"))


def test_a_broken_rule_stays_an_error_of_ours(notes):
    write(notes)
    with pytest.raises(sqlite3.IntegrityError):
        write(notes)
