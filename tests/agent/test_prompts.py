"""Prompts and completions, the archive, and the errors a person can cause."""

import numpy as np
import pytest

from mle_rl import MleRlError, tasks
from mle_rl.agent import Archive, PromptSource, Solution, load_policy, parse_completion, task_shape
from mle_rl.agent.grammar import TaskShape
from mle_rl.agent.prompts import chat_messages, tiny_completion, tiny_prompt
from mle_rl.records import Execution, Marker, Outcome, Program

PROGRAM = Program("Count words.", "import pandas as pd\nprint(1)\n")


def _execution(stdout="", markers=()):
    return Execution("ok", stdout, "", 0.1, 0.1, 1.0, "none", markers=markers)


def _valid(score):
    return Outcome(stages=(), valid=True, reward_score=score, final_score=score)


def test_a_tiny_completion_is_parsed_back():
    assert parse_completion(tiny_completion(PROGRAM)) == PROGRAM


def test_a_fenced_program_is_found_with_the_plan_before_it():
    text = "I will count.\n\n```python\nimport pandas as pd\nprint(1)\n```\nDone."
    assert parse_completion(text) == Program("I will count.", PROGRAM.code)


@pytest.mark.parametrize(
    "text", ["", "import pandas", "# plan: nothing else", "# plan: x\n\n", "```python\n```"]
)
def test_what_holds_no_program_is_none(text):
    assert parse_completion(text) is None


def test_an_improve_prompt_shows_program_output_and_score():
    shape = TaskShape("text", "library", "probabilities")
    text = tiny_prompt(shape, Solution(PROGRAM, "validation score: 0.5\n", 0.0))
    for part in (PROGRAM.code, PROGRAM.plan, "validation score: 0.5", "score: 0.000", "library"):
        assert part in text
    assert text.startswith(tiny_prompt(shape).split("<")[0])


def test_every_task_of_the_suite_has_a_shape_and_a_prompt_of_its_own():
    suite = [tasks.load(name) for name in ("library-docstrings", "photo-patches", "doctor-visits")]
    assert len({tiny_prompt(task_shape(task)) for task in suite}) == 3
    messages = chat_messages(suite[0], Solution(PROGRAM, "out", 1.5))
    assert suite[0].description in messages[1]["content"]
    assert PROGRAM.code in messages[1]["content"]


def test_the_archive_keeps_valid_solutions_a_score_of_zero_included():
    archive = Archive()
    archive.add(PROGRAM, _execution(), Outcome(stages=(), valid=False, problem="no submission"))
    assert archive.draw(np.random.default_rng(0)) is None
    archive.add(PROGRAM, _execution("loss\n"), _valid(0.0))
    assert archive.draw(np.random.default_rng(0)).score == 0.0


def test_the_archive_forgets_the_oldest_and_survives_a_restart():
    archive = Archive(capacity=3)
    for i in range(5):
        archive.add(Program("", f"print({i})\n"), _execution(), _valid(float(i)))
    restored = Archive(capacity=3)
    restored.load_state_dict(archive.state_dict())
    assert [s.score for s in restored.solutions.values()] == [2.0, 3.0, 4.0]
    assert restored.solutions == archive.solutions


def test_a_score_that_only_a_marker_carried_is_shown_with_the_output():
    archive = Archive()
    archive.add(
        PROGRAM, _execution("hello\n", (Marker("validation_score_seen", 0.25),)), _valid(1.0)
    )
    shown = archive.draw(np.random.default_rng(0)).output
    assert shown == "hello\nvalidation score: 0.250\n"


def test_a_prompt_source_starts_from_scratch_then_mixes():
    archive = Archive()
    source = PromptSource("t", lambda kind, earlier: (1,), archive, rng=np.random.default_rng(0))
    assert {source.next().kind for _ in range(20)} == {"scratch"}
    archive.add(PROGRAM, _execution(), _valid(0.5))
    drawn = [source.next() for _ in range(400)]
    assert 0.4 < np.mean([prompt.kind == "improve" for prompt in drawn]) < 0.6
    assert {prompt.group for prompt in drawn} == {"t/scratch", "t/improve"}


def test_an_unknown_policy_lists_what_exists():
    with pytest.raises(MleRlError, match="tiny"):
        load_policy("enormous")


def test_a_damaged_policy_is_one_sentence(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(MleRlError, match="cannot be loaded"):
        load_policy(tmp_path)
