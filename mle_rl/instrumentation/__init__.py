"""Environment instrumentation: which stages a program reached, seen without trusting the program.

The paper (section 2) lets a separate, frozen language model insert print statements, and matches
the program's output by regular expressions. Here an insertion is data about the original text, and
what is woven in is a witness that the program can neither name nor imitate::

    insert_by_syntax(code) -> Instrumented      # or frozen_inserter(policy).insert(codes)
    weave(code, insertions, filename, mark) -> code object      # in the sandboxed child

Departures from the paper: no text of the language model ever runs; a place earns credit only if the
program's tree shows the stage there and the library's own code really ran; nothing that the program
prints counts. `printed_stages` is the paper's way, to compare with.
"""

from mle_rl.instrumentation.anchors import anchor_target, numbered
from mle_rl.instrumentation.frozen import frozen_inserter
from mle_rl.instrumentation.insertions import Insertion, Instrumented
from mle_rl.instrumentation.language_model import (
    InserterReport,
    LanguageModelInserter,
    agreement,
    weights_checksum,
)
from mle_rl.instrumentation.notebook_cells import strip_magics
from mle_rl.instrumentation.rendering import printed_stages, render
from mle_rl.instrumentation.screen import trusted, why_not_trusted
from mle_rl.instrumentation.syntax import insert_by_syntax
from mle_rl.instrumentation.verifier import verify
from mle_rl.instrumentation.weaving import weave

__all__ = [
    "InserterReport",
    "Insertion",
    "Instrumented",
    "LanguageModelInserter",
    "agreement",
    "anchor_target",
    "frozen_inserter",
    "insert_by_syntax",
    "numbered",
    "printed_stages",
    "render",
    "strip_magics",
    "trusted",
    "verify",
    "weave",
    "weights_checksum",
    "why_not_trusted",
]
