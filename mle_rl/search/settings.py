"""What all searches of one comparison share, and what reinforcement learning has of its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from mle_rl.errors import MleRlError
from mle_rl.records import Limits
from mle_rl.search.budget import check_seconds


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a comparison; searches that are drawn into one figure have equal ones.

    Raises:
        MleRlError: A value is out of range.
    """

    task: str
    """Id of the competition."""

    seconds: float
    """Budget of each search, on the clock of the wall."""

    workers: int = 2
    """Programs that run at the same time."""

    tier: str = "isolated"
    """Isolation of the sandbox."""

    limits: Limits = field(default_factory=Limits)
    """What each program may use: as much as those of a long search and of recorded samples."""

    batch_size: int = 64
    """Rollouts per update of reinforcement learning."""

    rows: int = 32
    """Completions that best of n samples at once."""

    chat_rows: int = 8
    """The same for a chat model, which takes minutes for a batch: what is late does not count."""

    def __post_init__(self):
        check_seconds(self.seconds)
        for name, least in (("workers", 1), ("batch_size", 2), ("rows", 1), ("chat_rows", 1)):
            if getattr(self, name) < least:
                raise MleRlError(f"{name} is {getattr(self, name)}; give at least {least}.")

    def to_dict(self) -> dict:
        """The settings as plain data."""
        return asdict(self)


CHOSEN_ON = "library-docstrings"
"""The task that the settings of reinforcement learning were chosen on, so that it flatters them."""


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How reinforcement learning learns in a comparison. A valid program earns its percentile.

    The defaults were chosen by the reward split of `CHOSEN_ON`.
    """

    failure: float = -0.1
    """Reward of a program that is not valid, before credit for stages."""

    stage: float = 0.01
    """Credit for a stage. With that for all seven a failure must not earn more than 0, which is
    what the worst valid program earns."""

    improve_share: float = 0.5
    """Share of prompts that show an earlier solution (paper: half)."""

    learning_rate: float = 1e-3
    """Of AdamW."""

    entropy: float = 0.01
    """Weight of the entropy bonus."""

    weighting: str = "none"
    """Duration weights, see `mle_rl.training.weighting`; the queue here drops nothing."""


def differences(one: dict, other: dict) -> list[str]:
    """Where two settings differ, in words."""
    return [
        f"{name} {other.get(name)} there, {one.get(name)} here"
        for name in {**one, **other}
        if one.get(name) != other.get(name)
    ]
