"""A scratch folder is removed without following what was mounted into it."""

import os
import subprocess

import pytest

from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool, removal

MOUNT = """
import ctypes, os
os.mkdir("x")
print(ctypes.CDLL(None).mount(b"none", b"x", b"tmpfs", 0, None))
"""


def _mount_something(folder):
    done = subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True)
    if done.returncode != 0:
        pytest.skip("this user may not mount, so nobody could be led astray")


def test_deep_and_read_only_folders_go(tmp_path):
    folder = tmp_path / "scratch"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    os.chmod(folder / "a", 0o500)
    removal.remove_tree(str(folder))
    assert not folder.exists()


def test_what_is_mounted_inside_is_detached_and_not_emptied(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    _mount_something(str(kept))
    (kept / "precious").write_text("x")
    inside = tmp_path / "scratch" / "a folder"
    inside.mkdir(parents=True)
    try:
        subprocess.run(["mount", "--bind", kept, inside], check=True)
        removal.remove_tree(str(tmp_path / "scratch"))
        assert (kept / "precious").read_text() == "x"
        assert not (tmp_path / "scratch").exists()
    finally:
        subprocess.run(["umount", kept], check=False)


def test_a_folder_whose_mounts_cannot_be_detached_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(removal, "mount_points_below", lambda folder: [f"{folder}/x"])
    monkeypatch.setattr(removal.sys_, "umount", lambda point: None)
    with pytest.raises(OSError, match="mounted inside"):
        removal.remove_tree(str(tmp_path))
    assert tmp_path.exists()


@pytest.mark.parametrize("tier", ["limits", "isolated"])
def test_no_program_can_mount_in_any_tier(tier, tmp_path):
    with LocalPool(1, tier=tier) as pool:
        execution = pool.run(Job(MOUNT, tmp_path, limits=Limits(timeout_s=10)))
    assert execution.stdout == "-1\n"
    assert not [point for point in removal.mount_points_below("/tmp") if "mle-rl-" in point]
