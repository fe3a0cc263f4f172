"""Distributions: what they claim of themselves is what they sample."""

import math

import numpy as np
import pandas as pd
import pytest

from mle_rl import MleRlError
from mle_rl.rollout.inclusion import drop_stale_probability
from mle_rl.rollout.ledger import Ledger
from mle_rl.rollout.simulation import Learner
from mle_rl.rollout.simulation.durations import NAMED, LogNormal, named
from mle_rl.rollout.simulation.recorded import recorded, recorded_in
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
        (lambda: recorded([]), "at least one"),
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


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_durations_are_refused_by_every_law(bad):
    for name in NAMED:
        with pytest.raises(MleRlError, match="positive and finite"):
            named(name, bad, None if name in ("constant", "exponential") else 0.5)
        if name not in ("constant", "exponential"):
            with pytest.raises(MleRlError, match="cv"):
                named(name, 1.0, bad)
    with pytest.raises(MleRlError, match="positive and finite"):
        recorded([1.0, bad])
    with pytest.raises(MleRlError, match="positive and finite"):
        Workload(scale_s=(1.0, bad))
    with pytest.raises(MleRlError, match="update_s"):
        drop_stale_probability(1.0, 4, bad)
    if bad != math.inf:  # no limit
        with pytest.raises(MleRlError, match="time_limit_s"):
            Workload(time_limit_s=bad)
    if bad != 0.0:  # no time
        for stage in ("train_s", "weight_sync_s"):
            with pytest.raises(MleRlError, match=stage):
                Learner(**{stage: bad})


TABLE = pd.DataFrame(
    {
        "task": ["a", "a", "b", "b", "b"],
        "status": ["ok", "error", "ok", "rejected", "rejected"],
        "duration_s": [0.5, 2.0, 7.0, 0.0, np.nan],
    }
)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_durations_of_a_file_of_executions(tmp_path, ending):
    path = tmp_path / f"executions.{ending}"
    getattr(TABLE, f"to_{ending}")(path, index=False)
    assert recorded_in(path).values == (0.5, 2.0, 7.0), "what was rejected did not run"
    assert recorded_in(path, task="a").values == (0.5, 2.0)
    with pytest.raises(MleRlError, match="Known: a, b"):
        recorded_in(path, task="c")


def test_files_without_durations_are_refused(tmp_path):
    with pytest.raises(MleRlError, match="no file of executions"):
        recorded_in(tmp_path / "missing.csv")
    path = tmp_path / "other.csv"
    TABLE[["task", "status"]].to_csv(path)
    with pytest.raises(MleRlError, match="no column duration_s"):
        recorded_in(path)
    for name in ("broken.parquet", "broken.sqlite"):
        path = tmp_path / name
        path.write_bytes(b"neither of them" * 99)
        with pytest.raises(MleRlError, match=name):
            recorded_in(path)
    path = tmp_path / "negative.csv"
    TABLE.assign(duration_s=-1.0).to_csv(path)
    with pytest.raises(MleRlError, match="positive"):
        recorded_in(path)
    path = tmp_path / "words.csv"
    TABLE.assign(duration_s="quick").to_csv(path)
    with pytest.raises(MleRlError, match=r"duration_s of .*words.csv holds no numbers"):
        recorded_in(path)


def test_a_database_of_another_kind_is_refused_and_stays_as_it_is(tmp_path):
    """Such as the ledger of a run, which lies where one looks for its executions."""
    path = tmp_path / "rollouts.sqlite"
    Ledger(path).close()
    before = path.read_bytes()
    with pytest.raises(MleRlError, match=r"rollouts.sqlite holds no recorded executions"):
        recorded_in(path)
    assert path.read_bytes() == before


def test_actions_are_drawn_by_the_policy():
    w = Workload(scale_s=(1.0, 2.0, 3.0), probabilities=(0.2, 0.0, 0.8))
    drawn = np.bincount(w.draw(50_000, np.random.default_rng(0)), minlength=3) / 50_000
    assert drawn == pytest.approx(w.probabilities, abs=0.01)
    assert drawn[1] == 0
