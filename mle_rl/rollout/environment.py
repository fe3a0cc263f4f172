"""The environment of one task: a program goes in, its execution and its graded outcome come out.

    Program -> instrumented -> sandbox -> Execution -> graded, stages credited -> Outcome

What the program did wrong is in the outcome. What the sandbox or the grader did wrong raises: a
fault of ours must never be paid to the policy as a failure of its program.

Programs are graded here, outside the sandbox, after they have ended. Only a program that ended by
itself and without an error (status ``ok``) can have a valid submission: a file that one left behind
that was killed or raised is no solution anybody could hand in and reproduce.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Protocol

from mle_rl.errors import MleRlError
from mle_rl.instrumentation import Instrumented, insert_by_syntax
from mle_rl.records import Execution, Limits, Outcome, Program
from mle_rl.rollout.executions import ExecutionStore, machine_failed
from mle_rl.sandbox import Job
from mle_rl.sandbox.failures import NO_PROGRAM
from mle_rl.tasks import Task, grade

PROBLEMS = {
    "error": "The program ended with an error.",
    "timeout": "The program did not end within its time limit.",
    "out_of_memory": "The program used more memory than it may.",
    "killed": "The program was killed.",
    "rejected": "The program could not be run.",
}
"""Why there is no score, by status, for executions that do not give their reason."""

Result = tuple[Execution, Outcome]


class Pool(Protocol):
    """Runs jobs somewhere; `mle_rl.sandbox.LocalPool` is one."""

    def submit(self, job: Job) -> Future[Execution]: ...


class Environment:
    """Runs and grades programs for one task.

    Args:
        task: The competition.
        pool: Where programs run.
        limits: What each program may use.
        instrument: Finds the places where a program is observed.
        seed: Seeds the random generators that a program does not seed itself.
        executions: Every execution is recorded there.
        replay: A program that has been recorded there is not run again.

    Raises:
        MleRlError: ``replay`` without ``executions``.
    """

    def __init__(
        self,
        task: Task,
        pool: Pool,
        limits: Limits | None = None,
        *,
        instrument: Callable[[str], Instrumented] = insert_by_syntax,
        seed: int = 0,
        executions: ExecutionStore | None = None,
        replay: bool = False,
    ):
        if replay and executions is None:
            raise MleRlError(
                "replay=True takes programs from recorded executions: give executions, an "
                "ExecutionStore, or leave out replay."
            )
        self.task = task
        self.pool = pool
        self.limits = limits or Limits()
        self.instrument = instrument
        self.seed = seed
        self.executions = executions
        self.replay = replay

    def submit(self, program: Program | None) -> Future[Result]:
        """Start a program; thread-safe.

        Args:
            program: What the policy wrote, or None if its completion holds no program.

        Returns:
            A future of (execution, outcome). Its exception is a fault of the machine, the sandbox
            or the grader, never of the program.
        """
        if program is None:
            return _known(_rejected(NO_PROGRAM.reason()))
        instrumented = self.instrument(program.code)
        job = Job(
            program.code,
            self.task.public_dir,
            insertions=instrumented.insertions,
            limits=self.limits,
            seed=self.seed,
        )
        if self.replay and (known := self.executions.get(job, self.task.fingerprint)):
            return _known(known)
        result: Future[Result] = Future()
        self.pool.submit(job).add_done_callback(partial(self._ended, job, result))
        return result

    def run(self, program: Program | None) -> Result:
        """Run a program and wait for it."""
        return self.submit(program).result()

    def judge(self, execution: Execution) -> Outcome:
        """Grade what a program left and credit the stages that it reached."""
        stages = tuple(marker.stage for marker in execution.markers)
        if execution.status != "ok":
            return Outcome(stages, valid=False, problem=_problem(execution))
        graded = grade(self.task, execution.submission, execution.submission_problem)
        return Outcome(
            stages, graded.valid, graded.reward_score, graded.final_score, graded.problem
        )

    def _ended(self, job: Job, result: Future[Result], ran: Future[Execution]) -> None:
        """Grade in the thread that ran the program; whatever goes wrong travels to the caller."""
        try:
            execution = ran.result()
            result.set_result(self._recorded(job, execution, self.judge(execution)))
        except CancelledError:  # the pool was closed
            result.cancel()
        except BaseException as fault:
            result.set_exception(fault)

    def _recorded(self, job: Job, execution: Execution, outcome: Outcome) -> Result:
        if self.executions is None:
            return execution, outcome
        kept = self.executions.put(job, self.task.fingerprint, execution, outcome)
        return kept if self.replay else (execution, outcome)


def settled(environment: Environment, program: Program | None, running: Future[Result]) -> Result:
    """Wait for a program that must have a result, as each sample of an evaluation must.

    When its sandbox was killed, which says nothing about the program, it is submitted once more.

    Args:
        environment: Where it was submitted.
        program: The program.
        running: What `Environment.submit` returned.

    Raises:
        MleRlError: Its sandbox was killed again.
    """
    result = running.result()
    if not machine_failed(result[0]):
        return result
    result = environment.submit(program).result()
    if machine_failed(result[0]):
        raise MleRlError(
            "The sandbox was killed again and again under one program, so nothing is known of it: "
            "see whether the machine runs out of memory, then evaluate again."
        )
    return result


def _known(result: Result) -> Future[Result]:
    future: Future[Result] = Future()
    future.set_result(result)
    return future


def _problem(execution: Execution) -> str:
    """Why a program that did not end well has no score, with the last line that it wrote."""
    problem = PROBLEMS[execution.status]
    lines = execution.stderr.strip().splitlines()
    if execution.status == "error" and lines:
        return f"{problem.removesuffix('.')}: {lines[-1][:200]}"
    return execution.reason or problem


def _rejected(problem: str) -> Result:
    execution = Execution(
        "rejected", "", problem, 0.0, 0.0, 0.0, isolation="not run", reason=problem
    )
    return execution, Outcome((), valid=False, problem=problem)
