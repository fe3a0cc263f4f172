"""The instrumented program as the paper shows it: the original text with print lines in between.

For people, and for the ``rewrite`` format of the language-model inserter. What runs is never this
text, see `weaving`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from mle_rl.instrumentation.dataflow import parse, source_lines
from mle_rl.instrumentation.insertions import VALUED_STAGES, Insertion
from mle_rl.instrumentation.syntax import bodies, read_sites
from mle_rl.records import STAGES

_MESSAGES = (
    ("imported packages", r"\bimported packages\b|\bpackages imported\b"),
    ("loaded data", r"\bloaded data\b|\bdata loaded\b"),
    ("defined model", r"\bdefined model\b|\bmodel defined\b"),
    ("training loss", r"\btrain(ing)? loss\b"),
    ("trained model", r"\btrained model\b|\bmodel trained\b"),
    ("validation score", r"\bval(idation)? (score|accuracy)\b"),
    ("predicted test labels", r"\bpredicted test labels\b|\btest labels predicted\b"),
)
MESSAGES = {stage: text for stage, (text, _) in zip(STAGES, _MESSAGES, strict=True)}
"""Stage -> what the paper's print statements say (section 2; the sixth is a likely guess)."""

PATTERNS = {
    stage: re.compile(pattern, re.IGNORECASE)
    for stage, (_, pattern) in zip(STAGES, _MESSAGES, strict=True)
}
"""Stage -> the regular expression by which the paper's method finds it in a program's output."""


def printed_stages(stdout: str) -> tuple[str, ...]:
    """The stages that matching a program's output would credit, as in the paper.

    Anything that prints the right words is believed; this is here to be compared with.
    """
    return tuple(stage for stage, pattern in PATTERNS.items() if pattern.search(stdout))


def print_line(stage: str, variable: str | None = None) -> str:
    """The print statement for a stage, with the value of a variable where there is one to show."""
    message = MESSAGES[stage]
    if stage in VALUED_STAGES and variable:
        return f'print(f"{message}: {{{variable}}}")'
    return f'print("{message}")'


def render(code: str, insertions: Iterable[Insertion]) -> str:
    """The program with a print line after each statement in which a stage is observed.

    Before it, where the statement is a ``return``. Statements that share a line are followed by the
    print lines of all of them.

    Args:
        code: The original program; it must parse.
        insertions: Places in it, for example `Instrumented.insertions`.

    Returns:
        A text that parses, and that `verify` maps back to the same stages.
    """
    wanted = {insertion for insertion in insertions if insertion.check != "note"}
    text = [line + "\n" for line in source_lines(code)]
    slots = _print_slots(parse(code), text)
    added: dict[int, list[str]] = {}
    for site in read_sites(code)[0]:
        if site.insertion in wanted:
            after, indent = slots[site.line, site.col]
            line = indent + print_line(site.insertion.stage) + "\n"
            if line not in added.setdefault(after, []):
                added[after].append(line)
    # Where blocks end on one line, the innermost print line comes first.
    prints = {n: "".join(sorted(lines, key=_depth, reverse=True)) for n, lines in added.items()}
    return "".join(line + prints.get(number, "") for number, line in enumerate(["", *text]))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _print_slots(tree: ast.Module, text: list[str]) -> dict[tuple[int, int], tuple[int, str]]:
    """For each statement's start: after which line a print line goes, and its indentation."""
    slots: dict[tuple[int, int], tuple[int, str]] = {}

    def visit(parent: ast.AST, outer: tuple[int, str] | None) -> None:
        for body in bodies(parent):
            for run in _runs(body):
                first, last = run[0], run[-1]
                slot = outer if outer and first.lineno == parent_line(parent) else None
                if slot is None:
                    line = text[first.lineno - 1]
                    indent = line[: _depth(line)]
                    leaves = isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)
                    after = first.lineno - 1 if leaves else last.end_lineno or last.lineno
                    slot = after, indent
                for statement in run:
                    slots[statement.lineno, statement.col_offset] = slot
                    visit(statement, slot)

    visit(tree, None)
    return slots


def parent_line(parent: ast.AST) -> int:
    """The line on which the header of a compound statement ends, or 0 for a module."""
    header = [
        node.end_lineno or 0
        for field, held in ast.iter_fields(parent)
        if field not in ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
        for node in (held if isinstance(held, list) else [held])
        if isinstance(node, ast.AST) and hasattr(node, "end_lineno")
    ]
    return max([getattr(parent, "lineno", 0), *header])


def _runs(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Statements of a block, those that share a line together."""
    run: list[ast.stmt] = []
    for statement in body:
        if run and run[-1].end_lineno != statement.lineno:
            yield run
            run = []
        run.append(statement)
    if run:
        yield run
