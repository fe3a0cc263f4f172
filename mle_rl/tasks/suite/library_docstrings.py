"""Which library does this paragraph of documentation come from? (text, log loss)"""

from __future__ import annotations

from mle_rl.tasks.building import Competition, Example, distinct
from mle_rl.tasks.suite.docstrings import paragraphs

_LIBRARIES = {
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "pandas": "pandas",
    "scikit-learn": "sklearn",
    "scipy": "scipy",
    "statsmodels": "statsmodels",
}

_PAGE = """\
# Whose documentation is this?

Six libraries of scientific Python document themselves in much the same style. Given one paragraph
of prose from a docstring, say which library it was written for.

## Data

- `train.csv`: {n_train} paragraphs with columns `id`, `text` and `library`.
- `test.csv`: {n_test} paragraphs with columns `id` and `text`.
- `sample_submission.csv`: a valid submission that knows nothing.

Paragraphs were taken from the source files of the installed libraries, put on one line, and freed
of the names and usual aliases of the libraries, which read `LIB`. No source file gives paragraphs
to both `train.csv` and `test.csv`. The classes are equally frequent: {classes}.

## Evaluation

Submissions are scored by **multi-class logarithmic loss**; lower is better. The probabilities of a
row must lie in [0, 1] and sum to one.

## Submission

`submission.csv` with a header and one row per `id` of `test.csv`: the id and one probability for
each library, columns named as in `sample_submission.csv`.
"""


def _examples() -> list[Example]:
    return distinct(
        Example(features=(text,), target=library, group=file, stratum=library)
        for library, package in _LIBRARIES.items()
        for file, text in paragraphs(
            package, per_file=12, min_chars=80, max_chars=400, min_words=10
        )
    )


COMPETITION = Competition(
    id="library-docstrings",
    title="Whose documentation is this?",
    kind="text",
    metric="log_loss",
    target="library",
    features=("text",),
    id_prefix="p",
    train_rows=350,
    test_rows=250,
    sample_predictions=(),
    sources=tuple(_LIBRARIES),
    examples=_examples,
    page=_PAGE,
)
