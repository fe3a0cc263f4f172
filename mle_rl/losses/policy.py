"""Policy-gradient losses over sequences, and the importance ratios that stale rollouts need.

``log_probs`` are of the tokens that were sampled, padded to one length; ``mask`` says which are
real. A bandit is a sequence of length one. Advantages may be per sample, shape (batch, 1), or per
token. Duration weights multiply the advantages: every loss here is homogeneous in them, so
weighting the advantage and weighting the sample's loss are the same thing.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from mle_rl.errors import MleRlError

Level = Literal["token", "sequence"]


def policy_gradient_loss(
    log_probs: Tensor,  # (batch, time) of the policy that is trained, with gradient
    advantages: Tensor,  # (batch, 1) or (batch, time), weights included
    mask: Tensor,  # (batch, time)
    ratio: Tensor | None = None,  # (batch, 1) or (batch, time), without gradient
) -> Tensor:  # ()
    """REINFORCE: ``-mean_i sum_t r_it A_it log pi(a_it | .)``.

    Its gradient is minus the estimate of grad J (Williams 1992; paper, section 1, with the duration
    inside A). With a ratio r = pi / pi_behaviour, held constant, it is unbiased for rollouts of
    another policy. Sum over tokens, mean over samples: the length of a sequence does not change its
    weight.
    """
    advantages, mask = _checked(log_probs, advantages, mask)
    if ratio is not None:
        advantages = advantages * ratio.detach()
    # Each factor by itself: the gradient of one is the other, and 0 times NaN is NaN.
    return -(_real(advantages, mask) * _real(log_probs, mask)).sum(1).mean()


def clipped_loss(
    log_probs: Tensor,  # (batch, time) of the policy that is trained, with gradient
    behaviour_log_probs: Tensor,  # (batch, time) of the policy that sampled
    advantages: Tensor,  # (batch, 1) or (batch, time), weights included
    mask: Tensor,  # (batch, time)
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    proximal_log_probs: Tensor | None = None,  # (batch, time)
    ratio_cap: float | None = None,
) -> Tensor:  # ()
    """PPO's clipped surrogate, mean over tokens of a sequence, then over sequences.

    ``-min(r A, clip(r, 1 - low, 1 + high) A)``, r = pi / pi_behaviour (arXiv 1707.06347, equation
    7; GRPO's average over tokens, arXiv 2402.03300, equation 3). With ``proximal_log_probs`` it is
    the decoupled objective (arXiv 2110.00641; used by AReaL, arXiv 2505.24298): the
    trust region is around a recent policy, and the step from the behaviour policy to it is a
    factor pi_proximal / pi_behaviour, truncated at ``ratio_cap``.
    """
    advantages, mask = _checked(log_probs, advantages, mask)
    centre = behaviour_log_probs if proximal_log_probs is None else proximal_log_probs.detach()
    ratio = torch.exp(_real(log_probs - centre.detach(), mask))
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    surrogate = torch.minimum(ratio * advantages, clipped * advantages)
    if proximal_log_probs is not None:
        surrogate = surrogate * importance_ratio(
            proximal_log_probs, behaviour_log_probs, mask, cap=ratio_cap
        )
    return -(_real(surrogate, mask).sum(1) / mask.sum(1)).mean()


def importance_ratio(
    log_probs: Tensor,  # (batch, time) of the policy of now
    behaviour_log_probs: Tensor,  # (batch, time) of the policy that sampled
    mask: Tensor,  # (batch, time)
    *,
    cap: float | None = None,
    level: Level = "token",
) -> Tensor:  # (batch, time) or, for a sequence, (batch, 1); without gradient
    """Truncated ratio ``min(pi_now / pi_behaviour, cap)``, the right weight for stale rollouts.

    Per token, or of the whole sequence (the product over its tokens, the only one that is unbiased
    for sequences). The cap bounds the variance and biases towards the behaviour policy (V-trace,
    arXiv 1802.01561). For a policy that moved while a rollout was in flight this, and not the
    duration, is the right weight.
    """
    difference = _real(log_probs.detach() - behaviour_log_probs.detach(), mask)
    if level == "sequence":
        difference = difference.sum(1, keepdim=True)
    elif level != "token":
        raise MleRlError(f"level is {level!r}; choose 'token' or 'sequence'.")
    ratio = torch.exp(difference)
    return ratio if cap is None else ratio.clamp(max=cap)


def _real(values: Tensor, mask: Tensor) -> Tensor:
    """Values of real tokens, 0 on padding: a product would keep what is infinite or NaN there."""
    return torch.where(mask != 0, values, 0.0)


def _checked(log_probs: Tensor, advantages: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    per_sample = (log_probs.shape[0], 1)
    if (
        log_probs.ndim != 2
        or mask.shape != log_probs.shape
        or advantages.shape not in (per_sample, log_probs.shape)
    ):
        raise MleRlError(
            "Log-probabilities and mask must have shape (batch, time), advantages (batch, 1) or "
            f"(batch, time); they have {tuple(log_probs.shape)}, {tuple(mask.shape)} and "
            f"{tuple(advantages.shape)}."
        )
    if not mask.any(1).all():
        raise MleRlError("A rollout without a single token cannot be trained on; leave it out.")
    return advantages.detach(), mask.to(log_probs.dtype)
