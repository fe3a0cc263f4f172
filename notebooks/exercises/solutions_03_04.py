"""Solutions of the exercises of notebooks 03 and 04, and what they show.

Read them after trying: the checkers in ``mle_rl.rollout.laboratory.exercises`` say more about a
wrong answer than this file does.
"""

import numpy as np

# ---- 03, exercise 1: who may start --------------------------------------------------------------


def capacity(version, max_staleness, batch_size, accepted, in_flight):
    """Everything begun must fit into the batches up to the last one it could be used in."""
    return max(0, (max_staleness + version + 1) * batch_size - (accepted + in_flight))


# ---- 03, exercise 2: the inspection paradox -----------------------------------------------------


def snapshot_share(policy, durations):
    """A rollout is seen in progress in proportion to how often it begins and how long it lasts."""
    return policy * durations / (policy @ durations)


# ---- 03, exercise 3: too old --------------------------------------------------------------------


def kept(duration, max_staleness, update_s):
    """Age floor(u + D / tau), u uniform: kept if u < max_staleness + 1 - D / tau."""
    return min(1.0, max(0.0, max_staleness + 1 - duration / update_s))


# ---- 04, exercise 1: the paper's weights --------------------------------------------------------


def weights(durations):
    """Mean 1, so that the step keeps its size."""
    return durations / durations.mean()


# ---- 04, exercise 2: centring -------------------------------------------------------------------


def advantages(rewards, weights):
    """The weighted mean is the one baseline for which the weighted advantages sum to 0."""
    return rewards - (weights * rewards).sum() / weights.sum()


# ---- 04, exercise 3: the price ------------------------------------------------------------------


def effective_share(sigma):
    """1 / (1 + CV^2) with CV^2 = exp(sigma^2) - 1: 37 % at sigma 1, 10.5 % at 1.5."""
    return np.exp(-(sigma**2))
