"""Witnesses: the objects inside a woven program that see what really happens.

A witness sits among the constants of the program's code, has no name that the program could look
up, and receives values on their way through an expression. It credits a stage only on evidence:

* what was called is the library's own code: its file lies in a folder of installed packages (not in
  the program's), so a look-alike class, a replaced method or a module the program wrote earns nothing;
* what was fitted can predict, so a scaler or an encoder is no model;
* a file that was read existed before the program began, so data the program wrote itself is no data;
* a loss or score is one finite real number.

A witness never disturbs: it evaluates nothing of the program's own (no properties, no ``__float__``),
keeps no reference to a value, and an error inside it costs the credit and nothing else. A witness
that is pickled with a function (joblib, multiprocessing) arrives as a plain ``operator.itemgetter``.

Standard library only: this runs inside the sandboxed child.
"""

from __future__ import annotations

import io
import math
import operator
import os
import sys
import sysconfig
import time
import types
from collections.abc import Callable
from typing import Any

from mle_rl.instrumentation import libraries
from mle_rl.instrumentation.insertions import VALUED_STAGES, Insertion

Mark = Callable[[str, float | None], None]
"""Reports a stage, over a channel of the sandbox. Called again when a later value is seen: the
receiver keeps the order of first calls and the last value."""


class Run:
    """What the witnesses of one program share.

    Args:
        mark: Where credit is reported.
        filename: The program's file; its folder never counts as a folder of installed packages.
    """

    def __init__(self, mark: Mark, filename: str) -> None:
        self.mark = mark
        self.began_ns = time.time_ns()
        self.reached: set[str] = set()
        self.noted: set[str] = set()
        own = {os.path.realpath(os.path.dirname(filename) or "."), os.path.realpath(".")}
        installed = [
            sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
        ]
        folders = {os.path.realpath(folder) for folder in [*installed, *sys.path] if folder}
        self.roots = tuple(sorted((f + os.sep for f in folders - own), key=len, reverse=True))

    def library_of_file(self, path: str) -> str | None:
        """The top-level name of the installed package that a source file belongs to."""
        path = os.path.realpath(path)
        for root in self.roots:
            if path.startswith(root):
                return path[len(root) :].split(os.sep)[0].split(".")[0]
        return None

    def library_of_class(self, kind: type) -> str | None:
        """The library that really defines a class, or None for one of the program's own."""
        name = kind.__module__ if isinstance(kind.__module__, str) else ""
        module = sys.modules.get(name)
        found: Any = module
        for part in kind.__qualname__.split("."):
            found = getattr(found, "__dict__", {}).get(part)
        if found is not kind:
            return None
        return self.library_of_module(module)

    def library_of_module(self, module: Any) -> str | None:
        """The library that an imported module belongs to, judged by its file."""
        if not isinstance(module, types.ModuleType):
            return None
        top = sys.modules.get(module.__name__.split(".")[0])
        if module.__name__.split(".")[0] in sys.builtin_module_names:
            return module.__name__
        file = getattr(top, "__file__", None) or next(iter(getattr(top, "__path__", ())), None)
        return self.library_of_file(file) if file else None

    def library_of(self, called: Any, holder: type | None = None) -> str | None:
        """The library whose code runs when ``called`` is called, or None.

        Args:
            called: A function, class, descriptor or callable object.
            holder: The class in whose namespace it was found, for a method.
        """
        if isinstance(called, staticmethod | classmethod | types.MethodType):
            called = called.__func__
        if isinstance(called, types.FunctionType):
            return self.library_of_file(called.__code__.co_filename)
        if isinstance(called, type):
            return self.library_of_class(called)
        if holder is not None:
            return self.library_of_class(holder)
        if isinstance(called, types.BuiltinFunctionType):
            return (called.__module__ or "").split(".")[0] or None
        return self.library_of_class(type(called))

    def credit(self, stage: str, value: float | None) -> None:
        self.reached.add(stage)
        self.mark(stage, value)


def method(receiver: Any, name: str, run: Run, inherited: bool = False) -> str | None:
    """The library whose code runs for ``receiver.name(...)``, found without running any of it.

    Args:
        inherited: Skip the program's own classes, as ``super()`` does.
    """
    if isinstance(receiver, types.ModuleType):
        return run.library_of(vars(receiver).get(name))
    if isinstance(receiver, type):
        classes: tuple[type, ...] = receiver.__mro__
    else:
        classes = type(receiver).__mro__
        own = _instance_dict(receiver)
        if name in own:
            return run.library_of(own[name])
    for kind in classes:
        if name in vars(kind) and not (inherited and run.library_of_class(kind) is None):
            return run.library_of(vars(kind)[name], kind)
    return None


def _instance_dict(thing: Any) -> dict:
    try:
        own = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return own if isinstance(own, dict) else {}


def number(seen: Any, run: Run) -> float | None:
    """The finite number that a loss or score is, or None.

    Takes a real number, a one-element tensor, or the mean of a short list or array of numbers (the
    scores of cross-validation). Only types of Python itself and of libraries are looked into.
    """
    kind = type(seen)
    if kind in (list, tuple, dict):
        items = list(seen.values() if kind is dict else seen)[:1000]
        numbers = [number(item, run) for item in items if type(item) not in (list, tuple, dict)]
        kept = [x for x in numbers if x is not None]
        return sum(kept) / len(kept) if kept and len(kept) == len(items) else None
    if kind not in (int, float):
        library = run.library_of_class(kind)
        if library == "numpy" and getattr(seen, "ndim", 0) == 1 and 0 < seen.size <= 1000:
            seen = seen.mean()
        elif library not in ("numpy", "torch", "tensorflow", "keras", "jax") or not hasattr(
            seen, "item"
        ):
            return None
        seen = (seen.detach() if library == "torch" else seen).item()
        if type(seen) not in (int, float):
            return None
    return float(seen) if math.isfinite(seen) else None


class Witness:
    """Receives ``(value, *names)`` and gives back ``value``; see `observe` for what it makes of it."""

    __slots__ = ("_observe",)

    def __init__(self, observe: Callable[..., None]) -> None:
        self._observe = observe

    def __call__(self, seen: tuple) -> Any:
        try:
            self._observe(*seen)
        except Exception:
            pass
        return seen[0]

    def __reduce__(self):
        return operator.itemgetter, (0,)

    def __repr__(self) -> str:
        return "<witness>"


class Site:
    """The observers of one insertion: the receiver, the path that is read, and the result.

    Verdicts are taken when the receiver passes, before the call, and only verdicts are kept.
    """

    def __init__(self, insertion: Insertion, run: Run, attribute: str | None) -> None:
        self.insertion, self.run = insertion, run
        self.attribute = attribute
        self.genuine = False
        self.path_known = False
        self.value: float | None = None
        self.passes = 0

    def see_receiver(self, receiver: Any, *_: Any) -> None:
        """Judges what is about to be called: ``receiver.attribute``, or ``receiver`` itself."""
        if self._settled():
            return
        if self.insertion.value == "receiver":
            self.value = number(receiver, self.run)
        self.genuine = self._judge(receiver)

    def see_path(self, path: Any, *_: Any) -> None:
        """Judges what is about to be read: an older file, by path or as an open file."""
        if isinstance(path, io.TextIOWrapper | io.BufferedReader | io.FileIO):
            path = path.name
        self.path_known = False
        parts = os.fspath(path).split("\n") if type(path) not in (list, tuple, dict) else []
        if type(path) in (list, tuple, dict):
            parts = [os.fspath(p) for p in (path.values() if type(path) is dict else path)]
        self.path_known = bool(parts) and all(
            os.stat(part).st_ctime_ns <= self.run.began_ns for part in parts
        )

    def see_result(self, result: Any = None, *names: Any) -> None:
        """Credits the stage if the evidence is there."""
        if self._settled():
            return
        insertion, run = self.insertion, self.run
        if not self._holds(result, names):
            return
        if insertion.check == "note":
            run.noted.add(insertion.stage)
            return
        value = self.value
        if insertion.stage in VALUED_STAGES:
            if insertion.value == "result":
                value = number(_reported(result), run)
            elif insertion.check == "word":
                value = number(names[0], run) if names else None
            if value is None:
                return
        self.passes += 1
        if self.passes & (self.passes - 1) == 0:
            run.credit(insertion.stage, value)

    def _settled(self) -> bool:
        """True when seeing more changes nothing: the stage is credited and carries no value."""
        stage = self.insertion.stage
        if self.insertion.check == "note":
            return stage in self.run.noted
        return stage in self.run.reached and stage not in VALUED_STAGES

    def _holds(self, result: Any, names: tuple) -> bool:
        check, run, stage = self.insertion.check, self.run, self.insertion.stage
        if check == "word":
            return True
        if check == "trained":
            return "model_trained" in run.reached | run.noted
        if check == "noted":
            return stage in run.noted
        if check == "import":
            found = (run.library_of_module(n) or run.library_of(n) for n in names)
            return any(library in libraries.PACKAGES for library in found)
        if stage == "model_defined":
            return is_model(result, run)
        if stage == "data_loaded":
            return self.genuine and self.path_known
        return self.genuine

    def _judge(self, receiver: Any) -> bool:
        run, stage, attribute = self.run, self.insertion.stage, self.attribute
        if attribute is None:
            if stage == "test_labels_predicted":
                return is_model(receiver, run)
            library = run.library_of(receiver)
        else:
            inherited = type(receiver) is super
            if inherited:
                receiver = super.__dict__["__self__"].__get__(receiver)
            library = method(receiver, attribute, run, inherited)
        if stage == "data_loaded":
            return library in libraries.READER_LIBRARIES
        if stage == "validation_score_seen" or stage == "training_loss_seen":
            return library in libraries.METRIC_LIBRARIES
        if library not in libraries.MODEL_LIBRARIES:
            return False
        if stage == "model_trained" and attribute in libraries.FIT_METHODS:
            return is_model(receiver, run) or library == "statsmodels"
        return True


def is_model(thing: Any, run: Run) -> bool:
    """Whether a value is a model of a known library: it predicts, or it is a network with parts."""
    kind = type(thing)
    for base in kind.__mro__:
        library = run.library_of_class(base)
        if library not in libraries.MODEL_LIBRARIES:
            continue
        if base.__module__ == "torch.nn.modules.module":
            own = _instance_dict(thing)
            return bool(own.get("_modules") or own.get("_parameters"))
        if library == "sklearn" and base.__name__ == "Pipeline":
            steps = _instance_dict(thing).get("steps")
            return bool(steps) and is_model(steps[-1][1], run)
    return method(thing, "predict", run, inherited=True) in libraries.MODEL_LIBRARIES


def _reported(result: Any) -> Any:
    """The number inside what training and cross-validation functions return."""
    if type(result) is dict:
        keys = [k for k in result if type(k) is str and k in ("test_score", "eval_loss", "loss")]
        return result[keys[0]] if keys else None
    return result
