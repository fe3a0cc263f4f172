"""What a program must know of its task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Output = Literal["probabilities", "probability", "label", "number"]


@dataclass(frozen=True)
class TaskShape:
    """What a program must know of its task.

    Attributes:
        kind: Which sort of data: ``text``, ``image`` or ``table``.
        target: Column to predict.
        output: What the submission holds: a probability per class, one probability, a label or a
            number.
        text_column: Column with the text, for the text kind.
        ordinal: Labels are ordered integers, so a rounded expectation is a sensible prediction.
    """

    kind: Literal["text", "image", "table"]
    target: str
    output: Output
    text_column: str = "text"
    ordinal: bool = False

    @property
    def regression(self) -> bool:
        """Whether the model predicts a number."""
        return self.output == "number"
