"""From where in which photograph was this patch cut? (image, accuracy)"""

from __future__ import annotations

from mle_rl.tasks.building import Competition, Example

_PATCH = 12
_ROWS = ("top", "bottom")
_COLUMNS = ("left", "middle", "right")
_PHOTOGRAPHS = {"china.jpg": "temple", "flower.jpg": "flower"}

_PAGE = """\
# Where was this patch cut?

Two photographs, a Chinese temple and a flower, were cut into square patches of 12 x 12 pixels.
Given one patch, say which photograph it comes from and in which sixth of that photograph it lay.

## Data

- `train.csv`: {n_train} rows with columns `id` and `label`.
- `test.csv`: {n_test} rows with the column `id`.
- `train_images.npy`, `test_images.npy`: the pixels, `uint8`, shape (rows, 12, 12, 3), red, green,
  blue. Image *i* belongs to row *i* of the CSV file.
- `sample_submission.csv`: a valid submission that knows nothing.

Patches do not overlap. The labels are {classes}.

## Evaluation

Submissions are scored by **accuracy**, the share of right labels; higher is better.

## Submission

`submission.csv` with the columns `id` and `label`, one row per `id` of `test.csv`.
"""


def _examples() -> list[Example]:
    from sklearn.datasets import load_sample_image

    found = []
    for file, name in _PHOTOGRAPHS.items():
        photograph = load_sample_image(file)
        height, width = photograph.shape[0] // _PATCH, photograph.shape[1] // _PATCH
        for i in range(height):
            for j in range(width):
                top, left = i * _PATCH, j * _PATCH
                row = _ROWS[i * len(_ROWS) // height]
                column = _COLUMNS[j * len(_COLUMNS) // width]
                found.append(
                    Example(
                        features=(),
                        target=f"{name}-{row}-{column}",
                        group=f"{file}:{i}:{j}",
                        pixels=photograph[top : top + _PATCH, left : left + _PATCH].copy(),
                    )
                )
    return found


COMPETITION = Competition(
    id="photo-patches",
    title="Where was this patch cut?",
    kind="image",
    metric="accuracy",
    target="label",
    features=(),
    id_prefix="i",
    train_rows=1800,
    test_rows=1910,
    sample_predictions=("flower-bottom-left",),
    sources=("scikit-learn", "pillow"),
    examples=_examples,
    page=_PAGE,
)
