"""The space of programs: a generator of plausible scikit-learn programs, right and wrong, fast and
slow.

It serves three purposes: the corpus from which the `tiny` policy learns to write (notebook 90),
random search as a baseline, and worked examples. It is written as people write, mostly plain
defaults, and is never told which choices score well on which task.
"""

from mle_rl.agent.grammar.program import SLIPS, decisions, revise, sketch, sound, write
from mle_rl.agent.grammar.shape import TaskShape

__all__ = ["SLIPS", "TaskShape", "decisions", "revise", "sketch", "sound", "write"]
