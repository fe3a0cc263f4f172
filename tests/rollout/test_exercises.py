"""The checkers accept the solutions, and name the mistake of each typical wrong answer."""

import runpy

import numpy as np
import pytest

from mle_rl.notebook import project_root
from mle_rl.rollout import inclusion
from mle_rl.rollout.laboratory import exercises
from mle_rl.rollout.simulation.workload import Workload
from mle_rl.rollout.starts import expected_starts

PATH = project_root() / "notebooks" / "exercises" / "solutions_03_04.py"
SOLUTIONS = runpy.run_path(str(PATH))
CHECKS = {
    "capacity": exercises.check_capacity,
    "snapshot_share": exercises.check_snapshot_share,
    "kept": exercises.check_kept_probability,
    "weights": exercises.check_weights,
    "advantages": exercises.check_advantages,
    "effective_share": exercises.check_effective_share,
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_solution_is_right(name):
    assert CHECKS[name](SOLUTIONS[name]) == exercises.RIGHT


@pytest.mark.parametrize("name", CHECKS)
def test_an_exercise_that_is_not_solved_says_so(name):
    assert CHECKS[name](lambda *args: None) == exercises.UNSOLVED


@pytest.mark.parametrize(
    ("name", "wrong", "diagnosis"),
    [
        ("capacity", lambda v, e, b, a, f: max(0, (e + v) * b - a - f), "eta + version + 1"),
        ("capacity", lambda v, e, b, a, f: max(0, (e + 1) * b - a - f), "grow with the version"),
        ("capacity", lambda v, e, b, a, f: max(0, (e + v + 1) * b - f), "accepted too"),
        ("capacity", lambda v, e, b, a, f: (e + v + 1) * b - a - f, "negative"),
        ("snapshot_share", lambda p, d: p, "multiply by the duration"),
        ("snapshot_share", lambda p, d: p * d, "sum to 1"),
        ("snapshot_share", lambda p, d: p / d / sum(p / d), "sticky"),
        ("kept", lambda d, e, t: 1.0 * (d <= e * t), "Not a step"),
        ("kept", lambda d, e, t: np.clip(e - d / t, 0, 1), "0 versions old"),
        ("kept", lambda d, e, t: e + 1 - d / t, "clip it"),
        ("weights", lambda d: d / d.sum(), "mean should be 1"),
        ("weights", lambda d: d.mean() / d, "Upside down"),
        ("advantages", lambda r, w: r - r.mean(), "weighted mean"),
        ("advantages", lambda r, w: r, "grad E"),
        ("effective_share", lambda s: 1 / (1 + s**2), "exp(sigma^2) - 1"),
        ("effective_share", lambda s: np.exp(s**2), "never increase"),
    ],
)
def test_a_typical_mistake_is_named(name, wrong, diagnosis):
    verdict = CHECKS[name](wrong)
    assert verdict.startswith("Not yet")
    assert diagnosis in verdict


def test_an_answer_of_another_kind_is_no_crash():
    assert "Not yet" in exercises.check_weights(lambda d: "durations")
    assert "Not yet" in exercises.check_weights(lambda d: d[:1])
    assert "ZeroDivisionError" in exercises.check_capacity(lambda *args: 1 / 0)


def test_solutions_in_closed_form_agree_with_the_library():
    two = Workload(scale_s=(1.0, 10.0))
    for started in (64, 80, 96, 112):
        exact = inclusion.over_provision(two, started, 64)[1]
        assert SOLUTIONS["slow_share"](started, 64) == pytest.approx(exact, abs=0.003)
    starts = expected_starts(two, np.array([11.0, 2.0]))
    weight = SOLUTIONS["window_weight"](starts, two.probabilities)
    assert weight == pytest.approx(two.probabilities / inclusion.window(two, 12.0))
    limit = SOLUTIONS["workers_without_loss"](4, 64, 5.5, 10.0)
    for workers, lost in ((limit, False), (1.05 * limit, True)):
        update_s = 64 * two.mean_s / workers
        assert (inclusion.drop_stale_probability(10.0, 4, update_s) < 1) == lost
