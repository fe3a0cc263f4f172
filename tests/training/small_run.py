"""A run of seconds: a minute model whose completions stand for programs that behave as told.

As a script it trains and kills itself, as ``kill -9`` does:

    python small_run.py RUN_DIR POLICY_DIR STEP

It first prints the ids of the processes that it has started, and ends in the middle of STEP.
"""

import os
import signal
import sys
from dataclasses import fields, replace
from pathlib import Path

from mle_rl.agent import Policy, load_policy
from mle_rl.records import Limits, Program
from mle_rl.training.config import TrainConfig
from mle_rl.training.run import train

PREDICT = """
import csv
rows = list(csv.reader(open("input/sample_submission.csv")))
with open("submission.csv", "w", newline="") as file:
    csv.writer(file).writerows([rows[0], *([id, {value}] for id, _ in rows[1:])])
"""
FAIL = "import pandas as pd\nraise ValueError('no')\n"
NOTHING = "import time\ntime.sleep(0.05)\n"


class Writer(Policy):
    """Every completion of the minute model is a program; which one, its tokens decide."""

    def prompt_ids(self, task, kind, earlier=None):
        return (2, 3) if kind == "scratch" else (4, 5, 6)

    def parse(self, completion_ids):
        kind = sum(completion_ids) % 6
        if kind == 5:
            return None
        code = (FAIL, NOTHING, *[PREDICT.format(value=completion_ids[0] % 7)] * 3)[kind]
        return Program("a plan", f"# {completion_ids}\n{code}")


def writer(policy):
    return Writer(**{field.name: getattr(policy, field.name) for field in fields(Policy)})


def settings(run_dir, **changes):
    return TrainConfig(
        **{
            "run_dir": Path(run_dir),
            "tasks": ("doctor-visits",),
            "steps": 4,
            "batch_size": 8,
            "workers": 1,
            "tier": "limits",
            "limits": Limits(timeout_s=4.0),
            "learning_rate": 1e-2,
            "warmup_steps": 1,
            "max_completion_length": 6,
            "checkpoint_every": 1,
            "use_cpu": True,
        }
        | changes
    )


def descendants(pid):
    """Ids of all processes below one, from /proc."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state != "Z":
            parents[int(folder.name)] = int(parent)
    found, below = set(), {pid}
    while below:
        below = {child for child, parent in parents.items() if parent in below} - found
        found |= below
    return found


def main(run_dir, policy_dir, step):
    def kill_myself(row):
        if row["step"] == 1:
            print(*descendants(os.getpid()), flush=True)
        if row["step"] == int(step):
            os.kill(os.getpid(), signal.SIGKILL)

    policy = replace(writer(load_policy(policy_dir)), name="minute")
    train(settings(run_dir), policy=policy, on_step=kill_myself)


if __name__ == "__main__":
    main(*sys.argv[1:])
