"""What a reference program is, and how its text is put together."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

from mle_rl.records import Program


@dataclass(frozen=True)
class Reference:
    """One hand-written entry of a leaderboard.

    Attributes:
        name: Unique within its task.
        program: A stand-alone program that reads ``./input`` and writes ``./submission.csv``.
    """

    name: str
    program: Program


def joined(*parts: str) -> str:
    """Lines of several dedented parts, without an empty line between them."""
    return "".join(dedent(part).strip("\n") + "\n" for part in parts)


def reference(name: str, plan: str, *parts: str) -> Reference:
    """Joins the parts of a program, each dedented, with one empty line between them."""
    blocks = [dedent(part).strip("\n") for part in parts if part.strip()]
    return Reference(name, Program(plan, "\n\n".join(blocks) + "\n"))
