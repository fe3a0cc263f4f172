"""The language-model inserter with a policy's own weights: a copy that training never touches."""

from __future__ import annotations

import copy
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from mle_rl.errors import MleRlError
from mle_rl.instrumentation.language_model import (
    Format,
    LanguageModelInserter,
    anchors_prompt,
    rewrite_prompt,
    weights_checksum,
)

if TYPE_CHECKING:
    from mle_rl.agent import Policy

_ANSWER_TOKENS = {"anchors": 96, "rewrite": 1280}


def frozen_inserter(
    policy: Policy,
    *,
    format: Format = "anchors",
    batch_size: int = 16,
    cache: MutableMapping[str, str] | None = None,
) -> LanguageModelInserter:
    """An inserter with a frozen copy of a policy's present weights, decoded greedily.

    As in the paper the inserter is a static copy of the model that is trained: take it before the
    first update. A program too long for the model gets an empty answer, and so the syntax-tree
    inserter.

    Args:
        policy: ``tiny``, which has learnt the ``anchors`` format, or a chat model.
        format: ``anchors`` or ``rewrite``; ``tiny`` knows the first only.
        batch_size: Programs decoded at a time.
        cache: See `LanguageModelInserter`.

    Raises:
        MleRlError: ``tiny`` was asked for the format that it has not learnt.
    """
    if policy.style == "tiny" and format != "anchors":
        raise MleRlError("The tiny policy has learnt the format 'anchors' only.")
    model = copy.deepcopy(policy.model).eval().requires_grad_(False)

    def generate(prompts: list[str]) -> list[str]:
        encoded = [_encode(policy, prompt) for prompt in prompts]
        answers = [""] * len(prompts)
        fitting = [i for i, ids in enumerate(encoded) if _fits(model, ids, format)]
        fitting.sort(key=lambda i: len(encoded[i]))  # little padding in each batch
        for start in range(0, len(fitting), batch_size):
            rows = fitting[start : start + batch_size]
            texts = _decode_greedily(policy, model, [encoded[i] for i in rows], format)
            for row, text in zip(rows, texts, strict=True):
                answers[row] = text
        return answers

    return LanguageModelInserter(
        generate,
        format=format,
        prompt=_tiny_prompt if policy.style == "tiny" else _CHAT_PROMPTS[format],
        checksum=lambda: weights_checksum(model.state_dict()),
        cache=cache,
    )


_CHAT_PROMPTS = {"anchors": anchors_prompt, "rewrite": rewrite_prompt}


def _tiny_prompt(code: str) -> str:
    from mle_rl.agent.prompts import instrument_prompt

    return instrument_prompt(code)


def _encode(policy: Policy, prompt: str) -> list[int]:
    if policy.style == "tiny":
        return policy.tokenizer.encode(prompt, add_special_tokens=False)
    return policy.tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=False,
    )


def _fits(model: Any, ids: list[int], format: Format) -> bool:
    limit = getattr(model.config, "max_position_embeddings", None)
    return limit is None or len(ids) + _ANSWER_TOKENS[format] <= limit


def _decode_greedily(
    policy: Policy, model: Any, prompts: list[list[int]], format: Format
) -> list[str]:
    """One answer per prompt; prompts are padded on the left, as decoding needs it."""
    import torch

    tokenizer = policy.tokenizer
    width = max(map(len, prompts))
    pad = tokenizer.pad_token_id
    ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts], device=model.device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    with torch.no_grad():
        output = model.generate(
            input_ids=ids,
            attention_mask=mask.to(model.device),
            max_new_tokens=_ANSWER_TOKENS[format],
            do_sample=False,
            pad_token_id=pad,
            eos_token_id=tokenizer.eos_token_id,
        )
    return [tokenizer.decode(row[width:], skip_special_tokens=True) for row in output]
