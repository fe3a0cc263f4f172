"""How high above the sea is this piece of land? (image, Pearson correlation)

The digital elevation model around the Jacksboro fault in Tennessee that matplotlib ships.
"""

from __future__ import annotations

import numpy as np

from mle_rl.tasks.building import Competition, Example
from mle_rl.tasks.suite.sources import package_file

_PATCH = 8
_MIDDLE_GREY = 128

_PAGE = """\
# How high does this land lie?

A map of heights around the Jacksboro fault, where the Appalachian mountains of Tennessee meet a
plain, was cut into squares of 8 x 8 points, each about 90 m from the next. Given the relief of a
square relative to its own mean, predict how high the square lies above the sea.

## Data

- `train.csv`: {n_train} rows with columns `id` and `height`, the mean height in metres.
- `test.csv`: {n_test} rows with the column `id`.
- `train_images.npy`, `test_images.npy`: `uint8`, shape (rows, 8, 8, 1). The value is the height
  above the mean of the square in metres, plus 128. Image *i* belongs to row *i* of the CSV file.
- `sample_submission.csv`: a valid submission that knows nothing.

Squares do not overlap.

## Evaluation

Submissions are scored by the **Pearson correlation** of predicted and true heights; higher is
better. Predictions must not all be equal.

## Submission

`submission.csv` with the columns `id` and `height`, one row per `id` of `test.csv`.
"""


def _examples() -> list[Example]:
    path = package_file("matplotlib", "mpl-data/sample_data/jacksboro_fault_dem.npz")
    with np.load(path) as archive:
        heights = archive["elevation"].astype(np.int64)
    found = []
    for top in range(0, heights.shape[0] - _PATCH + 1, _PATCH):
        for left in range(0, heights.shape[1] - _PATCH + 1, _PATCH):
            square = heights[top : top + _PATCH, left : left + _PATCH]
            relief = square - int(square.sum()) // square.size + _MIDDLE_GREY
            found.append(
                Example(
                    features=(),
                    target=f"{int(square.sum()) / square.size:.2f}",
                    group=f"{top}:{left}",
                    pixels=np.clip(relief, 0, 255).astype(np.uint8)[:, :, None],
                )
            )
    return found


COMPETITION = Competition(
    id="terrain-height",
    title="How high does this land lie?",
    kind="image",
    metric="pearson",
    target="height",
    features=(),
    id_prefix="t",
    train_rows=1050,
    test_rows=1100,
    sample_predictions=("500", "501"),
    sources=("matplotlib",),
    examples=_examples,
    page=_PAGE,
)
