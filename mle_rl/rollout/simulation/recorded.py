"""Durations that were measured: the law of recorded executions, from memory or from a file."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mle_rl.errors import MleRlError, unknown_name


@dataclass(frozen=True)
class Recorded:
    """Durations that were measured, drawn with replacement."""

    values: tuple[float, ...]

    def __post_init__(self):
        if not (self.values and all(0 < v < math.inf for v in self.values)):
            raise MleRlError(
                "Recorded durations must be positive and finite, and at least one; leave out "
                "programs that were rejected without being run."
            )

    @property
    def mean(self) -> float:
        """Mean of the recorded durations."""
        return float(np.mean(self.values))

    @property
    def cv(self) -> float:
        """Their coefficient of variation."""
        return float(np.std(self.values) / self.mean)

    def sample(self, n, rng):
        return rng.choice(np.asarray(self.values), n)

    def cdf(self, t):
        return np.searchsorted(np.sort(self.values), t, side="right") / len(self.values)


def recorded(durations: Sequence[float]) -> Recorded:
    """The empirical law of recorded executions, ``[e.duration_s for e in executions]``."""
    return Recorded(tuple(float(d) for d in durations))


def recorded_in(path: str | Path, task: str | None = None) -> Recorded:
    """The empirical law of a file of recorded executions.

    Programs that were rejected, and so have no duration or one of 0, are left out.

    Args:
        path: What :class:`mle_rl.rollout.executions.ExecutionStore` keeps (``.sqlite``) or exports
            (``.parquet``), or any table (``.csv``) with a column ``duration_s``.
        task: Of this task alone, by the column ``task``.

    Raises:
        MleRlError: The file cannot be read, has no such column, or no such execution.
    """
    table = _read_table(Path(path))
    for column in ("duration_s", "task")[: 1 if task is None else 2]:
        if column not in table:
            raise MleRlError(f"{path} has no column {column}; it has {', '.join(table.columns)}.")
    if task is not None:
        known = table["task"].unique()
        table = table[table["task"] == task]
        if table.empty:
            raise unknown_name(f"task in {path}", task, known)
    try:
        seconds = pd.to_numeric(table["duration_s"]).dropna()
    except (ValueError, TypeError) as error:
        raise MleRlError(f"The column duration_s of {path} holds no numbers: {error}.") from None
    return recorded(seconds[seconds != 0])


def _read_table(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise MleRlError(f"There is no file of executions {path}; check its name.")
    try:
        if path.suffix == ".csv":
            return pd.read_csv(path)
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise MleRlError(f"{path} cannot be read as a table: {error}.") from None
    if _is_of_another_kind(path):
        raise MleRlError(f"{path} holds no recorded executions; check its name.")
    from mle_rl.rollout.executions import ExecutionStore  # needs the sandbox, a simulation does not

    with closing(ExecutionStore(path)) as store:
        return store.table()


def _is_of_another_kind(path: Path) -> bool:
    """Looks without touching: `ExecutionStore` would make a store of any database it is given."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return ("executions",) not in tables.fetchall()
    except sqlite3.Error:
        return False  # the store says what is wrong
