"""The loop of a search: programs run on the workers while the next ones are written.

A method is a generator. It yields one program at a time (None for a completion that holds none) and
is sent the trials that have ended since its last turn. It is asked for another program whenever
fewer than ``most`` are waiting or running, so what it was told is as fresh as it wants it to be.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue

from mle_rl.records import Execution, Outcome, Program
from mle_rl.rollout.executions import machine_failed
from mle_rl.search.budget import Budget


@dataclass(frozen=True)
class Trial:
    """One program of a search, run and graded.

    Attributes:
        number: Its place in the order in which the method proposed, from 0.
        program: None for a completion without one.
        ended_at_s: Seconds from the start of the method to its grading.
    """

    number: int
    program: Program | None
    execution: Execution
    outcome: Outcome
    ended_at_s: float


Proposals = Generator[Program | None, Sequence[Trial] | None, None]
Submit = Callable[[Program | None], "Future[tuple[Execution, Outcome]]"]


def search(
    proposals: Proposals,
    submit: Submit,
    budget: Budget,
    on_trial: Callable[[Trial], None],
    *,
    most: int,
) -> None:
    """Run what a method proposes until the budget is used up, or it proposes nothing more.

    What has not been graded when the budget ends does not count, though it was begun in time; it is
    left to whoever closes the pool.

    Args:
        proposals: The method.
        submit: Starts a program; its future raises only if the machine failed.
        budget: Runs already: what the method did before this call counts too.
        on_trial: Told of every trial that counts, in this thread.
        most: Programs that wait or run at the same time.
    """
    reports: SimpleQueue = SimpleQueue()
    news: list[Trial] | None = None  # a generator is begun by sending it None
    proposed = running = 0
    proposing = True
    while not budget.over and (proposing or running):
        asks = proposing and running < most
        if asks:
            try:
                program = proposals.send(news)
            except StopIteration:
                proposing = False
                continue
            news = []
            if budget.over:  # writing it took what was left
                break
            ended = partial(_report, reports, budget, proposed, program)
            submit(program).add_done_callback(ended)
            proposed, running = proposed + 1, running + 1
        found, reported = _collect(reports, budget, wait_s=0.0 if asks else budget.left_s)
        running -= reported
        news = None if news is None else news + found
        for trial in found:
            on_trial(trial)
    for trial in _collect(reports, budget)[0]:  # ended in time while the method was writing
        on_trial(trial)
    proposals.close()


def _report(
    reports: SimpleQueue, budget: Budget, number: int, program: Program | None, future: Future
) -> None:
    """Note the time in the thread in which the program ended, whatever the loop does meanwhile."""
    reports.put((budget.elapsed_s, number, program, future))


def _collect(reports: SimpleQueue, budget: Budget, wait_s: float = 0.0) -> tuple[list[Trial], int]:
    """The trials that ended in time, and how many programs ended; waits for the first of them."""
    trials, ended = [], 0
    while True:
        try:
            at_s, number, program, future = (
                reports.get(timeout=wait_s) if wait_s else (reports.get_nowait())
            )
        except Empty:
            return trials, ended
        wait_s, ended = 0.0, ended + 1
        if at_s > budget.seconds:
            continue
        execution, outcome = future.result()
        if not machine_failed(execution):  # says nothing about the program
            trials.append(Trial(number, program, execution, outcome, at_s))
