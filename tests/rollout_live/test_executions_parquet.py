"""Recorded executions as a Parquet file, and back."""

from dataclasses import replace

import pandas as pd
import pytest

from mle_rl import MleRlError
from mle_rl.rollout.executions import ExecutionStore
from mle_rl.rollout.simulation.recorded import recorded_in
from mle_rl.sandbox import Job


@pytest.fixture
def jobs(tmp_path):
    folder = tmp_path / "some-task/prepared/public"
    return [Job(f"print({number})", folder) for number in range(20)]


@pytest.fixture
def store(tmp_path, jobs, result):
    opened = ExecutionStore(tmp_path / "executions.sqlite")
    for number, job in enumerate(jobs):
        opened.put(job, "files", *result(number, duration_s=number + 0.5))
    yield opened
    opened.close()


def test_what_is_exported_can_be_imported(store, jobs, tmp_path):
    assert store.export_parquet(tmp_path / "all.parquet") == len(jobs)
    other = ExecutionStore(tmp_path / "other.sqlite")
    assert other.import_parquet(tmp_path / "all.parquet") == len(jobs)
    for job in jobs:
        assert other.get(job, "files") == store.get(job, "files") is not None
    assert other.import_parquet(tmp_path / "all.parquet") == 0
    other.close()


def test_what_is_known_stays(store, jobs, tmp_path, result):
    store.export_parquet(tmp_path / "all.parquet")
    other = ExecutionStore(tmp_path / "other.sqlite")
    other.put(jobs[3], "files", *result(3, duration_s=99.0))
    assert other.import_parquet(tmp_path / "all.parquet") == len(jobs) - 1
    assert other.get(jobs[3], "files")[0].duration_s == 99.0
    other.close()


def test_the_same_records_give_the_same_bytes(store, jobs, tmp_path, result):
    store.export_parquet(tmp_path / "one.parquet")
    other = ExecutionStore(tmp_path / "other.sqlite")
    for number, job in reversed(list(enumerate(jobs))):
        other.put(job, "files", *result(number, duration_s=number + 0.5))
    other.export_parquet(tmp_path / "two.parquet")
    other.close()
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_figures_find_durations_and_scores_in_columns(store, jobs, tmp_path):
    store.export_parquet(tmp_path / "all.parquet")
    table = pd.read_parquet(tmp_path / "all.parquet")
    assert sorted(table.duration_s) == [number + 0.5 for number in range(len(jobs))]
    expected = [store.get(job, "files")[1].final_score for job in jobs]
    assert sorted(table.final_score.dropna()) == sorted(s for s in expected if s is not None)
    assert set(table.task) == {"some-task"}


def test_a_simulation_draws_durations_from_the_store_or_its_export(store, jobs, tmp_path):
    store.export_parquet(tmp_path / "all.parquet")
    from_store = recorded_in(tmp_path / "executions.sqlite", task="some-task")
    assert sorted(from_store.values) == [number + 0.5 for number in range(len(jobs))]
    assert recorded_in(tmp_path / "all.parquet") == from_store
    with pytest.raises(MleRlError, match="Known: some-task"):
        recorded_in(tmp_path / "all.parquet", task="another")


def test_an_empty_store_is_an_empty_table(tmp_path):
    empty = ExecutionStore(tmp_path / "empty.sqlite")
    assert empty.export_parquet(tmp_path / "empty.parquet") == 0
    assert empty.import_parquet(tmp_path / "empty.parquet") == 0
    empty.close()


@pytest.mark.parametrize("content", [b"", b"key,task", "table", "broken json", None])
def test_another_file_is_refused_and_nothing_added(store, tmp_path, content):
    path = tmp_path / "other.parquet"
    if content == "table":
        pd.DataFrame({"key": ["a"]}).to_parquet(path)
    elif content == "broken json":
        row = {"key": "a", "task": "t", "execution": "{}", "outcome": "{}"}
        pd.DataFrame([row]).to_parquet(path)
    elif content is not None:
        path.write_bytes(content)
    before = len(store)
    with pytest.raises(MleRlError, match="holds no recorded executions"):
        store.import_parquet(path)
    assert len(store) == before


def test_a_folder_that_is_not_there_is_named(store, tmp_path):
    with pytest.raises(MleRlError, match="cannot be written"):
        store.export_parquet(tmp_path / "missing/all.parquet")


def test_a_replayed_record_stays_marked(store, jobs, tmp_path):
    store.export_parquet(tmp_path / "all.parquet")
    other = ExecutionStore(tmp_path / "other.sqlite")
    other.import_parquet(tmp_path / "all.parquet")
    execution, _ = other.get(jobs[0], "files")
    assert execution.replayed
    assert replace(execution, replayed=False) != execution
    other.close()
