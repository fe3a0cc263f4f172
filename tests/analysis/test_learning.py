"""Curves of one policy on several tasks."""

import matplotlib.pyplot as plt
import pandas as pd

from mle_rl.analysis.learning import TASK_CURVES, plot_by_task


def test_every_task_has_a_line_of_its_own_in_every_panel():
    rows = [
        {"task": task, "step": step, **{name: level + step for name, _ in TASK_CURVES}}
        for task, level in (("one", 0.0), ("two", 10.0))
        for step in (1, 2, 3)
    ]
    fig = plot_by_task(pd.DataFrame(rows), "a finding")
    for axis in fig.axes:
        drawn = {line.get_label(): list(line.get_ydata()) for line in axis.lines}
        assert drawn == {"one": [1.0, 2.0, 3.0], "two": [11.0, 12.0, 13.0]}
    plt.close(fig)
