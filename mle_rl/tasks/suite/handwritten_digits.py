"""Which digit was written, when few examples have labels? (image, log loss)"""

from __future__ import annotations

from mle_rl.tasks.building import Competition, Example

_PAGE = """\
# Read a digit from few examples

Small pictures of handwritten digits, and labels for only {n_train} of them: say how probable each
digit is.

## Data

- `train.csv`: {n_train} rows with columns `id` and `digit`, 0 to 9.
- `test.csv`: {n_test} rows with the column `id`.
- `train_images.npy`, `test_images.npy`: `uint8`, shape (rows, 8, 8, 1), ink from 0 to 16. Image *i*
  belongs to row *i* of the CSV file.
- `sample_submission.csv`: a valid submission that knows nothing.

## Evaluation

Submissions are scored by **multi-class logarithmic loss**; lower is better. The probabilities of a
row must lie in [0, 1] and sum to one.

## Submission

`submission.csv` with a header and one row per `id` of `test.csv`: the id and one probability for
each digit, columns named {classes}.
"""


def _examples() -> list[Example]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return [
        Example(
            features=(),
            target=str(int(label)),
            group=str(number),
            pixels=image.astype("uint8")[:, :, None],
        )
        for number, (image, label) in enumerate(zip(digits.images, digits.target, strict=True))
    ]


COMPETITION = Competition(
    id="handwritten-digits",
    title="Read a digit from few examples",
    kind="image",
    metric="log_loss",
    target="digit",
    features=(),
    id_prefix="h",
    train_rows=400,
    test_rows=1390,
    sample_predictions=(),
    sources=("scikit-learn",),
    examples=_examples,
    page=_PAGE,
)
