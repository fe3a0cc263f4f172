"""Figures of notebook 02: the numbers beside them are those of the samples."""

import matplotlib.pyplot as plt
import pytest

from mle_rl.analysis.rewards import draw_rewards, draw_stages
from mle_rl.records import STAGES, Outcome
from mle_rl.reward_laboratory import Sample, Scoring
from mle_rl.rewards import RewardWeights

SAMPLES = [
    Sample(Outcome(STAGES, True, 0.8), "ok", 1.0),
    Sample(Outcome(STAGES[:2], False), "error", 1.0),
    Sample(Outcome(STAGES[:1], False), "timeout", 9.0),
    Sample(Outcome((), False), "rejected", 0.0),
]
SCORING = Scoring(higher_is_better=True, worst=0.0)


def title(fig) -> str:
    """The first title, wherever the style puts it."""
    return fig.axes[0].get_title() + fig.axes[0].get_title(loc="left")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_stages_by_hand():
    fig, table = draw_stages(SAMPLES)
    reached = table.set_index(["programs", "stage"])["reached"]
    assert reached["valid"].tolist() == [1.0] * 7
    assert reached["failed"].tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0, 0, 0, 0])
    assert "reached 1.0 of 7" in title(fig)


def test_stages_of_failures_only():
    _, table = draw_stages(SAMPLES[1:])
    assert set(table.programs) == {"failed"}


def test_rewards_by_hand():
    fig, table = draw_rewards(SAMPLES, RewardWeights(), SCORING)
    assert table.reward.tolist() == pytest.approx([0.8, -9.8, -9.9, -10.0])
    assert table.outcome.tolist() == ["valid", "error", "timeout", "not run"]
    assert "No failure beats" in title(fig)
    fig, _ = draw_rewards(SAMPLES, RewardWeights(failure=1.0), SCORING)
    assert "100% of pairs" in title(fig)
