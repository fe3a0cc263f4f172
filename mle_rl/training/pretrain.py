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
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedTokenizerFast

from mle_rl.agent.corpus import examples
from mle_rl.agent.grammar import TaskShape
from mle_rl.agent.policy import Policy
from mle_rl.agent.tokenizer import load_tokenizer, train_tokenizer
from mle_rl.errors import MleRlError, first_line
from mle_rl.training.next_token import (
    IGNORED,
    PretrainConfig,
    batches,
    new_model,
    new_optimizer,
    schedule,
    update,
)
from mle_rl.training.surroundings import threads


def new_tokenizer(config: PretrainConfig, shapes: Sequence[TaskShape]) -> PreTrainedTokenizerFast:
    """The encoding, learnt from a stream of its own."""
    stream = examples(shapes, np.random.default_rng([config.seed, 1]))
    texts = (
        text for e in islice(stream, config.tokenizer_examples) for text in (e.prompt, e.completion)
    )
    return train_tokenizer(texts, config.vocabulary)


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
        MleRlError: The folder holds a run with other settings, or a damaged file.
    """
    with threads(config.threads):
        return _pretrain(shapes, config, folder, progress)


def _pretrain(shapes, config, folder, progress):
    folder.mkdir(parents=True, exist_ok=True)
    _check_settings(folder / "config_pretrain.json", config)
    tokenizer = _tokenizer(folder / "tokenizer.json", config, shapes)
    model = new_model(config)
    optimizer = new_optimizer(model, config)
    history = _restore(folder / "checkpoint.pt", model, optimizer)
    done = history[-1]["step"] if history else 0
    rng = np.random.default_rng([config.seed, 2, done])
    stream = batches(tokenizer, examples(shapes, rng), config, rng)
    before = history[-1]["seconds"] if history else 0.0
    tokens = history[-1]["tokens"] if history else 0
    started = time.monotonic()
    for step in range(done + 1, config.steps + 1):
        batch = next(stream)
        rate = config.learning_rate * schedule(step, config.steps)
        loss = update(model, optimizer, batch, rate)
        tokens += int((batch != IGNORED).sum())
        seconds = before + time.monotonic() - started
        history.append({"step": step, "loss": loss, "tokens": tokens, "seconds": seconds})
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


def _check_settings(file: Path, config: PretrainConfig) -> None:
    if file.is_file():
        with _damage_as_sentence(file):
            written = dict(json.loads(file.read_text(encoding="utf-8")))
        wanted = asdict(config)
        if changed := sorted(key for key in wanted if written.get(key) != wanted[key]):
            raise MleRlError(
                f"{file.parent} holds a pre-training with other settings ({', '.join(changed)}). "
                "Choose another folder, or delete that one to start again."
            )
    file.write_text(json.dumps(asdict(config), indent=2) + "\n", encoding="utf-8")


def _tokenizer(
    file: Path, config: PretrainConfig, shapes: Sequence[TaskShape]
) -> PreTrainedTokenizerFast:
    if not file.is_file():
        new_tokenizer(config, shapes).backend_tokenizer.save(str(file))
    with _damage_as_sentence(file):
        return load_tokenizer(file.parent)


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
    with _damage_as_sentence(file):
        state = torch.load(file, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return state["history"]


@contextmanager
def _damage_as_sentence(file: Path) -> Iterator[None]:
    try:
        yield
    # Three libraries read these files, and the tokenizer's raises nothing narrower.
    except Exception as error:
        raise MleRlError(
            f"{file} cannot be read ({first_line(error)}): restore it, or delete {file.parent} to "
            "start the pre-training again."
        ) from None
