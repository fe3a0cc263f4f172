"""The best program that is known: the better of references and long search, by the reward split."""

import pytest

from mle_rl import MleRlError, tasks
from mle_rl.analysis import known
from mle_rl.records import Execution, Outcome, Program
from mle_rl.search.loop import Trial
from mle_rl.search.record import RunningSearch, claimed


@pytest.fixture
def long_search(monkeypatch, tmp_path):
    """Records a long search with these (reward, final) scores, None for what is not valid."""
    monkeypatch.setattr(known, "long_search_folder", lambda: tmp_path)

    def record(task, pairs, fingerprint=None):
        folder = tmp_path / task.id
        with claimed(folder):
            rows = RunningSearch(folder, "evolution", task.id, 0, task.higher_is_better)
            for number, pair in enumerate(pairs):
                status = "ok" if pair else "error"
                execution = Execution(status, "", "", 0.5 + number, 0.5, 1.0, "limits")
                outcome = Outcome((), pair is not None, *(pair or (None, None)))
                rows.add(Trial(number, Program("a plan", f"{number}"), execution, outcome, 1.0))
            settings = {
                "seconds": 9.0,
                "task_fingerprint": fingerprint or task.fingerprint,
            }
            rows.finish({"settings": settings, "spent_s": 9.0, "date": "2026-01-01", "cores": 2})
        return folder

    return record


@pytest.mark.parametrize("name", ["doctor-visits", "photo-patches"])
def test_the_better_one_on_the_reward_split_is_known(name, long_search):
    task = tasks.load(name)
    reference = tasks.leaderboard(task).best
    assert known.best_known(task).source == "reference"
    step = 0.01 if task.higher_is_better else -0.01
    better = (reference.reward_score + step, reference.final_score - 9 * step)
    worse = (reference.reward_score - step, reference.final_score + 9 * step)
    long_search(task, [worse, None])
    assert known.best_known(task).reward_score == reference.reward_score
    folder = known.long_search_folder() / task.id
    for file in (folder / "searches").iterdir():
        file.unlink()
    long_search(task, [worse, None, better, worse])
    found = known.best_known(task)
    assert found.source == "long search"
    assert (found.reward_score, found.final_score) == pytest.approx(better)


def test_a_search_without_a_valid_program_knows_nothing(long_search):
    task = tasks.load("doctor-visits")
    long_search(task, [None, None])
    assert known.best_known(task).source == "reference"


def test_a_search_on_an_earlier_version_of_the_task_is_refused(long_search):
    """Its scores are of other answers."""
    task = tasks.load("doctor-visits")
    long_search(task, [(0.5, 0.5)], fingerprint="0" * 64)
    with pytest.raises(MleRlError, match="earlier version"):
        known.best_known(task)


def test_a_damaged_search_is_one_sentence(long_search):
    task = tasks.load("doctor-visits")
    folder = long_search(task, [(0.5, 0.5)])
    (folder / "searches" / "evolution-0.json").write_text("{")
    with pytest.raises(MleRlError, match="cannot be read"):
        known.best_known(task)
