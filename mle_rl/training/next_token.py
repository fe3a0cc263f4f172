"""Next-token training of a small Llama: model, batches of examples, one update.

`mle_rl.training.pretrain` makes the shipped policy with it, `mle_rl.training.novice` one that makes
more mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from mle_rl.agent.corpus import Example

IGNORED = -100
"""The label that transformers' loss leaves out."""
_POOL = 512
"""Examples sorted by length together, so that batches need little padding."""


@dataclass(frozen=True)
class PretrainConfig:
    """Settings of the pre-training.

    Attributes:
        steps: Optimiser steps.
        batch_tokens: Padded tokens in a batch.
        learning_rate: Peak, after a linear warm-up over the first 4 %; then a cosine to a
            twentieth.
        vocabulary: Tokens of the byte-pair encoding, learnt from ``tokenizer_examples`` examples.
        hidden, layers, heads, feed_forward: Size of the Llama.
        context: Longest sequence, prompt and completion together; longer examples are left out.
        seed: Of the initial weights and of the stream.
        threads: Torch threads; two are faster only while nothing else runs.
        checkpoint_steps: Steps between checkpoints.
    """

    steps: int = 2400
    batch_tokens: int = 4096
    learning_rate: float = 3e-3
    vocabulary: int = 1536
    tokenizer_examples: int = 12_000
    hidden: int = 160
    layers: int = 4
    heads: int = 5
    feed_forward: int = 448
    context: int = 1024
    seed: int = 0
    threads: int = 1
    checkpoint_steps: int = 100


def new_model(config: PretrainConfig) -> LlamaForCausalLM:
    """A Llama with random weights; input and output embeddings are one matrix."""
    settings = LlamaConfig(
        vocab_size=config.vocabulary,
        hidden_size=config.hidden,
        intermediate_size=config.feed_forward,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.context,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    # Initial weights are drawn from the global generator; the caller gets it back as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return LlamaForCausalLM(settings)


def encode(tokenizer: PreTrainedTokenizerFast, example: Example) -> list[int]:
    """Token ids of prompt, completion and end-of-text.

    Prompt and completion are encoded apart, because that is how they meet when the policy is
    sampled.
    """
    prompt = tokenizer.encode(example.prompt, add_special_tokens=False)
    return (
        prompt
        + tokenizer.encode(example.completion, add_special_tokens=False)
        + [tokenizer.eos_token_id]
    )


def batches(
    tokenizer: PreTrainedTokenizerFast,
    stream: Iterator[Example],
    config: PretrainConfig,
    rng: np.random.Generator,
) -> Iterator[torch.Tensor]:
    """An endless stream of (examples, tokens) batches, padded on the right with ``IGNORED``."""
    while True:
        pool = sorted((encode(tokenizer, e) for e in islice(stream, _POOL)), key=len)
        made = []
        pool = [ids for ids in pool if len(ids) <= config.context]
        while pool:
            rows = max(1, config.batch_tokens // len(pool[-1]))
            chosen, pool = pool[-rows:], pool[:-rows]
            batch = torch.full((len(chosen), len(chosen[-1])), IGNORED)
            for row, ids in zip(batch, chosen, strict=True):
                row[: len(ids)] = torch.tensor(ids)
            made.append(batch)
        for index in rng.permutation(len(made)):
            yield made[index]


def new_optimizer(model: LlamaForCausalLM, config: PretrainConfig) -> torch.optim.Optimizer:
    """AdamW with the usual settings for a language model."""
    return torch.optim.AdamW(
        model.parameters(), config.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )


def update(
    model: LlamaForCausalLM, optimizer: torch.optim.Optimizer, batch: torch.Tensor, rate: float
) -> float:
    """One optimiser step with the learning rate ``rate``; returns the loss in nats per token."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    # Padding is on the right and attention is causal: without a mask nothing before it changes,
    # and the faster kernel is used. Weights stay in 32 bits, products are taken in 16.
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(input_ids=batch.clamp(min=0), labels=batch, use_cache=False).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def schedule(step: int, steps: int) -> float:
    """Share of the peak learning rate: a linear warm-up over 4 %, then a cosine to a twentieth."""
    warm_up = max(1, steps // 25)
    if step <= warm_up:
        return step / warm_up
    progress = (step - warm_up) / max(1, steps - warm_up)
    return 0.05 + 0.95 * 0.5 * (1 + float(np.cos(np.pi * progress)))
