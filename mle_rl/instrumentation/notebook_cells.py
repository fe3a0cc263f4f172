"""Programs that were written as notebook cells: magics taken out, line numbers kept."""

from __future__ import annotations

import io
import re

from mle_rl.instrumentation.dataflow import parse

_CELL_MAGIC = re.compile(r"^\s*%%\w+")
_LINE_MAGIC = re.compile(r"^(\s*)(?:[\w.,\s]+=\s*)?(%[a-zA-Z]\w*|!)")
_HELP = re.compile(r"^\s*\?{1,2}[\w.]+\s*$|^\s*[\w.]+\?{1,2}\s*$")


def strip_magics(code: str) -> str:
    """Takes the notebook's own commands out of a program made of joined cells.

    ``%matplotlib inline``, ``!pip install x``, ``files = !ls``, ``%%time``, ``df?`` become ``pass``
    with the same indentation: lines keep their numbers, and a block is never left empty. Only lines
    at which Python fails to read the program are touched, so texts that hold such lines stay. A
    program without magics, and one that is wrong for another reason, comes back unchanged there.
    """
    # Lines as the compiler counts them: str.splitlines also ends one at form feeds and the like.
    lines = list(io.StringIO(code, newline=""))
    for _ in lines:
        try:
            parse("".join(lines))
        except SyntaxError as problem:
            number = (problem.lineno or 0) - 1
            if not (0 <= number < len(lines) and _is_magic(lines[number])):
                break
            lines[number] = _without_magic(lines[number])
        except (ValueError, RecursionError, MemoryError):
            break
        else:
            break
    return "".join(lines)


def _is_magic(line: str) -> bool:
    return any(pattern.match(line) for pattern in (_CELL_MAGIC, _LINE_MAGIC, _HELP))


def _without_magic(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    ending = line[len(line.rstrip("\r\n")) :]
    return f"{indent}pass{ending}"
