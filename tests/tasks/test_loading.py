"""The suite loads, verifies what lies on disk, and says in words when data drift."""

import json
import warnings

import pytest

from mle_rl import MleRlError, tasks
from mle_rl.tasks import loading

FAST = ("photo-patches", "doctor-visits", "terrain-height", "handwritten-digits")
SLOW = ("library-docstrings", "function-length", "raising-functions")


def test_the_suite_has_what_was_promised():
    assert set(tasks.names()) == {*FAST, *SLOW}
    suite = [loading.COMPETITIONS[name] for name in tasks.names()]
    assert {c.kind for c in suite} == {"text", "image", "table"}
    assert {c.metric for c in suite} == {
        "log_loss",
        "roc_auc",
        "accuracy",
        "quadratic_weighted_kappa",
        "clipped_rmsle",
        "pearson",
    }


@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_built_here_it_is_what_was_published(name, data_dir):
    """With the pinned versions; under others the warning says what differs."""
    published = loading.published()[name]
    if loading.COMPETITIONS[name].versions() != published["versions"]:
        pytest.skip("other versions than the pinned ones are installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task = tasks.load(name, data_dir)
    assert task.fingerprint == published["sha256"]
    sample = (task.public_dir / "sample_submission.csv").read_bytes()
    assert tasks.grade(task, sample).valid
    rows = tasks.grading.read_answers(task).rows
    assert abs(len(rows["reward"]) - len(rows["final"])) <= 0.05 * len(rows["final"])
    assert task.description.startswith("# ")
    assert (task.public_dir / "description.md").read_text(encoding="utf-8") == task.description


def test_an_unknown_name_lists_what_exists():
    with pytest.raises(MleRlError, match=r"no task 'titanic'.*doctor-visits.*terrain-height"):
        tasks.load("titanic")


@pytest.fixture
def terrain(tmp_path):
    return tasks.load("terrain-height", tmp_path)


def test_a_second_load_builds_nothing(terrain, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "build", lambda *_: pytest.fail("built again"))
    assert tasks.load("terrain-height", tmp_path) == terrain


def test_changed_files_are_noticed(terrain, tmp_path):
    path = terrain.public_dir / "train.csv"
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    with pytest.raises(
        MleRlError, match=r"have changed since they were built\. Delete that folder"
    ):
        tasks.load("terrain-height", tmp_path)


@pytest.mark.parametrize("damage", ["delete", "truncate", "other"])
def test_a_damaged_manifest_is_noticed(terrain, tmp_path, damage):
    manifest = terrain.folder / "manifest.json"
    if damage == "delete":
        manifest.unlink()
    else:
        manifest.write_text("{" if damage == "truncate" else "[]")
    with pytest.raises(MleRlError, match="not a complete task folder"):
        tasks.load("terrain-height", tmp_path)


def test_other_versions_are_named(terrain, tmp_path, monkeypatch):
    other = {"terrain-height": {"sha256": "0" * 64, "versions": {"matplotlib": "1.0"}}}
    monkeypatch.setattr(loading, "published", lambda: other)
    installed = json.loads((terrain.folder / "manifest.json").read_text())["versions"]
    expected = f"matplotlib {installed['matplotlib']} instead of 1.0"
    with pytest.warns(tasks.TaskDriftWarning, match=expected) as caught:
        tasks.load("terrain-height", tmp_path)
    assert caught[0].filename == __file__


def test_a_folder_of_another_release_is_named(terrain, tmp_path, monkeypatch):
    versions = json.loads((terrain.folder / "manifest.json").read_text())["versions"]
    other = {"terrain-height": {"sha256": "0" * 64, "versions": versions}}
    monkeypatch.setattr(loading, "published", lambda: other)
    with pytest.warns(tasks.TaskDriftWarning, match="Delete the folder to rebuild"):
        tasks.load("terrain-height", tmp_path)
