"""What happened to every rollout of a simulation, as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

FATES = ("trained", "stale", "aborted", "window", "timeout", "crashed", "ready", "in flight")
"""Where a rollout ended: in a batch, dropped for one of five reasons, or not yet decided."""

NOT_YET = np.nan
"""Time of something that has not happened."""


@dataclass(frozen=True)
class Trace:
    """Columns, one entry per dispatched rollout, in dispatch order; times in seconds.

    Attributes:
        action: Index of the action that was sampled, int.
        version: Model version that sampled it, int.
        dispatched_at: Start of generation.
        generated_at: End of generation, when it begins to wait for a worker.
        started_at: Start of execution.
        finished_at: End of execution, or the moment at which it was aborted.
        duration_s: Execution time it needs, whether or not it got that far.
        taken_at: When it was handed out in a batch.
        taken_version: Model version that trained on it, int; -1 if none did.
        worker: Execution worker, int; -1 before it started.
        slot: Generation slot, int; -1 without a generation stage.
        fate: Index into :data:`FATES`, int.
    """

    action: np.ndarray
    version: np.ndarray
    dispatched_at: np.ndarray
    generated_at: np.ndarray
    started_at: np.ndarray
    finished_at: np.ndarray
    duration_s: np.ndarray
    taken_at: np.ndarray
    taken_version: np.ndarray
    worker: np.ndarray
    slot: np.ndarray
    fate: np.ndarray

    def __len__(self) -> int:
        return len(self.action)

    @property
    def trained(self) -> np.ndarray:
        """Mask of the rollouts that were trained on, bool."""
        return self.fate == FATES.index("trained")

    @property
    def decided(self) -> np.ndarray:
        """Mask of the rollouts that were trained on or dropped, bool."""
        return self.fate < FATES.index("ready")

    @property
    def staleness(self) -> np.ndarray:
        """Learner updates between sampling and training, of the trained rollouts."""
        return (self.taken_version - self.version)[self.trained]

    @property
    def time_in_queue_s(self) -> np.ndarray:
        """Waiting for a worker plus waiting for the learner, of the trained rollouts."""
        waits = (self.started_at - self.generated_at) + (self.taken_at - self.finished_at)
        return waits[self.trained]

    def in_flight_at(self, times_s: np.ndarray) -> np.ndarray:
        """A snapshot: how many rollouts of each action are executing at given instants.

        Args:
            times_s: Seconds, shape (instants,).

        Returns:
            Counts, shape (instants, actions).
        """
        counts = []
        for action in range(self.action.max() + 1):
            mine = self.action == action
            started = np.sort(self.started_at[mine])  # those not started yet are NaN, sorted last
            finished = np.sort(self.finished_at[mine])
            counts.append(
                np.searchsorted(started, times_s, side="right")
                - np.searchsorted(finished, times_s, side="right")
            )
        return np.stack(counts, axis=1)

    def frame(self) -> pd.DataFrame:
        """The columns as a table, the fate in words."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        columns["fate"] = np.array(FATES)[self.fate]
        return pd.DataFrame(columns).rename_axis("rollout").reset_index()


class Recorder:
    """Collects a :class:`Trace` event by event; lists, because single writes to them are fast."""

    _INT = ("action", "version", "taken_version", "worker", "slot", "fate")

    def __init__(self):
        self._columns = {field.name: [] for field in fields(Trace)}
        self.steps: list[tuple[float, float, float]] = []

    def dispatched(
        self, action: int, version: int, now: float, duration_s: float, slot: int
    ) -> None:
        """A row for the next rollout; without a decoding slot (-1) it is generated at once."""
        row = {name: -1 if name in self._INT else NOT_YET for name in self._columns} | {
            "action": action,
            "version": version,
            "dispatched_at": now,
            "generated_at": now if slot < 0 else NOT_YET,
            "duration_s": duration_s,
            "slot": slot,
            "fate": FATES.index("in flight"),
        }
        for name, value in row.items():
            self._columns[name].append(value)

    def generated(self, number: int, now: float) -> None:
        """Its sequence is complete."""
        self._columns["generated_at"][number] = now

    def started(self, number: int, worker: int, now: float) -> None:
        """A worker began to execute it."""
        self._columns["started_at"][number] = now
        self._columns["worker"][number] = worker

    def finished(self, number: int, now: float) -> None:
        """Its execution ended."""
        self._columns["finished_at"][number] = now
        self._columns["fate"][number] = FATES.index("ready")

    def dropped(self, number: int, reason: str, now: float) -> None:
        """It will not be trained on; if it was running, it was stopped."""
        self._columns["fate"][number] = FATES.index(reason)
        if math.isnan(self._columns["finished_at"][number]):
            self._columns["finished_at"][number] = now

    def taken(self, numbers: Sequence[int], version: int, step: tuple[float, float, float]) -> None:
        """They are the batch of an update: taken, trained and synchronised at these times."""
        for number in numbers:
            self._columns["taken_at"][number] = step[0]
            self._columns["taken_version"][number] = version
            self._columns["fate"][number] = FATES.index("trained")
        self.steps.append(step)

    def trace(self) -> Trace:
        """The columns so far."""
        return Trace(
            **{
                name: np.array(values, dtype=int if name in self._INT else float)
                for name, values in self._columns.items()
            }
        )


class Unrecorded:
    """The same without a memory, for runs of any length."""

    steps = ()

    def _nothing(self, *what) -> None:
        """Forgets what it is told."""

    dispatched = generated = started = finished = dropped = taken = trace = _nothing
