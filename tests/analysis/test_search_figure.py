"""The figure of methods at equal time: what is drawn, which way is up, what the title claims."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mle_rl import MleRlError
from mle_rl.analysis.search import LOOKS, plot_search
from mle_rl.search.methods import METHODS

SECONDS = 120.0


def programs(*rows, method="static", seed=0):
    made = pd.DataFrame(rows, columns=["ended_at_s", "reward_score", "final_score"]).astype(float)
    return made.assign(method=method, seed=seed, valid=made.reward_score.notna())


def draw(*parts, higher=True, seconds=SECONDS, **changes):
    table = pd.concat(parts)
    searches = table[["method", "seed"]].drop_duplicates().assign(task="some-task", seconds=seconds)
    rng = np.random.default_rng(0)
    return plot_search(
        table, searches, metric="log_loss", higher_is_better=higher, rng=rng, **changes
    )


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_every_method_has_a_look_of_its_own():
    assert list(LOOKS) == list(METHODS)
    assert len(set(map(str, LOOKS.values()))) == len(LOOKS)


def test_a_line_shows_the_final_score_of_what_is_best_on_the_reward_split():
    fig, shown = draw(programs((30, 0.1, 5), (60, 0.3, 2), (90, 0.2, 9), (100, None, None)))
    assert shown.minutes.tolist() == [0.5, 1.0, 2.0]
    assert shown.final_score.tolist() == [5, 2, 2], "it may get worse, and stays to the end"
    (line, _) = fig.axes[0].lines
    assert line.get_drawstyle() == "steps-post"
    assert line.get_ydata().tolist() == [5, 2, 2]


@pytest.mark.parametrize(("higher", "ahead"), [(True, "tree"), (False, "static")])
def test_better_is_up_and_the_title_says_who_is_ahead(higher, ahead):
    fig, _ = draw(programs((1, 0.5, 0.5)), programs((1, 0.5, 0.8), method="tree"), higher=higher)
    bottom, top = fig.axes[0].get_ylim()
    assert (top > bottom) == higher
    title = fig.axes[0].get_title(loc="left") or fig.axes[0].get_title()
    assert f"Ahead after 2 min: {METHODS[ahead].label}" in title
    assert "seed 0, 120 s each; better is up" in title


def test_several_seeds_have_a_band_from_when_all_have_a_valid_program():
    parts = [programs((10 * (s + 1), 0.5, s / 10), method="rl", seed=s) for s in range(3)]
    fig, shown = draw(*parts, origin="recorded 2026-01-01 on 2 cores, 120 s each")
    assert shown.minutes.min() == pytest.approx(0.5)
    assert (shown.low < shown.final_score).all()
    assert len(fig.axes[0].collections) == 1
    title = fig.axes[0].get_title(loc="left") or fig.axes[0].get_title()
    assert "3 seeds, recorded 2026-01-01 on 2 cores, 120 s each" in title


def test_a_method_without_a_valid_program_is_named_though_it_has_no_line():
    found = [programs((1, 0.5, 0.5), method="smollm2", seed=0)]
    nothing = [programs((1, None, None), method="smollm2", seed=seed) for seed in (1, 2)]
    fig, shown = draw(programs((1, 0.5, 0.5)), *found, *nothing)
    assert set(shown.method) == {"static"}
    labels = [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    (missing,) = [text for text in labels if "SmolLM2" in text]
    assert "nothing valid for 2 of 3 seed(s)" in missing


def test_where_no_method_solves_every_seed_there_is_a_sentence_instead_of_a_figure():
    nothing = programs((1, None, None), seed=1)
    with pytest.raises(MleRlError, match="Every method has a seed without a valid program"):
        draw(programs((1, 0.5, 0.5)), nothing)


def test_a_terrible_first_program_does_not_squash_the_rest():
    fig, _ = draw(
        programs((1, 0.2, 30.0), (5, 0.1, 1.0)),
        programs((1, 0.1, 0.9), method="tree"),
        higher=False,
    )
    assert max(fig.axes[0].get_ylim()) < 2


def test_what_cannot_be_drawn_is_one_sentence():
    with pytest.raises(MleRlError, match="No program of the comparison is valid"):
        draw(programs((1, None, None)))
    mixed = pd.DataFrame({"method": ["rl", "tree"], "seed": 0, "seconds": [1.0, 2.0]})
    with pytest.raises(MleRlError, match="different budgets"):
        plot_search(
            programs((1, 0.1, 0.1)),
            mixed,
            metric="accuracy",
            higher_is_better=True,
            rng=np.random.default_rng(0),
        )
