"""What a training run logs after every batch, and what each number means.

One row per batch in ``history.csv``. ``GLOSSARY`` is at once the list of columns and their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from mle_rl.errors import MleRlError
from mle_rl.files import write_whole
from mle_rl.records import SHORTEST_S, Rollout
from mle_rl.rollout.collector import Batch
from mle_rl.rollout.diagnostics import ks_distance
from mle_rl.rollout.ledger import Ledger
from mle_rl.rollout.queue import Counts

GLOSSARY = {
    # ---- where the run is
    "step": "Batches trained on, this one included.",
    "wall_s": "Clock of the run when the batch was handed to the learner, in seconds.",
    "execution_s": "Execution time of all programs trained on so far, added up, in seconds.",
    # ---- what the policy achieves
    "reward_mean": "Mean reward of the batch under the reward weights of this step.",
    "reward_std": "Standard deviation of the rewards of the batch.",
    "valid_share": "Share of programs with a valid submission.",
    "score_mean": "Mean score of the valid programs on the reward split; first task only.",
    "score_best": "Best such score of the batch.",
    "score_best_so_far": "Best such score of the run; never the final split.",
    "distinct_share": "Share of different program texts in the batch; 1 is no repetition.",
    "stages_mean": "Mean number of stages that a program reached, of seven.",
    "rejected_share": "Share of completions without a complete program.",
    "timeout_share": "Share of programs that reached their time limit.",
    "improve_share": "Share of prompts that showed an earlier solution.",
    "completion_tokens_mean": "Mean length of a completion, in tokens.",
    # ---- time
    "duration_mean_s": "Mean execution time of a program, without time in the queue, in seconds.",
    "duration_median_s": "Median of the same.",
    "duration_max_s": "Largest of the same.",
    "queue_mean_s": "Mean time between dispatch and start: waiting for a free worker, in seconds.",
    "sampling_s": "Time the learner sampled completions before this batch, in seconds.",
    "waiting_s": "Time the learner waited for programs to end before this batch, in seconds.",
    "learning_s": "Time from this batch to the end of its updates, in seconds.",
    # ---- who got into the batch
    "staleness_mean": "Mean number of batches between sampling and training.",
    "staleness_max": "Largest of the same.",
    "duration_ks": "Kolmogorov-Smirnov distance between durations of all programs trained on or "
    "dropped so far and of those trained on; 0 is no selection by duration.",
    "weights_ess_share": "Effective sample size of the duration weights, as a share of the batch.",
    "weights_max": "Largest duration weight; the mean is 1.",
    "dispatched": "Rollouts dispatched so far.",
    "in_flight": "Rollouts waiting for a worker or running.",
    "ready": "Rollouts finished and not yet trained on.",
    "dropped": "Rollouts dropped so far, for any reason but a rewound checkpoint.",
    "conserved": "True if dispatched = trained + dropped + in flight + ready, here and on disk.",
    # ---- the update
    "loss": "TRL's loss; its value means little, for advantages are centred.",
    "entropy": "Mean entropy of the policy per token, in nats.",
    "clipped_share": "Share of tokens whose ratio was clipped or capped.",
    "grad_norm": "Norm of the gradient before it is scaled down.",
}
"""Columns of ``history.csv`` and what they mean."""

_FROM_TRL = {
    "loss": ("loss",),
    "entropy": ("entropy",),
    "clipped_share": ("clip_ratio/region_mean", "cispo_clip_ratio"),
    "grad_norm": ("grad_norm",),
    "weights_ess_share": ("weights/ess_share",),
    "weights_max": ("weights/max",),
}


class History:
    """Makes one row per batch, from the batch before and TRL's log after its updates.

    Args:
        path: ``history.csv``; rows are added as they come.
        first_task: Id of the task whose scores are logged.
        higher_is_better: Direction of its metric.
        steps_done: Rows of the file that are kept, when a run is resumed.
    """

    def __init__(self, path: Path, first_task: str, higher_is_better: bool, steps_done: int = 0):
        self.path = path
        self._task = first_task
        self._best = max if higher_is_better else min
        self._open: dict | None = None
        self.rows = _kept_rows(path, steps_done)
        write_whole(path, self.frame().to_csv(index=False))

    def begin(self, batch: Batch, driver: Counts, ledger: Ledger) -> None:
        """A batch is about to be trained on."""
        decided, trained = ledger.durations()
        before = self.rows[-1] if self.rows else {}
        self._open = {
            "step": batch.version + 1,
            "wall_s": batch.at_s,
            "execution_s": float(trained.sum()),
            **_achieved(batch.rollouts),
            **self._scores(batch.rollouts, before),
            **_times(batch),
            **_selection(batch),
            "duration_ks": ks_distance(decided.clip(min=SHORTEST_S), trained.clip(min=SHORTEST_S)),
            **_where_they_are(driver, ledger.counts()),
        }

    def end(self, log: Mapping, at_s: float) -> dict:
        """Its updates are done; the finished row is written and returned."""
        for name, sources in _FROM_TRL.items():
            self._open[name] = next((log[s] for s in sources if s in log), np.nan)
        self._open["learning_s"] = at_s - self._open["wall_s"]
        row = {name: self._open[name] for name in GLOSSARY}
        self.rows.append(row)
        pd.DataFrame([row]).to_csv(self.path, mode="a", header=False, index=False)
        return row

    def frame(self) -> pd.DataFrame:
        """All rows so far."""
        return pd.DataFrame(self.rows, columns=list(GLOSSARY))

    def _scores(self, rollouts: tuple[Rollout, ...], before: Mapping) -> dict:
        scores = [
            r.outcome.reward_score for r in rollouts if r.outcome.valid and r.task == self._task
        ]
        best = self._best(scores) if scores else np.nan
        known = [s for s in (best, before.get("score_best_so_far", np.nan)) if not np.isnan(s)]
        return {
            "score_mean": float(np.mean(scores)) if scores else np.nan,
            "score_best": best,
            "score_best_so_far": self._best(known) if known else np.nan,
        }


def progress_line(row: Mapping, steps: int) -> str:
    """One row in words, for people who wait."""
    best = row["score_best_so_far"]
    shown = "none yet" if np.isnan(best) else f"{best:.4f}"
    return (
        f"step {row['step']:>3}/{steps}  {row['wall_s'] / 60:5.1f} min  "
        f"reward {row['reward_mean']:7.3f}  valid {row['valid_share']:4.0%}  best {shown}  "
        f"distinct {row['distinct_share']:4.0%}  program {row['duration_mean_s']:.2f} s  "
        f"(sampling {row['sampling_s']:.1f}, waiting {row['waiting_s']:.1f}, "
        f"learning {row['learning_s']:.1f} s)"
    )


def _kept_rows(path: Path, steps: int) -> list[dict]:
    if steps == 0:
        return []
    try:
        rows = pd.read_csv(path, nrows=steps).to_dict("records")
    except (OSError, ValueError) as error:
        raise MleRlError(
            f"The history {path} of the run cannot be read ({error}): restore it, or start a new "
            "run in an empty folder."
        ) from None
    if len(rows) < steps or list(rows[0]) != list(GLOSSARY):
        raise MleRlError(
            f"The history {path} is not that of a run with {steps} steps: restore it, or start a "
            "new run in an empty folder."
        )
    return rows


def _achieved(rollouts: tuple[Rollout, ...]) -> dict:
    rewards = np.array([r.reward for r in rollouts])
    codes = [r.program.code if r.program else None for r in rollouts]
    return {
        "reward_mean": float(rewards.mean()),
        "reward_std": float(rewards.std()),
        "valid_share": float(np.mean([r.outcome.valid for r in rollouts])),
        "distinct_share": len(set(codes)) / len(codes),
        "stages_mean": float(np.mean([len(r.outcome.stages) for r in rollouts])),
        "rejected_share": float(np.mean([r.program is None for r in rollouts])),
        "timeout_share": float(np.mean([r.execution.status == "timeout" for r in rollouts])),
        "improve_share": float(np.mean([r.prompt_kind == "improve" for r in rollouts])),
        "completion_tokens_mean": float(np.mean([len(r.completion_ids) for r in rollouts])),
    }


def _times(batch: Batch) -> dict:
    durations = np.array([r.execution.duration_s for r in batch.rollouts])
    waits = np.array([r.started_at - r.dispatched_at for r in batch.rollouts])
    return {
        "duration_mean_s": float(durations.mean()),
        "duration_median_s": float(np.median(durations)),
        "duration_max_s": float(durations.max()),
        "queue_mean_s": float(waits.mean()),
        "sampling_s": batch.sampling_s,
        "waiting_s": batch.waiting_s,
    }


def _selection(batch: Batch) -> dict:
    ages = np.array([batch.version - r.model_version for r in batch.rollouts])
    return {"staleness_mean": float(ages.mean()), "staleness_max": int(ages.max())}


def _where_they_are(driver: Counts, ledger: Counts) -> dict:
    dropped = sum(driver.dropped.values())
    rewound = ledger.dropped.get("rewound", 0)
    agree = driver.trained == ledger.trained and driver.dispatched == ledger.dispatched - rewound
    return {
        "dispatched": driver.dispatched,
        "in_flight": driver.in_flight,
        "ready": driver.ready,
        "dropped": dropped,
        "conserved": driver.conserved and ledger.conserved and agree,
    }
