"""Whose code is this? Tells installed libraries from what the program wrote itself.

A name proves nothing: a program can call its own class ``sklearn.svm.SVC``, put a function in a
library's place, or write a file ``xgboost.py`` beside itself. What it cannot do is put a file into
a folder of installed packages. So a function belongs to the library in whose folder its code was
read, and a class belongs to a library when that library's module really holds it under its name.

Nothing of the program's own is run for this: classes are looked through without ``getattr``.

Standard library only: this runs inside the sandboxed child.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from typing import Any

mro = type.__dict__["__mro__"].__get__
"""``kind.__mro__``, past any metaclass."""

namespace = type.__dict__["__dict__"].__get__
"""``kind.__dict__``, past any metaclass."""

_MODULE_OF = type.__dict__["__module__"].__get__
_NAME_OF = type.__dict__["__qualname__"].__get__
_SUPER_SELF = super.__dict__["__self__"].__get__
_HEAP_TYPE = 1 << 9


class Installed:
    """The folders of installed packages, as they were before the program began.

    Args:
        filename: The program's file; its folder, and the working folder, never count.
    """

    def __init__(self, filename: str) -> None:
        own = {os.path.abspath(os.path.dirname(filename)), os.path.abspath(".")}
        own |= {os.path.realpath(folder) for folder in own}
        packages = [sysconfig.get_path(n) for n in ("stdlib", "platstdlib", "purelib", "platlib")]
        folders = {os.path.abspath(folder) for folder in [*packages, *sys.path] if folder}
        folders |= {os.path.realpath(folder) for folder in folders}
        ends = {folder + os.sep for folder in folders - own}
        self.roots = tuple(sorted(ends, key=len, reverse=True))
        self._classes: dict[int, tuple[type, str | None]] = {}

    def of_file(self, path: str) -> str | None:
        """The top-level package that a source file belongs to, or None."""
        for root in self.roots:
            if path.startswith(root):
                return path[len(root) :].split(os.sep)[0].split(".")[0]
        return None

    def of_module(self, module: Any) -> str | None:
        """The package that an imported module belongs to, judged by its file."""
        if not isinstance(module, types.ModuleType):
            return None
        name = module.__name__.split(".")[0]
        if name in sys.builtin_module_names:
            return name
        top = sys.modules.get(name)
        file = getattr(top, "__file__", None) or next(iter(getattr(top, "__path__", ())), None)
        return self.of_file(file) if file else None

    def of_class(self, kind: type) -> str | None:
        """The library that really defines a class, or None for one of the program's own."""
        # By identity: a metaclass of the program's may call its classes equal to a library's.
        known = self._classes.get(id(kind))
        if known is None:
            known = self._classes[id(kind)] = kind, self._look_up_class(kind)
        return known[1]

    def _look_up_class(self, kind: type) -> str | None:
        name = _MODULE_OF(kind)
        module = sys.modules.get(name) if type(name) is str else None
        if module is None:
            return None
        found: Any = module.__dict__
        for part in _NAME_OF(kind).split("."):
            found = found.get(part)
            if found is kind:
                return self.of_module(module)
            found = namespace(found) if isinstance(found, type) else {}
        return None

    def of_called(self, called: Any, holder: Any = None) -> str | None:
        """The library whose code runs when ``called`` is called, or None.

        Args:
            called: A function, class, descriptor or callable object.
            holder: The class or module in whose namespace it was found, if it was.
        """
        kind = type(called)
        if is_one_of(kind, staticmethod, classmethod, types.MethodType):
            called = called.__func__
            kind = type(called)
        if kind is types.FunctionType:
            return self.of_file(called.__code__.co_filename)
        if isinstance(called, type):
            return self.of_class(called)
        if isinstance(holder, type):
            return self.of_class(holder)
        if not kind.__flags__ & _HEAP_TYPE:
            # Made in C: its word can be taken, for no program can make such an object.
            name = getattr(called, "__module__", None)
            return name.split(".")[0] if type(name) is str else None
        return self.of_class(kind)

    def of_method(self, receiver: Any, name: str) -> str | None:
        """The library whose code runs for ``receiver.name(...)``.

        Through ``super()`` the program's own classes are passed over.
        """
        if isinstance(receiver, types.ModuleType):
            return self.of_called(receiver.__dict__.get(name), receiver)
        inherited = type(receiver) is super
        receiver = behind_super(receiver)
        kinds = mro(receiver) if isinstance(receiver, type) else mro(type(receiver))
        if not isinstance(receiver, type):
            own = instance_dict(receiver)
            if name in own and not inherited:
                return self.of_called(own[name])
        for kind in kinds:
            held = namespace(kind)
            if name in held and not (inherited and self.of_class(kind) is None):
                return self.of_called(held[name], kind)
        if self.of_class(type(receiver)) == "statsmodels":  # results hand on to what they wrap
            wrapped = instance_dict(receiver).get("_results")
            return None if wrapped is None else self.of_method(wrapped, name)
        return None


def is_one_of(kind: type, *kinds: type) -> bool:
    """Whether a type is exactly one of others, whatever its metaclass says of equality."""
    return any(kind is other for other in kinds)


def behind_super(thing: Any) -> Any:
    """The object itself, when ``thing`` is ``super()`` of it."""
    return _SUPER_SELF(thing) if type(thing) is super else thing


def instance_dict(thing: Any) -> dict[str, Any]:
    """The attributes of an object's own, without ``__getattr__``; empty if it keeps none."""
    try:
        own = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return own if type(own) is dict else {}
