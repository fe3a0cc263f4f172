"""Witnesses: the objects inside a woven program that see what really happens.

A witness sits among the constants of the program's code, has no name that the program could look
up, and receives values on their way through an expression. It credits a stage only on evidence:

* what was called is the library's own code (`genuine`), so a look-alike class, a replaced method or
  a module that the program wrote earns nothing;
* what was fitted can predict, so a scaler or an encoder is no model;
* a file that was read lay in the program's folder before it began: nothing that it wrote itself;
* a loss or score is one finite real number.

A witness never disturbs: it runs nothing of the program's own (no properties, no ``__float__``),
keeps no reference to a value, and an error inside it costs the credit and nothing else. A witness
that is pickled with a function (joblib, multiprocessing) arrives as an ``operator.itemgetter``.

Standard library only: this runs inside the sandboxed child.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable
from typing import Any

from mle_rl.instrumentation import libraries
from mle_rl.instrumentation.evidence import is_given_file, is_model, now_ns, number, reported
from mle_rl.instrumentation.genuine import Installed
from mle_rl.instrumentation.insertions import VALUED_STAGES, Insertion

Mark = Callable[[str, float | None], None]
"""Reports a stage over the sandbox's channel; a loss or score again, when a later one is seen.
The receiver keeps the order of first reports and the last value of each."""

_EVERY_PASS = 64


class Run:
    """What the witnesses of one program share."""

    def __init__(self, mark: Mark, filename: str) -> None:
        self.installed = Installed(filename)
        self.folder = os.path.abspath(".") + os.sep
        self.began_ns = now_ns()
        self.reached: set[str] = set()
        self.noted: set[str] = set()
        self._mark: Mark | None = mark

    def credit(self, stage: str, value: float | None) -> None:
        """Reports that a stage was reached."""
        if self._mark is not None:
            self.reached.add(stage)
            self._mark(stage, value)

    def close(self) -> None:
        """Ends all credit: the way to report is forgotten."""
        self._mark = None


class Witness:
    """Receives ``(value, *names)``, shows them to ``observe`` and gives back ``value``."""

    __slots__ = ("_observe",)

    def __init__(self, observe: Callable[..., None]) -> None:
        self._observe = observe

    def __call__(self, seen: tuple) -> Any:
        try:  # noqa: SIM105 - this runs in the program's loops; suppress() would cost more
            self._observe(*seen)
        except Exception:
            pass  # whatever is wrong here, the program goes on
        return seen[0]

    def __reduce__(self):
        return operator.itemgetter, (0,)

    def __repr__(self) -> str:
        return "<witness>"


class Observer:
    """The observers of one insertion: the receiver, the path that is read, and the result.

    Verdicts are taken when the receiver passes, before the call, and only verdicts are kept.

    Args:
        attribute: The method or attribute that is taken of the receiver, if it is one; for an
            import from a module, that module.
    """

    def __init__(self, insertion: Insertion, run: Run, attribute: str | None) -> None:
        self.insertion, self.run, self.attribute = insertion, run, attribute
        self.genuine = False
        self.given_file = False
        self.value: float | None = None
        self.passes = 0

    def see_receiver(self, receiver: Any) -> None:
        """Judges what is about to be called: ``receiver.attribute``, or ``receiver`` itself."""
        if self._settled():
            return
        self.genuine = False
        if self.insertion.value == "receiver":
            self.value = number(receiver, self.run.installed)
        self.genuine = self._judge(receiver)

    def see_path(self, path: Any) -> None:
        """Judges what is about to be read."""
        self.given_file = False
        self.given_file = is_given_file(path, self.run.folder, self.run.began_ns)

    def see_result(self, result: Any, *names: Any) -> None:
        """Credits the stage if the evidence is there."""
        insertion, run = self.insertion, self.run
        if self._settled() or not self._holds(result, names):
            return
        if insertion.check == "note":
            run.noted.add(insertion.stage)
            return
        value = None
        if insertion.stage in VALUED_STAGES:
            value = self._value(result, names)
            if value is None:
                return
            # In a long loop ever more seldom: the value is then at most half the loop old.
            self.passes += 1
            if self.passes > _EVERY_PASS and self.passes & (self.passes - 1):
                return
        run.credit(insertion.stage, value)

    def _settled(self) -> bool:
        """True when seeing more changes nothing."""
        stage = self.insertion.stage
        if self.insertion.check == "note" and stage in self.run.noted:
            return True
        return stage in self.run.reached and stage not in VALUED_STAGES

    def _value(self, result: Any, names: tuple) -> float | None:
        installed = self.run.installed
        if self.insertion.check == "word":
            return number(names[0], installed) if names else None
        if self.insertion.value == "receiver":
            return self.value
        return reported(result, installed, loss=self.insertion.stage == "training_loss_seen")

    def _holds(self, result: Any, names: tuple) -> bool:
        check, run, stage = self.insertion.check, self.run, self.insertion.stage
        if check == "word":
            return True
        if check == "trained":
            return "model_trained" in run.reached | run.noted
        if check == "noted":
            return stage in run.noted
        if check == "import":
            # ``from x import *`` binds no name that could be shown; the module itself can.
            shown = names or (sys.modules.get(self.attribute or ""),)
            return any(self._is_package(thing) for thing in shown)
        if stage == "model_defined":
            return is_model(result, run.installed)
        return self.genuine and (stage != "data_loaded" or self.given_file)

    def _is_package(self, imported: Any) -> bool:
        installed = self.run.installed
        library = installed.of_module(imported) or installed.of_called(imported)
        return library in libraries.PACKAGES

    def _judge(self, receiver: Any) -> bool:
        installed, stage = self.run.installed, self.insertion.stage
        if self.attribute is None:
            if stage == "test_labels_predicted":
                return is_model(receiver, installed)
            library = installed.of_called(receiver)
        else:
            library = installed.of_method(receiver, self.attribute)
        if stage == "data_loaded":
            return library in libraries.READER_LIBRARIES
        if stage in VALUED_STAGES:
            return library in libraries.METRIC_LIBRARIES or self._fitted(receiver)
        if library not in libraries.MODEL_LIBRARIES:
            return False
        if stage == "model_trained" and self.attribute in libraries.FIT_METHODS:
            return is_model(receiver, installed)
        return True

    def _fitted(self, receiver: Any) -> bool:
        """Whether an attribute such as ``best_score_`` is one of a library's model."""
        attributes = libraries.FITTED_SCORES | libraries.FITTED_LOSSES
        return self.attribute in attributes and is_model(receiver, self.run.installed)
