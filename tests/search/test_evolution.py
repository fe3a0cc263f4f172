"""Evolution over the grammar: nothing twice, nothing with slips, and better than drawing."""

from itertools import islice

import numpy as np
import pytest

from mle_rl.agent import grammar
from mle_rl.agent.grammar import TaskShape
from mle_rl.search.evolution import EvolutionSettings, evolution
from mle_rl.search.fixed import random_search
from mle_rl.search.loop import Trial

SHAPE = TaskShape("table", "smoked", "probability")
FEW = EvolutionSettings(drafts=6, parents=4)


@pytest.fixture
def grow(result):
    """Runs an evolution on a made-up score of the program's text; returns texts and scores."""

    def run(score, count, higher=True, seed=0, settings=FEW):
        proposals = evolution(
            SHAPE, np.random.default_rng(seed), higher_is_better=higher, settings=settings
        )
        codes, scores, news = [], [], None
        for number in range(count):
            program = proposals.send(news)
            codes.append(program.code)
            scores.append(score(program.code))
            news = [Trial(number, program, *result(1.0, scores[-1]), 1.0)]
        return codes, scores

    return run


def digits(code):
    """Something that programs can be bred for: how many digits are written."""
    return float(sum(character.isdigit() for character in code))


@pytest.mark.parametrize("higher", [True, False])
def test_it_finds_more_than_as_many_independent_draws(grow, higher):
    sign = 1 if higher else -1
    bred, _ = grow(lambda code: sign * digits(code), 80, higher=higher)
    drawn = islice(random_search(SHAPE, np.random.default_rng(1)), 80)
    assert max(map(digits, bred)) > max(digits(program.code) for program in drawn)


def test_no_program_is_proposed_twice_and_none_has_a_slip(grow):
    codes, _ = grow(digits, 60)
    assert len(set(codes)) == len(codes)
    for code in codes:
        assert 'read_csv("input/train.csv")' in code
        assert 'to_csv("submission.csv", index=False)' in code


@pytest.fixture
def revising(monkeypatch):
    """Has a function told of every sketch that is about to be revised."""
    revise = grammar.revise

    def tell(look, revised=revise):
        def spy(sketch, shape, rng):
            look(sketch)
            return revised(sketch, shape, rng)

        monkeypatch.setattr(grammar, "revise", spy)

    return tell


def test_only_the_best_valid_programs_have_children(grow, revising):
    """Every third kind of program is not valid, and each of the two best is revised."""
    settings = EvolutionSettings(drafts=5, parents=2, crossover=0.0)
    tried, ranks = {}, set()

    def score(code):
        tried[code] = None if digits(code) % 3 == 0 else digits(code)
        return tried[code]

    def look(sketch):
        assert len(tried) >= settings.drafts
        valid = sorted((each for each in tried.values() if each is not None), reverse=True)
        ranks.add(valid.index(tried[grammar.write(sketch, SHAPE).code]))

    revising(look)
    grow(score, 40, settings=settings)
    assert ranks == {0, 1}


def test_each_decision_of_a_mixed_child_is_of_one_parent_or_the_other(grow, revising):
    settings = EvolutionSettings(drafts=2, parents=2, crossover=1.0)
    mixed = 0
    for seed in range(8):
        rng, shown = np.random.default_rng(seed), []
        one, two = (grammar.sound(grammar.sketch(SHAPE, rng)) for _ in range(2))
        revising(shown.append)
        grow(digits, 3, settings=settings, seed=seed)
        child = shown[0]
        assert all(child[name] in (one[name], two[name]) for name in one)
        mixed += child not in (one, two)
    assert mixed > 1


def test_what_was_proposed_before_is_revised_again(grow, revising):
    """Here three of four revisions change nothing."""
    seen, revise = [], grammar.revise

    def lazy(sketch, shape, rng):
        return sketch if len(seen) % 4 else revise(sketch, shape, rng)

    revising(seen.append, lazy)
    codes, _ = grow(digits, 30)
    assert len(set(codes)) == len(codes)
    assert len(seen) > 60


def test_without_a_valid_program_it_goes_on_drawing(grow):
    rng = np.random.default_rng(0)
    drawn = [grammar.write(grammar.sound(grammar.sketch(SHAPE, rng)), SHAPE) for _ in range(12)]
    codes, _ = grow(lambda code: None, 12)
    assert codes == [program.code for program in drawn]


def test_programs_that_are_still_running_have_no_children():
    proposals = evolution(SHAPE, np.random.default_rng(0), higher_is_better=True, settings=FEW)
    rng = np.random.default_rng(0)
    for news in (None, *[[]] * 9):
        assert proposals.send(news) == grammar.write(
            grammar.sound(grammar.sketch(SHAPE, rng)), SHAPE
        )
