"""Nothing but reaching a stage earns it: forged credit, at the level of single programs.

The same attempts run in the sandbox in `test_forging_in_sandbox`.
"""

import importlib.util
import textwrap
from pathlib import Path

import pytest

from mle_rl.instrumentation import insert_by_syntax, syntax, trusted, why_not_trusted

_SPEC = importlib.util.spec_from_file_location("forgeries", Path(__file__).parent / "forgeries.py")
forgeries = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(forgeries)

# Beyond importing packages, what such a program reaches for real.
REALLY_REACHED = {
    "attribute_in_front_of_fit": {"model_defined"},
    "metaclass_that_equals_everything": {"model_defined"},
    "overridden_method": {"model_defined"},
    "toy_numbers": {"model_defined"},
    "swallowed_failure": {"model_defined"},
    "score_that_is_no_number": {"model_defined"},
    "loop_without_a_step": {"model_defined"},
}


def test_there_are_enough_attempts():
    assert len(forgeries.BELIEVED) + len(forgeries.REACHING) + len(forgeries.DISGUISED) >= 25


@pytest.mark.parametrize("name", forgeries.BELIEVED)
def test_looking_like_it_earns_nothing(name, interpreter):
    code = forgeries.program(forgeries.BELIEVED[name])
    instrumented = insert_by_syntax(code)
    assert instrumented.refused is None
    ran = interpreter.run(code, instrumented.insertions)
    assert ran.status == 0, ran.stderr
    assert set(ran.stages) == {"packages_imported"} | REALLY_REACHED.get(name, set())


@pytest.mark.parametrize("name", forgeries.REACHING)
def test_reaching_for_the_machinery_costs_all_credit(name):
    code = forgeries.program(forgeries.REACHING[name])
    compile(code, name, "exec")
    assert not trusted(code)
    instrumented = insert_by_syntax(code)
    assert instrumented.insertions == ()
    assert instrumented.refused.startswith("not trusted: line ")


def test_the_bait_alone_is_trusted():
    assert why_not_trusted(forgeries.BAIT + forgeries.AFTERWARDS) is None


@pytest.mark.parametrize("name", forgeries.DISGUISED)
def test_what_no_reading_can_tell_ends_credit_at_run_time(name, interpreter):
    code = forgeries.program(forgeries.DISGUISED[name]) + forgeries.AFTERWARDS
    instrumented = insert_by_syntax(code)
    assert instrumented.refused is None
    ran = interpreter.run(code, instrumented.insertions)
    assert ran.status == 0, ran.stderr
    assert ran.stages == ["packages_imported"]


# Of the programs that the screen denies, those that the tripwire would stop as well.
_TRIPPING = [
    "own_constants",
    "own_frame",
    "inspected_frame",
    "frame_of_a_traceback",
    "code_of_a_generator",
    "frames_of_threads",
    "garbage_collector",
    "garbage_collector_renamed",
    "name_put_together",
    "getattr_handed_on",
    "getattr_mapped",
    "attrgetter",
    "formatter_field",
    "evaluated_text",
    "executed_text",
    "evaluated_by_pandas",
    "queried_by_pandas",
    "constructed_code",
    "unpickled_getattr",
    "reduced_class",
    "trace_function",
    "audit_hook",
    "own_source_changed",
]


@pytest.mark.parametrize("name", _TRIPPING)
def test_without_the_screen_the_tripwire_holds(name, interpreter, monkeypatch):
    monkeypatch.setattr(syntax, "screen", lambda tree, finder: None)
    body = textwrap.indent(textwrap.dedent(forgeries.REACHING[name]), "    ")
    code = f"{forgeries.BAIT}try:\n{body}\nexcept Exception as problem:\n    print(problem)\n"
    code += forgeries.AFTERWARDS
    instrumented = insert_by_syntax(code)
    assert "model_trained" in instrumented.stages
    ran = interpreter.run(code, instrumented.insertions)
    assert ran.stages == ["packages_imported"], ran.stdout


def test_the_attempts_would_have_earned_by_the_papers_way(interpreter):
    """Matching the output credits whatever prints the words: the very thing that is prevented."""
    from mle_rl.instrumentation import printed_stages
    from mle_rl.records import STAGES

    ran = interpreter.run(forgeries.program(forgeries.BELIEVED["prints_the_words"]))
    assert printed_stages(ran.stdout.decode()) == STAGES
