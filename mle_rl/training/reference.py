"""The policy that a Kullback-Leibler divergence is measured from, the start of the training.

TRL reads its reference model from where the model was once loaded. A policy that is given in memory
may have been trained since then, or never lay in a file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@contextmanager
def readable(model: PreTrainedModel, run_dir: Path) -> Iterator[None]:
    """While it lasts, TRL finds the weights of ``model`` as they are now."""
    folder, came_from = run_dir / "reference.part", model.config._name_or_path
    try:
        model.save_pretrained(folder)
        model.config._name_or_path = str(folder)
        yield
    finally:
        model.config._name_or_path = came_from
        shutil.rmtree(folder, ignore_errors=True)
