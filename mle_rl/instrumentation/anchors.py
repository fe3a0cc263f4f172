"""The ``anchors`` format: where to print what, one line per insertion.

A language model reads the program with numbered lines and answers with lines such as ::

    3 packages
    4 data
    12 model
    13 trained
    14 score
    16 predicted

that is, the line on which a statement starts and one of seven words; ``none`` stands for an empty answer. The
answer names places and never text of the program, so nothing of the program can be changed by it. `read_anchors`
maps it back to insertions: a place counts if the syntax tree shows, in that statement, something that the stage
could mean (its witness is woven there); other places are counted as unsupported and dropped.
"""

from __future__ import annotations

import re

from mle_rl.instrumentation.insertions import Insertion
from mle_rl.instrumentation.syntax import Site, parse, sites
from mle_rl.records import STAGES

WORDS = dict(
    zip(("packages", "data", "model", "loss", "trained", "score", "predicted"), STAGES, strict=True)
)
"""Word of the format -> stage."""

NONE = "none"
_WORD_OF = {stage: word for word, stage in WORDS.items()}
_LINE = re.compile(r"(\d{1,5}) ([a-z]+)")


def numbered(code: str) -> str:
    """A program with the number of each line before it, as both inserter prompts show it."""
    return "".join(f"{i} {line}\n" for i, line in enumerate(code.splitlines(), start=1))


def anchor_target(code: str) -> str:
    """The answer that the syntax-tree inserter would give, for training a model on it.

    Of each stage only what is needed: places up to and including the first that the program always
    passes, since a stage counts once. A program that does not parse, or has no stage, gives ``none``.
    """
    try:
        found = sites(parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NONE
    wanted: dict[tuple[int, int], str] = {}
    for stage in STAGES:
        for site in (
            s for s in found if s.insertion.stage == stage and s.insertion.check != "note"
        ):
            wanted[site.line, STAGES.index(stage)] = f"{site.line} {_WORD_OF[stage]}"
            if site.always:
                break
    return "\n".join(wanted[key] for key in sorted(wanted)) or NONE


def read_anchors(code: str, answer: str) -> tuple[tuple[Insertion, ...], int, str | None]:
    """Reads a model's answer.

    Args:
        code: The original program; it must parse.
        answer: What the model wrote.

    Returns:
        The insertions, the number of unsupported places, and the reason why the whole answer is
        refused, or None. A refused answer has no insertions.
    """
    found = sites(parse(code))
    last = len(code.splitlines())
    lines = [line.strip() for line in answer.strip().splitlines() if line.strip()]
    if not lines:
        return (), 0, "empty answer"
    chosen: set[Insertion] = set()
    unsupported = 0
    for line in lines if lines != [NONE] else []:
        match = _LINE.fullmatch(line)
        if match is None or match[2] not in WORDS:
            return (), 0, "a line is not '<line> <stage>'"
        if not 1 <= int(match[1]) <= last:
            return (), 0, "a line number is outside the program"
        supported = supported_by(found, int(match[1]), int(match[1]), WORDS[match[2]])
        unsupported += not supported
        chosen.update(supported)
    return tuple(sorted(chosen)), unsupported, None


def supported_by(found: list[Site], first: int, last: int, stage: str) -> list[Insertion]:
    """The places of a stage in the statements that start between two lines."""
    chosen = [s.insertion for s in found if first <= s.line <= last and s.insertion.stage == stage]
    if any(insertion.check == "noted" for insertion in chosen):
        # After a loop: together with the step inside that it waits for.
        chosen += [s.insertion for s in found if s.insertion.check == "note"]
    return chosen
