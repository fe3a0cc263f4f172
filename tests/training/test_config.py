"""Settings that cannot be meant are refused when they are made, not after the first batch."""

import pytest

from mle_rl import MleRlError
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.queue import QueueConfig
from mle_rl.training.config import TrainConfig
from mle_rl.training.weighting import DurationWeighting

INCLUSION = DurationWeighting("inclusion")
ADMIT = QueueConfig(workers=2, batch_size=64, staleness="admit", max_staleness=1)
DROP = QueueConfig(workers=2, batch_size=64, staleness="drop", max_staleness=1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"batch_size": 1}, "batch_size is 1"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": "warm"}, "temperature is 'warm'"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0"),
        ({"kl": -0.1}, "kl is -0.1"),
        ({"entropy": -0.1}, "entropy is -0.1"),
        ({"max_grad_norm": -1.0}, "max_grad_norm is -1.0"),
        ({"max_completion_length": 0}, "max_completion_length is 0"),
        ({"max_completion_length": 10.5}, "max_completion_length is 10.5"),
        ({"loss_type": "ppo"}, "no loss_type 'ppo'.*dapo"),
        # TRL would take `clip` for the largest ratio.
        ({"loss_type": "cispo"}, "no loss_type 'cispo'.*dapo"),
        ({"scale_rewards": "all"}, "no scale_rewards 'all'.*group"),
        ({"ratio": "all"}, "no ratio 'all'.*truncate"),
        ({"tier": "steel"}, "no sandbox tier 'steel'.*isolated"),
        ({"tasks": ()}, "one task id or more"),
        ({"tasks": "doctor-visits"}, "one task id or more"),
        ({"tasks": ("a", "b", "a")}, "'a' is there twice"),
        ({"weighting": INCLUSION}, "inclusion.*staleness='drop'"),
        ({"weighting": INCLUSION, "queue": ADMIT}, "inclusion.*staleness='drop'"),
        ({"ratio": "truncate", "loss_type": "grpo"}, "loss_type has no effect"),
        ({"ratio": "truncate", "clip": 0.1}, "clip has no effect"),
        ({"ratio": "truncate", "ratio_cap": 0.5}, "ratio_cap is 0.5"),
        ({"replay": True}, "replay needs executions"),
        (
            {"weighting": DurationWeighting("paper"), "rewards": RewardWeights(time_cost_rate=0.1)},
            "time_cost_rate already makes time cost",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(tmp_path, changes, said):
    with pytest.raises(MleRlError, match=said) as raised:
        TrainConfig(run_dir=tmp_path, **changes)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"ratio": "truncate", "ratio_cap": 2.0},
        {"ratio": "none", "loss_type": "dr_grpo", "clip": 0.1},
        {"weighting": INCLUSION, "queue": DROP},
        {"max_completion_length": 1, "kl": 0.1, "temperature": 0.7, "max_grad_norm": 0},
        {"tasks": ("a", "b"), "tier": "bubblewrap"},
    ],
)
def test_what_can_be_meant_is_taken(tmp_path, changes):
    config = TrainConfig(run_dir=tmp_path, **changes)
    assert all(getattr(config, name) == value for name, value in changes.items())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"scheme": "own"}, "no duration weighting 'own'.*paper"),
        ({"floor_s": 0.0}, "floor_s is 0.0"),
        ({"floor_s": float("inf")}, "floor_s is inf"),
        ({"inclusion_floor": 1.5}, "inclusion_floor is 1.5"),
        ({"charge_time": "yes"}, "charge_time is 'yes'"),
        ({"scheme": "paper", "charge_time": True}, "leave out one"),
    ],
)
def test_duration_weights_that_cannot_be_are_one_sentence(settings, said):
    with pytest.raises(MleRlError, match=said):
        DurationWeighting(**settings)
