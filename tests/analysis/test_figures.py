"""Figures: the same bytes on every save and in every process; numbers and their origin."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mle_rl import MleRlError
from mle_rl.analysis import KINDS, OKABE_ITO, plot_interval, save_figure, save_table, style
from mle_rl.analysis.statistics import Interval
from mle_rl.notebook import Run

ENDINGS = (".png", ".pdf", ".csv")

DRAW = """
import hashlib, sys
from pathlib import Path
import matplotlib.pyplot as plt
import pandas as pd
from mle_rl.analysis import save_figure, style
from mle_rl.notebook import Run

style()
fig, axes = plt.subplots()
for name in ("first", "second"):
    axes.plot([1, 2, 3], [0.1, 0.5, 0.2], label=name)
axes.set(title="α rises, then falls", xlabel="step", ylabel="reward")
axes.legend()
data = pd.DataFrame({"step": [1, 2, 3], "reward": [0.1, 1 / 3, 0.2]})
path = save_figure(fig, "curve", data, Run("00_a", "quick", Path(sys.argv[1])), kind="live")
for ending in (".png", ".pdf", ".csv"):
    print(hashlib.sha256(path.with_suffix(ending).read_bytes()).hexdigest())
"""


@pytest.fixture
def run(tmp_path) -> Run:
    style()
    return Run("00_a", "quick", tmp_path)


@pytest.fixture
def figure():
    style()
    fig, axes = plt.subplots()
    # One of the figures that a second layout moves by 1e-8 inch.
    axes.fill_between(range(10), -1.77, np.linspace(-0.5, 1.6, 10))
    axes.plot(range(10), np.arange(10) * 0.1, label="a")
    axes.set(title="It rises", xlabel="step")
    axes.legend()
    yield fig
    plt.close(fig)


DATA = pd.DataFrame({"x": [1, 2], "y": [0.1, 1 / 3]})


def _digests(path: Path) -> list[str]:
    return [hashlib.sha256(path.with_suffix(end).read_bytes()).hexdigest() for end in ENDINGS]


def test_saving_again_gives_the_same_bytes(figure, run):
    first = _digests(save_figure(figure, "curve", DATA, run, kind="exact"))
    for _ in range(3):
        assert _digests(save_figure(figure, "curve", DATA, run, kind="exact")) == first


def test_two_processes_with_other_clocks_and_hash_seeds_give_the_same_bytes(tmp_path):
    outputs = set()
    for seed, epoch in (("1", "0"), ("2", "86400")):
        # matplotlib takes its clock from SOURCE_DATE_EPOCH where it is set.
        environment = os.environ | {"PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": epoch}
        command = [sys.executable, "-c", DRAW, str(tmp_path / seed)]
        outputs.add(
            subprocess.run(command, env=environment, check=True, capture_output=True).stdout
        )
    assert len(outputs) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_figure_says_where_its_numbers_come_from(figure, run, kind):
    path = save_figure(figure, "curve", DATA, run, kind=kind)
    stamp = f"{KINDS[kind]}; quick profile"
    assert [text.get_text() for text in figure.texts] == [stamp]
    assert stamp.encode() in path.read_bytes()
    assert stamp.encode() in path.with_suffix(".pdf").read_bytes()


def test_saved_twice_with_another_origin_only_the_last_one_stands(figure, run):
    save_figure(figure, "curve", DATA, run, kind="live")
    save_figure(figure, "curve", DATA, run, kind="replayed")
    assert [text.get_text() for text in figure.texts] == [f"{KINDS['replayed']}; quick profile"]


def test_the_csv_gives_the_plotted_numbers_back(figure, run):
    path = save_figure(figure, "curve", DATA, run, kind="live").with_suffix(".csv")
    pd.testing.assert_frame_equal(pd.read_csv(path), DATA, rtol=1e-9)


def test_a_named_index_becomes_columns_and_a_plain_one_does_not(run):
    grouped = DATA.set_index(pd.Index(["p", "q"], name="rule"))
    assert save_table(grouped, "rules", run).read_text().startswith("rule,x,y\np,1,0.1\n")
    assert save_table(DATA, "plain", run).read_text().startswith("x,y\n1,0.1\n")


def test_digits_that_differ_between_machines_are_not_written(run):
    nearly = pd.DataFrame({"y": [0.1 + 0.2, 1e-17 + 0.3]})
    assert save_table(nearly, "nearly", run).read_text() == "y\n0.3\n0.3\n"


@pytest.mark.parametrize("name", ["", "a b", "../a", "a.png", "Fig_1", "/a"])
def test_names_that_are_no_plain_file_names_are_refused(figure, run, name):
    with pytest.raises(MleRlError, match="not a name for a result file"):
        save_figure(figure, name, DATA, run, kind="live")


def test_an_unknown_origin_lists_the_known_ones(figure, run):
    with pytest.raises(MleRlError, match="exact, live, recorded, replayed, simulated"):
        save_figure(figure, "curve", DATA, run, kind="real")


def test_a_figure_without_numbers_is_refused(figure, run):
    with pytest.raises(MleRlError, match="no rows"):
        save_figure(figure, "curve", DATA[:0], run, kind="live")


def test_a_results_folder_that_is_a_file_is_one_sentence(figure, tmp_path):
    (tmp_path / "taken").write_text("")
    run = Run("00_a", "quick", tmp_path / "taken" / "00_a")
    with pytest.raises(MleRlError, match="cannot be written"):
        save_figure(figure, "curve", DATA, run, kind="live")


def test_lines_differ_in_colour_and_in_a_second_channel():
    style()
    cycle = list(plt.rcParams["axes.prop_cycle"])
    assert len({str(entry["linestyle"]) for entry in cycle}) == len(cycle)
    assert {entry["color"] for entry in cycle} <= set(OKABE_ITO.values())


def test_an_interval_is_drawn_in_the_colour_of_its_curve():
    fig, axes = plt.subplots()
    steps = np.arange(3.0)
    plot_interval(axes, steps, Interval(steps, steps - 1, steps + 1), label="a", color="#D55E00")
    assert axes.lines[0].get_color() == "#D55E00"
    assert axes.collections[0].get_facecolor()[0, :3] == pytest.approx((0xD5 / 255, 0x5E / 255, 0))
    plt.close(fig)
