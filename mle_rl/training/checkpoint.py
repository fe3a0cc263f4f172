"""Checkpoints of a run: TRL's own folder, completed by what the rollouts need.

A checkpoint counts only once ``rollouts.json`` lies in it. That file is written last and moved into
place, so a run that is killed while it saves goes on from the checkpoint before.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from mle_rl.errors import MleRlError
from mle_rl.training.folder import write_whole

_STATE = "rollouts.json"


def complete(folder: Path, state: dict) -> None:
    """Add the state of the collector to a checkpoint that TRL has just written."""
    write_whole(folder / _STATE, json.dumps(state))


def last(run_dir: Path) -> tuple[Path, dict] | None:
    """Folder and state of the last complete checkpoint of a run, None if there is none.

    Raises:
        MleRlError: Its state cannot be read.
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
        return newest, json.loads((newest / _STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MleRlError(
            f"The checkpoint {newest} cannot be read ({error}). Delete it to go on from the one "
            "before, or start a new run in an empty folder."
        ) from None
