"""The table of every run."""

import numpy as np
import pytest

from mle_rl import MleRlError
from mle_rl.rollout import Counts, QueueConfig, diagnostics
from mle_rl.rollout.simulation import Learner, simulate
from mle_rl.rollout.simulation.box import Box, by_device, run_box, summary, utilisation
from mle_rl.rollout.simulation.durations import Constant, LogNormal
from mle_rl.rollout.simulation.workload import Workload

WORK = Workload(noise=LogNormal.of_sigma(1.0))


def run(**settings):
    config = QueueConfig(workers=32, batch_size=32, **settings)
    return simulate(
        config,
        WORK,
        updates=400,
        rng=np.random.default_rng(0),
        learner=Learner(train_s=0.5),
        trace=True,
    )


def test_ks_distance_by_hand():
    assert diagnostics.ks_distance([1.0, 2.0], [1.0, 2.0]) == 0
    assert diagnostics.ks_distance([1.0, 2.0], [3.0, 4.0]) == 1
    assert diagnostics.ks_distance([1.0, 2.0, 3.0, 4.0], [1.0, 2.0]) == 0.5


def test_ks_distance_is_scipys():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(1, 30, 50) / 7, rng.integers(1, 30, 80) / 7  # with ties
        assert diagnostics.ks_distance(a, b) == pytest.approx(ks_2samp(a, b).statistic)


def test_the_profile_is_flat_without_selection_and_falls_with_it():
    keep = run(staleness="keep", ordering="completion").trace
    drop = run(staleness="drop", max_staleness=0, ordering="completion").trace
    profiles = [
        diagnostics.inclusion_by_decile(t.duration_s[t.decided], t.trained[t.decided])
        for t in (keep, drop)
    ]
    assert (profiles[0]["inclusion"] == 1).all()
    assert len(profiles[0]) == 10
    assert profiles[1]["inclusion"].iloc[0] > 0.7
    assert profiles[1]["inclusion"].iloc[-1] < 0.05
    assert profiles[1]["inclusion"].is_monotonic_decreasing


def test_equal_durations_share_a_bin():
    table = diagnostics.inclusion_by_decile(
        np.array([1.0] * 50 + [2.0] * 50), np.array([True] * 50 + [False] * 50)
    )
    assert table["inclusion"].tolist() == [1.0, 0.0]
    assert table["rollouts"].tolist() == [50, 50]


def test_the_table_reports_selection_weights_and_conservation():
    result = run(staleness="drop", max_staleness=0, ordering="completion")
    table = diagnostics.of_result(result, weights=lambda d: d, objective="E[DR]/E[D]")["value"]
    assert table["KS distance"] > 0.1
    trained = result.trace.duration_s[result.trace.trained]
    assert table["effective sample size"] == pytest.approx(
        len(trained) / (1 + (trained.std() / trained.mean()) ** 2), abs=0.1
    )
    assert table["largest weight"] == pytest.approx(trained.max() / trained.mean(), abs=0.01)
    assert table["conserved"] == "yes"
    assert table["objective"] == "E[DR]/E[D]"
    assert table["dropped: stale"] == result.counts.dropped["stale"]
    assert table["included: tenth 1"] > "70" > "5.0" > table["included: tenth 10"]
    assert sum(name.startswith("included") for name in table.index) == 10
    assert table["busy: workers"] == "100%"


def test_lost_rollouts_are_said():
    counts = Counts(dispatched=10, trained=8, dropped={"stale": 1}, in_flight=0, ready=0)
    table = diagnostics.report(counts, np.ones(9), np.ones(8))
    assert table.loc["conserved", "value"] == "NO"


def test_unknown_objectives_and_impossible_durations_are_refused():
    with pytest.raises(MleRlError, match="objective"):
        diagnostics.report(Counts(), np.ones(2), np.ones(2), objective="reward")
    with pytest.raises(MleRlError, match="positive"):
        diagnostics.ks_distance([0.0], [1.0])
    with pytest.raises(MleRlError, match="than were dispatched"):
        diagnostics.report(Counts(), np.array([1.0, 2.0]), np.array([1.0, 2.0, 2.0]))


BOX = Box(
    gpus=4,
    training_gpus=2,
    tokens_per_s=50.0,
    generation_batch=4,
    completion_tokens=Constant(100.0),
    train_gpu_s=6.0,
    weight_sync_s=1.0,
)


def test_a_synchronous_box_by_hand():
    """8 slots, 8 workers, a batch of 8: generate 2 s, execute 5 s, train 3 s, sync 1 s."""
    config = QueueConfig(workers=8, batch_size=8, max_staleness=0)
    result = run_box(
        BOX, config, Workload(scale_s=(5.0,)), updates=10, rng=np.random.default_rng(0)
    )
    row = summary(BOX, result)
    assert row["update_s"] == pytest.approx(11.0)
    assert row["rollouts per second"] == pytest.approx(8 / 11)
    assert row["sampling GPUs"] == pytest.approx(2 / 11)
    assert row["training GPUs"] == pytest.approx(4 / 11)
    assert row["workers"] == pytest.approx(5 / 11)
    devices = by_device(BOX, result).set_index(["kind", "device"]).busy
    assert len(devices) == 2 + 2 + 8
    assert devices["sampling GPUs"].to_numpy() == pytest.approx(2 / 11), "slots are dealt in turn"
    assert devices["workers"].to_numpy() == pytest.approx(5 / 11)
    assert row["max staleness"] == 0
    assert row["time_in_queue_s"] == 0


def test_the_mean_over_devices_is_that_of_all_slots_and_workers():
    """Half of the slots in use: one sequence on each GPU, not two on one."""
    config = QueueConfig(workers=3, batch_size=3, max_staleness=0)
    half = Box(
        gpus=4, training_gpus=1, tokens_per_s=10.0, generation_batch=2,
        completion_tokens=Constant(100.0), train_gpu_s=1.0, weight_sync_s=0.0,
    )  # fmt: skip
    work = Workload(noise=LogNormal.of_sigma(0.7))
    result = run_box(half, config, work, updates=5, rng=np.random.default_rng(0))
    devices = by_device(half, result)
    assert devices[devices.kind == "sampling GPUs"].busy.nunique() == 1
    assert devices[devices.kind == "workers"].busy.mean() == pytest.approx(
        result.worker_utilisation
    )
    assert len(devices) == 3 + 1 + 3


def test_asynchrony_fills_the_box():
    work = Workload(scale_s=(5.0,), noise=LogNormal.of_sigma(0.8))
    rows = {}
    for staleness in (0, 3):
        config = QueueConfig(workers=8, batch_size=8, max_staleness=staleness, max_in_flight=24)
        result = run_box(BOX, config, work, updates=60, rng=np.random.default_rng(0))
        assert all(0 <= share <= 1 for share in utilisation(BOX, result).values())
        rows[staleness] = summary(BOX, result)
    assert rows[3]["rollouts per second"] > 1.5 * rows[0]["rollouts per second"]
    assert rows[3]["staleness"] > rows[0]["staleness"] == 0


def test_sharing_all_gpus_stops_sampling_while_training():
    shared = Box(
        gpus=4,
        training_gpus=0,
        tokens_per_s=50.0,
        generation_batch=2,
        completion_tokens=Constant(100.0),
        train_gpu_s=12.0,
        weight_sync_s=1.0,
    )
    config = QueueConfig(workers=8, batch_size=8, max_staleness=2, max_in_flight=24)
    result = run_box(
        shared, config, Workload(scale_s=(1.0,)), updates=20, rng=np.random.default_rng(0)
    )
    for taken, _, synced in result.training:
        begun = result.trace.dispatched_at
        ended = result.trace.generated_at
        inside = (taken + 1e-9, synced - 1e-9)
        assert not ((begun > inside[0]) & (begun < inside[1])).any()
        assert not ((ended > inside[0]) & (ended < inside[1])).any()
    assert utilisation(shared, result)["sampling GPUs"] < 1


@pytest.mark.parametrize(
    "settings",
    [
        {"training_gpus": 8},
        {"gpus": 0},
        {"tokens_per_s": 0.0},
        {"tokens_per_s": float("nan")},
        {"train_gpu_s": float("inf")},
        {"weight_sync_s": -1.0},
    ],
)
def test_a_box_that_cannot_be_is_refused(settings):
    with pytest.raises(MleRlError):
        Box(**settings)
