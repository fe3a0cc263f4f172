"""Headroom from recorded samples: verdicts, gains and what is left, for both directions."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mle_rl import MleRlError, tasks
from mle_rl.__main__ import main
from mle_rl.analysis import headroom, known
from mle_rl.analysis.headroom import FIRST
from mle_rl.analysis.samples import COLUMNS, read_samples

LOWER, HIGHER = "library-docstrings", "photo-patches"


@pytest.fixture(autouse=True)
def _no_long_search(monkeypatch, tmp_path):
    """The best known program is the best reference program, whatever the checkout has recorded."""
    monkeypatch.setattr(known, "long_search_folder", lambda: tmp_path / "no long search")


def table(scores, programs=None):
    """Samples with these (reward, final) scores, None for one that is not valid."""
    rows = [
        (n, pair is not None, *(pair or (np.nan, np.nan)), 0.5, "Ridge", f"p{n}")
        for n, pair in enumerate(scores)
    ]
    made = pd.DataFrame(rows, columns=list(COLUMNS))
    return made if programs is None else made.assign(program=programs)


def between(name, reward, final):
    """Scores at these gains of a task."""
    task = tasks.load(name)
    low, high = tasks.baseline(task), tasks.leaderboard(task).best
    return (
        low.reward_score + reward * (high.reward_score - low.reward_score),
        low.final_score + final * (high.final_score - low.final_score),
    )


@pytest.mark.parametrize("name", [LOWER, HIGHER])
def test_what_is_left_is_measured_on_the_sample_that_the_reward_split_chooses(name):
    samples = {name: table([None, between(name, 0.6, 0.9), between(name, 0.7, 0.2), None])}
    (row,) = headroom.summarise(samples).itertuples()
    assert row.left == pytest.approx(0.3)
    assert row.final_left == pytest.approx(0.8)
    assert (row.baseline, row.best_known) == pytest.approx(tasks.anchors(tasks.load(name)))
    median = tasks.leaderboard(tasks.load(name), "final").median_score
    assert row.final_left_from_median == pytest.approx(
        (row.final_best_known - row.final_best_sample) / (row.final_best_known - median)
    )
    assert row.valid_share_all == 0.5


@pytest.mark.parametrize("name", [LOWER, HIGHER])
def test_what_is_left_is_measured_from_what_a_long_search_found_if_that_is_better(
    name, monkeypatch
):
    found = known.Known(*between(name, 1.25, 1.25), "long search")
    monkeypatch.setattr(known, "_found", lambda task: found)
    (row,) = headroom.summarise({name: table([between(name, 1.0, 0.5)])}).itertuples()
    assert row.known_from == "long search"
    assert (row.best_known, row.final_best_known) == (found.reward_score, found.final_score)
    assert (row.left, row.final_left) == pytest.approx((0.2, 0.6))


@pytest.mark.parametrize("name", [LOWER, HIGHER])
def test_without_a_valid_one_the_sample_submission_is_handed_in(name):
    pairs = [None, between(name, 0.5, 0.4), None, None]
    curves = headroom.best_of_k_curves({name: table(pairs)}, [1, 2, 4, 8])
    assert curves.k.tolist() == [1, 2, 4], "no more than there are samples"
    assert curves.any_valid.tolist() == pytest.approx([0.25, 0.5, 1.0])
    assert curves.reward_gain.tolist() == pytest.approx([0.125, 0.25, 0.5])
    assert curves.final_gain.tolist() == pytest.approx([0.1, 0.2, 0.4])


def test_nothing_valid_leaves_everything_unknown():
    samples = {LOWER: table([None] * 3)}
    (row,) = headroom.summarise(samples).itertuples()
    assert np.isnan(row.left)
    assert row.valid_share_all == 0
    assert (headroom.best_of_k_curves(samples).final_gain == 0).all()


@pytest.mark.parametrize(
    ("valid", "different", "fit"),
    [(199, 199, False), (200, 200, True), (400, 400, True), (401, 401, False), (300, 199, False)],
)
def test_a_policy_is_fit_if_it_succeeds_sometimes_and_in_many_ways(valid, different, fit):
    """Of the first 1,000 only: what comes after them does not count."""
    scores = [(0.5, 0.5)] * valid + [None] * (FIRST - valid) + [(0.5, 0.5)] * 500
    programs = [f"p{n % different if n < valid else n}" for n in range(len(scores))]
    found = headroom.living(table(scores, programs))
    assert found == {"valid_share": valid / FIRST, "distinct_valid": different, "fit": fit}
    assert headroom.living(table(scores[: FIRST - 1], programs[: FIRST - 1]))["fit"] is None


def write(folder, name, made):
    folder.mkdir(exist_ok=True)
    made.assign(valid=made.valid.astype(int)).to_csv(folder / f"{name}.csv", index=False)


def test_files_are_read_in_the_order_of_suite_and_numbers(tmp_path):
    made = table([None, (0.5, 0.25), None])
    made.loc[0, ["family", "program"]] = ""
    for name in (HIGHER, LOWER):
        write(tmp_path, name, made.iloc[::-1])
    read = read_samples(tmp_path)
    assert list(read) == [name for name in tasks.names() if name in (LOWER, HIGHER)]
    pd.testing.assert_frame_equal(read[HIGHER], made)
    assert read_samples(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("final_score", "score"),
        lambda text: text.replace("1,1,0.5", "1,1,"),
        lambda text: text + text.splitlines()[-1] + "\n",
        lambda text: text + 'x"y\n"',
        lambda text: "",
        *(lambda text, name=name: text.replace(name, "x", 1) for name in COLUMNS),
        lambda text: text.replace(",0.5,", ",fast,"),
        lambda text: text.replace(",0.5,", ",inf,"),
        lambda text: text.replace("0.25", "fast"),
        lambda text: text.replace("0.25", ""),
        lambda text: text.replace("\n1,1", "\n1,2"),
        lambda text: text.replace("\n1,", "\n-1,"),
        lambda text: text.replace("\n1,", "\none,"),
        lambda text: text.replace("\n1,", "\n,"),
        lambda text: "<<<<<<< HEAD\n" + text + "=======\n",
        lambda text: text.replace(",0.5,Ridge", ",inf,Ridge", 1),
        lambda text: text.replace(",0.5,Ridge", ",-3,Ridge", 1),
        lambda text: text.replace(",0.5,Ridge", ",,Ridge", 1),
        lambda text: text.replace(",p1", ",", 1),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, damage):
    write(tmp_path, LOWER, table([None, (0.5, 0.25), None]))
    file = tmp_path / f"{LOWER}.csv"
    damaged = damage(file.read_text())
    assert damaged != file.read_text()
    file.write_text(damaged)
    with pytest.raises(MleRlError, match="restore it"):
        read_samples(tmp_path)


def test_the_figure_has_a_panel_per_task_and_its_numbers():
    samples = {name: table([None, between(name, 0.5, 0.4)] * 3) for name in (LOWER, HIGHER)}
    fig, curves = headroom.draw_headroom(samples)
    titles = [axis.get_title(loc=plt.rcParams["axes.titlelocation"]) for axis in fig.axes]
    assert [title.splitlines()[0] for title in titles] == [LOWER, HIGHER]
    assert "2 of 2 tasks" in fig.get_suptitle()
    assert set(curves.task) == set(samples)
    assert curves.k.max() == 6
    plt.close(fig)


def test_a_task_on_which_nothing_is_valid_counts_as_one_with_something_left():
    samples = {LOWER: table([None] * 3), HIGHER: table([between(HIGHER, 1.0, 1.0)] * 3)}
    fig, _ = headroom.draw_headroom(samples)
    lower, higher = (axis.get_title(loc=plt.rcParams["axes.titlelocation"]) for axis in fig.axes)
    assert "1 of 2 tasks" in fig.get_suptitle()
    assert lower.endswith("3 samples, none valid")
    assert higher.endswith("3 samples, left 0%")
    plt.close(fig)


def test_no_samples_are_no_figure():
    with pytest.raises(MleRlError, match="No samples are recorded"):
        headroom.draw_headroom({})


def test_the_command_says_what_is_recorded(tmp_path, capsys):
    assert main(["headroom", "--report", "--folder", str(tmp_path)]) == 0
    assert f"No samples are recorded in {tmp_path} yet" in capsys.readouterr().out
    write(tmp_path, HIGHER, table([None, between(HIGHER, 0.6, 0.9)]))
    assert main(["headroom", "--report", "--folder", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert HIGHER in shown
    assert "1000 wanted" in shown
    assert "0.4000" in shown
    write(tmp_path, LOWER, table([None, between(LOWER, 0.6, 0.9)]))
    for wanted, other in ((HIGHER, LOWER), (LOWER, HIGHER)):
        assert main(["headroom", "--report", "--folder", str(tmp_path), "--task", wanted]) == 0
        shown = capsys.readouterr().out
        assert wanted in shown
        assert other not in shown
    assert main(["headroom", "--report", "--folder", str(tmp_path), "--task", "no-task"]) == 2
    assert "There is no task 'no-task'" in capsys.readouterr().err
