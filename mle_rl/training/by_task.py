"""The history of a run on several tasks, task by task, from its ledger.

``history.csv`` has one row per batch, with the scores of the first task: scores of different
metrics have no common mean. Here each task has rows of its own.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pandas as pd

from mle_rl import tasks
from mle_rl.errors import MleRlError
from mle_rl.rollout.ledger import Ledger


def history_by_task(run_dir: Path) -> pd.DataFrame:
    """What each task of a run achieved in each batch.

    Args:
        run_dir: Folder of a run of `mle_rl.training.run.train`, ended or not.

    Returns:
        One row per task and batch: ``task``, ``step`` (batches trained on), ``rollouts``,
        ``reward_mean``, ``valid_share``, ``duration_mean_s``; of the valid programs, in units of
        the metric, ``score_mean`` and ``score_best_so_far`` on the reward split (NaN as long as
        there is none); and ``beaten_so_far``, the share of the task's leaderboard that the best so
        far beats, 0 as long as there is none: the one measure that tasks can be compared by.

    Raises:
        MleRlError: There is no run in that folder.
    """
    path = run_dir / "rollouts.sqlite"
    if not path.is_file():
        raise MleRlError(f"There is no run in {run_dir}: train one first.")
    with closing(Ledger(path)) as ledger:
        trained = ledger.table().query("state == 'trained'")
    trained = trained.assign(step=trained.trained_version.astype(int) + 1)
    parts = [_of_task(name, rows) for name, rows in trained.groupby("task", sort=False)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_COLUMNS)


_COLUMNS = (
    "task",
    "step",
    "rollouts",
    "reward_mean",
    "valid_share",
    "duration_mean_s",
    "score_mean",
    "score_best_so_far",
    "beaten_so_far",
)


def _of_task(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    task = tasks.load(name)
    board = tasks.leaderboard(task, "reward")
    batches = rows.assign(score=rows.reward_score.where(rows.valid == 1).astype(float))
    grouped = batches.groupby("step")
    best = grouped.score.max() if task.higher_is_better else grouped.score.min()
    best = (best.cummax() if task.higher_is_better else best.cummin()).ffill()
    made = pd.DataFrame(
        {
            "rollouts": grouped.size(),
            "reward_mean": grouped.reward.mean(),
            "valid_share": grouped.valid.mean(),
            "duration_mean_s": grouped.duration_s.mean(),
            "score_mean": grouped.score.mean(),
            "score_best_so_far": best,
            "beaten_so_far": [0.0 if pd.isna(s) else board.percentile(s) for s in best],
        }
    )
    return made.reset_index().assign(task=name)[list(_COLUMNS)]
