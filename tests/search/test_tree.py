"""The tree search: its decisions one by one, and a tree that grows on scripted programs."""

import numpy as np
import pytest

from mle_rl.records import Program
from mle_rl.search.loop import Trial, search
from mle_rl.search.tree import Node, TreeSettings, choose, shown, tree_search

ALWAYS, NEVER = TreeSettings(debug_probability=1.0), TreeSettings(debug_probability=0.0)


@pytest.fixture
def trial(result):
    def make(score, code="a"):
        written = None if code is None else Program("a plan", code)
        return Trial(0, written, *result(1.0, score), 1.0)

    return make


@pytest.fixture
def node(trial):
    def make(score=None, action="draft", parent=None, running=False, **changes):
        return Node(action, parent, None if running else trial(score), **changes)

    return make


def chosen(nodes, settings=NEVER, higher=True, seed=0):
    return choose(nodes, settings, np.random.default_rng(seed), higher_is_better=higher)


def test_drafts_come_first_and_those_still_running_count(node):
    drafts = [node(0.5), node(None), node(running=True), node(running=True)]
    assert chosen(drafts) == ("draft", None)
    assert chosen([*drafts, node(0.1)]) != ("draft", None)


@pytest.mark.parametrize(("higher", "best"), [(True, 0.9), (False, 0.1)])
def test_the_best_valid_program_on_the_reward_split_is_improved(higher, best, node):
    """Its final score is the worst of all; that one chooses nothing."""
    nodes = [node(score) for score in (0.5, 0.9, 0.1, 0.4, None)]
    action, parent = chosen(nodes, higher=higher)
    assert (action, parent.trial.outcome.reward_score) == ("improve", best)


def test_the_best_may_be_improved_again_and_again(node):
    nodes = [node(0.5) for _ in range(5)]
    best = node(0.9, "improve", nodes[0], leaf=False)
    assert chosen([*nodes, best, node(0.6, "improve", best)]) == ("improve", best)


def test_without_a_valid_program_another_draft_is_written(node):
    assert chosen([node(None) for _ in range(8)]) == ("draft", None)


def test_a_failed_leaf_is_debugged_with_some_probability(node):
    nodes = [node(0.5), *[node(None) for _ in range(4)]]
    assert chosen(nodes, ALWAYS)[0] == "debug"
    assert chosen(nodes, NEVER)[0] == "improve"
    rng = np.random.default_rng(0)
    half = TreeSettings(debug_probability=0.5)
    actions = [choose(nodes, half, rng, higher_is_better=True)[0] for _ in range(400)]
    assert 0.4 < actions.count("debug") / 400 < 0.6
    debugged = {id(chosen(nodes, ALWAYS, seed=seed)[1]) for seed in range(40)}
    assert debugged == {id(failed) for failed in nodes[1:]}


def test_what_was_debugged_already_is_running_or_holds_no_program_is_not_debugged(trial, node):
    nodes = [
        node(0.5),
        node(None, leaf=False),
        node(running=True),
        Node("draft", None, trial(None, code=None)),
        node(0.4),
    ]
    assert chosen(nodes, ALWAYS) == ("improve", nodes[0])


def test_debugging_in_a_row_ends(node):
    nodes = [node(0.5) for _ in range(5)]
    chain = [node(None)]
    for _ in range(3):
        chain[-1].leaf = False
        chain.append(node(None, "debug", chain[-1]))
    assert [each.debug_depth for each in chain] == [0, 1, 2, 3]
    assert chosen([*nodes, *chain], ALWAYS)[0] == "improve"
    chain[2].leaf = True
    assert chosen([*nodes, *chain[:3]], ALWAYS) == ("debug", chain[2])


def test_an_improvement_that_failed_starts_a_count_of_its_own(node):
    first = node(None, "debug", node(None))
    assert node(None, "improve", first).debug_depth == 0


def test_a_tree_grows_from_what_it_was_told(program, make_environment, make_budget):
    """Every improvement adds one to the score that it was shown; every third program fails."""
    seen = []

    def write(earlier):
        seen.append(earlier)
        failed = len(seen) % 3 == 0
        return program(1, "x" if failed else len(seen))

    trials = []
    grown = tree_search(write, np.random.default_rng(0), higher_is_better=True)
    search(grown, make_environment().submit, make_budget(40.0), trials.append, most=1)
    assert len(trials) == 40
    assert seen[:5] == [None] * 5
    improved, debugged = 0, []
    for earlier, made in zip(seen[5:], trials[5:], strict=True):
        scores = [t.outcome.reward_score for t in trials[: made.number] if t.outcome.valid]
        if earlier.program.code.endswith("x"):
            assert earlier.score == min(scores)
            debugged.append(id(earlier.program))
        else:
            assert earlier.score == max(scores)
            improved += 1
    assert improved > 5
    assert len(debugged) > 5
    assert len(set(debugged)) == len(debugged), "each failure is debugged once"


@pytest.mark.parametrize(("higher", "worst"), [(True, 0.1), (False, 0.9)])
def test_a_program_is_shown_with_its_output_and_a_failed_one_with_the_worst_score(
    node, higher, worst
):
    valid, failed = node(0.25), node(None)
    nodes = [valid, node(0.1), node(0.9), failed, node(running=True)]
    assert shown(valid, nodes, higher).output == "printed\n"
    assert shown(valid, nodes, higher).score == 0.25
    assert shown(failed, nodes, higher).output == "printed\n"
    assert shown(failed, nodes, higher).score == worst
    assert shown(failed, [failed], higher).score is None
