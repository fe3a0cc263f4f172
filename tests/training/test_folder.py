"""A run's files under a process that may be killed at any byte."""

import os
from pathlib import Path

import pytest

from mle_rl import MleRlError
from mle_rl.files import write_whole
from mle_rl.training import checkpoint
from mle_rl.training.config import TrainConfig
from mle_rl.training.folder import claimed, has_ended, save_policy


class Killed(BaseException):
    pass


def test_a_kill_while_writing_leaves_the_file_before(tmp_path, monkeypatch):
    write_whole(tmp_path / "file", "before")

    def killed(descriptor):
        raise Killed

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(Killed):
        write_whole(tmp_path / "file", "after")
    assert (tmp_path / "file").read_text() == "before"


def test_only_complete_checkpoints_count(tmp_path):
    for step in (9, 10, 11):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-99-copy").mkdir()
    assert checkpoint.last(tmp_path) is None
    for name in ("checkpoint-9", "checkpoint-10", "checkpoint-99-copy"):
        checkpoint.complete(tmp_path / name, {"version": name})
    path, state = checkpoint.last(tmp_path)
    assert (path.name, state) == ("checkpoint-10", {"version": "checkpoint-10"})


@pytest.mark.parametrize("harm", ["cut", "changed", "gone"])
def test_a_damaged_file_of_a_checkpoint_is_a_sentence(tmp_path, harm):
    folder = tmp_path / "checkpoint-1"
    folder.mkdir()
    weights = folder / "model.safetensors"
    weights.write_bytes(b"weights" * 1000)
    checkpoint.complete(folder, {"version": 1})
    assert checkpoint.last(tmp_path) == (folder, {"version": 1})
    if harm == "gone":
        weights.unlink()
    else:
        weights.write_bytes(weights.read_bytes()[:-1] + (b"" if harm == "cut" else b"?"))
    with pytest.raises(MleRlError, match="checkpoint-1 cannot be read .*model.safetensors"):
        checkpoint.last(tmp_path)


def test_a_damaged_checkpoint_is_a_sentence(tmp_path):
    (tmp_path / "checkpoint-1").mkdir()
    (tmp_path / "checkpoint-1/rollouts.json").write_text('{"version": ')
    with pytest.raises(MleRlError, match="checkpoint-1 cannot be read"):
        checkpoint.last(tmp_path)


def test_a_longer_run_may_go_on_and_another_may_not(tmp_path):
    def claim(**changes):
        with claimed(TrainConfig(run_dir=tmp_path, **changes)):
            pass

    claim(steps=5)
    claim(steps=50)
    with pytest.raises(MleRlError, match="other settings"):
        claim(seed=1)
    claim(steps=5)


def test_a_folder_is_free_again_however_its_run_ended(tmp_path):
    config = TrainConfig(run_dir=tmp_path)
    with pytest.raises(Killed), claimed(config):
        raise Killed
    with claimed(config), pytest.raises(MleRlError, match="Another process"), claimed(config):
        pass


class Model:
    """Saves one file, or is killed while it does."""

    def __init__(self, weights):
        self.weights = weights

    def save_pretrained(self, folder):
        folder.mkdir(exist_ok=True)
        if self.weights is None:
            raise Killed
        (folder / "weights").write_text(self.weights)


class Tokenizer:
    def save_pretrained(self, folder):
        pass


def test_a_longer_run_replaces_the_policy_only_once_its_own_is_whole(tmp_path):
    config = TrainConfig(run_dir=tmp_path)
    save_policy(config, Model("short"), Tokenizer(), 60)
    with pytest.raises(Killed):
        save_policy(config, Model(None), Tokenizer(), 90)
    assert (tmp_path / "policy/weights").read_text() == "short"
    assert has_ended(config)
    save_policy(config, Model("long"), Tokenizer(), 90)
    assert (tmp_path / "policy/weights").read_text() == "long"
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]


def test_a_kill_between_the_two_policies_leaves_one_to_be_written_again(tmp_path, monkeypatch):
    config = TrainConfig(run_dir=tmp_path)
    save_policy(config, Model("short"), Tokenizer(), 60)
    moved = Path.replace

    def killed(self, target):
        if self.name == "policy.part":
            raise Killed
        return moved(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            save_policy(config, Model("long"), Tokenizer(), 90)
    assert not has_ended(config)
    assert {p.name for p in tmp_path.glob("*/weights")} == {"weights"}
    save_policy(config, Model("long"), Tokenizer(), 90)
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
