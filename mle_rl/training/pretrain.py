"""Train the ``tiny`` policy from scratch on the corpus (notebook 90).

A small Llama learns three skills from an endless stream of generated examples; no example is seen
twice, so the training loss is also the held-out loss up to noise. Runs can be interrupted and
resumed: the stream is re-made from the seed and the step, and the checkpoint holds model, optimiser
and step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from mle_rl.agent.corpus import Example, examples
from mle_rl.agent.grammar import TaskShape
from mle_rl.agent.policy import Policy
from mle_rl.agent.tokenizer import train_tokenizer
from mle_rl.errors import MleRlError

_IGNORED = -100
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
    torch.manual_seed(config.seed)
    return LlamaForCausalLM(
        LlamaConfig(
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
    )


def new_tokenizer(config: PretrainConfig, shapes: Sequence[TaskShape]) -> PreTrainedTokenizerFast:
    """The encoding, learnt from a stream of its own."""
    stream = examples(shapes, np.random.default_rng([config.seed, 1]))
    texts = (
        text for e in islice(stream, config.tokenizer_examples) for text in (e.prompt, e.completion)
    )
    return train_tokenizer(texts, config.vocabulary)


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
    shapes: Sequence[TaskShape],
    config: PretrainConfig,
    first_step: int,
) -> Iterator[torch.Tensor]:
    """An endless stream of (examples, tokens) batches, padded on the right with ``_IGNORED``."""
    rng = np.random.default_rng([config.seed, 2, first_step])
    stream = examples(shapes, rng)
    while True:
        pool = sorted((encode(tokenizer, e) for e in islice(stream, _POOL)), key=len)
        made = []
        pool = [ids for ids in pool if len(ids) <= config.context]
        while pool:
            rows = max(1, config.batch_tokens // len(pool[-1]))
            chosen, pool = pool[-rows:], pool[:-rows]
            batch = torch.full((len(chosen), len(chosen[-1])), _IGNORED)
            for row, ids in zip(batch, chosen, strict=True):
                row[: len(ids)] = torch.tensor(ids)
            made.append(batch)
        for index in rng.permutation(len(made)):
            yield made[index]


def pretrain(
    shapes: Sequence[TaskShape], config: PretrainConfig, folder: Path, progress: bool = True
) -> tuple[Policy, pd.DataFrame]:
    """Train, or go on training, the policy in ``folder``.

    Args:
        shapes: Shapes of the suite's tasks, part of the corpus.
        folder: Where checkpoint, history and the finished policy lie.

    Returns:
        The policy and its history: step, loss (nats per token), tokens seen, wall-clock seconds.

    Raises:
        MleRlError: The folder holds a run with other settings.
    """
    torch.set_num_threads(config.threads)
    folder.mkdir(parents=True, exist_ok=True)
    _check_settings(folder / "config_pretrain.json", config)
    tokenizer = _tokenizer(folder, config, shapes)
    model = new_model(config)
    optimizer = torch.optim.AdamW(
        model.parameters(), config.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    history = _restore(folder / "checkpoint.pt", model, optimizer)
    done = history[-1]["step"] if history else 0
    stream = batches(tokenizer, shapes, config, done)
    before = history[-1]["seconds"] if history else 0.0
    tokens = history[-1]["tokens"] if history else 0
    started = time.monotonic()
    for step in range(done + 1, config.steps + 1):
        batch = next(stream)
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * _schedule(step, config.steps)
        # Padding is on the right and attention is causal: without a mask nothing before it changes,
        # and the faster kernel is used. Weights stay in 32 bits, products are taken in 16.
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=batch.clamp(min=0), labels=batch, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        tokens += int((batch != _IGNORED).sum())
        seconds = before + time.monotonic() - started
        history.append({"step": step, "loss": loss.item(), "tokens": tokens, "seconds": seconds})
        if step % config.checkpoint_steps == 0 or step == config.steps:
            _checkpoint(folder / "checkpoint.pt", model, optimizer, history)
            if progress:
                recent = np.mean([row["loss"] for row in history[-config.checkpoint_steps :]])
                print(
                    f"step {step:5d} of {config.steps}  loss {recent:.4f} nats/token  "
                    f"{tokens / 1e6:.1f} M tokens  {seconds / 60:.1f} min",
                    flush=True,
                )
    policy = Policy("tiny", model.eval(), tokenizer, "tiny", max_completion_length=320)
    return policy, pd.DataFrame(history)


def save_policy(policy: Policy, folder: Path) -> None:
    """Write configuration, tokenizer and 16-bit weights; `mle_rl.agent.load_policy` reads them as
    32-bit."""
    folder.mkdir(parents=True, exist_ok=True)
    policy.tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    half = type(policy.model)(policy.model.config)
    half.load_state_dict(policy.model.state_dict())
    half.half().save_pretrained(folder)


def _schedule(step: int, steps: int) -> float:
    warm_up = max(1, steps // 25)
    if step <= warm_up:
        return step / warm_up
    progress = (step - warm_up) / max(1, steps - warm_up)
    return 0.05 + 0.95 * 0.5 * (1 + float(np.cos(np.pi * progress)))


def _check_settings(file: Path, config: PretrainConfig) -> None:
    written = json.loads(file.read_text()) if file.is_file() else None
    if written is not None and written != asdict(config):
        changed = sorted(key for key, value in asdict(config).items() if written.get(key) != value)
        raise MleRlError(
            f"{file.parent} holds a pre-training with other settings ({', '.join(changed)}). "
            "Choose another folder, or delete that one to start again."
        )
    file.write_text(json.dumps(asdict(config), indent=2) + "\n")


def _tokenizer(
    folder: Path, config: PretrainConfig, shapes: Sequence[TaskShape]
) -> PreTrainedTokenizerFast:
    from mle_rl.agent.tokenizer import load_tokenizer

    if not (folder / "tokenizer.json").is_file():
        new_tokenizer(config, shapes).backend_tokenizer.save(str(folder / "tokenizer.json"))
    return load_tokenizer(folder)


def _checkpoint(file: Path, model, optimizer, history: list[dict]) -> None:
    partial = file.with_suffix(".partial")
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "history": history},
        partial,
    )
    partial.replace(file)  # a kill between these two lines leaves the previous checkpoint whole


def _restore(file: Path, model, optimizer) -> list[dict]:
    if not file.is_file():
        return []
    state = torch.load(file, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["history"]
