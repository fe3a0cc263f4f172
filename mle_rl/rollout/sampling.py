"""Sampling completions with the log-probability of every token.

Two ways with one interface: any causal language model of transformers goes through ``generate``, a
small Llama on CPU through the decoder of :mod:`mle_rl.rollout.llama`.

Sampling is from the model's distribution at ``temperature`` and nothing else: no top-k, no top-p,
no penalties. Log-probabilities are those of that distribution, so the importance ratio of a policy
that has not changed is 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from mle_rl.errors import MleRlError
from mle_rl.rollout.llama import LlamaDecoder, is_plain_llama, left_pad


@dataclass(frozen=True)
class Completion:
    """One sampled completion.

    Attributes:
        ids: Token ids, at least one; end-of-text is the last of them if it was sampled.
        logprobs: Log-probability of each token at the sampling temperature.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True)
class SamplingSettings:
    """How completions are sampled."""

    max_new_tokens: int
    """Longest completion in tokens, end-of-text included."""

    eos_ids: tuple[int, ...]
    """Any of these tokens ends a completion."""

    pad_id: int
    """Fills short rows; never part of a completion unless the model samples it."""

    temperature: float = 1.0
    """Logits are divided by it."""

    def __post_init__(self):
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise MleRlError(
                f"The sampling temperature is {self.temperature}: it must be positive. Greedy "
                "decoding has no log-probabilities to learn from; take a small temperature instead."
            )
        if self.max_new_tokens < 1:
            raise MleRlError(
                f"max_new_tokens is {self.max_new_tokens}: a completion has one token at least."
            )
        if not self.eos_ids:
            raise MleRlError("Give the id of an end-of-text token: without it no completion ends.")


@torch.no_grad()
def sample(
    model,
    prompts: Sequence[Sequence[int]],
    settings: SamplingSettings,
    generator: torch.Generator,
) -> list[Completion]:
    """Sample one completion for each prompt.

    Args:
        model: A causal language model of transformers, PEFT-wrapped or not.
        prompts: Token ids of each prompt, none empty, without padding. Equal prompts may repeat.
        settings: Length, ends and temperature.
        generator: Source of randomness, on CPU; one call advances it by a fixed amount.

    Returns:
        One completion for each prompt, in the order of the prompts.

    Raises:
        MleRlError: There is no prompt, one is empty, or prompt and completion exceed the model's
            positions.
    """
    _check_lengths(model, prompts, settings)
    if is_plain_llama(model):
        ids, logprobs = LlamaDecoder(model, settings).sample(prompts, generator)
    else:
        ids, logprobs = _generate(model, prompts, settings, generator)
    return _cut(ids, logprobs, settings.eos_ids)


def _check_lengths(model, prompts, settings):
    if not prompts:
        raise MleRlError("There is nothing to sample: give at least one prompt.")
    if not all(len(prompt) for prompt in prompts):
        raise MleRlError("A prompt has no tokens: give at least a begin-of-text token.")
    limit = getattr(model.config, "max_position_embeddings", math.inf)
    longest = max(len(prompt) for prompt in prompts) + settings.max_new_tokens
    if longest > limit:
        raise MleRlError(
            f"Prompt and completion can reach {longest} tokens, the model reads {limit}: "
            "shorten the prompt or lower max_new_tokens."
        )


def _cut(ids: Tensor, logprobs: Tensor, eos_ids: tuple[int, ...]) -> list[Completion]:
    """Completions from (rows, tokens) matrices, each cut after its first end-of-text."""
    ends = torch.isin(ids, torch.tensor(eos_ids))
    lengths = torch.where(ends.any(1), ends.int().argmax(1) + 1, ids.shape[1]).tolist()
    rows = zip(ids.tolist(), logprobs.tolist(), lengths, strict=True)
    return [Completion(tuple(row[:n]), tuple(logps[:n])) for row, logps, n in rows]


class _LogprobRecorder:
    """A logits processor that keeps the log-probability of each token that was then chosen.

    ``generate`` could return all scores, but that is (tokens, rows, vocabulary) numbers: gigabytes
    for a large vocabulary. Here one step's scores are kept until the chosen token is known.
    """

    def __init__(self, temperature: float):
        self.temperature = temperature
        self.chosen: list[Tensor] = []
        self._pending: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        self.record(input_ids)
        self._pending = torch.log_softmax(scores.float() / self.temperature, dim=-1)
        return scores

    def record(self, input_ids: Tensor) -> None:
        if self._pending is not None:
            self.chosen.append(self._pending.gather(1, input_ids[:, -1:]))


def _generate(model, prompts, settings, generator) -> tuple[Tensor, Tensor]:
    """Ids and log-probabilities, both (prompts, tokens of the longest completion)."""
    from transformers import GenerationConfig, LogitsProcessorList

    ids, mask = left_pad(prompts, settings.pad_id)
    recorder = _LogprobRecorder(settings.temperature)
    config = GenerationConfig(
        max_new_tokens=settings.max_new_tokens,
        do_sample=True,
        temperature=settings.temperature,
        top_k=0,
        top_p=1.0,
        pad_token_id=settings.pad_id,
        eos_token_id=list(settings.eos_ids),
    )
    seed = int(torch.randint(2**62, (), generator=generator))
    was_training = model.training
    model.eval()  # dropout off, and gradient checkpointing would switch the cache off
    devices = [model.device] if model.device.type == "cuda" else []
    try:
        # generate draws from the global generator only: lend it a seed and give its state back.
        with torch.random.fork_rng(devices=devices), _without_own_settings(model):
            torch.manual_seed(seed)
            sequences = model.generate(
                input_ids=ids.to(model.device),
                attention_mask=mask.to(model.device),
                generation_config=config,
                logits_processor=LogitsProcessorList([recorder]),
            )
    finally:
        model.train(was_training)
    recorder.record(sequences)
    logprobs = torch.cat(recorder.chosen, dim=1)
    return sequences[:, ids.shape[1] :].cpu(), logprobs.cpu()


@contextmanager
def _without_own_settings(model) -> Iterator[None]:
    """Hide the model's own generation settings, and give them back.

    ``generate`` takes from there whatever it is not told: penalties, cuts and forbidden tokens that
    a model of the hub brings along change what is sampled, and the recorder does not see them.
    """
    from transformers import GenerationConfig

    # An adapter hands the settings down from where it finds them, to the model that it wraps.
    kept = {
        part: part.generation_config
        for part in model.modules()
        if "generation_config" in vars(part)
    }
    try:
        for part in kept:
            part.generation_config = GenerationConfig()
        yield
    finally:
        for part, settings in kept.items():
            part.generation_config = settings
