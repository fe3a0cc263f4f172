"""The language-model inserter with stand-ins for the model: batching, cache, refusals, report."""

import numpy as np
import pytest
import torch

from mle_rl.errors import MleRlError
from mle_rl.instrumentation import (
    LanguageModelInserter,
    agreement,
    anchor_target,
    insert_by_syntax,
    numbered,
    render,
    weights_checksum,
)
from mle_rl.instrumentation.anchors import NONE, WORDS, read_anchors
from mle_rl.instrumentation.language_model import anchors_prompt, rewrite_prompt, strip_fence
from mle_rl.instrumentation.syntax import read_sites
from mle_rl.records import STAGES

CODE = """import pandas as pd
from sklearn.linear_model import LogisticRegression
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
if len(train) > 5:
    model = LogisticRegression(C=2.0)
else:
    model = LogisticRegression()
model.fit(train[["a"]], train["y"])
p = model.predict(test[["a"]])
"""
ANSWER = "2 packages\n3 data\n6 model\n8 model\n9 trained\n10 predicted"
BROKEN = "model = (\n"
UNTRUSTED = "import gc\nprint(gc.get_objects())\n"


class Model:
    """Answers by a function of the program's text, and counts what it was asked."""

    def __init__(self, answer):
        self.answer, self.batches = answer, []

    def __call__(self, prompts):
        self.batches.append(len(prompts))
        return [self.answer(prompt) for prompt in prompts]


def test_the_target_is_short_and_complete():
    assert anchor_target(CODE) == ANSWER
    assert anchor_target(BROKEN) == anchor_target(UNTRUSTED) == anchor_target("x = 1\n") == NONE
    assert numbered("a\n\nb") == "1 a\n2 \n3 b\n"
    assert tuple(WORDS.values()) == STAGES


def test_the_target_reads_back():
    found = read_sites(CODE)[0]
    reading = read_anchors(found, ANSWER, 10)
    assert reading.refused is None
    assert {i.stage for i in reading.insertions} == set(insert_by_syntax(CODE).stages)


@pytest.mark.parametrize(
    ("answer", "refused", "unsupported"),
    [
        ("none", None, ()),
        ("  3 data  \n\n", None, ()),
        ("3 data\n3 data", None, ()),
        ("4 trained", None, ("model_trained",)),
        ("9 data\n9 trained", None, ("data_loaded",)),
        ("", "empty answer", ()),
        ("\n \n", "empty answer", ()),
        ("3 data\nnone", "a line is not '<line> <stage>'", ()),
        ("3 dataa", "a line is not '<line> <stage>'", ()),
        ("data 3", "a line is not '<line> <stage>'", ()),
        ("3  data", "a line is not '<line> <stage>'", ()),
        ("-3 data", "a line is not '<line> <stage>'", ()),
        ("3 data; import os", "a line is not '<line> <stage>'", ()),
        ("0 data", "a line number is outside the program", ()),
        ("11 data", "a line number is outside the program", ()),
    ],
)
def test_reading_answers(answer, refused, unsupported):
    reading = read_anchors(read_sites(CODE)[0], answer, 10)
    assert (reading.refused, reading.unsupported) == (refused, unsupported)
    if refused:
        assert reading.insertions == ()


def test_one_batch_each_text_once():
    model = Model(lambda prompt: ANSWER)
    inserter = LanguageModelInserter(model, prompt=str)
    other = CODE + "print(1)\n"
    result = inserter.insert([CODE, BROKEN, CODE, other, UNTRUSTED])
    assert model.batches == [2]
    assert [i.source for i in result] == [
        "language_model", "syntax", "language_model", "language_model", "syntax",
    ]  # fmt: skip
    assert result[0].code == CODE
    assert set(result[0].stages) == set(insert_by_syntax(CODE).stages)
    assert result[1].insertions == result[4].insertions == ()
    inserter.insert([CODE])
    assert model.batches == [2]
    report = inserter.report
    assert (report.programs, report.not_shown, report.cached) == (6, 2, 2)
    assert (report.accepted, report.refused_share) == (4, 0.0)


def test_a_shared_cache_is_read_and_filled():
    cache = {}
    LanguageModelInserter(Model(lambda prompt: ANSWER), cache=cache).insert([CODE])
    silent = Model(lambda prompt: pytest.fail("asked again"))
    assert LanguageModelInserter(silent, cache=cache).insert([CODE])[0].source == "language_model"


def test_refused_answers_fall_back_and_are_counted():
    answers = {"a": "nonsense", "b": "99 data", "c": "nonsense", "d": ANSWER}
    codes = [CODE + f"# {name}\n" for name in answers]
    model = Model(lambda prompt: answers[prompt.rstrip()[-1]])
    inserter = LanguageModelInserter(model, prompt=str)
    result = inserter.insert(codes)
    assert [i.source for i in result] == ["syntax"] * 3 + ["language_model"]
    assert all(i.stages == insert_by_syntax(CODE).stages for i in result)
    assert result[1].refused == "a line number is outside the program"
    assert inserter.report.refused == {
        "a line is not '<line> <stage>'": 2,
        "a line number is outside the program": 1,
    }
    assert inserter.report.refused_share == 0.75
    assert "75.0% refused (2 a line is not" in str(inserter.report)


def test_the_rewrite_format():
    good = render(CODE, insert_by_syntax(CODE).insertions)
    answers = iter([f"Here it is:\n```python\n{good}```\nDone.", good.replace("C=2.0", "C=3.0")])
    inserter = LanguageModelInserter(Model(lambda prompt: next(answers)), format="rewrite")
    taken, refused = inserter.insert([CODE, CODE + "\n"])
    assert set(taken.insertions) == set(insert_by_syntax(CODE).insertions)
    assert refused.refused == "changes the program beside inserting prints"
    assert refused.source == "syntax"


def test_taking_the_models_word():
    claimed = CODE + 'print("predicted test labels")\n'
    inserter = LanguageModelInserter(Model(lambda p: claimed), format="rewrite", evidence=False)
    (taken,) = inserter.insert([CODE])
    assert [(i.stage, i.check, i.line) for i in taken.insertions] == [
        ("test_labels_predicted", "word", 10)
    ]


def test_agreement_by_stage():
    codes = [CODE, CODE + "# second\n"]
    answers = [ANSWER, "2 packages\n3 trained\n9 trained\n1 score"]
    model = Model(lambda prompt: answers["second" in prompt])
    inserter = LanguageModelInserter(model, prompt=str)
    rows = {r["stage"]: r for r in agreement(codes, inserter.insert(codes), inserter.report)}
    assert rows["packages_imported"] == {
        "stage": "packages_imported", "programs": 2, "recall": 1.0, "precision": 1.0,
    }  # fmt: skip
    assert rows["data_loaded"]["recall"] == 0.5
    assert rows["model_trained"]["precision"] == 1.0
    assert (
        rows["validation_score_seen"]["recall"],
        rows["validation_score_seen"]["precision"],
    ) == (
        None,
        0.0,
    )


def test_a_model_that_gives_too_few_answers_is_said():
    with pytest.raises(MleRlError, match="1 answers to 2 prompts"):
        LanguageModelInserter(lambda prompts: ["none"]).insert([CODE, CODE + "\n"])


def test_settings_that_contradict_are_refused():
    with pytest.raises(MleRlError, match="inserter format"):
        LanguageModelInserter(Model(str), format="xml")
    with pytest.raises(MleRlError, match="evidence"):
        LanguageModelInserter(Model(str), evidence=False)


def test_frozen_weights_are_proved_frozen():
    net = torch.nn.Linear(3, 2)
    inserter = LanguageModelInserter(
        Model(lambda prompt: NONE), checksum=lambda: weights_checksum(net.state_dict())
    )
    inserter.check_frozen()
    with torch.no_grad():
        net.bias[0] += 1e-6
    with pytest.raises(MleRlError, match="weights changed"):
        inserter.check_frozen()
    with pytest.raises(MleRlError, match="checksum"):
        LanguageModelInserter(Model(str)).check_frozen()


def test_a_checksum_sees_values_names_shapes_and_types():
    weights = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}
    same = {"b": weights["b"].clone(), "a": weights["a"].clone()}
    assert weights_checksum(weights) == weights_checksum(same)
    changes = (
        {**weights, "a": weights["a"].T.contiguous()},
        {**weights, "a": weights["a"].to(torch.float64)},
        {"c": weights["a"], "b": weights["b"]},
        {**weights, "b": torch.tensor([1, 1.0078125], dtype=torch.bfloat16)},
    )
    assert len({weights_checksum(w) for w in (weights, *changes)}) == 5


def test_prompts_hold_the_program_and_all_stages():
    assert CODE in rewrite_prompt(CODE)
    assert numbered(CODE) in anchors_prompt(CODE)
    assert all(word in anchors_prompt(CODE) for word in WORDS)


@pytest.mark.parametrize(
    "answer",
    ["x = 1\n", "```python\nx = 1\n```", "Sure:\n```py\nx = 1\n```\nbye", "```\nx = 1\n"],
)
def test_fences(answer):
    assert strip_fence(answer) == "x = 1\n"


def test_generated_programs_read_back():
    """The format carries every stage of every program that the grammar writes."""
    from mle_rl.agent import grammar
    from mle_rl.agent.grammar import TaskShape

    rng = np.random.default_rng(0)
    kinds = (("text", "probabilities"), ("image", "label"), ("table", "number"))
    for index in range(60):
        kind, output = kinds[index % 3]
        shape = TaskShape(kind=kind, target="target", output=output, text_column="text")
        code = grammar.write(grammar.sketch(shape, rng), shape).code
        found, refused = read_sites(code)
        if refused is None:
            reading = read_anchors(found, anchor_target(code), len(code.splitlines()))
            assert (reading.refused, reading.unsupported) == (None, ())
            assert {i.stage for i in reading.insertions} == set(insert_by_syntax(code).stages)
