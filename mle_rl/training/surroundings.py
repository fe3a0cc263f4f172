"""What a run changes in its process while it lasts, and gives back afterwards."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


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
