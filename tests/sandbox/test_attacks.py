"""Hostile programs: none of them may succeed, and none may spoil the next.

The programs lie in tests/fixtures/attacks, one file per aim, a section each::

    # %% name
    # expect: statuses that are right
    # why: the reason it must fail
    # problem: what the submission's problem must mention (optional)

The `attack` fixture checks what no program may do: show the secret, print ESCAPED, reach the other
process or the sockets.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool

FOLDER = Path(__file__).parents[1] / "fixtures" / "attacks"
LIMITS = Limits(timeout_s=60.0, memory_mb=160, disk_mb=4, output_bytes=10_000, processes=24)


@dataclass(frozen=True)
class Attack:
    name: str
    expect: tuple[str, ...]
    why: str
    problem: str
    code: str


def attacks(aim: str) -> list:
    sections = (FOLDER / f"{aim}.py").read_text().split("\n# %% ")[1:]
    found = []
    for section in sections:
        name, _, code = section.partition("\n")
        fields = dict(re.findall(r"^# (expect|why|problem): (.*)$", code, re.MULTILINE))
        one = Attack(
            name, tuple(fields["expect"].split()), fields["why"], fields.get("problem", ""), code
        )
        only_here = "syscall(" in code and platform.machine() != "x86_64"
        marks = [pytest.mark.skip("call numbers of x86-64")] if only_here else []
        found.append(pytest.param(one, id=name, marks=marks))
    return found


@pytest.mark.parametrize("one", attacks("reading"))
def test_nothing_private_is_read(attack, one):
    assert attack(one.code).status in one.expect, one.why


@pytest.mark.parametrize("one", attacks("reaching"))
def test_nothing_outside_is_reached(attack, one):
    assert attack(one.code).status in one.expect, one.why


@pytest.mark.parametrize("one", attacks("resources"))
def test_no_more_is_used_than_given(attack, one):
    limits = replace(LIMITS, timeout_s=0.5) if one.expect == ("timeout",) else LIMITS
    execution = attack(one.code, limits)
    assert execution.status in one.expect, one.why
    assert len(execution.stdout) + len(execution.stderr) < 3 * limits.output_bytes
    assert execution.duration_s <= limits.timeout_s
    if execution.status == "timeout":
        assert execution.duration_s == limits.timeout_s


@pytest.mark.parametrize("one", attacks("lying"))
def test_no_lie_is_believed(attack, one):
    execution = attack(one.code)
    assert execution.status in one.expect, one.why
    assert execution.markers == ()
    assert one.problem in (execution.submission_problem or "")
    if one.problem:
        assert execution.submission is None


def test_patched_clocks_do_not_shorten_the_duration(attack):
    code = next(p.values[0] for p in attacks("lying") if p.id == "patched clocks").code
    assert attack(code).duration_s >= 0.3


@pytest.mark.parametrize("one", attacks("poisoning"))
def test_the_next_program_finds_nothing(attack, fingerprint, one):
    before = fingerprint()
    assert attack(one.code).status in one.expect, one.why
    assert fingerprint() == before


def test_there_are_enough_attacks():
    names = [p.id for aim in FOLDER.glob("*.py") for p in attacks(aim.stem)]
    assert len(names) == len(set(names)) >= 100


REAL = {
    "absolute path",
    "symbolic link of its own",
    "own user namespace",
    "UDP to loopback",
    "TCP to loopback",
    "abstract Unix socket of the trainer",
    "Unix socket file of the trainer",
    "a server of its own",
    "memory without a file system",
}


@pytest.mark.slow
def test_attacks_are_real(world):
    """Without isolation these succeed: what stops them is the sandbox, not a slip in the attack."""
    harmless = [p for aim in ("reading", "reaching", "resources") for p in attacks(aim)]
    with LocalPool(1, tier="limits") as pool:
        for param in (p for p in harmless if p.id in REAL):
            execution = pool.run(Job(world.prelude + param.values[0].code, world.public))
            shown = "ESCAPED" in execution.stdout or world.secret in execution.stdout
            assert shown or not world.untouched(), param.id
