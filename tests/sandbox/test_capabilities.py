"""What `check` says is what a pool then does."""

from __future__ import annotations

import pytest

from mle_rl import MleRlError
from mle_rl.sandbox import LocalPool, check


@pytest.fixture(scope="module")
def report():
    return check()


def test_the_default_tier_reports_what_the_pool_enforces(report, pool):
    isolated = report.tiers[0]
    assert isolated.name == "isolated"
    assert isolated.available
    assert pool.isolation == f"isolated: {isolated.words}"


def test_a_tier_that_is_not_to_be_had_is_refused(monkeypatch):
    monkeypatch.setattr("mle_rl.sandbox.environment.SEARCH_PATH", "/nowhere")
    tiers = {tier.name: tier for tier in check().tiers}
    assert not tiers["bubblewrap"].available
    with pytest.raises(MleRlError) as refusal:
        LocalPool(1, tier="bubblewrap")
    assert str(refusal.value) == tiers["bubblewrap"].words


def test_the_report_is_a_table_with_a_line_for_each_tier(report):
    lines = str(report).splitlines()
    assert lines[0].startswith("Sandbox on Linux")
    assert [line.split()[0] for line in lines[1:4]] == ["isolated", "limits", "bubblewrap"]
    assert lines[4].endswith(str(report.workers))
