"""The path as a figure: every word in its order, with the values of the rollout it is given."""

import matplotlib.pyplot as plt
import pytest

from mle_rl import Execution, MleRlError, Outcome, Program, Rollout
from mle_rl.analysis.path import draw_path, stations
from mle_rl.tasks.task import Task

WORDS = ["Task", "Prompt", "Program", "Instrumented", "Execution", "Outcome", "Reward", "Batch"]


def _stations(tmp_path, outcome: Outcome, reward: float):
    task = Task("a", "A", "table", "rmsle", tmp_path, "", ("id", "y"), tmp_path, "")
    execution = Execution("ok", "", "", 1.5, 1.4, 96.0, "isolated")
    rollout = Rollout(
        id=1,
        task="a",
        prompt_kind="scratch",
        group="a/scratch",
        prompt_ids=(1, 2, 3),
        completion_ids=(4, 5),
        logprobs=(-0.5, -1.0),
        model_version=7,
        dispatched_at=0.0,
        program=Program("Fit " + "very " * 30 + "well.", "x = 1\ny = 2\n"),
        execution=execution,
        outcome=outcome,
        reward=reward,
    )
    return stations(task, rollout, places=5, batch=64, duration_weight=1.25)


def test_each_word_of_the_path_has_the_values_of_its_rollout(tmp_path):
    steps = _stations(tmp_path, Outcome(("data_loaded",), True, 0.0, 0.25), reward=-0.125)
    values = {word: " | ".join(lines) for word, lines in steps}
    assert list(values) == WORDS
    assert values["Task"] == "a | rmsle, lower is better"
    assert values["Prompt"] == "scratch | 3 tokens"
    assert values["Program"].endswith("2 lines of Python | 2 tokens, log-probability -1.5")
    assert values["Instrumented"] == "5 places observed"
    assert values["Execution"] == "ok in 1.50 s | peak memory 96 MiB | 1 stages reached"
    assert values["Outcome"] == "reward split 0.0000 | final split 0.2500"  # a score of 0 is one
    assert values["Reward"] == "-0.1250"
    assert values["Batch"] == "one of 64 rollouts | policy version 7 | duration weight 1.25"


def test_a_long_plan_keeps_within_its_box(tmp_path):
    steps = dict(_stations(tmp_path, Outcome((), True, 1.0, 1.0), reward=-1.0))
    assert len(steps["Program"]) <= 4
    assert max(map(len, steps["Program"])) <= 36


def test_an_invalid_program_has_no_score(tmp_path):
    steps = dict(_stations(tmp_path, Outcome((), False, problem="?"), reward=-10.0))
    assert steps["Outcome"] == ["no valid submission"]


@pytest.mark.parametrize("count", [1, 4, 5, 8, 9])
def test_n_stations_are_joined_by_n_minus_one_arrows_and_listed_in_the_table(count):
    fig, table = draw_path([(f"s{i}", [f"v{i}", "w"]) for i in range(count)], "A path")
    (axes,) = fig.axes
    texts = [text.get_text() for text in axes.texts]
    assert sum(text == "" for text in texts) == count - 1  # an arrow is a text without words
    assert [text for text in texts if text.startswith("s")] == [f"s{i}" for i in range(count)]
    assert list(table.station) == [f"s{i}" for i in range(count) for _ in range(2)]
    plt.close(fig)


def test_a_path_without_stations_is_refused():
    with pytest.raises(MleRlError, match="no path to draw"):
        draw_path([], "A path")
