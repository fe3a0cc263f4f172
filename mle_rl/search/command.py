"""``python -m mle_rl compare``: run a comparison, then write its table and its figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from mle_rl import tasks
from mle_rl.analysis import save_figure, save_table, style
from mle_rl.analysis.search import plot_search, reference_levels
from mle_rl.errors import MleRlError
from mle_rl.notebook import Run, limit_threads, shown_path
from mle_rl.search import recorded
from mle_rl.search.compare import compare
from mle_rl.search.methods import COMPARED
from mle_rl.search.settings import Settings
from mle_rl.search.summary import equal_time, over_seeds


def run(
    profile: str,
    settings: Settings,
    seeds: Sequence[int],
    methods: Sequence[str],
    folder: Path | None,
) -> None:
    """Compare, print the table at equal time, write ``equal_time.csv`` and ``score_by_time.*``.

    Args:
        profile: Whose results folder receives the comparison.
        settings: Of the comparison.
        seeds: One search per method and seed.
        methods: Names in `mle_rl.search.methods.METHODS`; `COMPARED` if empty.
        folder: Instead of the one in the results folder.
    """
    limit_threads(1)
    mpl.use("agg")
    folder = folder or recorded.comparison_folder(profile, settings.task)
    compare(settings, folder, methods=methods or COMPARED, seeds=seeds)
    found = recorded.read(folder)
    written = Run("compare", profile, folder)
    print(write(found, written).to_string(index=False, float_format="{:.4g}".format))
    print(f"results: {shown_path(folder)}")


def write(found: recorded.Recorded, run: Run) -> pd.DataFrame:
    """Write table and figure of recorded searches; returns the methods at equal time."""
    task = tasks.load(found.searches.task.iloc[0])
    higher = task.higher_is_better
    searches = equal_time(found.programs, found.searches, higher_is_better=higher)
    save_table(searches, "equal_time", run)
    table = over_seeds(searches, np.random.default_rng(0))
    if not table.solved.any():
        raise MleRlError("No program of the comparison is valid: give it more seconds.")
    style()
    fig, shown = plot_search(
        found.programs,
        found.searches,
        metric=task.metric,
        higher_is_better=higher,
        rng=np.random.default_rng(0),
        levels=reference_levels(task),
    )
    save_figure(fig, "score_by_time", shown, run, kind="live")
    return table
