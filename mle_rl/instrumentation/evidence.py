"""What counts as evidence: is it a model, is it data that was given, is it a number.

Standard library only: this runs inside the sandboxed child.
"""

from __future__ import annotations

import io
import pathlib
import time
from math import isfinite
from os import fspath, stat
from os.path import abspath
from typing import Any

from mle_rl.instrumentation import libraries
from mle_rl.instrumentation.genuine import (
    Installed,
    behind_super,
    instance_dict,
    is_one_of,
    mro,
    namespace,
)

_COARSE_CLOCK = 5  # Linux: CLOCK_REALTIME_COARSE, the clock that file times are taken from
_NUMBER_LIBRARIES = frozenset({"numpy", "torch", "tensorflow", "keras", "jax"})
_KEPT_BACK = ("test_", "eval_", "val_", "valid_")
_LONGEST = 1000
_PREDICTS = frozenset({"predict", "predict_step", "encode"})


def now_ns() -> int:
    """The present on the clock of file times; a file written from now on is not older."""
    try:
        return time.clock_gettime_ns(_COARSE_CLOCK)
    except (AttributeError, OSError):
        return time.time_ns() - 20_000_000


def is_model(thing: Any, installed: Installed) -> bool:
    """Whether a value is a model of a known library: it predicts, or is a network with parts.

    An object of the program's own class is one if the class derives from such a model.
    """
    thing = behind_super(thing)
    for kind in mro(type(thing)):
        library = installed.of_class(kind)
        if library not in libraries.MODEL_LIBRARIES:
            continue
        if library == "torch" and kind.__name__ == "Module":
            own = instance_dict(thing)
            return bool(own.get("_modules") or own.get("_parameters"))
        if library == "sklearn" and kind.__name__ == "Pipeline":
            steps = instance_dict(thing).get("steps")
            return bool(steps) and is_model(steps[-1][1], installed)
        if not _PREDICTS.isdisjoint(namespace(kind)):
            return True
    return False


def is_given_file(path: Any, folder: str, began_ns: int) -> bool:
    """Whether what a reader is given names only files that were given to the program.

    That is, files below the folder in which the program began, and older than that moment.

    Args:
        path: Path or open file, or a list or dictionary of such.
        folder: Absolute path, with a separator at its end.
        began_ns: On the clock of `now_ns`.
    """
    if type(path) is dict:
        path = list(path.values())
    if is_one_of(type(path), list, tuple):
        return bool(path) and all(is_given_file(part, folder, began_ns) for part in path)
    if is_one_of(type(path), io.TextIOWrapper, io.BufferedReader, io.FileIO):
        path = path.name
    if is_one_of(type(path), pathlib.PosixPath, pathlib.WindowsPath):
        path = fspath(path)
    if type(path) is not str or not abspath(path).startswith(folder):
        return False
    try:
        return stat(path).st_ctime_ns < began_ns
    except (OSError, ValueError):
        return False


def number(seen: Any, installed: Installed, *, last: bool = False) -> float | None:
    """The finite number that a loss or score is, or None.

    Takes a real number or a one-element array or tensor; of a short series its mean (the scores of
    a cross-validation) or its last (the losses of a training). Only types of Python itself and of
    numerical libraries are looked into.
    """
    kind = type(seen)
    if is_one_of(kind, int, float):
        return float(seen) if isfinite(seen) else None
    if is_one_of(kind, list, tuple):
        return _of_series(list(seen[:_LONGEST]), installed, last)
    library = installed.of_class(kind)
    if library not in _NUMBER_LIBRARIES or not hasattr(seen, "item"):
        return None
    if library == "torch":
        seen = seen.detach()
    if getattr(seen, "ndim", 0) == 1 and 1 < len(seen) <= _LONGEST:
        return _of_series(seen.tolist(), installed, last)
    seen = seen.item()
    return float(seen) if is_one_of(type(seen), int, float) and isfinite(seen) else None


def _of_series(items: list, installed: Installed, last: bool) -> float | None:
    flat = [i for i in items if not is_one_of(type(i), list, tuple)]
    numbers = [number(item, installed) for item in flat]
    if not numbers or None in numbers or len(flat) != len(items):
        return None
    return numbers[-1] if last else sum(numbers) / len(numbers)  # type: ignore[arg-type]


def reported(result: Any, installed: Installed, *, loss: bool) -> float | None:
    """The loss or score in what training, evaluation and cross-validation functions return."""
    kind = type(result)
    if kind is dict:
        return _of_names(result, installed, loss)
    if installed.of_class(kind) in libraries.MODEL_LIBRARIES:
        history = instance_dict(result).get("history")  # Keras
        if type(history) is dict:
            return _of_names(history, installed, loss)
        if isinstance(result, tuple) and "training_loss" in getattr(kind, "_fields", ()):
            return number(result.training_loss, installed)  # transformers
    if kind is list and not loss:
        return number(result[0], installed) if result else None  # Keras: loss, then metrics
    return number(result, installed, last=loss)


def _of_names(named: dict, installed: Installed, loss: bool) -> float | None:
    for key, value in named.items():
        kept_back = type(key) is str and key.startswith(_KEPT_BACK)
        if (loss and key == "loss") or (not loss and kept_back):
            return number(value, installed, last=type(value) is list)
    return None
