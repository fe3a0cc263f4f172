"""Did the mother smoke during pregnancy? (table, ROC AUC)

The births of Cattaneo (2010, "Efficient semiparametric estimation of multi-valued treatment
effects"), which statsmodels ships with the tests of its treatment effects.
"""

from __future__ import annotations

import csv

from mle_rl.tasks.building import Competition, Example
from mle_rl.tasks.suite.sources import package_file

_COLUMNS = {
    "birth_weight": "bweight",
    "married": "mmarried_",
    "first_baby": "fbaby_",
    "birth_order": "order",
    "months_since_last": "monthslb",
    "lost_child": "deadkids",
    "birth_month": "birthmonth",
    "prenatal_visits": "nprenatal",
    "prenatal_trimester": "prenatal",
    "alcohol": "alcohol",
    "foreign": "foreign",
    "mother_age": "mage",
    "mother_education": "medu",
    "mother_hispanic": "mhisp",
    "mother_white": "mrace",
    "father_age": "fage",
    "father_education": "fedu",
    "father_hispanic": "fhisp",
    "father_white": "frace",
}

_PAGE = """\
# Did the mother smoke?

From what the register of births in Pennsylvania says about a child and its parents, predict the
probability that the mother smoked during pregnancy.

## Data

- `train.csv`: {n_train} births with the column `smoked`, 0 or 1.
- `test.csv`: {n_test} births without it.
- `sample_submission.csv`: a valid submission that knows nothing.

| column | meaning |
|---|---|
| `birth_weight` | of the child, grams |
| `married`, `first_baby` | 1 for yes |
| `birth_order` | 1 for the first child of the mother |
| `months_since_last` | since the birth of the last child, 0 for a first one |
| `lost_child` | 1 if an earlier child died |
| `birth_month` | 1 to 12 |
| `prenatal_visits` | number of visits to a doctor before birth |
| `prenatal_trimester` | trimester of the first of these visits, 0 for none |
| `alcohol` | 1 if the mother drank during pregnancy |
| `foreign` | 1 if the mother was born abroad |
| `mother_age`, `father_age` | years; 0 where the father is not known |
| `mother_education`, `father_education` | years of schooling |
| `mother_hispanic`, `mother_white`, `father_hispanic`, `father_white` | 1 for yes |

## Evaluation

Submissions are scored by the **area under the ROC curve**; higher is better.

## Submission

`submission.csv` with the columns `id` and `smoked`, the probability, one row per `id` of
`test.csv`.
"""


def _examples() -> list[Example]:
    path = package_file("statsmodels", "treatment/tests/results/cataneo2.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Example(
                features=tuple(row[name] for name in _COLUMNS.values()),
                target=row["mbsmoke_"],
                group=str(number),
            )
            for number, row in enumerate(csv.DictReader(file))
        ]


COMPETITION = Competition(
    id="smoking-mothers",
    title="Did the mother smoke?",
    kind="table",
    metric="roc_auc",
    target="smoked",
    features=tuple(_COLUMNS),
    id_prefix="b",
    train_rows=2000,
    test_rows=2640,
    sample_predictions=("0.5",),
    sources=("statsmodels",),
    examples=_examples,
    page=_PAGE,
)
