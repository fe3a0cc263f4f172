"""Reinforcement learning for machine-learning engineering agents.

The one path, in the words that every module and notebook uses::

    Task -> prompt -> policy -> Program -> instrumented Program -> sandbox -> Execution
         -> Outcome -> reward -> Rollout -> queue -> batch -> duration weights -> TRL loss

Importing this package imports neither torch nor trl; each room is imported by name,
for example ``from mle_rl import tasks`` or ``from mle_rl.rollout import RolloutQueue``.
"""

from mle_rl.errors import MleRlError
from mle_rl.records import Execution, Limits, Marker, Outcome, Program, Rollout

__all__ = ["Execution", "Limits", "Marker", "MleRlError", "Outcome", "Program", "Rollout"]
__version__ = "0.1.0"
