"""The edit that gives a call an argument: each layout of a call, and what it leaves alone."""

from __future__ import annotations

import pytest

from bottleneck_doctor.edits.given_argument import given_argument_change
from bottleneck_doctor.knobs import GivenArgument

EDIT = GivenArgument("need_weights", False, position=4, calls=lambda found: ())


def after(source: str, line: int = 1, name: str = "attention") -> str | None:
    change = given_argument_change(source, [(name, line)], EDIT)
    return None if change is None else change.edited


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("y, _ = self.attention(x, x, x)\n", "y, _ = self.attention(x, x, x, need_weights=False)\n"),
        ("y = self.attention(x, x, x)[0]\n", "y = self.attention(x, x, x, need_weights=False)[0]\n"),
        ("y = attention(x, x, x, need_weights = True)[0]\n", "y = attention(x, x, x, need_weights = False)[0]\n"),
        ("y = attention(x, x, x, None, True)[0]\n", "y = attention(x, x, x, None, False)[0]\n"),
        (
            "y, _ = self.attention(\n    x,\n    x,  # keys\n    x,\n)\n",
            "y, _ = self.attention(\n    x,\n    x,  # keys\n    x,\n    need_weights=False,\n)\n",
        ),
    ],
)
def test_the_argument_is_given(before: str, expected: str) -> None:
    assert after(before) == expected


@pytest.mark.parametrize(
    "source",
    [
        "y = other(x)\n",
        "y = attention(*x)[0]\n",
        "y = attention(x, x, x, **more)[0]\n",
        "y = attention(x, x, x, need_weights=asked)[0]\n",
        "y = attention(\n",
    ],
)
def test_a_call_that_is_not_sure_is_left_alone(source: str) -> None:
    assert after(source) is None


def test_several_calls_are_one_change() -> None:
    source = "a = self.one(x, x, x)[0]\nb = self.two(a, a, a, need_weights=False)[0]\nc = self.one(b, b, b)[0]\n"
    change = given_argument_change(source, [("one", 1), ("two", 2), ("one", 3)], EDIT)
    assert change is not None
    assert change.line == 1
    assert change.edited.count("need_weights=False") == 3
