"""Insertions: where a program is observed, as data relative to the program's own text.

Nothing here rewrites a program. An insertion names a place in the *original* text (line and column
as ``ast`` counts them) and what reaching that place means. `weave` turns insertions into a code
object, `render` into a text for people; both start from the untouched original.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mle_rl.errors import MleRlError
from mle_rl.records import STAGES

Position = Literal["around", "after"]
Check = Literal["callee", "note", "noted", "trained", "import", "word"]
Source = Literal["syntax", "language_model"]

VALUED_STAGES = ("training_loss_seen", "validation_score_seen")
"""Stages that carry a number; without a finite one they earn nothing."""


@dataclass(frozen=True, order=True)
class Insertion:
    """One place where the running program is observed.

    Attributes:
        line, col: Start of the original node; lines from 1, columns in UTF-8 bytes from 0.
        position: ``"around"`` an expression, whose value passes through unchanged, or ``"after"``
            a statement.
        stage: One of `mle_rl.records.STAGES`.
        value: Where the number of a loss or score comes from: ``"result"`` (the expression itself),
            ``"receiver"`` (the object whose method is called), for ``check="word"`` the name of
            a variable, or None.
        end_line, end_col: End of the original node.
        check: What must hold at run time before the stage counts.
            ``callee``: what was called is code of a library known for this stage (see `witness`).
            ``note``: as ``callee``, but only noted, for a later ``noted``.
            ``noted``: the stage was noted before (after a loop: some step of it really ran).
            ``trained``: a model of a known library was trained before in this run.
            ``import``: what the import statement bound is a known library.
            ``word``: nothing; a language model's word is taken, as in the paper.
    """

    line: int
    col: int
    position: Position
    stage: str
    value: str | None = None
    end_line: int = 0
    end_col: int = 0
    check: Check = "callee"

    def to_json(self) -> dict[str, Any]:
        """The insertion as a JSON object; `from_json` is the inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Insertion:
        """Rebuilds an insertion from `to_json`'s object.

        Raises:
            MleRlError: The object is not one that `to_json` wrote.
        """
        try:
            insertion = cls(**fields)
        except TypeError as problem:
            raise MleRlError(f"This is not a recorded insertion: {problem}.") from None
        if insertion.stage not in STAGES:
            raise MleRlError(f"A recorded insertion names no known stage: {insertion.stage!r}.")
        return insertion


@dataclass(frozen=True)
class Instrumented:
    """A program and where it is observed.

    Attributes:
        code: The original text, unchanged.
        insertions: Sorted by place.
        source: Which inserter found the insertions.
        refused: Why an inserter's answer was not taken (and the syntax-tree inserter's was used
            instead), or why nothing could be inserted at all; None when there is nothing to say.
    """

    code: str
    insertions: tuple[Insertion, ...]
    source: Source = "syntax"
    refused: str | None = None

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that this program could reach, in the usual order."""
        found = {insertion.stage for insertion in self.insertions}
        return tuple(stage for stage in STAGES if stage in found)
