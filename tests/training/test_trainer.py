"""The trainer against TRL, and against gradients worked out without it."""

import copy

import pytest
import torch
from datasets import Dataset
from torch.nn.functional import log_softmax
from trl import GRPOConfig, GRPOTrainer

from mle_rl import MleRlError
from mle_rl.training.baselines import grouped_advantages
from mle_rl.training.trainer import DurationAwareGRPOTrainer
from mle_rl.training.weighting import DurationWeighting

PAPER = DurationWeighting("paper")
ROWS = 8


@pytest.fixture
def config(tmp_path):
    def make(**changes):
        settings = {
            "output_dir": str(tmp_path / "run"),
            "per_device_train_batch_size": ROWS,
            "num_generations": 4,
            "max_completion_length": 6,
            "learning_rate": 1e-2,
            "max_steps": 3,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": "none",
            "use_cpu": True,
            "bf16": False,
            "activation_checkpointing": False,
            "disable_tqdm": True,
            "seed": 3,
        }
        return GRPOConfig(**settings | changes)

    return make


def token_sum(completion_ids, **_):
    """A reward that differs between completions."""
    return [float(sum(ids) % 7) for ids in completion_ids]


def stored_reward(reward, **_):
    return reward


def prompts(**columns):
    return Dataset.from_dict({"prompt": ["w2 w3", "w4"] * 8} | columns)


def parameters(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


def trained(cls, model, tokenizer, args, data, reward=token_sum, **options):
    trainer = cls(
        model=model,
        reward_funcs=reward,
        args=args,
        train_dataset=data,
        processing_class=tokenizer,
        **options,
    )
    trainer.train()
    return trainer


class Replayed:
    """A rollout function that returns the same completions every time, with given columns."""

    def __init__(self, completions, logprobs=None, prompts=None, **columns):
        self.completions = completions
        self.logprobs = logprobs
        self.prompts = prompts
        self.columns = columns

    def __call__(self, prompts, trainer):
        return {
            "prompt_ids": self.prompts or [[2, 3]] * len(prompts),
            "completion_ids": self.completions,
            "logprobs": self.logprobs,
            **self.columns,
        }


def some_completions(rows=ROWS):
    generator = torch.Generator().manual_seed(5)
    draw = torch.randint(2, 24, (rows, 6), generator=generator).tolist()
    return [[*ids[: 2 + i % 4], 1] for i, ids in enumerate(draw)]


@pytest.mark.parametrize("scheme", ["none", "paper", "task_mean"])
@pytest.mark.parametrize("loss", ["dapo", "grpo"])
def test_equal_durations_give_trls_parameters_bit_for_bit(
    make_llama, tokenizer, config, scheme, loss
):
    """Three steps with TRL's own sampling; every weight is exactly 1."""
    data = prompts(duration_s=[2.0] * 16, task=["one"] * 16)
    args = {"loss_type": loss, "steps_per_generation": 2}
    theirs = trained(GRPOTrainer, make_llama(), tokenizer, config(**args), data)
    ours = trained(
        DurationAwareGRPOTrainer,
        make_llama(),
        tokenizer,
        config(**args),
        data,
        weighting=DurationWeighting(scheme),
    )
    start = torch.cat([p.detach().flatten() for p in make_llama().parameters()])
    assert not torch.equal(parameters(theirs), start)
    assert torch.equal(parameters(ours), parameters(theirs))


def test_unequal_durations_change_the_parameters(make_llama, tokenizer, config):
    data = prompts(duration_s=[1.0, 5.0] * 8)
    theirs = trained(GRPOTrainer, make_llama(), tokenizer, config(), data)
    ours = trained(
        DurationAwareGRPOTrainer, make_llama(), tokenizer, config(), data, weighting=PAPER
    )
    assert not torch.allclose(parameters(ours), parameters(theirs), atol=1e-5)


def gradient_after_one_step(model, tokenizer, args, rollouts, **options):
    """Gradient of TRL's loss, read from plain gradient descent with step 1."""
    options = {"behaviour_ratio": rollouts.logprobs is not None} | options
    before = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    trained(
        DurationAwareGRPOTrainer,
        model,
        tokenizer,
        args,
        prompts(),
        reward=stored_reward,
        rollout_func=rollouts,
        optimizers=(optimizer, schedule),
        **options,
    )
    pairs = zip(before.parameters(), model.parameters(), strict=True)
    return torch.cat([(old - new).detach().flatten() for old, new in pairs])


def gradient_by_hand(model, completions, rewards, durations, old_logprobs=None, prompt=(2, 3)):
    """Minus the row mean of w A r grad log pi: w = D / mean D, one group, no clipping."""
    reward, weight = torch.tensor(rewards), torch.tensor(durations)
    weight = weight / weight.mean()
    advantage = reward - (weight * reward).sum() / weight.sum()
    loss = 0.0
    for i, ids in enumerate(completions):
        logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
        logprobs = log_softmax(logits, -1).gather(1, torch.tensor(ids)[:, None])[:, 0]
        old = logprobs.detach() if old_logprobs is None else torch.tensor(old_logprobs[i])
        loss = loss - weight[i] * advantage[i] * torch.exp(logprobs - old).mean()
    (loss / len(completions)).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


REWARDS = [0.3, -1.0, 2.0, 0.0, 0.9, -10.0, 0.1, 1.4]
DURATIONS = [0.5, 1.0, 20.0, 2.5, 0.7, 0.4, 3.0, 11.0]
PLAIN = {
    "loss_type": "grpo",
    "scale_rewards": "none",
    "num_generations": ROWS,
    "max_steps": 1,
    "max_grad_norm": 0.0,
}


def test_weighted_gradient_is_the_one_worked_out_by_hand(make_llama, tokenizer, config):
    completions = some_completions()
    rollouts = Replayed(completions, reward=REWARDS, duration_s=DURATIONS, group=["g"] * ROWS)
    found = gradient_after_one_step(
        make_llama(), tokenizer, config(**PLAIN), rollouts, weighting=PAPER
    )
    expected = gradient_by_hand(make_llama(), completions, REWARDS, DURATIONS)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-4)


def test_swapping_two_durations_swaps_their_weights(make_llama, tokenizer, config):
    completions = some_completions()
    swapped = [DURATIONS[2], *DURATIONS[1:2], DURATIONS[0], *DURATIONS[3:]]
    gradients = {}
    for name, durations in (("as is", DURATIONS), ("swapped", swapped)):
        rollouts = Replayed(completions, reward=REWARDS, duration_s=durations)
        gradients[name] = gradient_after_one_step(
            make_llama(), tokenizer, config(**PLAIN), rollouts, weighting=PAPER
        )
    expected = gradient_by_hand(make_llama(), completions, REWARDS, swapped)
    torch.testing.assert_close(gradients["swapped"], expected, atol=2e-6, rtol=1e-4)
    assert not torch.allclose(gradients["swapped"], gradients["as is"], atol=1e-3)


def test_a_constant_added_to_all_rewards_changes_nothing(make_llama, tokenizer, config):
    """The baseline is the weighted mean; with the plain mean this fails (failures earn -10)."""
    completions = some_completions()
    found = []
    for constant in (0.0, 5.0):
        rewards = [reward + constant for reward in REWARDS]
        rollouts = Replayed(completions, reward=rewards, duration_s=DURATIONS)
        found.append(
            gradient_after_one_step(
                make_llama(), tokenizer, config(**PLAIN), rollouts, weighting=PAPER
            )
        )
    torch.testing.assert_close(found[0], found[1], atol=5e-6, rtol=1e-3)


def test_charged_time_is_worth_what_a_second_earns(make_llama, tokenizer, config):
    """A = R - rho D with rho = mean R / mean D, which already has mean 0.

    Rho is negative here: the gradient is still that of E[R] / E[D], and whoever trains is told.
    """
    completions = some_completions()
    rollouts = Replayed(completions, reward=REWARDS, duration_s=DURATIONS)
    with pytest.warns(UserWarning, match="slow failures pay") as warned:
        found = gradient_after_one_step(
            make_llama(),
            tokenizer,
            config(**PLAIN),
            rollouts,
            weighting=DurationWeighting(charge_time=True),
        )
    assert len([w for w in warned if "slow failures" in str(w.message)]) == 1
    rho = sum(REWARDS) / sum(DURATIONS)
    charged = [r - rho * d for r, d in zip(REWARDS, DURATIONS, strict=True)]
    expected = gradient_by_hand(make_llama(), completions, charged, [1.0] * ROWS)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-4)


def test_charging_and_weighting_at_once_is_refused():
    with pytest.raises(MleRlError, match="leave out one"):
        DurationWeighting("paper", charge_time=True)


def test_the_ratio_is_against_the_policy_that_sampled(make_llama, tokenizer, config):
    """Log-probabilities of an older policy enter the ratio, clipping out of the way."""
    completions = some_completions()
    old = [[-1.0 - 0.1 * t for t in range(len(ids))] for ids in completions]
    rollouts = Replayed(completions, old, reward=REWARDS, duration_s=[1.0] * ROWS)
    args = PLAIN | {"epsilon": 0.99999999, "epsilon_high": 1e9}
    found = gradient_after_one_step(make_llama(), tokenizer, config(**args), rollouts)
    expected = gradient_by_hand(make_llama(), completions, REWARDS, [1.0] * ROWS, old)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-4)
    unaware = gradient_after_one_step(
        make_llama(), tokenizer, config(**args), rollouts, behaviour_ratio=False
    )
    assert not torch.allclose(found, unaware, atol=1e-3)


def test_groups_are_told_by_label_wherever_their_rows_stand(make_llama, tokenizer, config):
    """Reordering the rows of two interleaved groups changes the gradient by rounding only."""
    completions, order = some_completions(), [3, 0, 6, 1, 7, 4, 2, 5]
    groups = ["a", "b", "a", "a", "b", "a", "a", "b"]
    args = PLAIN | {"scale_rewards": "group"}

    def gradient(rows):
        rollouts = Replayed(
            [completions[i] for i in rows],
            reward=[REWARDS[i] for i in rows],
            group=[groups[i] for i in rows],
        )
        return gradient_after_one_step(make_llama(), tokenizer, config(**args), rollouts)

    torch.testing.assert_close(gradient(order), gradient(range(ROWS)), atol=2e-6, rtol=1e-4)


def test_buckets_change_speed_not_gradients(make_llama, tokenizer, config):
    completions = some_completions()
    long_and_short = [[2, 3], [5] * 9, [4], [6, 7, 8]] * 2
    columns = {"reward": REWARDS, "duration_s": DURATIONS}
    rollouts = Replayed(completions, prompts=long_and_short, **columns)
    one, three = (
        gradient_after_one_step(
            make_llama(), tokenizer, config(**PLAIN), rollouts, length_buckets=buckets
        )
        for buckets in (1, 3)
    )
    torch.testing.assert_close(one, three, atol=2e-6, rtol=1e-4)


def test_weights_have_mean_one_over_the_generation_batch(make_llama, tokenizer, config):
    """Four micro-batches: the mean of each differs from 1, that of the whole batch does not."""
    seen = []

    class Watched(DurationAwareGRPOTrainer):
        def _compute_loss(self, model, inputs):
            seen.append(inputs["duration_weights"])
            return super()._compute_loss(model, inputs)

    rollouts = Replayed(some_completions(), reward=REWARDS, duration_s=DURATIONS)
    args = PLAIN | {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4}
    trained(
        Watched,
        make_llama(),
        tokenizer,
        config(**args),
        prompts(),
        reward=stored_reward,
        rollout_func=rollouts,
        weighting=PAPER,
        behaviour_ratio=False,
    )
    assert len(seen) == 4
    assert torch.cat(seen).mean().item() == pytest.approx(1.0, abs=1e-6)
    assert max(abs(weights.mean().item() - 1) for weights in seen) > 0.1


def test_lora_trains_the_adapter_only(make_llama, tokenizer, config):
    from peft import LoraConfig

    trainer = trained(
        DurationAwareGRPOTrainer,
        make_llama(),
        tokenizer,
        config(),
        prompts(duration_s=[1.0, 5.0] * 8),
        weighting=PAPER,
        peft_config=LoraConfig(r=2, target_modules=["q_proj", "v_proj"]),
    )
    start = dict(make_llama().named_parameters())
    for name, parameter in trainer.model.get_base_model().named_parameters():
        if "lora" in name:
            continue
        assert torch.equal(parameter, start[name.replace(".base_layer", "")])
    adapters = [p for n, p in trainer.model.named_parameters() if "lora_B" in n]
    assert any(p.abs().sum() > 0 for p in adapters)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"top_p": 0.9}, "top_p=1.0"),
        ({"top_k": 20}, "top_k=0"),
        ({"repetition_penalty": 1.2}, "repetition_penalty=1.0"),
        ({"generation_kwargs": {"typical_p": 0.5}}, "generation_kwargs"),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "sum_then_normalize"),
    ],
)
def test_inconsistent_sampling_is_refused(make_llama, tokenizer, config, changes, named):
    with pytest.raises(MleRlError, match=named):
        trained(
            DurationAwareGRPOTrainer,
            make_llama(),
            tokenizer,
            config(**changes),
            prompts(),
            rollout_func=Replayed(some_completions()),
        )


def test_a_ratio_against_nobody_is_refused(make_llama, tokenizer, config):
    """It would be 1 for stale rollouts too, and nothing would say so."""
    with pytest.raises(MleRlError, match="no logprobs.*behaviour_ratio=False"):
        trained(
            DurationAwareGRPOTrainer,
            make_llama(),
            tokenizer,
            config(),
            prompts(),
            reward=stored_reward,
            rollout_func=Replayed(some_completions(), reward=REWARDS),
        )


def test_dropout_is_refused(make_llama, tokenizer, config):
    with pytest.raises(MleRlError, match="dropout"):
        trained(
            DurationAwareGRPOTrainer,
            make_llama(attention_dropout=0.1),
            tokenizer,
            config(),
            prompts(),
            rollout_func=Replayed(some_completions()),
        )


def test_missing_durations_are_named(make_llama, tokenizer, config):
    with pytest.raises(MleRlError, match="duration_s"):
        trained(
            DurationAwareGRPOTrainer, make_llama(), tokenizer, config(), prompts(), weighting=PAPER
        )


def test_advantages_by_hand():
    """Two groups and one row alone, one row without a reward."""
    nan = float("nan")
    rewards = torch.tensor([1.0, 4.0, 3.0, 0.0, 7.0, nan])
    weights = torch.tensor([1.0, 1.0, 3.0, 3.0, 2.0, 0.0])
    groups = ["a", "b", "a", "b", "alone", "a"]
    found = grouped_advantages(rewards, weights, groups, "none")
    # a: (1*1 + 3*3) / 4 = 2.5;  b: (1*4 + 3*0) / 4 = 1
    torch.testing.assert_close(found, torch.tensor([-1.5, 3.0, 0.5, -1.0, 0.0, 0.0]))
