"""The ``anchors`` format: where to print what, one line per insertion.

A language model reads the program with numbered lines and answers with lines such as ::

    3 packages
    4 data
    12 model
    13 trained
    14 score
    16 predicted

that is, the line on which a statement starts and one of seven words; ``none`` stands for an empty
answer. The answer names places and never text of the program, so nothing of the program can be
changed by it. `read_anchors` maps it back to insertions: a place counts if the syntax tree shows,
in that statement, something that the stage could mean (its witness is woven there); other places
are counted as unsupported and dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mle_rl.instrumentation.dataflow import source_lines
from mle_rl.instrumentation.insertions import Insertion
from mle_rl.instrumentation.syntax import Site, read_sites
from mle_rl.records import STAGES

WORDS = dict(
    zip(("packages", "data", "model", "loss", "trained", "score", "predicted"), STAGES, strict=True)
)
"""Word of the format -> stage."""

NONE = "none"
_WORD_OF = {stage: word for word, stage in WORDS.items()}
_LINE = re.compile(r"(\d{1,5}) ([a-z]+)")


@dataclass(frozen=True)
class Reading:
    """What a language model's answer comes to.

    Attributes:
        insertions: The places that it names and the syntax tree supports.
        unsupported: Stages of the places that it names and the syntax tree does not support.
        refused: Why nothing of the answer is taken, or None.
    """

    insertions: tuple[Insertion, ...]
    unsupported: tuple[str, ...] = ()
    refused: str | None = None


def numbered(code: str) -> str:
    """A program with the number of each line before it, as both inserter prompts show it."""
    return "".join(f"{i} {line}\n" for i, line in enumerate(source_lines(code), start=1))


def anchor_target(code: str) -> str:
    """The answer that the syntax-tree inserter would give, for training a model on it.

    Of each stage only what is needed: places up to and including the first that the program always
    passes, since a stage counts once. A program that does not parse, or has no stage, gives
    ``none``.
    """
    found, _ = read_sites(code)
    wanted: dict[tuple[int, int], str] = {}
    for stage in STAGES:
        for site in (
            s for s in found if s.insertion.stage == stage and s.insertion.check != "note"
        ):
            wanted[site.line, STAGES.index(stage)] = f"{site.line} {_WORD_OF[stage]}"
            if site.always:
                break
    return "\n".join(wanted[key] for key in sorted(wanted)) or NONE


def read_anchors(found: list[Site], answer: str, lines: int) -> Reading:
    """Reads a model's answer.

    Args:
        found: The places that the syntax tree shows.
        answer: What the model wrote.
        lines: How many lines the program has.
    """
    given = [line.strip() for line in answer.strip().splitlines() if line.strip()]
    if not given:
        return Reading((), refused="empty answer")
    chosen: set[Insertion] = set()
    unsupported: list[str] = []
    for line in given if given != [NONE] else []:
        match = _LINE.fullmatch(line)
        if match is None or match[2] not in WORDS:
            return Reading((), refused="a line is not '<line> <stage>'")
        number = int(match[1])
        if not 1 <= number <= lines:
            return Reading((), refused="a line number is outside the program")
        supported = supported_by(found, number, number, WORDS[match[2]])
        if not supported:
            unsupported.append(WORDS[match[2]])
        chosen.update(supported)
    return Reading(tuple(sorted(chosen)), tuple(unsupported))


def supported_by(found: list[Site], first: int, last: int, stage: str) -> list[Insertion]:
    """The places of a stage in the statements that start between two lines."""
    chosen = [s.insertion for s in found if first <= s.line <= last and s.insertion.stage == stage]
    if any(insertion.check == "noted" for insertion in chosen):
        # After a loop: together with the step inside that it waits for.
        chosen += [s.insertion for s in found if s.insertion.check == "note"]
    return chosen
