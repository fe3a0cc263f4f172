"""The records that travel along the path, from a program to a trained rollout.

Plain frozen dataclasses. Times are in seconds (``_s``), memory in MiB (``_mb``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "error", "timeout", "out_of_memory", "killed", "rejected"]
PromptKind = Literal["scratch", "improve"]

STAGES = (
    "packages_imported",
    "data_loaded",
    "model_defined",
    "training_loss_seen",
    "model_trained",
    "validation_score_seen",
    "test_labels_predicted",
)
"""Stages that instrumentation can credit (paper, section 2), in the order programs reach them."""


@dataclass(frozen=True)
class Program:
    """What the policy wrote: a plan of a sentence or more, and one Python program."""

    plan: str
    code: str

    @property
    def digest(self) -> str:
        """First 12 digits of the SHA-256 of the code: equal programs have equal ones."""
        return hashlib.sha256(self.code.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True)
class Limits:
    """What one program may use. Exceeding a limit ends the program, never the run.

    Attributes:
        timeout_s: Wall-clock time from its first line.
        memory_mb: Resident memory of all its processes together.
        cpu_cores: Cores that it is bound to.
        output_bytes: What is kept of its standard output, and as much of its errors; more is cut.
        disk_mb: Everything in its working and temporary folders, the submission included.
        processes: Processes and threads at any moment.
    """

    timeout_s: float = 10.0
    memory_mb: int = 2048
    cpu_cores: int = 1
    output_bytes: int = 65_536
    disk_mb: int = 64
    processes: int = 32


@dataclass(frozen=True)
class Marker:
    """A stage that the running program really reached, with the value seen there, if any."""

    stage: str
    value: float | None = None


@dataclass(frozen=True)
class Execution:
    """What happened when a program ran in the sandbox.

    Attributes:
        status: Decided from outside the program, by the kernel and by what lies on disk.
        stdout, stderr: What it wrote, each cut to ``Limits.output_bytes``.
        duration_s: Wall clock of the program alone, without start-up, queueing or grading.
        cpu_s: CPU time of the program and its children.
        peak_memory_mb: Largest resident memory of all its processes together.
        markers: Stages that it reached, each stage once, in the order first reached.
        submission: The bytes of ``submission.csv``, or None when there is none to grade.
        submission_problem: Why a submission that exists cannot be read (a link, too large, ...).
        isolation: The isolation that was really in force, for example
            ``"isolated: landlock 7, pid, net"``.
        versions: Python and the packages that it could import, for telling executions apart.
        replayed: True when this comes from a recorded execution and nothing ran.
        reason: One sentence that says why the status is not ``ok``; empty when it is. Like the
            status it comes from outside the program.
    """

    status: Status
    stdout: str
    stderr: str
    duration_s: float
    cpu_s: float
    peak_memory_mb: float
    isolation: str
    markers: tuple[Marker, ...] = ()
    submission: bytes | None = None
    submission_problem: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False
    reason: str = ""


SHORTEST_S = 1e-3
"""Seconds that a program counts as which never ran or was too fast to measure: the clock's
resolution."""


@dataclass(frozen=True)
class Outcome:
    """An execution, graded. Scores are in the units and the direction of the task's metric.

    A score of 0.0 is a valid score; an invalid submission has no score and says why.

    Attributes:
        stages: Names of the stages that it reached, from `STAGES`.
        valid: Whether it ended by itself and left a submission that can be scored.
        reward_score: Score on the reward split, which training may see; None if invalid.
        final_score: Score on the final split, for reporting only; None if invalid.
        problem: One sentence on what is wrong; None if valid.
    """

    stages: tuple[str, ...]
    valid: bool
    reward_score: float | None = None
    final_score: float | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Rollout:
    """One sampled program on its way through the queue to the learner.

    Attributes:
        prompt_ids: Token ids of the prompt; lists of unequal length, no padding.
        completion_ids: Token ids that were sampled, end-of-text included when it was sampled.
        logprobs: Log-probability of each completion token under the policy that sampled it,
            at the sampling temperature.
        model_version: Number of learner updates that policy had seen.
        group: Rollouts that share a baseline (task and prompt kind) share this text.
        dispatched_at, started_at, finished_at: Seconds on the clock of the run (live or virtual).
    """

    id: int
    task: str
    prompt_kind: PromptKind
    group: str
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    model_version: int
    dispatched_at: float
    started_at: float | None = None
    finished_at: float | None = None
    program: Program | None = None
    execution: Execution | None = None
    outcome: Outcome | None = None
    reward: float | None = None
