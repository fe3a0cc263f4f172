"""What is recorded in the repository belongs to the weights and tasks that it ships."""

import json
from dataclasses import asdict

import pytest

from mle_rl import tasks
from mle_rl.agent import load_policy
from mle_rl.analysis.headroom import living
from mle_rl.analysis.known import long_search_folder
from mle_rl.analysis.samples import headroom_folder, read_samples
from mle_rl.notebook import checkout_results
from mle_rl.records import Limits
from mle_rl.search.methods import COMPARED, METHODS
from mle_rl.search.recorded import comparisons, finished
from mle_rl.search.settings import CHOSEN_ON

SAMPLES = read_samples()
LIMITS = asdict(Limits())  # what is compared had the same
COMPARISONS = comparisons("full")


@pytest.fixture(scope="module")
def digest():
    return load_policy("tiny").digest()


@pytest.mark.parametrize("name", tasks.names())
def test_tiny_is_a_poor_but_living_policy(name, digest):
    """5 to 40 % valid, 200 or more different valid programs among the first 1,000."""
    settings = json.loads((headroom_folder() / f"{name}.json").read_text(encoding="utf-8"))
    assert settings["weights_sha256"] == digest, "recorded with other weights: record again"
    assert settings["task_fingerprint"] == tasks.load(name).fingerprint
    assert settings["limits"] == LIMITS
    assert living(SAMPLES[name])["fit"], living(SAMPLES[name])


@pytest.mark.parametrize("name", COMPARISONS)
def test_searches_are_of_the_weights_the_task_and_the_methods_of_today(name, digest):
    searches = finished(checkout_results() / "compare" / name)
    for (method, _), facts in searches.items():
        settings, learning = facts["settings"], METHODS[method].learning
        assert settings["task"] == name
        assert settings["task_fingerprint"] == tasks.load(name).fingerprint
        assert settings["limits"] == LIMITS
        assert settings.get("learning") == (learning and asdict(learning))
        if METHODS[method].policy == "tiny":
            assert settings["weights_sha256"] == digest, "recorded with other weights"


def test_the_task_of_the_settings_is_compared_with_every_method_and_way_to_learn():
    recorded = {method for method, _ in finished(checkout_results() / "compare" / CHOSEN_ON)}
    assert recorded >= {*COMPARED, *(name for name, each in METHODS.items() if each.learning)}


@pytest.mark.parametrize("name", tasks.names())
def test_what_long_searches_found_is_of_the_tasks_of_today_and_had_the_limits_of_samples(name):
    searches = finished(long_search_folder() / name)
    assert searches, "not recorded"
    for facts in searches.values():
        assert facts["best_program"], "it found nothing"
        assert facts["settings"]["task_fingerprint"] == tasks.load(name).fingerprint
        assert facts["settings"]["limits"] == LIMITS
