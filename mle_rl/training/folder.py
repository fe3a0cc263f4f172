"""The folder of a run: which run it belongs to, and whether that has ended.

``settings.txt`` is written first and compared ever after; ``policy/`` appears as a whole once the
last batch has been trained on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mle_rl.errors import MleRlError
from mle_rl.files import hold, write_whole
from mle_rl.training.config import TrainConfig

_STEPS = "steps.json"


@contextmanager
def claimed(config: TrainConfig, peft_config: Any = None) -> Iterator[None]:
    """Hold the folder of the run, with its settings written down or found to be the same.

    The lock goes with the process, however it ends.

    Raises:
        MleRlError: It holds another run, another process trains in it, or it cannot be written.
    """
    folder = config.run_dir
    settings = folder / "settings.txt"
    # A longer run with otherwise equal settings may go on with a shorter one.
    wanted = replace(config, steps=1).to_json() + f"adapters: {_adapters(peft_config)}\n"
    with ExitStack() as opened:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = opened.enter_context((folder / "lock").open("w"))
            hold(
                lock,
                f"Another process is training in {folder}: wait until it ends, end it, or give "
                "this run a folder of its own.",
            )
            if not settings.exists():
                write_whole(settings, wanted)
            if settings.read_text(encoding="utf-8") != wanted:
                raise MleRlError(
                    f"{folder} holds a run with other settings (see settings.txt there): give this "
                    "run a folder of its own, or delete that one."
                )
        except (OSError, UnicodeDecodeError) as error:
            raise MleRlError(
                f"The folder of the run, {folder}, cannot be used ({error}): choose a run_dir "
                "where you may read and write."
            ) from None
        yield


def has_ended(config: TrainConfig) -> bool:
    """Whether the trained policy lies there, after as many batches as are wanted or more."""
    try:
        steps = json.loads((_policy(config) / _STEPS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    return steps["steps"] >= config.steps


def save_policy(config: TrainConfig, model, tokenizer, steps: int) -> None:
    """Write the trained policy; that of a shorter run stays until the new one is whole.

    A folder cannot take the place of another in one move. A kill between the two leaves no
    ``policy/``, so the run has not ended and writes it again from its last checkpoint.
    """
    folder = _policy(config)
    part, before = config.run_dir / "policy.part", config.run_dir / "policy.before"
    shutil.rmtree(part, ignore_errors=True)  # what a kill has left of an earlier attempt
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    (part / _STEPS).write_text(json.dumps({"steps": steps}), encoding="utf-8")
    if folder.is_dir():
        shutil.rmtree(before, ignore_errors=True)
        folder.replace(before)
    part.replace(folder)
    shutil.rmtree(before, ignore_errors=True)


def _policy(config: TrainConfig) -> Path:
    return config.run_dir / "policy"


def _adapters(peft_config: Any) -> str:
    if peft_config is None:
        return "none, all weights are trained"
    fields = {
        name: sorted(value) if isinstance(value, set) else value
        for name, value in peft_config.to_dict().items()
    }
    return json.dumps(fields, indent=1, sort_keys=True, default=str)
