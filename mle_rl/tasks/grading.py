"""Grade a submission on both hidden splits: two scores, or one sentence on what is wrong.

Rows meet by id. A score that the metric leaves undefined makes the submission invalid; a score of
0.0 is a score. A fault of the task itself (answers that cannot be scored) raises, so that it is
never paid to a policy as its own failure.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.tasks.metrics import METRICS, Metric, UndefinedScore
from mle_rl.tasks.submission import SubmissionError, read_predictions
from mle_rl.tasks.task import Task

SPLITS = ("reward", "final")


@dataclass(frozen=True)
class Grade:
    """Scores of a submission in the units and the direction of the metric, or why there are none.

    Attributes:
        valid: True when both scores exist.
        reward_score: Score on the split that trains the policy.
        final_score: Score on the split that is reported.
        problem: One sentence when invalid.
    """

    valid: bool
    reward_score: float | None = None
    final_score: float | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Answers:
    """True values of the test rows.

    Attributes:
        ids: Ids of the rows, N of them.
        truth: Shape ``(N, K)`` for metrics on many columns, else ``(N,)``.
        rows: For each split, the positions of its rows.
        classes: Permitted labels or ratings, sorted; empty for metrics on real values.
    """

    ids: tuple[str, ...]
    truth: np.ndarray
    rows: dict[str, np.ndarray]
    classes: tuple[str, ...]


def grade(task: Task, submission: bytes | None, problem: str | None = None) -> Grade:
    """Scores ``submission.csv`` on the reward split and on the final split.

    Args:
        task: The competition.
        submission: Bytes of the file, or None when the program wrote none that can be read.
        problem: Why a file that exists could not be read (a link, too large, ...), if so.

    Returns:
        A valid grade with both scores, or an invalid one with a sentence.

    Raises:
        MleRlError: When the answers of the task are damaged; never for a bad submission.
    """
    if problem is not None:
        return Grade(valid=False, problem=problem)
    if submission is None:
        return Grade(valid=False, problem="The program wrote no submission.csv.")
    metric = METRICS[task.metric]
    answers = read_answers(task)
    try:
        prediction = read_predictions(
            submission,
            task.submission_columns,
            answers.ids,
            metric,
            answers.classes,
            task.ignored_columns,
        )
        scores = {split: _score(metric, answers, prediction, split) for split in SPLITS}
    except SubmissionError as error:
        return Grade(valid=False, problem=str(error))
    except UndefinedScore as error:
        return Grade(valid=False, problem=f"The {metric.title} is undefined: {error}.")
    return Grade(valid=True, reward_score=scores["reward"], final_score=scores["final"])


def read_answers(task: Task) -> Answers:
    """The answers of a task; read once per process and file.

    Raises:
        MleRlError: When the file is missing, malformed, or cannot be scored on one of the splits.
    """
    try:
        modified_ns = task.answers_path.stat().st_mtime_ns
    except FileNotFoundError:
        raise MleRlError(
            f"The answers of {task.id} are missing ({task.answers_path}). "
            f"Delete {task.folder} and load the task again."
        ) from None
    return _read_answers(task, modified_ns)


@lru_cache(maxsize=32)
def _read_answers(task: Task, modified_ns: int) -> Answers:
    with task.answers_path.open(encoding="utf-8-sig", newline="") as file:
        header, *records = [row for row in csv.reader(file) if row]
    try:
        position = [header.index(name) for name in task.submission_columns]
        ids = tuple(row[position[0]] for row in records)
        cells = [[row[k] for k in position[1:]] for row in records]
        metric = METRICS[task.metric]
        truth = _truth(cells, metric)
        classes = _classes(task, truth, metric)
        split_of = _split_of(header, records, ids)
    except (ValueError, IndexError) as error:
        raise MleRlError(
            f"The answers of {task.id} cannot be read ({error}). "
            f"Delete {task.folder} and load the task again."
        ) from None
    if len(set(ids)) < len(ids):
        raise MleRlError(
            f"The answers of {task.id} have repeated ids, so rows cannot be told apart."
        )
    rows = {split: np.flatnonzero(split_of == split) for split in SPLITS}
    answers = Answers(ids, truth, rows, classes)
    _check_scorable(task, metric, answers)
    return answers


def _truth(cells: list[list[str]], metric: Metric) -> np.ndarray:
    dtype = np.str_ if metric.prediction in ("label", "text") else np.float64
    table = np.array(cells, dtype=dtype)
    return table if metric.many_columns else table[:, 0]


def _classes(task: Task, truth: np.ndarray, metric: Metric) -> tuple[str, ...]:
    if metric.prediction not in ("label", "integer"):
        return ()
    labels = set(truth.tolist()) | _training_labels(task)
    if metric.prediction == "label":
        return tuple(sorted(map(str, labels)))
    return tuple(str(rating) for rating in sorted({int(float(label)) for label in labels}))


def _training_labels(task: Task) -> set[str]:
    """Labels of train.csv: one that no test row happens to have is still a label."""
    path, target = task.public_dir / "train.csv", task.submission_columns[1]
    if not path.is_file():
        return set()
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        if target not in (reader.fieldnames or ()):
            return set()
        return {row[target] for row in reader if row[target]}


def _split_of(header: list[str], records: list[list[str]], ids: tuple[str, ...]) -> np.ndarray:
    """The split of each row: as the answers say, or by a hash of the id where they do not.

    MLE-bench has one hidden split. Halving it by a hash of the id is stable under reordering.
    """
    if "split" in header:
        return np.array([row[header.index("split")] for row in records])
    parity = [hashlib.sha256(f"split:{key}".encode()).digest()[0] % 2 for key in ids]
    return np.array([SPLITS[bit] for bit in parity])


def _check_scorable(task: Task, metric: Metric, answers: Answers) -> None:
    """Perfect predictions must have a score on each split, or no submission ever can."""
    for split in SPLITS:
        if len(answers.rows[split]) == 0:
            raise MleRlError(f"The answers of {task.id} have no row in the {split} split.")
        try:
            _score(metric, answers, answers.truth, split)
        except UndefinedScore as error:
            raise MleRlError(
                f"The answers of {task.id} cannot be scored on the {split} split: {error}."
            ) from None


def _score(metric: Metric, answers: Answers, prediction: np.ndarray, split: str) -> float:
    rows = answers.rows[split]
    return metric.function(answers.truth[rows], prediction[rows])
