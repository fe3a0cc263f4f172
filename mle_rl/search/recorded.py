"""Reading comparisons back: finished searches, their programs, and when and where they ran."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mle_rl.errors import MleRlError
from mle_rl.notebook import checkout_results, results_folder
from mle_rl.search.methods import METHODS
from mle_rl.search.record import COLUMNS, SEARCHES, files

FACTS = {
    "method": "Name of the method.",
    "task": "Id of the competition.",
    "seed": "Of the method.",
    "programs": "Programs that counted.",
    "seconds": "Budget.",
    "spent_s": "Seconds until the method had ended; one that trains ends after its update.",
    "date": "Day on which it ended.",
    "cores": "Processor cores that it could use.",
    "settings": "Of the comparison and of the method, see `mle_rl.search.settings`.",
    "best_program": "Text of the program that is best on the reward split, if one is valid.",
}
"""What is known of a finished search beside its programs."""


_KINDS = {
    **dict.fromkeys(("method", "task", "status", "family", "code"), str),
    **dict.fromkeys(("ended_at_s", "duration_s", "reward_score", "final_score"), float),
    "seed": int,
    "valid": bool,
}
"""Of the columns of a search."""


@dataclass(frozen=True)
class Recorded:
    """What the searches of a folder found.

    Attributes:
        programs: One row per program, columns `record.COLUMNS`.
        searches: One row per finished search, also of those that ran no program: `FACTS` up to
            ``cores``.
    """

    programs: pd.DataFrame
    searches: pd.DataFrame

    @property
    def origin(self) -> str:
        """When and on how many cores the searches ran, and for how long each."""
        return origin(self.searches)

    def of(self, methods: Collection[str]) -> Recorded:
        """The searches of these methods alone, as far as there are any."""
        return Recorded(
            *(part[part.method.isin(methods)] for part in (self.programs, self.searches))
        )


def origin(searches: pd.DataFrame) -> str:
    """When and on how many cores some searches ran, and for how long each."""
    days, cores = sorted(set(searches.date)), sorted(set(searches.cores))
    on = " or ".join(str(number) for number in cores)
    seconds = " or ".join(f"{each:g}" for each in sorted(set(searches.seconds)))
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"recorded {when} on {on} cores, {seconds} s each"


def comparison_folder(profile: str, task: str = "") -> Path:
    """Where the comparisons of a profile lie, or that of one task."""
    return results_folder(profile) / "compare" / task


def comparisons(profile: str) -> dict[str, Recorded]:
    """The comparisons that the checkout has for a profile, by task; empty if there are none."""
    root = checkout_results(profile) / "compare"
    folders = sorted(path.parents[1] for path in root.glob(f"*/{SEARCHES}/*.json"))
    return {folder.name: read(folder) for folder in dict.fromkeys(folders)}


def finished(folder: Path) -> dict[tuple[str, int], dict]:
    """`FACTS` of the finished searches of a folder, by method and seed.

    Raises:
        MleRlError: A file among them is damaged.
    """
    found = {}
    for path in sorted((folder / SEARCHES).glob("*.json")):
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            facts["seconds"] = facts["settings"]["seconds"]
            if facts["method"] not in METHODS:
                raise ValueError(f"there is no method {facts['method']!r}")
            found[facts["method"], facts["seed"]] = {name: facts[name] for name in FACTS}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(path, error) from None
    return found


def read(folder: Path) -> Recorded:
    """All finished searches of a folder.

    Raises:
        MleRlError: There is none, or a file is damaged.
    """
    facts = finished(folder)
    if not facts:
        raise MleRlError(f"There is no finished search in {folder}: run the comparison first.")
    tables = [_read_rows(folder, each) for each in facts.values()]
    searches = pd.DataFrame(facts.values()).drop(columns=["settings", "best_program"])
    searches = searches.sort_values(["method", "seed"], key=_in_order, ignore_index=True)
    filled = [table for table in tables if len(table)] or tables[:1]
    return Recorded(pd.concat(filled, ignore_index=True), searches)


def _in_order(column: pd.Series) -> pd.Series:
    """Methods in the order of `METHODS`, seeds as they are."""
    places = {name: place for place, name in enumerate(METHODS)}
    return column.map(places) if column.name == "method" else column


def _read_rows(folder: Path, facts: Mapping) -> pd.DataFrame:
    """The programs of a finished search, as many as its facts say."""
    who = {name: facts[name] for name in ("method", "task", "seed")}
    path, _ = files(folder, f"{facts['method']}-{facts['seed']}")
    try:
        # Nothing but an empty score is missing, whatever pandas takes for it elsewhere.
        table = pd.read_csv(
            path,
            dtype=_KINDS,
            keep_default_na=False,
            na_values={"reward_score": "", "final_score": ""},
        )
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from None
    if list(table) != list(COLUMNS):
        raise _damaged(path, "its columns are not those of a search")
    scored = table[["reward_score", "final_score"]].notna().eq(table.valid, axis=0)
    if not scored.all(axis=None):
        raise _damaged(path, "a program has no score and is valid, or the other way round")
    if len(table) != facts["programs"] or not (table[list(who)] == pd.Series(who)).all(axis=None):
        raise _damaged(path, "its rows are not those of the search")
    return table


def _damaged(path: Path, why: object) -> MleRlError:
    return MleRlError(
        f"The recorded search {path} cannot be read ({why}): restore it, or delete it with its "
        "neighbour of the same name to run that search again."
    )
