"""Distributions: what they claim of themselves is what they sample."""

import numpy as np
import pytest

from mle_rl import MleRlError
from mle_rl.rollout.simulation.durations import LogNormal, named, recorded
from mle_rl.rollout.simulation.workload import Workload

LAWS = [
    named("constant", 3.0),
    named("uniform", 3.0, 0.4),
    named("exponential", 3.0),
    named("gamma", 3.0, 0.5),
    named("gamma", 3.0, 2.0),
    named("lognormal", 3.0, 1.3),
    named("pareto", 3.0, 0.5),
    recorded([0.5, 1.0, 1.0, 7.5]),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{type(law).__name__}-{law.cv:.2f}")
def test_samples_have_the_mean_the_cv_and_the_law(law):
    n = 200_000
    x = law.sample(n, np.random.default_rng(0))
    assert x.shape == (n,)
    assert (x > 0).all()
    assert x.mean() == pytest.approx(law.mean, rel=4 * max(law.cv, 1e-9) / np.sqrt(n))
    if type(law).__name__ != "Pareto":  # its fourth moment does not exist
        assert x.std() / x.mean() == pytest.approx(law.cv, abs=0.05)
    for t in np.quantile(x, [0.1, 0.5, 0.9]):
        assert law.cdf(t) == pytest.approx((x <= t).mean(), abs=4 / np.sqrt(n))
    assert law.cdf(0.0) == 0


def test_lognormal_by_sigma():
    law = LogNormal.of_sigma(1.5, median=2.0)
    assert law.sigma == pytest.approx(1.5)
    assert law.median == pytest.approx(2.0)
    assert 1 / (1 + law.cv**2) == pytest.approx(0.105, abs=5e-4), "effective share of a batch"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: named("weibull", 1.0), "Known: constant"),
        (lambda: named("lognormal", 1.0), "needs cv"),
        (lambda: named("uniform", 1.0, 0.9), "cv < 0.577"),
        (lambda: named("exponential", 1.0, 0.5), "cv 1"),
        (lambda: named("gamma", -1.0, 0.5), "positive"),
        (lambda: recorded([]), "at least one"),
        (lambda: recorded([1.0, float("inf")]), "finite"),
        (lambda: Workload(scale_s=(1.0, 0.0)), "positive"),
        (lambda: Workload(scale_s=(1.0, 2.0), probabilities=(0.5, 0.6)), "sum to 1"),
        (lambda: Workload(scale_s=(1.0, 2.0), probabilities=(1.0,)), "for each action"),
        (lambda: Workload(time_limit_s=0.0), "time_limit_s"),
        (lambda: Workload().of_task(3), "belongs to task 3"),
    ],
)
def test_laws_that_do_not_exist_are_refused(make, sentence):
    with pytest.raises(MleRlError, match=sentence):
        make()


def test_actions_are_drawn_by_the_policy():
    w = Workload(scale_s=(1.0, 2.0, 3.0), probabilities=(0.2, 0.0, 0.8))
    drawn = np.bincount(w.draw(50_000, np.random.default_rng(0)), minlength=3) / 50_000
    assert drawn == pytest.approx(w.probabilities, abs=0.01)
    assert drawn[1] == 0
