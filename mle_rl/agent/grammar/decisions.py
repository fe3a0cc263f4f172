"""Decisions: what a person settles, one by one, while writing a program.

A decision has a plain default that people take most of the time, and rarer alternatives. All
decisions are drawn independently of one another and of the task, so nothing here knows which
programs score well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Value = str | None
Sketch = Mapping[str, Value]
"""One value per decision name. None means that nothing is written: the library's default."""


@dataclass(frozen=True)
class Decision:
    """One independent choice.

    Attributes:
        name: Unique within a program space.
        plain: What is taken by default.
        plain_share: How often, between 0 and 1.
        other: Draws one of the alternatives.
    """

    name: str
    plain: Value
    plain_share: float
    other: Callable[[np.random.Generator], Value]

    def draw(self, rng: np.random.Generator) -> Value:
        """The default with its share, an alternative otherwise."""
        return self.plain if rng.random() < self.plain_share else self.other(rng)


def choice(name: str, plain: Value, share: float, others: Mapping[Value, float]) -> Decision:
    """A decision among named alternatives; ``others`` maps each to its relative frequency."""
    values = list(others)
    weights = np.array([others[value] for value in values], dtype=float)
    weights /= weights.sum()
    return Decision(name, plain, share, lambda rng: values[rng.choice(len(values), p=weights)])


def integer(name: str, share: float, low: int, high: int, plain: Value = None) -> Decision:
    """A whole number, log-uniform in [low, high], at most two significant digits above 100."""

    def other(rng: np.random.Generator) -> Value:
        value = round(np.exp(rng.uniform(np.log(low), np.log(high))))
        step = 10 ** max(0, len(str(value)) - 2)
        return str(max(low, value // step * step))

    return Decision(name, plain, share, other)


def real(name: str, share: float, low: float, high: float, plain: Value = None) -> Decision:
    """A number, log-uniform in [low, high], with two significant digits."""

    def other(rng: np.random.Generator) -> Value:
        return number(np.exp(rng.uniform(np.log(low), np.log(high))))

    return Decision(name, plain, share, other)


def number(value: float) -> str:
    """A number as a person writes it: two significant digits, never an exponent."""
    rounded = float(f"{value:.2g}")
    return str(int(rounded)) + ".0" if rounded == int(rounded) else f"{rounded:.8f}".rstrip("0")


def draw(decisions: tuple[Decision, ...], rng: np.random.Generator) -> dict[str, Value]:
    """One sketch of a program: every decision drawn independently."""
    return {decision.name: decision.draw(rng) for decision in decisions}


def call(name: str, *positional: str, **keywords: Value) -> str:
    """The text of a call; keywords whose value is None are not written."""
    written = [
        *positional,
        *(f"{key}={value}" for key, value in keywords.items() if value is not None),
    ]
    return f"{name}({', '.join(written)})"
