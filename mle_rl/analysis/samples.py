"""Samples of a policy before training, as ``python -m mle_rl headroom`` records them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from mle_rl import tasks
from mle_rl.errors import MleRlError, unknown_name
from mle_rl.notebook import checkout_results

_KINDS = {
    "sample": int,
    "valid": int,
    "reward_score": float,
    "final_score": float,
    "duration_s": float,
    "family": str,
    "program": str,
}
COLUMNS = tuple(_KINDS)
"""Of a file of samples: number, 1 or 0, both scores (empty if not valid), seconds, estimators, and
the beginning of the program's SHA-256 (empty if the completion held none)."""


def headroom_folder() -> Path:
    """Where the samples of the committed figures lie, a file ``<task>.csv`` for each task."""
    return checkout_results() / "headroom"


def read_samples(folder: Path | None = None, names: Sequence[str] = ()) -> dict[str, pd.DataFrame]:
    """The recorded samples by task, in the order of the suite; tasks without any are left out.

    Args:
        folder: Holds a file per task; that of the committed figures by default.
        names: Tasks that are wanted; all by default.

    Raises:
        MleRlError: There is no such task, or a file is damaged.
    """
    for name in names:
        if name not in tasks.names():
            raise unknown_name("task", name, tasks.names())
    folder = folder or headroom_folder()
    wanted = [name for name in tasks.names() if not names or name in names]
    files = {name: folder / f"{name}.csv" for name in wanted}
    found = {name: read_table(file) for name, file in files.items() if file.is_file()}
    return {name: table for name, table in found.items() if len(table)}


def read_table(file: Path) -> pd.DataFrame:
    """One file of samples, in the order of their numbers.

    Raises:
        MleRlError: It is damaged.
    """
    try:
        table = pd.read_csv(file, dtype=_KINDS)
    except (OSError, ValueError) as error:
        raise MleRlError(f"The samples {file} cannot be read ({error}): {_ADVICE}") from None
    if tuple(table) != COLUMNS or not _is_whole(table):
        raise MleRlError(f"{file} is not a table of samples: {_ADVICE}")
    table = table.fillna({"family": "", "program": ""}).astype({"valid": bool})
    return table.sort_values("sample", ignore_index=True)


def _is_whole(table: pd.DataFrame) -> bool:
    """Whether each sample is there once, with program and scores if valid, and no score if not."""
    scores = np.isfinite(table[["reward_score", "final_score"]])
    return bool(
        table["sample"].is_unique
        and (table["sample"] >= 0).all()
        and table.valid.isin((0, 1)).all()
        and table.program[table.valid == 1].notna().all()
        and (np.isfinite(table.duration_s) & (table.duration_s >= 0)).all()
        and scores.eq(table.valid == 1, axis=0).all(axis=None)
    )


_ADVICE = "restore it, or delete it and run `python -m mle_rl headroom` again."
