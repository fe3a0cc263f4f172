"""The tripwire: stage credit ends when a program reaches for the machinery that credits it.

`screen.trusted` reads the program's text; names put together at run time, unpickled instructions
and modules that the program wrote itself escape any reading. Those are caught here by an audit hook
(`sys.addaudithook`, which cannot be taken out again): Python announces reading the code of a
function or frame, listing objects, building code and running a file *before* it happens. When such
an event comes from anything but installed library code, the run forgets its `mark`, so what the
program then finds cannot report anything. The program itself goes on undisturbed.

Standard library only: this runs inside the sandboxed child.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator
from threading import get_ident

_FROM_PROGRAM = frozenset(
    {
        "object.__getattr__",  # __code__, f_code, tb_frame, gi_frame and their kin
        "sys._getframe",
        "sys._current_frames",
        "sys._current_exceptions",
        "sys.settrace",
        "sys.setprofile",
        "sys.addaudithook",
        "code.__new__",
        "function.__new__",
        "marshal.loads",
        "compile",
        "exec",
    }
)
_FROM_ANYBODY = frozenset(
    {"gc.get_objects", "gc.get_referrers", "gc.get_referents", "pickle.find_class", "exec"}
)
_WATCHED = _FROM_PROGRAM | _FROM_ANYBODY
_UNPICKLED = frozenset(
    {
        "builtins.exec",
        "builtins.eval",
        "builtins.compile",
        "builtins.getattr",
        "builtins.globals",
        "builtins.vars",
        "builtins.__import__",
        "builtins.open",
        "operator.attrgetter",
        "operator.methodcaller",
    }
)
_UNPICKLED_MODULES = frozenset(
    {"os", "posix", "sys", "gc", "inspect", "ctypes", "importlib", "types", "marshal", "subprocess"}
)
_REACHING = frozenset(
    {
        "__subclasses__",
        "__code__",
        "__closure__",
        "__globals__",
        "__self__",
        "__func__",
        "__builtins__",
        "__import__",
        "__getattribute__",
        "__dict__",
        "getattr",
        "setattr",
        "vars",
    }
)
"""Names in a text that is run as code by a library on the program's behalf, such as a formula."""

_BY_TEXT = (os.sep + "string.py", os.path.join("pandas", "core", "computation"))
"""Library code that takes attributes by a text that the program gives it."""

_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _names(code: types.CodeType) -> Iterator[str]:
    """The names that a code object and those inside it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def set_tripwire(roots: tuple[str, ...], filename: str, tripped: Callable[[], None]) -> None:
    """Watches this process from now on.

    Args:
        roots: Folders of installed packages, each with a separator at its end.
        filename: The program's file, as its code objects name it.
        tripped: Called, perhaps more than once, when the program reaches too far.
    """
    inside: set[int] = set()
    stat = os.stat

    def foreign(path: str) -> bool:
        return not path.startswith((*roots, "<frozen ", _HERE))

    def is_file(path: str) -> bool:
        try:
            stat(path)
        except (OSError, ValueError):
            return False
        return True

    def reaches_too_far(event: str, arguments: tuple) -> bool:
        if event == "pickle.find_class":
            module, name = arguments
            return module.split(".")[0] in _UNPICKLED_MODULES or f"{module}.{name}" in _UNPICKLED
        if event.startswith("gc."):
            return True
        if event == "exec" and arguments:
            path = getattr(arguments[0], "co_filename", "")
            if path == filename:
                return False  # the program begins
            if foreign(path) and (is_file(path) or not _REACHING.isdisjoint(_names(arguments[0]))):
                return True  # a module that the program wrote, or a text that reaches too far
        caller = sys._getframe(2).f_code.co_filename
        return foreign(caller) or any(part in caller for part in _BY_TEXT)

    def watch(event: str, arguments: tuple) -> None:
        if event not in _WATCHED or get_ident() in inside:
            return
        inside.add(get_ident())
        try:
            if reaches_too_far(event, arguments):
                tripped()
        finally:
            inside.discard(get_ident())

    sys.addaudithook(watch)
