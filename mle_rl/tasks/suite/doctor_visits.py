"""How often does a person see a doctor this year? (table, RMSLE cut at 0)

The full file of the RAND Health Insurance Experiment, which statsmodels ships beside the reduced
one of its data set ``randhie``: 20,190 person-years with the history of each person.
"""

from __future__ import annotations

import csv
from collections import defaultdict

from mle_rl.tasks.building import Competition, Example
from mle_rl.tasks.suite.sources import package_file

_COLUMNS = {
    "year": "year",
    "site": "site",
    "coinsurance": "coins",
    "individual_deductible": "idp",
    "deductible": "mdeoff",
    "incentive": "pioff",
    "age": "xage",
    "female": "female",
    "black": "black",
    "education": "educdec",
    "income": "income",
    "family_size": "num",
    "child": "child",
    "chronic": "disea",
    "limitation": "physlm",
    "health": "xghindx",
    "mental_health": "mhi",
}
_LAST_YEAR = {
    "visits_last_year": "mdvis",
    "other_visits_last_year": "notmdvis",
    "mental_visits_last_year": "mentvis",
    "drug_dollars_last_year": "drugdol",
    "admissions_last_year": "totadm",
}

_PAGE = """\
# How often will they see a doctor?

From 1974 to 1982 the RAND Health Insurance Experiment gave families insurance plans at random and
recorded what care they used. Given a person, the family's plan and the person's last year in the
experiment, predict the number of outpatient visits to a doctor this year.

## Data

- `train.csv`: {n_train} person-years with the column `visits`.
- `test.csv`: {n_test} person-years without it. No family is in both files.
- `sample_submission.csv`: a valid submission that knows nothing.

| column | meaning |
|---|---|
| `year` | year of the experiment, 2 to 5 |
| `site` | one of six places in the United States, as a number |
| `coinsurance` | share of costs that the family pays, percent |
| `individual_deductible` | 1 for the plan with a deductible per person |
| `deductible` | largest yearly expenditure of the family, dollars |
| `incentive` | payment for taking part, dollars |
| `age`, `female`, `black` | of the person |
| `education` | years of schooling of the head of the family |
| `income` | of the family, dollars |
| `family_size`, `child` | number of members; 1 for a person under 18 |
| `chronic` | index of chronic diseases |
| `limitation` | 1 for a physical limitation |
| `health`, `mental_health` | self-rated indices, 0 to 100, higher is better |
| `visits_last_year`, `other_visits_last_year`, `mental_visits_last_year` | visits to doctors, to others, and for mental health |
| `drug_dollars_last_year` | spent on drugs |
| `admissions_last_year` | stays in hospital |

## Evaluation

Submissions are scored by **root mean squared logarithmic error**; lower is better. A prediction
below zero counts as zero.

## Submission

`submission.csv` with the columns `id` and `visits`, one row per `id` of `test.csv`.
"""  # noqa: E501


def _examples() -> list[Example]:
    path = package_file("statsmodels", "datasets/randhie/src/randhie.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    by_person: dict[str, dict[int, dict[str, str]]] = defaultdict(dict)
    for row in rows:
        by_person[row["zper"]][int(row["year"])] = row
    found = []
    for person in by_person.values():
        for year, row in person.items():
            before = person.get(year - 1)
            if before is None or any(row[name] == "" for name in _COLUMNS.values()):
                continue
            now = (row[name] for name in _COLUMNS.values())
            past = (before[name] for name in _LAST_YEAR.values())
            found.append(Example((*now, *past), target=row["mdvis"], group=_family(row)))
    return found


def _family(row: dict[str, str]) -> str:
    """The file has no number for a family; its members share these."""
    return ":".join(row[name] for name in ("site", "plan", "num", "income"))


COMPETITION = Competition(
    id="doctor-visits",
    title="How often will they see a doctor?",
    kind="table",
    metric="clipped_rmsle",
    target="visits",
    features=(*_COLUMNS, *_LAST_YEAR),
    id_prefix="v",
    train_rows=3000,
    test_rows=3000,
    sample_predictions=("1",),
    sources=("statsmodels",),
    examples=_examples,
    page=_PAGE,
)
