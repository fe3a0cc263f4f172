"""Checkpoints of a run: TRL's own folder, completed by what the rollouts need.

A checkpoint counts only once ``rollouts.json`` lies in it. That file is written last and moved into
place, so a run that is killed while it saves goes on from the checkpoint before. It also says what
the other files were, so that a damaged one is found before a library stumbles over it.
"""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

from mle_rl.errors import MleRlError
from mle_rl.files import write_whole

_STATE = "rollouts.json"
_ENDS = 1 << 20


def complete(folder: Path, state: dict) -> None:
    """Add the state of the collector to a checkpoint that TRL has just written."""
    files = {path.name: _fingerprint(path) for path in folder.iterdir() if path.is_file()}
    write_whole(folder / _STATE, json.dumps({"files": files, "state": state}))


def last(run_dir: Path) -> tuple[Path, dict] | None:
    """Folder and state of the last complete checkpoint of a run, None if there is none.

    Raises:
        MleRlError: Its state cannot be read, or a file of it is not as it was written.
    """
    folders = [
        folder
        for folder in run_dir.glob("checkpoint-*")
        if re.fullmatch(r"checkpoint-\d+", folder.name) and (folder / _STATE).is_file()
    ]
    if not folders:
        return None
    newest = max(folders, key=lambda folder: int(folder.name.split("-")[1]))
    try:
        written = json.loads((newest / _STATE).read_text(encoding="utf-8"))
        for name, fingerprint in written["files"].items():
            if _fingerprint(newest / name) != fingerprint:
                raise ValueError(f"{name} is not as it was written")
        return newest, written["state"]
    except (OSError, ValueError, KeyError) as error:
        raise MleRlError(
            f"The checkpoint {newest} cannot be read ({error}). Delete it to go on from the one "
            "before, or start a new run in an empty folder."
        ) from None


def _fingerprint(path: Path) -> list[int]:
    """Size and checksum of both ends: enough to find what a full disk or a copy has cut off, and
    quick for a file of many gigabytes."""
    size = path.stat().st_size
    with path.open("rb") as file:
        checksum = zlib.crc32(file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        return [size, zlib.crc32(file.read(), checksum)]
