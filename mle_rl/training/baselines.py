"""Baselines by group label: an asynchronous queue keeps no positions.

A group may have any size, and its members may lie anywhere in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from trl.trainer.utils import nanstd


def grouped_advantages(
    rewards: Tensor,  # (batch,) NaN where there is none
    weights: Tensor,  # (batch,) duration weights
    groups: Sequence,  # batch labels; equal ones share a baseline
    scale: str,  # "group", "batch" or "none", TRL's scale_rewards
) -> Tensor:  # (batch,)
    """Reward minus the weighted mean of its group, divided as TRL divides it (GRPO, equation 3).

    A row without a reward, and one that is alone in its group, gets advantage 0.
    """
    labels = labels_of(groups)
    members = [torch.nonzero(labels == label)[:, 0] for label in labels.unique()]
    rows = nn.utils.rnn.pad_sequence(members, batch_first=True, padding_value=-1).to(rewards.device)
    absent = rows < 0
    grouped = rewards[rows].masked_fill(absent, torch.nan)
    weight = weights[rows].masked_fill(absent | grouped.isnan(), torch.nan)
    mean = (grouped * weight).nansum(dim=1) / weight.nansum(dim=1)
    centred = grouped - mean[:, None]
    if scale == "group":
        centred = centred / (nanstd(grouped, dim=1)[:, None] + 1e-4)
    elif scale == "batch":
        centred = centred / (nanstd(rewards) + 1e-4)
    alone = (~grouped.isnan()).sum(dim=1, keepdim=True) < 2
    centred = centred.masked_fill(alone | grouped.isnan(), 0.0)
    advantages = torch.empty_like(rewards)
    advantages[rows[~absent]] = centred[~absent]
    return advantages


def labels_of(names: Sequence) -> Tensor:
    """Integer labels, (batch,), equal where the names are equal."""
    known = {name: label for label, name in enumerate(dict.fromkeys(names))}
    return torch.tensor([known[name] for name in names])
