"""Sliders for the reward weights of a run that trains.

A change arrives while a cell awaits the run (`mle_rl.training.background`), and is taken up before
the next batch (`mle_rl.training.run.Controls`).
"""

from __future__ import annotations

from dataclasses import replace

import ipywidgets as widgets

from mle_rl import tasks
from mle_rl.errors import MleRlError
from mle_rl.reward_laboratory import scoring_of, warnings_in_words
from mle_rl.rewards import SCORE_SCALES, RewardWeights
from mle_rl.training.checks import charged_twice
from mle_rl.training.config import TrainConfig
from mle_rl.training.run import Controls

_WIDE = {"description_width": "11em"}


class RewardPanel:
    """Shows the reward weights of ``controls`` and changes them.

    Args:
        controls: Of the run; display ``widget`` in a cell before the one that trains.
        config: Of the run.

    Raises:
        MleRlError: The scale of ``controls`` needs a leaderboard, and the first task has none.

    Attributes:
        widget: What a cell displays.
        inputs: Those that set a weight, by its name in `RewardWeights`.
        stop: Ends the run after the next batch, with a checkpoint.
    """

    def __init__(self, controls: Controls, config: TrainConfig):
        self.controls, self._config = controls, config
        self._scoring = scoring_of(tasks.load(config.tasks[0]))
        now = controls.rewards
        self.inputs = {
            # The least is the paper's penalty, or what the run began with.
            "failure": _slider("failure", now.failure, min(-10.0, now.failure), 0.0, 0.1),
            "stage": _slider("credit per stage", now.stage, 0.0, 1.0, 0.05),
            "keep_stages_when_valid": widgets.Checkbox(
                now.keep_stages_when_valid, description="valid programs keep it", style=_WIDE
            ),
            "score_scale": widgets.Dropdown(
                options=SCORE_SCALES, value=now.score_scale, description="score scale", style=_WIDE
            ),
            "time_cost_rate": _slider("cost per second", now.time_cost_rate, 0.0, 1.0, 0.01),
        }
        self.stop = widgets.Button(description="stop after this batch")
        self.stop.on_click(self._stop)
        self._said = widgets.HTML()
        for each in self.inputs.values():
            each.observe(self._changed, names="value")
        self._said.value = f"in force: {self._sentences(now)}"
        self.widget = widgets.VBox([*self.inputs.values(), self.stop, self._said])

    @property
    def said(self) -> str:
        """The sentence below the sliders."""
        return self._said.value

    def _changed(self, _change) -> None:
        values = {name: each.value for name, each in self.inputs.items()}
        try:
            weights = replace(self.controls.rewards, **values)
            problem = charged_twice(weights, self._config.weighting)
            sentences = self._sentences(weights)
        except MleRlError as error:
            problem = str(error)
        if problem:
            self._said.value = f"Not taken: {problem}"
            return
        self.controls.rewards = weights
        self._said.value = f"from the next batch on: {sentences}"

    def _stop(self, _button) -> None:
        self.controls.stop = True
        self._said.value = "The run ends after this batch; calling train again goes on with it."

    def _sentences(self, weights: RewardWeights) -> str:
        charge_time = self._config.weighting.charge_time
        found = warnings_in_words(weights, self._scoring, charge_time=charge_time)
        return " ".join(found) or "no failure can earn as much as any valid program."


def _slider(name: str, value: float, low: float, high: float, step: float) -> widgets.FloatSlider:
    return widgets.FloatSlider(
        value, min=low, max=high, step=step, description=name, continuous_update=False, style=_WIDE
    )
