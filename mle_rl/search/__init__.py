"""Baselines: searches for a good program with the same sandbox, task and wall-clock time as RL.

Importing this package imports no torch. `mle_rl.search.compare` runs methods one after the other
and records every program; `mle_rl.search.summary` says what came of it.
"""
