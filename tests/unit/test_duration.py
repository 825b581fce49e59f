"""Lengths of time, as typed and as said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.wording.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("5 min", 300),
        ("1h", 3600),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("1h 5m 10s", 3910),
        (".5m", 30),
        (" 2M ", 120),
    ],
)
def test_parses(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "0", "0s", "-5", "5x", "m", "5m1h", "1e3", "nan", "inf", "9" * 400, "1:30"])
def test_refuses_with_the_text_in_the_message(text: str) -> None:
    with pytest.raises(ValueError, match=r"length of time|longer than 0 s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (-1, "0 s"), (8.4, "8 s"), (59.6, "1 min"), (90, "1 min 30 s"), (3600, "1 h"), (7500, "2 h 5 min")],
)
def test_says(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(1, 10**6))
def test_what_is_said_below_an_hour_can_be_typed(seconds: int) -> None:
    said = format_duration(seconds)
    typed = parse_duration(said.replace(" ", ""))
    assert abs(typed - seconds) < 60 if seconds >= 3600 else typed == seconds
