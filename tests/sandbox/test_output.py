"""Output and markers, byte by byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl.sandbox import server
from mle_rl.sandbox.output import BoundedText, Markers


def line(*words) -> bytes:
    return json.dumps(words).encode() + b"\n"


def test_markers_keep_the_order_of_first_mention_and_the_last_value():
    markers = Markers("secret")
    markers.add(line("secret", "training_loss_seen", 3.0) + line("secret", "data_loaded", None))
    markers.add(line("secret", "training_loss_seen", 1.5))
    assert list(markers.reached.items()) == [("training_loss_seen", 1.5), ("data_loaded", None)]


@pytest.mark.parametrize(
    "bad",
    [
        line("other", "data_loaded", None),
        line(None, "data_loaded", None),
        line("secret", "medal_won", None),
        line("secret", "training_loss_seen", float("nan")),
        line("secret", "training_loss_seen", float("inf")),
        line("secret", "training_loss_seen", True),
        line("secret", "training_loss_seen", "1"),
        line("secret", ["data_loaded"], 1.0),
        line("secret", "data_loaded"),
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
        b"{}\n",
        line("secret", "data_loaded", 10**400),
    ],
)
def test_a_bad_marker_is_no_marker(bad):
    markers = Markers("secret")
    markers.add(bad + line("secret", "model_trained", None))
    assert list(markers.reached) == ["model_trained"]


def test_a_stage_that_is_not_observed_in_this_program_does_not_count():
    markers = Markers("secret", {"data_loaded"})
    markers.add(line("secret", "model_trained", None) + line("secret", "data_loaded", None))
    assert list(markers.reached) == ["data_loaded"]
    job = {"insertions": [{"stage": "data_loaded"}, {"stage": "model_defined"}]}
    markers = server._markers(job, "secret")
    markers.add(line("secret", "model_trained", None) + line("secret", "model_defined", None))
    assert list(markers.reached) == ["model_defined"]
    nothing = Markers("secret", ())
    nothing.add(line("secret", "data_loaded", None))
    assert nothing.reached == {}


@given(st.integers(1, 50), st.integers(0, 60))
def test_markers_may_arrive_in_pieces(size, at):
    whole = line("secret", "data_loaded", None) + line("secret", "training_loss_seen", 2.0)
    markers = Markers("secret")
    markers.add(whole[:at])
    for start in range(at, len(whole), size):
        markers.add(whole[start : start + size])
    assert markers.reached == {"data_loaded": None, "training_loss_seen": 2.0}


def test_a_flood_of_markers_ends_reading():
    markers = Markers("secret")
    markers.add(b"x" * (2 << 20))
    markers.add(b"\n" + line("secret", "data_loaded", None))
    assert markers.reached == {}


@given(st.lists(st.binary(max_size=70), max_size=30), st.integers(2, 60))
def test_output_is_whole_or_its_two_ends(pieces, limit):
    text, whole = BoundedText(limit), b"".join(pieces)
    for piece in pieces:
        text.add(piece)
    half = limit // 2
    if len(whole) <= 2 * half:
        assert text.text() == whole.decode("utf-8", "replace")
    else:
        left_out = len(whole) - 2 * half
        note = f"\n... {left_out} bytes left out ...\n".encode()
        expected = whole[:half] + note + whole[-half:]
        assert text.text() == expected.decode("utf-8", "replace")


def test_memory_for_output_is_bounded():
    text = BoundedText(100)
    for _ in range(10_000):
        text.add(b"x" * 1000)
    assert len(text._tail) + len(text._head) < 2000
