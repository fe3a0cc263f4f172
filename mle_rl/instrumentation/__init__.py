"""Environment instrumentation: which stages a program reached, seen without trusting the program.

The paper (section 2) lets a separate, frozen language model insert print statements and matches the
program's output by regular expressions. Here an insertion is data about the original text, and what
is inserted is a witness that the program can neither name nor imitate:

    insert_by_syntax(code) -> Instrumented(code, insertions)      in the trainer's process
    weave(code, insertions, filename, mark) -> code object        in the sandboxed child
"""

from mle_rl.instrumentation.anchors import anchor_target
from mle_rl.instrumentation.insertions import Insertion, Instrumented
from mle_rl.instrumentation.syntax import insert_by_syntax
from mle_rl.instrumentation.weaving import weave

__all__ = ["Insertion", "Instrumented", "anchor_target", "insert_by_syntax", "weave"]
