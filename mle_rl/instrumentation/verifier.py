"""The verifier of the ``rewrite`` format: a rewritten program may differ by inserted prints only.

The rewritten text is compared with the original tree by tree, and then thrown away: what is kept
are the places of the prints. So nothing that a language model changed can run, and a program whose
rewriting changed anything else is refused, whatever the change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mle_rl.instrumentation.anchors import Reading, supported_by
from mle_rl.instrumentation.dataflow import parse
from mle_rl.instrumentation.insertions import VALUED_STAGES, Insertion
from mle_rl.instrumentation.rendering import PATTERNS
from mle_rl.instrumentation.syntax import Site, bodies, read_sites

CHANGED = "changes the program beside inserting prints"
UNPARSABLE = "the rewritten program does not parse"
FOREIGN_PRINT = "prints something that is no stage"


class _Refused(Exception):
    """Carries the reason why a rewriting is refused, out of the recursion."""


def verify(original: str, rewritten: str, *, evidence: bool = True) -> Reading:
    """Maps a rewritten program to insertions into the original.

    Args:
        original: The program; it must parse.
        rewritten: What a language model made of it.
        evidence: Whether a print counts only where the syntax tree supports its stage, with the
            witness's checks at run time; otherwise the model's word is taken, as in the paper.

    Returns: The insertions, and the stages of prints that the tree does not support; or why it is
        refused.
    """
    found, refused = read_sites(original)
    if refused is not None:
        return Reading((), refused=refused)
    try:
        prints = list(_compare(parse(original), parse(rewritten)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Reading((), refused=UNPARSABLE)
    except _Refused as refusal:
        return Reading((), refused=str(refusal))
    chosen: set[Insertion] = set()
    unsupported: list[str] = []
    for earlier, leaving, (stage, variable) in prints:
        if evidence:
            anchors = (*leaving, *earlier)
            places = next(filter(None, (_supported(found, a, stage) for a in anchors)), [])
        else:
            places = [_at_word(a, stage, variable) for a in (*earlier, *leaving)[:1]]
        if not places:
            unsupported.append(stage)
        chosen.update(places)
    return Reading(tuple(sorted(chosen)), tuple(unsupported))


_Print = tuple[str, str | None]
"""The stage that a print names, and the variable that it shows."""


_Inserted = tuple[list[ast.stmt], list[ast.stmt], _Print]
"""Earlier statements of its block, nearest first; the ``return`` that follows; what it prints."""


def _compare(before: ast.AST, after: ast.AST) -> Iterator[_Inserted]:
    """Yields each inserted print with the original statements that it may speak of.

    Raises:
        _Refused: The trees differ in anything else.
    """
    if not _alike(before, after):
        raise _Refused(CHANGED)
    blocks, others = list(bodies(before)), list(bodies(after))
    for block, other in zip(blocks, others, strict=True):
        yield from _compare_blocks(block, other)


def _compare_blocks(before: list[ast.stmt], after: list[ast.stmt]) -> Iterator[_Inserted]:
    if bool(before) != bool(after):
        raise _Refused(CHANGED)
    position = 0
    for statement in after:
        if position < len(before) and _alike(before[position], statement):
            yield from _compare(before[position], statement)
            position += 1
        else:
            # A print speaks of what came before it; before a return, also of what is returned.
            yield before[:position][::-1], _leaving(before[position:]), _as_print(statement)
    if position < len(before):
        raise _Refused(CHANGED)


def _leaving(following: list[ast.stmt]) -> list[ast.stmt]:
    """The ``return`` or ``raise`` on the line that follows, if there is one."""
    line = following[0].lineno if following else 0
    return [s for s in following if s.lineno == line and isinstance(s, ast.Return | ast.Raise)]


def _alike(before: ast.AST, after: ast.AST) -> bool:
    """Whether two nodes are the same up to the statements inside them."""
    return type(before) is type(after) and _shell(before) == _shell(after)


def _shell(node: ast.AST) -> str:
    """A node's text without the blocks inside it."""
    inner = {id(block) for block in bodies(node)}
    parts = []
    for field, held in ast.iter_fields(node):
        if id(held) in inner:
            parts.append(field)
        elif field in ("handlers", "cases"):
            parts += [f"{field}: {type(part).__name__}" + _shell(part) for part in held]
        elif field not in ("type_ignores", "type_comment"):
            parts.append(f"{field}={_dump(held)}")
    return "; ".join(parts)


def _dump(held: object) -> str:
    if isinstance(held, list):
        return "[" + ", ".join(_dump(part) for part in held) + "]"
    return ast.dump(held) if isinstance(held, ast.AST) else f"{type(held).__name__} {held!r}"


def _as_print(statement: ast.stmt) -> _Print:
    """Reads an inserted statement.

    Raises:
        _Refused: It is not one of the permitted print calls.
    """
    match statement:
        case ast.Expr(ast.Call(func=ast.Name("print"), args=arguments, keywords=[])):
            text, variable = _read_arguments(arguments)
            for stage, pattern in PATTERNS.items():
                if pattern.search(text):
                    return stage, variable if stage in VALUED_STAGES else None
            raise _Refused(FOREIGN_PRINT)
        case _:
            raise _Refused(CHANGED)


def _read_arguments(arguments: list[ast.expr]) -> tuple[str, str | None]:
    """Permitted: one text, or a text and one variable, apart or in an f-string."""
    match arguments:
        case [ast.JoinedStr(values=parts)]:
            pass
        case [ast.Constant(value=str())] | [ast.Constant(value=str()), _]:
            parts = arguments
        case _:
            raise _Refused(FOREIGN_PRINT)
    text, variables = "", []
    for part in parts:
        match part:
            case ast.Constant(value=str() as piece):
                text += piece
            case ast.Name(id=name) | ast.FormattedValue(value=ast.Name(id=name)):
                variables.append(name)
            case _:
                raise _Refused("prints something other than a variable")
    if len(variables) > 1:
        raise _Refused("prints more than one variable")
    return text, variables[0] if variables else None


def _supported(found: list[Site], anchor: ast.stmt, stage: str) -> list[Insertion]:
    return supported_by(found, anchor.lineno, anchor.end_lineno or anchor.lineno, stage)


def _at_word(anchor: ast.stmt, stage: str, variable: str | None) -> Insertion:
    """An insertion believed without evidence: after a statement, or around a return value."""
    node: ast.stmt | ast.expr = anchor
    position = "after"
    if isinstance(anchor, ast.Return) and anchor.value is not None:
        node, position, variable = anchor.value, "around", None
    return Insertion(
        node.lineno, node.col_offset, position, stage, variable,
        node.end_lineno or 0, node.end_col_offset or 0, "word",
    )  # fmt: skip
