"""The space of programs: rich, plain by default, and the same program for the same decisions."""

import ast

import numpy as np
import pytest

from mle_rl.agent import grammar
from mle_rl.agent.grammar import SLIPS, TaskShape
from mle_rl.agent.grammar.decisions import integer, number, real

SHAPES = [
    TaskShape("text", "library", "probabilities"),
    TaskShape("text", "grade", "label", ordinal=True),
    TaskShape("image", "label", "label"),
    TaskShape("image", "height", "number"),
    TaskShape("table", "visits", "number"),
    TaskShape("table", "smoked", "probability"),
]


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape.kind}-{shape.output}")
def shape(request):
    return request.param


def _plain(shape):
    plain = {decision.name: decision.plain for decision in grammar.decisions(shape)}
    return plain | dict.fromkeys(SLIPS)


def test_decisions_have_names_of_their_own(shape):
    names = [decision.name for decision in grammar.decisions(shape)]
    assert len(names) == len(set(names))


def test_a_sketch_always_gives_the_same_program(shape):
    sketch = grammar.sketch(shape, np.random.default_rng(3))
    assert grammar.write(sketch, shape) == grammar.write(dict(sketch), shape)


def test_more_than_a_million_programs_from_independent_decisions_alone(shape):
    """Each decision that changes the plain program by itself at least doubles the space."""
    rng = np.random.default_rng(0)
    plain = _plain(shape)
    base = grammar.write(plain, shape).code
    changing = [
        decision.name
        for decision in grammar.decisions(shape)
        if decision.name not in SLIPS
        and grammar.write({**plain, decision.name: decision.other(rng)}, shape).code != base
    ]
    assert len(changing) >= 18, changing
    others = {d.name: d.other(rng) for d in grammar.decisions(shape) if d.name in changing}
    written = set()
    for _ in range(500):
        taken = {name: others[name] for name in changing if rng.random() < 0.3}
        written.add(grammar.write({**plain, **taken}, shape).code)
    assert len(written) > 480, "decisions hide one another"


def test_programs_without_slips_are_python_and_write_a_submission(shape):
    rng = np.random.default_rng(1)
    for _ in range(500):  # two of the rarer decisions must meet
        program = grammar.write(grammar.sound(grammar.sketch(shape, rng)), shape)
        ast.parse(program.code)
        assert 'to_csv("submission.csv", index=False)' in program.code


def test_an_image_always_has_features():
    shape = TaskShape("image", "label", "label")
    code = grammar.write({**_plain(shape), "pixels": None}, shape).code
    assert code.count("parts.append(") == 1
    code = grammar.write({**_plain(shape), "pixels": None, "moments": "yes"}, shape).code
    assert "reshape" not in code, "without pixels if there is anything else"


def test_every_slip_changes_some_program(shape):
    rng = np.random.default_rng(2)
    sketches = [grammar.sound(grammar.sketch(shape, rng)) for _ in range(60)]
    for slip in SLIPS:
        changed = [
            grammar.write({**s, slip: "yes"}, shape).code != grammar.write(s, shape).code
            for s in sketches
        ]
        assert any(changed), slip


def test_people_write_the_default_most_of_the_time(shape):
    rng = np.random.default_rng(4)
    sketches = [grammar.sketch(shape, rng) for _ in range(400)]
    decisions = [d for d in grammar.decisions(shape) if d.name.startswith(("combine", "search"))]
    for decision in (d for d in decisions if d.plain_share > 0.5):
        share = np.mean([sketch[decision.name] == decision.plain for sketch in sketches])
        assert abs(share - decision.plain_share) < 0.1, decision.name


def test_a_revision_is_another_program_that_shares_most_of_its_lines(shape):
    rng = np.random.default_rng(5)
    for _ in range(40):
        before = grammar.sound(grammar.sketch(shape, rng))
        old = grammar.write(before, shape).code
        new = grammar.write(grammar.revise(before, shape, rng), shape).code
        assert new != old
        assert len(set(old.splitlines()) & set(new.splitlines())) >= len(set(old.splitlines())) // 3


def test_a_revision_mends_most_slips(shape):
    rng = np.random.default_rng(6)
    slipped = {**_plain(shape), **dict.fromkeys(SLIPS, "yes")}
    kept = [
        sum(grammar.revise(slipped, shape, rng)[name] is not None for name in SLIPS)
        for _ in range(60)
    ]
    assert 0 < np.mean(kept) < 0.4 * len(SLIPS)


def test_numbers_have_two_digits_that_count_and_no_exponent():
    rng = np.random.default_rng(7)
    for _ in range(300):
        written = real("x", 0.0, 0.000001, 5000).draw(rng)
        assert "e" not in written
        assert len(written.replace(".", "").strip("0")) <= 2
    assert number(0.00012) == "0.00012"
    assert number(1200) == "1200.0"
    drawn = {int(integer("n", 0.0, 3, 40_000).draw(rng)) for _ in range(300)}
    assert min(drawn) >= 3
    assert max(drawn) <= 40_000
    assert len(drawn) > 100
