"""A run's files under a process that may be killed at any byte."""

import os

import pytest

from mle_rl import MleRlError
from mle_rl.training import checkpoint
from mle_rl.training.config import TrainConfig
from mle_rl.training.folder import claimed, write_whole


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
