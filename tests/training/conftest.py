"""A minute Llama with random weights and a word-level tokenizer: TRL runs on them in a second."""

import pytest
import small_run

from mle_rl.agent import Policy
from mle_rl.sandbox import LocalPool

WORDS = 24


@pytest.fixture(scope="session")
def make_llama():
    """Make a fresh Llama of about 2,000 parameters; the same weights for the same seed."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    def make(seed: int = 0, **changes):
        torch.manual_seed(seed)
        settings = {
            "vocab_size": WORDS,
            "hidden_size": 8,
            "intermediate_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "max_position_embeddings": 64,
            "pad_token_id": 0,
            "bos_token_id": None,
            "eos_token_id": 1,
            "initializer_range": 0.5,
            "tie_word_embeddings": True,
        }
        model = LlamaForCausalLM(LlamaConfig(**settings | changes))
        model.generation_config.eos_token_id = 1
        return model

    return make


@pytest.fixture(scope="session")
def tokenizer():
    """One token per word: ``<pad>``, ``<end>``, then ``w2`` to ``w23``."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<end>", *(f"w{i}" for i in range(2, WORDS))]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="w2"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<end>", padding_side="left"
    )


@pytest.fixture(scope="module")
def make_policy(make_llama, tokenizer):
    """Always the same minute policy, see `small_run`."""
    return lambda: small_run.writer(Policy("minute", make_llama(), tokenizer, "chat", 6))


@pytest.fixture
def policy(make_policy):
    return make_policy()


@pytest.fixture(scope="module")
def pool():
    with LocalPool(1, "limits") as opened:
        yield opened
