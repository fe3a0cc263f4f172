"""Sampled completions: distribution, log-probabilities, ends, and independence of the batch."""

import pytest
import torch

from mle_rl import MleRlError
from mle_rl.rollout import llama, sampling
from mle_rl.rollout.llama import is_plain_llama
from mle_rl.rollout.sampling import SamplingSettings, sample

ENDS = (1, 5, 6)
SETTINGS = SamplingSettings(max_new_tokens=12, eos_ids=ENDS, pad_id=0)
RAGGED = [[2, 3, 4, 5, 6, 7], [8], [2, 3], [8], [9, 10, 11]] * 3


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=["decoder", "generate"])
def either_way(request, monkeypatch):
    if request.param == "generate":
        monkeypatch.setattr(sampling, "is_plain_llama", lambda model: False)
    return request.param


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_logprobs_are_the_models_own(make_llama, either_way, temperature, kv_heads):
    """Prompts of unequal length, rows that end early: each token against one plain forward pass."""
    model = make_llama(num_key_value_heads=kv_heads)
    settings = SamplingSettings(12, ENDS, 0, temperature)
    completions = sample(model, RAGGED, settings, generator())
    lengths = {len(completion.ids) for completion in completions}
    assert len(lengths) > 3, "the case is meant to have rows that end at different times"
    for prompt, completion in zip(RAGGED, completions, strict=True):
        ids = torch.tensor([[*prompt, *completion.ids]])
        logits = model(ids).logits[0, len(prompt) - 1 : -1] / temperature
        chosen = torch.tensor(completion.ids)[:, None]
        expected = torch.log_softmax(logits, -1).gather(1, chosen)[:, 0]
        torch.testing.assert_close(
            torch.tensor(completion.logprobs), expected, atol=1e-5, rtol=1e-4
        )


@pytest.mark.parametrize("adapters", [False, True])
def test_generation_settings_of_the_model_do_not_count(make_llama, monkeypatch, adapters):
    """Hub models come with penalties and cuts; what is sampled and recorded knows none of them."""
    monkeypatch.setattr(sampling, "is_plain_llama", lambda model: False)
    plain, other = make_llama(), make_llama()
    theirs = other.generation_config
    theirs.update(
        repetition_penalty=5.0,
        min_p=0.5,
        typical_p=0.2,
        min_new_tokens=9,
        suppress_tokens=[2, 3, 4],
        no_repeat_ngram_size=1,
    )
    if adapters:
        from peft import LoraConfig, get_peft_model

        other = get_peft_model(other, LoraConfig(r=2, target_modules=["q_proj"]))
    expected = sample(plain, RAGGED, SETTINGS, generator())
    found = sample(other, RAGGED, SETTINGS, generator())
    assert [c.ids for c in found] == [c.ids for c in expected]
    assert [c.logprobs for c in found] == [pytest.approx(c.logprobs, abs=1e-5) for c in expected]
    assert other.generation_config is theirs
    assert theirs.repetition_penalty == 5.0


def test_generation_settings_come_back_when_sampling_fails(make_llama, monkeypatch):
    monkeypatch.setattr(sampling, "is_plain_llama", lambda model: False)
    model = make_llama()
    theirs = model.generation_config

    def broken(**_):
        raise MemoryError

    monkeypatch.setattr(model, "generate", broken)
    with pytest.raises(MemoryError):
        sample(model, RAGGED, SETTINGS, generator())
    assert model.generation_config is theirs


def test_end_of_text_is_the_last_token_if_it_comes(make_llama, either_way):
    completions = sample(make_llama(), [[2]] * 60, SETTINGS, generator())
    assert {completion.ids[-1] in ENDS for completion in completions} == {True, False}
    for completion in completions:
        assert not set(ENDS) & set(completion.ids[:-1])
        assert len(completion.ids) == len(completion.logprobs)
        assert completion.ids[-1] in ENDS or len(completion.ids) == 12


def test_tokens_come_with_the_models_frequencies(make_llama, either_way):
    """First tokens of 4,000 completions within four standard errors of the probabilities."""
    model, count = make_llama(), 4000
    settings = SamplingSettings(1, (1,), 0, temperature=0.7)
    completions = sample(model, [[2, 3]] * count, settings, generator())
    expected = torch.softmax(model(torch.tensor([[2, 3]])).logits[0, -1] / 0.7, -1)
    found = torch.bincount(torch.tensor([c.ids[0] for c in completions]), minlength=24) / count
    error = (expected * (1 - expected) / count).sqrt()
    assert ((found - expected).abs() <= 4 * error + 1e-4).all()


def test_a_completion_does_not_depend_on_when_other_rows_end(make_llama, monkeypatch):
    """Compacting the cache at every step or never gives the same tokens."""
    found = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(llama, "COMPACT_BELOW", share)
        found.append([c.ids for c in sample(make_llama(), RAGGED, SETTINGS, generator())])
    assert found[0] == found[1]


def test_same_seed_same_completions(make_llama, either_way):
    first, again, other = (
        [c.ids for c in sample(make_llama(), RAGGED, SETTINGS, generator(seed))]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_the_global_generator_is_left_alone(make_llama, either_way):
    model = make_llama()
    before = torch.get_rng_state()
    sample(model, RAGGED, SETTINGS, generator())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("changes", [{"attention_bias": True}, {"hidden_act": "gelu"}])
def test_other_models_go_through_generate(make_llama, changes):
    assert is_plain_llama(make_llama())
    assert not is_plain_llama(make_llama(**changes))


def test_adapters_are_not_overlooked(make_llama):
    """An adapter must change what is sampled; reading the base weights would miss it."""
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(make_llama(), LoraConfig(r=2, target_modules=["q_proj"]))
    for wrapped in (model, model.get_base_model()):
        assert not is_plain_llama(wrapped)


@pytest.mark.parametrize(
    ("prompts", "settings", "message"),
    [
        ([], SETTINGS, "nothing to sample"),
        ([[]], SETTINGS, "no tokens"),
        ([[2] * 60], SETTINGS, "reads 64"),
    ],
)
def test_impossible_lengths_are_refused(make_llama, prompts, settings, message):
    with pytest.raises(MleRlError, match=message):
        sample(make_llama(), prompts, settings, generator())


@pytest.mark.parametrize(
    "values", [{"temperature": 0.0}, {"max_new_tokens": 0}, {"eos_ids": ()}, {"temperature": -1}]
)
def test_impossible_settings_are_refused(values):
    with pytest.raises(MleRlError):
        SamplingSettings(**{"max_new_tokens": 4, "eos_ids": (1,), "pad_id": 0} | values)
