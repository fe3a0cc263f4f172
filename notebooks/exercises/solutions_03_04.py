"""Solutions of the exercises of notebooks 03 and 04, and what they show.

Read them after trying: the checkers in ``mle_rl.rollout.laboratory.exercises`` say more about a
wrong answer than this file does. Measured effects are those of the quick profile.
"""

import numpy as np

# ---- 03, exercise 1: three functions ------------------------------------------------------------


def capacity(version, max_staleness, batch_size, accepted, in_flight):
    """Everything begun must fit into the batches up to the last one it could be used in."""
    return max(0, (max_staleness + version + 1) * batch_size - (accepted + in_flight))


def snapshot_share(policy, durations):
    """A rollout is seen in progress in proportion to how often it begins and how long it lasts."""
    return policy * durations / (policy @ durations)


def kept(duration, max_staleness, update_s):
    """Age floor(u + D / tau), u uniform: kept if u < max_staleness + 1 - D / tau."""
    return min(1.0, max(0.0, max_staleness + 1 - duration / update_s))


# ---- 03, exercise 2: where an age limit begins to bite ------------------------------------------


def workers_without_loss(max_staleness, batch_size, mean_s, longest_s):
    """D_max <= eta tau with tau = B E[D] / N.

    A log-normal has no longest duration; at a coefficient of variation of 0.4 and a mean of 5 s one
    in a hundred is over 11.4 s, which gives 112 workers, and one in a thousand over 15.3 s: 84.
    """
    return max_staleness * batch_size * mean_s / longest_s


# ---- 03, exercise 3: over-provisioning ----------------------------------------------------------


def slow_share(started, batch_size):
    """Of M started, M / 2 are fast and all of them are kept; what room is left goes to slow ones.

    So the share falls in a straight line, from .5 without over-provisioning, .375 at 1.25 and .25
    at 1.5, to 0 at M = 2 B, where the fast ones fill the batch alone. What the closed form still
    has there, .035, is the spread of the number of fast ones around M / 2.
    """
    return max(0.0, 1 - started / (2 * batch_size))


# ---- 03, exercise 4: groups ---------------------------------------------------------------------
#
# The same rules select, with the longest of eight durations in place of D, and between prompts
# instead of actions: inside a complete group every member stays. The longest of eight log-normals
# (sigma 1) lasts 3.1 times the mean of one, and updates take as much longer; around its own mean it
# spreads less, with a coefficient of variation of .79 instead of 1.31. So an age limit drops fewer
# groups than single rollouts, but each of them whole, with its fast members.

# ---- 03, exercise 5: crashes at a constant rate -------------------------------------------------


def crash_share(policy, durations, rate):
    """A rollout survives with probability exp(-rate D): slow ones are lost more often.

    The right weight is the inverse, exp(rate D). It exists for every duration, and its variance
    grows with the longest.
    """
    share = policy * np.exp(-rate * durations)
    return share / share.sum()


# ---- 04, exercise 1: three functions ------------------------------------------------------------


def weights(durations):
    """Mean 1, so that the step keeps its size."""
    return durations / durations.mean()


def advantages(rewards, weights):
    """The weighted mean is the one baseline for which the weighted advantages sum to 0."""
    return rewards - (weights * rewards).sum() / weights.sum()


def effective_share(sigma):
    """1 / (1 + CV^2) with CV^2 = exp(sigma^2) - 1: 37 % at sigma 1, 10.5 % at 1.5."""
    return np.exp(-(sigma**2))


# ---- 04, exercise 2: the mean over time ---------------------------------------------------------
#
# E[DR] / E[D] is an average of the rewards with weights pi D / E[D]. No average exceeds the largest
# reward, and "always the best arm" reaches it, as it does for E[R]. Only the way there differs.

# ---- 04, exercise 3: the weight of a restart window ---------------------------------------------


def window_weight(starts, policy):
    """1 / U(T - D) for what can finish at all; ``starts`` is U(T - D) of each arm, 0 if D > T.

    It is policy over share, so ``g.exact_update`` has it under ``inclusion``. At 12 s the slow arm
    (20 s) never arrives and 9.7 of the 11.4 degrees remain.
    """
    seen = np.where(starts > 0, 1 / np.maximum(starts, 1e-300), 0.0)
    return seen / (policy * starts @ seen) * (policy @ starts)


# ---- 04, exercise 4: failures alone -------------------------------------------------------------
#
# With weight 1 for failures and durations for the rest, E[R] passes .9 after about 110 updates
# instead of 275 where nothing is dropped, and after about 170 instead of 260 under the age limit;
# it ends at .97 instead of .93 (four seeds each). So most of what duration weights cost there is
# that they hardly ever unlearn the crash. For sticky workers the same change breaks what was exact:
# three seeds of four end below .8.

# ---- 04, exercise 5: which way the feedback goes ------------------------------------------------
#
# Up, and late. An update takes 2.5 s at first, so the slow arm (20 s) is too old with certainty for
# the first 50 to 100 updates. When the medium arm has made updates longer than 4 s it begins to be
# kept, soon with probability 1, but by then little probability is left of it, and it must grow from
# that. Runs that win leave .7 between updates 100 and 350; those that lose have not yet at 400.
