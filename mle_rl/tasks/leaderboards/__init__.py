"""Leaderboards: where a score stands among the reference programs.

Kaggle ranks teams; the offline suite ranks its reference programs, run and graded by
``python -m mle_rl.tasks.measure``. Each competition has two boards, as on Kaggle: the one of the
reward split, for rewards, and the one of the final split, for reports. Medal lines follow the rule
of MLE-bench (Kaggle's progression system); "above median" is strict.
"""

from __future__ import annotations

import csv
import statistics
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from mle_rl.errors import MleRlError
from mle_rl.tasks.grading import SPLITS, Grade, grade
from mle_rl.tasks.references import REFERENCES
from mle_rl.tasks.task import Task

Split = Literal["reward", "final"]
Medal = Literal["gold", "silver", "bronze"]
COLUMNS = ("program", "reward_score", "final_score", "duration_s")


@dataclass(frozen=True)
class Entry:
    """One reference program or team.

    Attributes:
        program: Its name.
        reward_score, final_score: In the units of the metric.
        duration_s: What the program alone takes on a core of its own (its CPU time, measured on one
            thread); None where nobody measured it.
    """

    program: str
    reward_score: float
    final_score: float
    duration_s: float | None = None


@dataclass(frozen=True)
class Leaderboard:
    """Entries of one split, best first.

    Attributes:
        entries: At least one.
        higher_is_better: Direction of the metric.
        split: Which score ranks.
    """

    entries: tuple[Entry, ...]
    higher_is_better: bool
    split: Split

    @property
    def scores(self) -> tuple[float, ...]:
        """Scores of this split, best first."""
        return tuple(getattr(entry, f"{self.split}_score") for entry in self.entries)

    @property
    def best(self) -> Entry:
        """The first of the board."""
        return self.entries[0]

    @property
    def median_score(self) -> float:
        """Median over all entries."""
        return statistics.median(self.scores)

    @property
    def median_duration_s(self) -> float:
        """Median over all entries; NaN when no duration is known."""
        known = [e.duration_s for e in self.entries if e.duration_s is not None]
        return statistics.median(known) if known else float("nan")

    @property
    def medal_lines(self) -> dict[Medal, float]:
        """The worst score that still earns each medal."""
        positions = medal_positions(len(self.entries))
        return {medal: self.scores[position - 1] for medal, position in positions.items()}

    def percentile(self, score: float) -> float:
        """Share of the entries that a score beats, in [0, 1]; a tie counts one half."""
        better = sum(self._beats(score, other) for other in self.scores)
        ties = sum(score == other for other in self.scores)
        return (better + ties / 2) / len(self.scores)

    def medal(self, score: float) -> Medal | None:
        """The best medal whose line the score reaches."""
        for medal, line in self.medal_lines.items():
            if score == line or self._beats(score, line):
                return medal
        return None

    def above_median(self, score: float) -> bool:
        """Whether the score is strictly better than the median entry."""
        return self._beats(score, self.median_score)

    def _beats(self, score: float, other: float) -> bool:
        return score > other if self.higher_is_better else score < other

    def __str__(self) -> str:
        return (
            f"{len(self.entries)} entries, best {self.scores[0]:.4f} ({self.best.program}), "
            f"median {self.median_score:.4f} in {self.median_duration_s:.2f} s"
        )


def medal_positions(n_teams: int) -> dict[Medal, int]:
    """The last place, counted from 1, that earns each medal among ``n_teams`` (MLE-bench's rule).

    Under 250 teams silver is the best fifth and bronze the best two fifths; gold is the best tenth
    under 100 teams and ten places under 250. Above that, gold is 10 places and one more for every
    500 teams; silver and bronze are 50 and 100 places, and from 1,000 teams on 5 % and 10 %.
    """
    if n_teams < 1:
        raise MleRlError("A leaderboard needs at least one entry.")
    tenth, fifth = max(1, n_teams // 10), max(1, n_teams // 5)
    if n_teams < 100:
        return {"gold": tenth, "silver": fifth, "bronze": max(1, 2 * n_teams // 5)}
    if n_teams < 250:
        return {"gold": 10, "silver": fifth, "bronze": 2 * n_teams // 5}
    gold = 10 + n_teams // 500
    if n_teams < 1000:
        return {"gold": gold, "silver": 50, "bronze": 100}
    return {"gold": gold, "silver": n_teams // 20, "bronze": n_teams // 10}


def leaderboard(task: Task, split: Split = "reward") -> Leaderboard:
    """The leaderboard of a competition.

    Args:
        task: One of the offline suite, or a folder with MLE-bench's ``leaderboard.csv`` in it.
        split: ``"reward"`` for rewards, ``"final"`` for reports. MLE-bench has one board for both.

    Raises:
        MleRlError: When there is none, or the file is damaged.
    """
    if split not in SPLITS:
        raise MleRlError(f"There is no split {split!r}. Known: {', '.join(SPLITS)}.")
    entries = read_entries(_find(task))
    key = f"{split}_score"
    ranked = sorted(entries, key=lambda e: getattr(e, key), reverse=task.higher_is_better)
    return Leaderboard(tuple(ranked), task.higher_is_better, split)


def baseline(task: Task) -> Grade:
    """What the sample submission scores, which knows nothing of the inputs.

    Raises:
        MleRlError: When it has no score.
    """
    sample = sorted(task.public_dir.glob("[sS]ample*.csv"))
    graded = grade(task, sample[0].read_bytes() if sample else None)
    if not graded.valid:
        raise MleRlError(
            f"The sample submission of {task.id} has no score to serve as a baseline: "
            f"{graded.problem} Use score_scale='percentile' or 'raw'."
        )
    return graded


def anchors(task: Task) -> tuple[float, float]:
    """(baseline, best known) score on the reward split, the scale of ``score_scale="anchored"``.

    Raises:
        MleRlError: When there is no leaderboard, or the sample submission has no score.
    """
    return baseline(task).reward_score, leaderboard(task, "reward").scores[0]


def read_entries(path: Path | Traversable) -> list[Entry]:
    """Entries of a leaderboard file: of this package, or of MLE-bench (its column ``score``)."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        entries = [_entry(number, row) for number, row in enumerate(rows, start=1)]
    except (KeyError, ValueError, TypeError) as error:
        raise MleRlError(f"The leaderboard {path} is damaged ({error!r}).") from None
    if not entries:
        raise MleRlError(f"The leaderboard {path} has no entries.")
    return entries


def _entry(number: int, row: dict[str, str]) -> Entry:
    if "score" in row:
        score = float(row["score"])
        return Entry(row.get("teamName") or f"team {number}", score, score)
    return Entry(
        row["program"],
        float(row["reward_score"]),
        float(row["final_score"]),
        float(row["duration_s"]),
    )


def _find(task: Task) -> Path | Traversable:
    shipped = resources.files("mle_rl.tasks.leaderboards").joinpath(f"{task.id}.csv")
    if task.id in REFERENCES and shipped.is_file():
        return shipped
    beside = task.folder / "leaderboard.csv"
    if beside.is_file():
        return beside
    raise MleRlError(
        f"There is no leaderboard for {task.id}. Put the leaderboard.csv that MLE-bench has for it "
        f"into {task.folder}."
    )
