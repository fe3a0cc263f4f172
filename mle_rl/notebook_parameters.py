"""Whether a value can replace that of a notebook's cell tagged ``parameters``.

Asked before anything runs: a text in place of a number would else end in an error of Python's, deep
in the notebook.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from mle_rl.errors import MleRlError, unknown_name

_WANTED = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
}


def check(parameters: Mapping[str, object], notebook: Path) -> None:
    """Compare new values with the defaults of a notebook.

    Raises:
        MleRlError: The notebook does not have the parameter (papermill would add it), or the
            value is of another kind than its default, or negative where that is not.
    """
    import papermill  # takes a second to import

    known = papermill.inspect_notebook(str(notebook))
    for name, value in parameters.items():
        if name not in known:
            raise unknown_name(f"parameter of notebook {notebook.stem}", name, known)
        if wanted := _wanted(value, ast.literal_eval(known[name]["default"])):
            raise MleRlError(
                f"The parameter {name!r} of notebook {notebook.stem} is {value!r}; give {wanted}."
            )


def _wanted(value: object, default: object) -> str | None:
    """What to give instead; None if the value will do.

    A default of None leaves the choice to the notebook: it stands for a number or a list.
    """
    if default is None:
        if isinstance(value, str):
            return f"a number or a list, as in [{value!r}], or None"
    elif type(value) is not type(default) and (type(default), type(value)) != (float, int):
        return f"{_WANTED[type(default)]}, like its default {default!r}"
    negative = isinstance(default, int | float) and default < 0
    if isinstance(value, int | float) and value < 0 and not negative:
        return "0 or more"
    return None
