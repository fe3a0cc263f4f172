"""Sliders on a run that trains: what they set counts; what cannot be meant is said, not taken."""

import time
from dataclasses import replace

import pytest
from jupyter_client.manager import start_new_kernel

from mle_rl import tasks
from mle_rl.rewards import RewardWeights
from mle_rl.training.config import TrainConfig
from mle_rl.training.panel import RewardPanel
from mle_rl.training.run import Controls
from mle_rl.training.weighting import DurationWeighting

WEIGHTS = RewardWeights(failure=-0.8, score_scale="percentile")


@pytest.fixture
def controls():
    return Controls(WEIGHTS)


@pytest.fixture
def panel(controls, tmp_path):
    return RewardPanel(controls, TrainConfig(run_dir=tmp_path, rewards=WEIGHTS))


def test_it_begins_with_what_is_in_force_and_changes_nothing(panel, controls):
    assert panel.inputs["failure"].value == -0.8
    assert panel.inputs["score_scale"].value == "percentile"
    assert controls.rewards == WEIGHTS
    assert "no failure can earn as much" in panel.said


def test_every_input_sets_its_weight(panel, controls):
    panel.inputs["failure"].value = -5.0
    panel.inputs["stage"].value = 0.25
    panel.inputs["keep_stages_when_valid"].value = True
    panel.inputs["score_scale"].value = "anchored"
    panel.inputs["time_cost_rate"].value = 0.5
    assert controls.rewards == RewardWeights(-5.0, 0.25, True, "anchored", time_cost_rate=0.5)
    assert not controls.stop
    panel.stop.click()
    assert controls.stop


def test_a_setting_under_which_failing_pays_is_said(panel):
    panel.inputs["score_scale"].value = "raw"
    assert "A failure can beat a valid program" in panel.said


def test_a_setting_that_cannot_be_meant_is_not_taken(controls, tmp_path):
    config = TrainConfig(run_dir=tmp_path, rewards=WEIGHTS, weighting=DurationWeighting("paper"))
    panel = RewardPanel(controls, config)
    panel.inputs["time_cost_rate"].value = 0.5
    assert controls.rewards == WEIGHTS
    assert panel.said.startswith("Not taken: time_cost_rate")


def test_without_a_leaderboard_the_raw_score_is_left(tmp_path, monkeypatch):
    task = replace(tasks.load("doctor-visits"), id="elsewhere")
    monkeypatch.setattr("mle_rl.tasks.load", lambda name: task)
    controls = Controls(RewardWeights())
    panel = RewardPanel(controls, TrainConfig(run_dir=tmp_path, tasks=("elsewhere",)))
    panel.inputs["stage"].value = 0.2
    assert controls.rewards == RewardWeights(stage=0.2)
    panel.inputs["score_scale"].value = "percentile"
    assert controls.rewards == RewardWeights(stage=0.2)
    assert panel.said.startswith("Not taken: There is no leaderboard for elsewhere")


def test_a_rate_that_can_be_negative_is_said(tmp_path):
    config = TrainConfig(run_dir=tmp_path, weighting=DurationWeighting(charge_time=True))
    assert "slow failures pay" in RewardPanel(Controls(WEIGHTS), config).said


TRAINS = """
import asyncio, time
from pathlib import Path
from mle_rl.rewards import RewardWeights
from mle_rl.training.config import TrainConfig
from mle_rl.training.panel import RewardPanel
from mle_rl.training.run import Controls
import mle_rl.training.background as background
controls = Controls(RewardWeights(failure=-0.8, score_scale="percentile"))
config = TrainConfig(run_dir=Path("nowhere"), rewards=controls.rewards)
panel = RewardPanel(controls, config)
def train(config, controls):  # as long as a batch or two
    print(panel.inputs["failure"].model_id, flush=True)
    end = time.monotonic() + 60
    while controls.rewards.failure == -0.8 and time.monotonic() < end:
        time.sleep(0.02)
    return controls.rewards.failure
background.train = train
seen = await background.train_in_thread(config, controls=controls)
"""


def test_a_slider_moves_while_a_cell_awaits_the_run():
    """Its message names a subshell, as those of JupyterLab do."""
    manager, client = start_new_kernel()
    try:
        created = client.session.msg("create_subshell_request", {})
        client.control_channel.send(created)
        subshell = _reply(client.get_control_msg, created["header"]["msg_id"])["subshell_id"]
        running = client.execute(TRAINS)
        moved = client.session.msg(
            "comm_msg",
            {
                "comm_id": _printed(client),
                "data": {"method": "update", "state": {"value": -3.0}, "buffer_paths": []},
            },
        )
        moved["header"]["subshell_id"] = subshell
        client.shell_channel.send(moved)
        assert _reply(client.get_shell_msg, running)["status"] == "ok"
        asked = client.execute("", user_expressions={"seen": "seen"})
        seen = _reply(client.get_shell_msg, asked)["user_expressions"]["seen"]
        assert seen["data"]["text/plain"] == "-3.0"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _reply(get_message, request: str) -> dict:
    while True:
        message = get_message(timeout=90)
        if message["parent_header"].get("msg_id") == request:
            return message["content"]


def _printed(client) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        message = client.get_iopub_msg(timeout=60)
        assert message["msg_type"] != "error", message["content"]["traceback"]
        if message["msg_type"] == "stream":
            return message["content"]["text"].strip()
    raise AssertionError("the cell printed nothing")
