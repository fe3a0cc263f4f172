"""The process of a run: alone, and with what the run changes given back afterwards."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mle_rl.errors import MleRlError


def refuse_several_processes() -> None:
    """One process has the workers, the queue and the ledger of a run.

    Raises:
        MleRlError: A launcher (torchrun, accelerate) started this as one of several.
    """
    world = os.environ.get("WORLD_SIZE", "")
    if world not in ("", "1"):
        raise MleRlError(
            f"WORLD_SIZE is {world}, but a run trains in one process, which has its workers and "
            "its ledger: start it with python alone, or give DurationAwareGRPOTrainer a rollout "
            "function of your own, for TRL trains on several processes."
        )


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Threads of torch."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """No progress bars for saving a checkpoint, no warnings of what TRL's own code uses."""
    from transformers.utils import logging

    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*gradient_checkpointing", FutureWarning)
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
