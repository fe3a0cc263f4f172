"""Who gets into the batch: every collection rule in simulation against its closed form.

The statistic is the share of each action among the trained rollouts. Rollouts that share a batch, a
worker or a window are not independent, so the standard error comes from blocks of consecutive
rollouts. The fast runs are small; the slow ones make a million rollouts and must still be within 3
standard errors.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from mle_rl import MleRlError
from mle_rl.rollout import QueueConfig, inclusion
from mle_rl.rollout.simulation import Learner, Result, simulate
from mle_rl.rollout.simulation.durations import Constant, Distribution, LogNormal
from mle_rl.rollout.simulation.workload import Workload
from mle_rl.rollout.starts import expected_starts, expected_starts_asymptote

TWO = Workload(scale_s=(1.0, 10.0))
FOUR = Workload(
    scale_s=(0.5, 1.0, 5.0, 20.0),
    probabilities=(0.3, 0.4, 0.2, 0.1),
    noise=LogNormal.of_sigma(0.5),
    tasks=(0, 1, 0, 1),
)
LIMITED = Workload(
    scale_s=(1.0, 4.0, 10.0),
    probabilities=(0.2, 0.5, 0.3),
    noise=LogNormal.of_sigma(0.6),
    time_limit_s=8.0,
)
KEEP = {"staleness": "keep", "ordering": "completion"}
BLOCKS = 60


@dataclass(frozen=True)
class Longest:
    """Longest of n: a group of n completions is finished with its last member."""

    law: Distribution
    n: int
    mean: float  # of the longest, for this law and n
    cv: float

    def sample(self, size, rng):
        return self.law.sample(size * self.n, rng).reshape(size, self.n).max(1)

    def cdf(self, t):
        return self.law.cdf(t) ** self.n


GROUPS = Workload(
    scale_s=(1.0, 5.0),  # two prompts, an easy and a hard one
    noise=Longest(LogNormal.of_sigma(1.0), 8, mean=5.082, cv=0.791),
)


@dataclass(frozen=True)
class Case:
    """A rule, what it is run on, the share it must give, and one that it must be told from."""

    name: str
    settings: dict
    workload: Workload
    share: Callable[[Workload, Result], np.ndarray]
    wrong: Callable[[Workload, Result], np.ndarray]
    workers: int = 64
    batch_size: int = 64
    learner: Learner = field(default_factory=Learner)
    snapshot: bool = False

    def run(self, rollouts: int, seed: int) -> Result:
        return simulate(
            QueueConfig(workers=self.workers, batch_size=self.batch_size, **self.settings),
            self.workload,
            updates=max(20, rollouts // self.batch_size),
            rng=np.random.default_rng(seed),
            learner=self.learner,
            trace=True,
        )


def policy(workload, _):
    return inclusion.renewal(workload)


def inverse_duration(workload, _):
    """The paper's premise, as if it held under every rule."""
    return inclusion.sticky(workload)


def update_s(result: Result) -> float:
    return result.elapsed_s / result.updates


CASES = [
    Case(
        "synchronous",
        {"staleness": "admit", "max_staleness": 0},
        FOUR,
        policy,
        inverse_duration,
    ),
    Case("renewal, two actions", KEEP, TWO, policy, inverse_duration),
    Case("renewal, noise", KEEP, FOUR, policy, inverse_duration, learner=Learner(train_s=1.0)),
    Case(
        "snapshot",
        KEEP,
        FOUR,
        lambda w, _: inclusion.snapshot(w),
        policy,
        snapshot=True,
    ),
    Case(
        "window, two actions",
        {**KEEP, "restart_window_s": 12.0},
        TWO,
        lambda w, _: inclusion.window(w, 12.0),
        inverse_duration,
        batch_size=150,  # about what a window yields
    ),
    Case(
        "window, noise",
        {**KEEP, "restart_window_s": 15.0},
        FOUR,
        lambda w, _: inclusion.window(w, 15.0),
        inverse_duration,
        batch_size=150,  # about what a window yields
    ),
    Case(
        "over-provision, abort",
        {**KEEP, "over_provision": 1.5},
        TWO,
        lambda w, _: inclusion.over_provision(w, 96, 64),
        policy,
    ),
    Case(
        "over-provision, noise, more than workers",
        {**KEEP, "over_provision": 1.25},
        FOUR,
        lambda w, _: inclusion.over_provision(w, 80, 64),
        policy,
        workers=80,
    ),
    Case(
        "over-provision, recycle",
        {**KEEP, "over_provision": 1.5, "unfinished": "recycle"},
        FOUR,
        policy,
        lambda w, _: inclusion.over_provision(w, 96, 64),
    ),
    Case(
        "drop stale",
        {"staleness": "drop", "max_staleness": 2, "ordering": "completion"},
        FOUR,
        lambda w, r: inclusion.drop_stale(w, 2, update_s(r)),
        policy,
        workers=4096,
        batch_size=4096,
    ),
    Case(
        "drop stale, nothing too slow",
        {"staleness": "drop", "max_staleness": 3, "ordering": "completion"},
        TWO,
        policy,
        lambda w, r: inclusion.drop_stale(w, 1, update_s(r)),
    ),
    Case(
        "drop stale, groups of eight",
        {"staleness": "drop", "max_staleness": 1, "ordering": "completion"},
        GROUPS,
        lambda w, r: inclusion.drop_stale(w, 1, update_s(r)),
        lambda w, r: inclusion.drop_stale(replace(w, noise=w.noise.law), 1, update_s(r)),
        workers=4096,
        batch_size=4096,
    ),
    Case(
        "admission, oldest first",
        {"staleness": "admit", "max_staleness": 2, "ordering": "dispatch"},
        FOUR,
        policy,
        inverse_duration,
        learner=Learner(train_s=2.0),
    ),
    Case(
        "admission, strict order",
        {"staleness": "admit", "max_staleness": 2, "ordering": "window", "order_window": 1},
        FOUR,
        policy,
        inverse_duration,
    ),
    Case(
        "admission, windowed order",
        {"staleness": "admit", "max_staleness": 2, "ordering": "window", "order_window": 100},
        FOUR,
        policy,
        inverse_duration,
        learner=Learner(train_s=2.0),
    ),
    Case(
        "sticky, whole windows",
        {**KEEP, "worker_rule": "sticky", "sticky_window_s": 20.0},
        TWO,
        lambda w, _: inclusion.sticky(w),
        policy,
    ),
    Case(
        "sticky, windows that do not fit",
        {**KEEP, "worker_rule": "sticky", "sticky_window_s": 13.0},
        TWO,
        lambda w, _: inclusion.sticky(w, 13.0),
        lambda w, _: inclusion.sticky(w),
    ),
    Case(
        "one worker per task",
        {**KEEP, "worker_rule": "per_task"},
        FOUR,
        lambda w, _: inclusion.per_task(w, 64),
        policy,
    ),
    Case(
        "time-outs scored",
        {**KEEP, "timeouts": "score"},
        LIMITED,
        policy,
        lambda w, _: inclusion.timeouts_masked(w),
    ),
    Case(
        "time-outs masked",
        {**KEEP, "timeouts": "mask"},
        LIMITED,
        lambda w, _: inclusion.timeouts_masked(w),
        policy,
    ),
]


def standard_errors(case: Case, result: Result, share: np.ndarray) -> np.ndarray:
    """(share observed - share expected) / standard error, per action."""
    counts = _blocks(case, result, len(share))
    n = counts.sum()
    observed = counts.sum(0) / n
    residual = counts - observed * counts.sum(1, keepdims=True)
    blocks = len(counts)
    error = np.sqrt((residual**2).sum(0) * blocks / (blocks - 1)) / n
    return (observed - share) / np.maximum(error, 1e-12)


def _blocks(case: Case, result: Result, actions: int) -> np.ndarray:
    """Observations of each action in consecutive blocks, (blocks, actions), the start left out."""
    trace = result.trace
    if case.snapshot:
        end = result.elapsed_s
        times = np.sort(np.random.default_rng(1).uniform(0.1 * end, end, len(trace) // 64))
        per_instant = trace.in_flight_at(times)
        return np.stack([b.sum(0) for b in np.array_split(per_instant, BLOCKS)])
    trained = np.flatnonzero(trace.trained)
    order = trained[np.argsort(trace.taken_at[trained], kind="stable")]
    order = order[len(order) // 10 :]
    return np.stack(
        [
            np.bincount(trace.action[block], minlength=actions)
            for block in np.array_split(order, BLOCKS)
        ]
    )


def small(case: Case) -> int:
    return 400_000 if case.workers > 1000 else 30_000


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_inclusion_is_the_closed_form_and_not_another(case):
    result = case.run(small(case), seed=3)
    assert result.counts.conserved
    right = standard_errors(case, result, case.share(case.workload, result))
    wrong = standard_errors(case, result, case.wrong(case.workload, result))
    assert np.abs(right).max() < 3, right
    assert np.abs(wrong).max() > 5, wrong


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_inclusion_at_a_million_rollouts(case):
    result = case.run(1_000_000, seed=11)
    right = standard_errors(case, result, case.share(case.workload, result))
    assert np.abs(right).max() < 3, right
    wrong = standard_errors(case, result, case.wrong(case.workload, result))
    assert np.abs(wrong).max() > 5, wrong


def test_a_rule_that_aborts_is_not_taken_for_one_that_does_not():
    """The unbiased rules again, with the queue's setting broken instead of the formula."""
    recycle = next(c for c in CASES if c.name == "over-provision, recycle")
    aborts = Case("broken", {**KEEP, "over_provision": 1.5}, FOUR, policy, policy)
    for case, unbiased in ((recycle, True), (aborts, False)):
        result = case.run(30_000, seed=3)
        off = np.abs(standard_errors(case, result, FOUR.probabilities)).max()
        assert (off < 3) == unbiased


def test_renewal_counts_are_pi_n_t_over_mu():
    case = CASES[1]
    result = case.run(60_000, seed=5)
    counts = np.bincount(result.trace.action[result.trace.trained])
    tolerance = 3 * np.sqrt(2 / 60_000) * 2
    expected = TWO.probabilities * 64 * result.elapsed_s / TWO.mean_s
    assert np.abs(counts / expected - 1).max() < tolerance
    paper = TWO.probabilities * 64 * result.elapsed_s / TWO.scale_s  # n_a = pi(a) T / D(a)
    assert np.abs(counts / paper - 1).min() > tolerance


@pytest.mark.parametrize("eta", [0, 1, 4])
def test_drop_probability_is_that_of_a_uniform_start(eta):
    """floor(u + D / tau) <= eta, u uniform, by counting."""
    u = (np.arange(100_000) + 0.5) / 100_000
    for d in (0.0, 0.3, 1.0, 2.7, 4.5, 9.0):
        counted = (np.floor(u + d) <= eta).mean()
        assert abs(counted - inclusion.drop_stale_probability(d, eta, 1.0)) < 1e-5


def test_expected_starts_by_hand():
    """D is 1 or 2, evenly: P(start at 0, 1, 2, 3) = 1, 1/2, 3/4, 5/8."""
    starts = expected_starts(Workload(scale_s=(1.0, 2.0)), np.arange(4.0))
    assert starts == pytest.approx([1, 1.5, 2.25, 2.875], abs=1e-12)


def test_expected_starts_approach_their_asymptote():
    w = Workload(scale_s=(1.0, 3.0), noise=LogNormal.of_sigma(0.5))
    for t in (30.0, 60.0):
        starts = expected_starts(w, t)
        assert starts == pytest.approx(expected_starts_asymptote(w, t), rel=1e-4)


def test_expected_starts_of_a_narrow_law_are_those_of_none():
    exact = Workload(scale_s=(1.0, 3.0), probabilities=(0.3, 0.7))
    narrow = Workload(scale_s=(1.0, 3.0), probabilities=(0.3, 0.7), noise=LogNormal.of_sigma(0.002))
    t = np.array([0.5, 1.5, 2.5, 3.5, 4.5])  # between the moments at which rollouts start
    assert expected_starts(narrow, t) == pytest.approx(expected_starts(exact, t), abs=1e-6)


def test_two_action_reference_values():
    """Published for pi = (1/2, 1/2), D = (1, 10)."""
    assert inclusion.snapshot(TWO)[1] == pytest.approx(10 / 11)
    assert inclusion.sticky(TWO)[1] == pytest.approx(1 / 11)
    assert inclusion.window(TWO, 12.0)[1] == pytest.approx(0.368, abs=5e-4)
    for ratio, slow in ((1.25, 0.375), (1.5, 0.25), (2.0, 0.0249)):
        share = inclusion.over_provision(TWO, int(128 * ratio), 128)
        assert share[1] == pytest.approx(slow, abs=2e-4)


def test_nothing_survives_a_window_shorter_than_everything():
    with pytest.raises(MleRlError, match="too slow"):
        inclusion.window(Workload(scale_s=(3.0,)), 2.0)


def test_sticky_windows_with_noise_have_no_closed_form_here():
    with pytest.raises(MleRlError, match="without noise"):
        inclusion.sticky(FOUR, 10.0)
    assert inclusion.sticky(Workload(scale_s=(1.0, 2.0), noise=Constant(3.0))).sum() == 1
