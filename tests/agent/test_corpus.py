"""The corpus, the encoding, and the training of the tiny policy on a minute scale."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from mle_rl import MleRlError
from mle_rl.agent import load_policy, parse_completion
from mle_rl.agent.corpus import SKILL_SHARES, example, examples
from mle_rl.agent.grammar import TaskShape
from mle_rl.training.next_token import PretrainConfig, batches, encode, new_model
from mle_rl.training.novice import novice
from mle_rl.training.pretrain import new_tokenizer, pretrain, save_policy

SHAPES = (TaskShape("text", "library", "probabilities"), TaskShape("table", "visits", "number"))
MINUTE = PretrainConfig(
    steps=12,
    batch_tokens=1500,
    vocabulary=500,
    tokenizer_examples=60,
    hidden=32,
    layers=1,
    heads=1,
    feed_forward=32,
    threads=1,
    checkpoint_steps=6,
)


@pytest.fixture(scope="module")
def tokenizer():
    return new_tokenizer(MINUTE, SHAPES)


def _stream(seed, n):
    return list(islice(examples(SHAPES, np.random.default_rng(seed)), n))


def test_the_stream_follows_its_seed_and_holds_every_skill():
    assert _stream(1, 20) == _stream(1, 20) != _stream(2, 20)
    skills = [e.skill for e in _stream(3, 300)]
    for skill, share in SKILL_SHARES.items():
        assert abs(skills.count(skill) / 300 - share) < 0.1, skill


def test_completions_are_programs():
    rng = np.random.default_rng(4)
    for skill in ("solve", "improve"):
        assert parse_completion(example(SHAPES[0], skill, rng).completion) is not None


def test_texts_survive_the_encoding_and_digits_stand_alone(tokenizer):
    for e in _stream(5, 30):
        ids = tokenizer.encode(e.completion, add_special_tokens=False)
        assert tokenizer.decode(ids) == e.completion
    vocabulary = [tokenizer.decode([i]) for i in range(len(tokenizer))]
    assert not [token for token in vocabulary if len(token) > 1 and any(c.isdigit() for c in token)]


def test_an_example_ends_with_one_end_of_text_that_is_not_padding(tokenizer):
    ids = encode(tokenizer, _stream(6, 1)[0])
    assert ids.count(tokenizer.eos_token_id) == 1
    assert ids[-1] == tokenizer.eos_token_id
    assert tokenizer.pad_token_id not in ids
    assert tokenizer.pad_token_id != tokenizer.eos_token_id


def test_batches_hold_whole_examples_within_the_budget(tokenizer):
    rng = np.random.default_rng(0)
    for batch in islice(batches(tokenizer, examples(SHAPES, rng), MINUTE, rng), 5):
        ends = (batch == tokenizer.eos_token_id).sum(dim=1)
        assert (ends == 1).all()
        assert batch.numel() <= max(MINUTE.batch_tokens, batch.shape[1])


def test_training_learns_resumes_and_refuses_other_settings(tmp_path):
    _, first = pretrain(SHAPES, replace(MINUTE, steps=12), tmp_path, progress=False)
    assert first.loss.iloc[-1] < first.loss.iloc[0]
    with pytest.raises(MleRlError, match="steps"):
        pretrain(SHAPES, replace(MINUTE, steps=20), tmp_path, progress=False)
    _, again = pretrain(SHAPES, MINUTE, tmp_path, progress=False)
    assert again.equals(first)  # it had ended: nothing is trained twice


def test_an_interrupted_training_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    import mle_rl.training.pretrain as module

    kept = module._checkpoint
    monkeypatch.setattr(
        module, "_checkpoint", lambda *a: (kept(*a), (_ for _ in ()).throw(KeyboardInterrupt))
    )
    with pytest.raises(KeyboardInterrupt):
        pretrain(SHAPES, MINUTE, tmp_path, progress=False)
    monkeypatch.setattr(module, "_checkpoint", kept)
    _, history = pretrain(SHAPES, MINUTE, tmp_path, progress=False)
    assert list(history.step) == list(range(1, 13))


@pytest.mark.parametrize("harm", ["cut", "emptied", "of another kind"])
@pytest.mark.parametrize("name", ["config_pretrain.json", "checkpoint.pt", "tokenizer.json"])
def test_a_damaged_file_is_a_sentence(tmp_path, name, harm):
    pretrain(SHAPES, MINUTE, tmp_path, progress=False)
    damaged = tmp_path / name
    content = damaged.read_bytes()
    left = {"cut": content[: len(content) // 2], "emptied": b"", "of another kind": b"[1]"}
    damaged.write_bytes(left[harm])
    with pytest.raises(MleRlError, match=f"{name} cannot be read") as raised:
        pretrain(SHAPES, MINUTE, tmp_path, progress=False)
    assert "\n" not in str(raised.value)


def test_pretraining_leaves_the_process_as_it_was(tmp_path):
    """Threads, and the global random numbers of whoever calls."""
    torch.set_num_threads(2)
    before = torch.get_rng_state()
    policy, _ = pretrain(SHAPES, MINUTE, tmp_path, progress=False)
    assert torch.get_num_threads() == 2
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(MINUTE.seed)
    same = type(policy.model)(policy.model.config).state_dict()
    start = new_model(MINUTE).state_dict()
    assert all(torch.equal(start[name], same[name]) for name in start)


def test_a_novice_is_another_policy_and_leaves_the_first_as_it_was(tmp_path):
    policy, _ = pretrain(SHAPES, MINUTE, tmp_path, progress=False)
    before = {name: tensor.clone() for name, tensor in policy.model.state_dict().items()}
    beginners = [novice(policy, SHAPES, steps=2, seed=seed) for seed in (0, 0, 1)]
    assert all(torch.equal(before[n], t) for n, t in policy.model.state_dict().items())
    weights = [beginner.model.state_dict()["model.norm.weight"] for beginner in beginners]
    assert not torch.equal(before["model.norm.weight"], weights[0])
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert not beginners[0].model.training


def test_a_saved_policy_is_read_back_up_to_sixteen_bits(tmp_path):
    policy, _ = pretrain(SHAPES, MINUTE, tmp_path / "run", progress=False)
    save_policy(policy, tmp_path / "saved")
    restored = load_policy(tmp_path / "saved")
    assert restored.style == "tiny"
    assert restored.tokenizer.get_vocab() == policy.tokenizer.get_vocab()
    for name, value in policy.model.state_dict().items():
        assert torch.allclose(value, restored.model.state_dict()[name], atol=1e-3), name
        assert restored.model.state_dict()[name].dtype == torch.float32
