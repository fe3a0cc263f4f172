"""What is written while a search runs, and what of it counts afterwards."""

import json

import pandas as pd
import pytest

from mle_rl import MleRlError
from mle_rl.records import Program
from mle_rl.search import record, recorded
from mle_rl.search.loop import Trial
from mle_rl.search.summary import best_so_far

FACTS = {"settings": {"seconds": 60.0}, "spent_s": 60.1, "date": "2026-01-01", "cores": 2}
CODE = "from sklearn.linear_model import Ridge\nRidge().fit(X, y)\n"


@pytest.fixture
def folder(tmp_path):
    with record.claimed(tmp_path / "run"):
        yield tmp_path / "run"


@pytest.fixture
def rows(folder):
    opened = record.RunningSearch(folder, "static", "some-task", 3, higher_is_better=False)
    yield opened
    opened.close()


@pytest.fixture
def trial(result):
    def make(score, at_s=1.0, code=CODE):
        program = None if code is None else Program("a plan", code)
        return Trial(0, program, *result(0.5, score), at_s)

    return make


def test_rows_are_on_disk_as_programs_end_and_count_once_the_search_has_finished(
    folder, rows, trial
):
    rows.add(trial(0.0))
    rows.add(trial(None, at_s=2.0, code=None))
    assert len(pd.read_csv(folder / "work" / "static-3.csv")) == 2
    assert recorded.finished(folder) == {}
    rows.finish(FACTS)
    assert list(recorded.finished(folder)) == [("static", 3)]
    found = recorded.read(folder)
    assert list(found.programs) == list(record.COLUMNS)
    first, second = found.programs.itertuples(index=False)
    assert (first.method, first.task, first.seed) == ("static", "some-task", 3)
    assert (first.ended_at_s, first.duration_s, first.status) == (1.0, 0.5, "ok")
    assert (first.valid, first.reward_score, first.family) == (True, 0.0, "Ridge")
    assert (second.valid, second.family, second.code) == (False, "none", "")
    assert pd.isna(second.reward_score)
    assert found.searches.to_dict("records") == [
        {
            "method": "static", "task": "some-task", "seed": 3, "programs": 2, "seconds": 60.0,
            "spent_s": 60.1, "date": "2026-01-01", "cores": 2,
        }
    ]  # fmt: skip


def test_the_best_program_on_the_reward_split_is_kept(folder, rows, trial):
    for score, code in ((0.5, "a"), (0.2, "b"), (0.2, "c"), (None, "d"), (0.3, "e")):
        rows.add(trial(score, code=code))
    assert (rows.programs, rows.valid, rows.best_reward_score) == (5, 4, 0.2)
    rows.finish(FACTS)
    assert recorded.finished(folder)["static", 3]["best_program"] == "b"


def test_a_search_without_programs_is_a_search(folder, rows):
    rows.finish(FACTS)
    found = recorded.read(folder)
    assert len(found.programs) == 0
    assert list(found.programs) == list(record.COLUMNS)
    assert len(best_so_far(found.programs, higher_is_better=True)) == 0
    assert found.searches.programs.tolist() == [0]


def test_equal_programs_have_equal_codes(folder, rows, trial):
    for code in ("a", "b", "a"):
        rows.add(trial(0.5, code=code))
    rows.finish(FACTS)
    codes = recorded.read(folder).programs.code
    assert codes[0] == codes[2] != codes[1]


def test_two_processes_cannot_compare_in_one_folder(folder):
    with pytest.raises(MleRlError, match="Another process"), record.claimed(folder):
        pass


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MleRlError, match="cannot be written"), record.claimed(tmp_path / "file"):
        pass


def test_a_damaged_record_is_named(folder, rows):
    with pytest.raises(MleRlError, match="no finished search"):
        recorded.read(folder)
    rows.finish(FACTS)
    path = folder / "searches" / "static-3.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(MleRlError, match="columns are not those of a search"):
        recorded.read(folder)
    path.unlink()
    with pytest.raises(MleRlError, match="cannot be read"):
        recorded.read(folder)
    path.write_bytes(b"\xff")
    with pytest.raises(MleRlError, match="cannot be read"):
        recorded.read(folder)
    facts = folder / "searches" / "static-3.json"
    facts.write_text(json.dumps({"method": "static"}))
    with pytest.raises(MleRlError, match="cannot be read"):
        recorded.finished(folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("True", "Tru"),
        lambda text: text.replace(",0.25,", ",fast,"),
        lambda text: text.replace(",0.25,", ",,", 1),
        lambda text: text.replace("False,,", "False,0.25,"),
        lambda text: text.replace(",0.500,", ",,", 1),
        lambda text: text.replace("some-task", "other-task", 1),
        lambda text: text[: text.rindex("static")],
        lambda text: text + "=======\n",
    ],
)
def test_a_search_whose_rows_are_damaged_does_not_count_for_less(folder, rows, trial, damage):
    """A search that lost its better half would pass for a worse method."""
    for score in (0.25, None, 0.25):
        rows.add(trial(score))
    rows.finish(FACTS)
    path = folder / "searches" / "static-3.csv"
    damaged = damage(path.read_text())
    assert damaged != path.read_text()
    path.write_text(damaged)
    with pytest.raises(MleRlError, match=r"static-3.csv cannot be read .*restore it"):
        recorded.read(folder)


def test_searches_are_in_the_order_of_the_methods(folder):
    for method, seed in (("default", 0), ("rl", 10), ("rl", 2), ("grammar", 0)):
        search = record.RunningSearch(folder, method, "some-task", seed, higher_is_better=True)
        search.finish(FACTS)
    searches = recorded.read(folder).searches
    order = [("rl", 2), ("rl", 10), ("grammar", 0), ("default", 0)]
    assert list(zip(searches.method, searches.seed, strict=True)) == order


def test_where_recorded_runs_come_from_is_said_in_words(folder, rows):
    rows.finish(FACTS)
    assert recorded.read(folder).origin == "recorded 2026-01-01 on 2 cores, 60 s each"


def test_the_comparisons_of_a_checkout_are_found_by_task(tmp_path, monkeypatch):
    monkeypatch.setattr("mle_rl.notebook.project_root", lambda: tmp_path)
    assert recorded.comparisons("full") == {}
    folder = tmp_path / "results" / "full" / "compare" / "some-task"
    with record.claimed(folder):
        search = record.RunningSearch(folder, "static", "some-task", 0, higher_is_better=True)
        search.finish(FACTS)
    assert list(recorded.comparisons("full")) == ["some-task"]
    assert recorded.comparisons("quick") == {}
