"""The best program that is known for a task: a reference program, or what a long search found.

The long search is evolution over the grammar (`mle_rl.search.evolution`), recorded by::

    python -m mle_rl compare --methods evolution --task <id> --seconds 600 --workers 1 \
        --out results/full/long_search/<id>

Both are chosen by the reward split, like everything else. What is known is a floor of what can be
reached, not a proven optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mle_rl import tasks
from mle_rl.errors import MleRlError
from mle_rl.notebook import checkout_results
from mle_rl.search import recorded
from mle_rl.tasks import Task


@dataclass(frozen=True)
class Known:
    """A program that is known to do well.

    Attributes:
        reward_score, final_score: In the units of the metric.
        source: ``reference`` or ``long search``.
    """

    reward_score: float
    final_score: float
    source: str


def long_search_folder() -> Path:
    """Where the long searches of the checkout lie, a folder for each task."""
    return checkout_results() / "long_search"


def best_known(task: Task) -> Known:
    """The better of the best reference program and the best of the recorded long search.

    Raises:
        MleRlError: A recorded search is damaged, or not of this version of the task.
    """
    reference = tasks.leaderboard(task).best
    known = Known(reference.reward_score, reference.final_score, "reference")
    found = _found(task)
    if found is None:
        return known
    sign = 1 if task.higher_is_better else -1
    return max(found, known, key=lambda each: sign * each.reward_score)


def gain_scale(name: str) -> dict[str, tuple[float, float]]:
    """By split: what the sample submission scores, and the best known program."""
    task = tasks.load(name)
    low, high = tasks.baseline(task), best_known(task)
    return {
        "reward": (low.reward_score, high.reward_score),
        "final": (low.final_score, high.final_score),
    }


def _found(task: Task) -> Known | None:
    """The best program of the recorded long search; None if there is none."""
    folder = long_search_folder() / task.id
    searches = recorded.finished(folder)
    if not searches:
        return None
    for facts in searches.values():
        if facts["settings"].get("task_fingerprint") != task.fingerprint:
            raise MleRlError(
                f"The long search in {folder} is of another task or an earlier version of it: "
                "delete the folder, or run the search again."
            )
    programs = recorded.read(folder).programs
    scores = programs.reward_score[programs.valid]
    if scores.empty:
        return None
    best = programs.loc[scores.idxmax() if task.higher_is_better else scores.idxmin()]
    return Known(float(best.reward_score), float(best.final_score), "long search")
