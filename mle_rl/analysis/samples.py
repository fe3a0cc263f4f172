"""Samples of a policy before training, as ``python -m mle_rl headroom`` records them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_rl import tasks
from mle_rl.errors import MleRlError
from mle_rl.notebook import project_root

COLUMNS = (
    "sample",
    "valid",
    "reward_score",
    "final_score",
    "duration_s",
    "family",
    "program",
)
"""Of a file of samples: number, 1 or 0, both scores (empty if not valid), seconds, estimators, and
the beginning of the program's SHA-256 (empty if the completion held none)."""


def headroom_folder() -> Path:
    """Where the samples of the committed figures lie, a file ``<task>.csv`` for each task."""
    return project_root() / "results" / "full" / "headroom"


def read_samples(folder: Path | None = None) -> dict[str, pd.DataFrame]:
    """The recorded samples by task, in the order of the suite; tasks without any are left out.

    Raises:
        MleRlError: A file is damaged.
    """
    folder = folder or headroom_folder()
    files = {name: folder / f"{name}.csv" for name in tasks.names()}
    found = {name: read_table(file) for name, file in files.items() if file.is_file()}
    return {name: table for name, table in found.items() if len(table)}


def read_table(file: Path) -> pd.DataFrame:
    """One file of samples, in the order of their numbers.

    Raises:
        MleRlError: It is damaged.
    """
    text = {"family": str, "program": str}
    try:
        table = pd.read_csv(file, dtype=text, na_values={"reward_score": "", "final_score": ""})
    except (OSError, ValueError) as error:
        raise MleRlError(f"The samples {file} cannot be read ({error}): {_ADVICE}") from None
    table[list(text)] = table[list(text)].fillna("")
    scored = table.valid.astype(bool) == table.reward_score.notna()
    if tuple(table) != COLUMNS or not table["sample"].is_unique or not scored.all():
        raise MleRlError(f"{file} is not a table of samples: {_ADVICE}")
    return table.sort_values("sample", ignore_index=True).astype({"valid": bool})


_ADVICE = "restore it, or delete it and run `python -m mle_rl headroom` again."
