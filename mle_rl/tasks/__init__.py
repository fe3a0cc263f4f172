"""What is to be solved: competitions on disk, metrics, grading, leaderboards, the offline suite."""

from mle_rl.tasks.grading import Grade, grade
from mle_rl.tasks.leaderboards import Entry, Leaderboard, anchors, baseline, leaderboard
from mle_rl.tasks.loading import TaskDriftWarning, load, names
from mle_rl.tasks.metrics import METRICS, Metric, UndefinedScore
from mle_rl.tasks.overview import describe, frontier, reference_table
from mle_rl.tasks.references import Reference, reference_programs, references
from mle_rl.tasks.task import Task, load_folder

__all__ = [
    "METRICS",
    "Entry",
    "Grade",
    "Leaderboard",
    "Metric",
    "Reference",
    "Task",
    "TaskDriftWarning",
    "UndefinedScore",
    "anchors",
    "baseline",
    "describe",
    "frontier",
    "grade",
    "leaderboard",
    "load",
    "load_folder",
    "names",
    "reference_programs",
    "reference_table",
    "references",
]
