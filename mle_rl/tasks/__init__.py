"""What is to be solved: competitions on disk, metrics, grading, leaderboards, the offline suite."""

from mle_rl.tasks.grading import Grade, grade
from mle_rl.tasks.loading import TaskDriftWarning, load, names
from mle_rl.tasks.metrics import METRICS, Metric, UndefinedScore
from mle_rl.tasks.task import Task, load_folder

__all__ = [
    "METRICS",
    "Grade",
    "Metric",
    "Task",
    "TaskDriftWarning",
    "UndefinedScore",
    "grade",
    "load",
    "load_folder",
    "names",
]
