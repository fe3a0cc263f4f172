"""Programs that a test scripts, on a clock that it moves itself."""

from concurrent.futures import Future

import pytest

from mle_rl.records import Execution, Outcome, Program
from mle_rl.search.budget import Budget


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Scripted:
    """An environment whose programs say themselves what they do.

    A program's code is ``"<seconds> <score>"``; a score of ``x`` is a failure. It runs at once and
    takes its seconds from the clock, or as soon as ``together`` programs wait.
    """

    def __init__(self, clock, together=1):
        self.clock, self.together = clock, together
        self.waiting = []
        self.most = 0

    def submit(self, program):
        future = Future()
        self.waiting.append((future, program))
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == self.together:
            self.end()
        return future

    def end(self):
        """The oldest program that waits ends."""
        future, program = self.waiting.pop(0)
        seconds, score = ("0", "x") if program is None else program.code.split()
        self.clock.now += float(seconds)
        future.set_result(make_result(float(seconds), None if score == "x" else float(score)))


def make_result(duration_s, score):
    """Execution and outcome of a program; the final split always says the opposite."""
    valid = score is not None
    status = "ok" if valid else "error"
    stderr = "" if valid else "Traceback\nValueError: no"
    execution = Execution(status, "printed\n", stderr, duration_s, duration_s, 1.0, "limits")
    return execution, Outcome((), valid, score, None if score is None else -score)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make_budget(clock):
    return lambda seconds: Budget(seconds, clock)


@pytest.fixture
def make_environment(clock):
    return lambda together=1: Scripted(clock, together)


@pytest.fixture
def result():
    return make_result


@pytest.fixture
def program():
    """A program that takes some seconds and has a score, or fails."""
    return lambda seconds, score="x": Program("a plan", f"{seconds} {score}")
