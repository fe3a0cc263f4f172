"""What counts within a budget, and what a method knows when it is asked for the next program."""

import math
import threading
from concurrent.futures import Future

import pytest

from mle_rl import MleRlError
from mle_rl.records import Execution, Outcome
from mle_rl.search.budget import Budget
from mle_rl.search.loop import search


def run(proposals, environment, budget, most=1):
    trials = []
    search(proposals, environment.submit, budget, trials.append, most=most)
    return trials


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_a_budget_that_is_none_is_refused(seconds):
    with pytest.raises(MleRlError, match="give a positive number"):
        Budget(seconds)


def test_a_budget_counts_from_when_it_was_made(clock):
    clock.now = 7.0
    budget = Budget(3.0, clock)
    clock.now = 9.0
    assert (budget.elapsed_s, budget.left_s, budget.over) == (2.0, 1.0, False)
    clock.now = 11.0
    assert (budget.elapsed_s, budget.left_s, budget.over) == (4.0, 0.0, True)


def test_a_program_that_ends_late_does_not_count(program, make_environment, make_budget):
    def proposals():
        for seconds in (4, 4, 4, 4):
            yield program(seconds, 0.5)

    trials = run(proposals(), make_environment(), make_budget(10.0))
    assert [trial.ended_at_s for trial in trials] == [4.0, 8.0]


def test_a_program_that_ends_exactly_with_the_budget_counts(program, make_environment, make_budget):
    trials = run(iter_of(program(10, 0.5)), make_environment(), make_budget(10.0))
    assert [trial.ended_at_s for trial in trials] == [10.0]


def iter_of(*programs):
    yield from (each for each in programs)  # a generator can be sent to, a tuple cannot


def test_time_spent_writing_counts(clock, program, make_environment, make_budget):
    """Six seconds for each program, of which writing takes five: one of them fits into eleven."""

    def proposals():
        while True:
            clock.now += 5.0
            yield program(1, 0.5)

    trials = run(proposals(), make_environment(), make_budget(11.0))
    assert [trial.ended_at_s for trial in trials] == [6.0]


def test_a_program_that_was_written_too_late_is_not_run(
    clock, program, make_environment, make_budget
):
    def proposals():
        clock.now += 5.0
        yield program(0, 0.5)

    environment = make_environment()
    assert run(proposals(), environment, make_budget(4.0)) == []
    assert environment.most == 0


def test_what_ended_in_time_counts_though_the_method_was_writing_beyond_the_budget(
    clock, program, make_environment, make_budget
):
    """The time is taken where the program ends, not where the loop gets to see it."""
    environment = make_environment(2)

    def proposals():
        yield program(1, 0.5)
        environment.end()
        clock.now += 100.0
        yield program(1, 0.5)

    trials = run(proposals(), environment, make_budget(10.0), most=2)
    assert [trial.ended_at_s for trial in trials] == [1.0]


def test_programs_run_while_the_next_are_written_and_no_more_than_wanted(
    program, make_environment, make_budget
):
    """The oldest ends whenever three wait; so a fourth is never begun beside three."""
    environment = make_environment(3)
    trials = []

    def ended(trial):
        trials.append(trial.number)
        if trial.number == 4:  # the last two are never three
            environment.end()
            environment.end()

    numbers = iter_of(*[program(1, number) for number in range(7)])
    search(numbers, environment.submit, make_budget(100.0), ended, most=3)
    assert environment.most == 3
    assert trials == list(range(7))


def test_a_method_is_told_of_every_trial_once_with_the_number_of_its_proposal(
    program, make_environment, make_budget
):
    told = []

    def proposals():
        for score in (0.1, "x", 0.3):
            news = yield program(1, score)
            told.append([(trial.number, trial.outcome.reward_score) for trial in news])

    trials = run(proposals(), make_environment(), make_budget(100.0))
    assert told == [[(0, 0.1)], [(1, None)], [(2, 0.3)]]
    assert [trial.number for trial in trials] == [0, 1, 2]


def test_a_method_that_has_nothing_more_to_propose_ends_the_search(
    clock, program, make_environment, make_budget
):
    trials = run(iter_of(program(1, 0.5), None), make_environment(), make_budget(100.0))
    assert [trial.program is None for trial in trials] == [False, True]
    assert not trials[1].outcome.valid
    assert clock.now == 101.0


def test_a_fault_of_the_machine_is_raised_and_a_killed_sandbox_says_nothing(program, make_budget):
    class Broken:
        def submit(self, program):
            future = Future()
            future.set_exception(OSError("no space left"))
            return future

    with pytest.raises(OSError, match="no space left"):
        run(iter_of(program(1)), Broken(), make_budget(10.0))

    class Killed:
        def submit(self, program):
            future = Future()
            execution = Execution("killed", "", "", 0.0, 0.0, 0.0, "limits")
            future.set_result((execution, Outcome((), False)))
            return future

    assert run(iter_of(program(1)), Killed(), make_budget(10.0)) == []


class Threaded:
    """With the clock of the machine: programs end by themselves, in threads."""

    def __init__(self, result):
        self.result = result
        self.running = self.most = 0

    def submit(self, program):
        future = Future()
        self.running += 1
        self.most = max(self.most, self.running)
        threading.Timer(0.02, self.end, [future]).start()
        return future

    def end(self, future):
        self.running -= 1
        future.set_result(self.result(0.02, 1.0))


def test_no_more_are_under_way_than_wanted(program, result):
    environment = Threaded(result)
    trials = run(iter_of(*[program(1)] * 6), environment, Budget(30.0), most=2)
    assert (len(trials), environment.most) == (6, 2)


def test_what_still_runs_is_waited_for_when_nothing_more_is_proposed(program, result):
    (trial,) = run(iter_of(program(1)), Threaded(result), Budget(30.0), most=2)
    assert trial.outcome.reward_score == 1.0
