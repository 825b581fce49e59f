"""What benchmarks say of a rate that is promised."""

from __future__ import annotations

import pytest
from tests.benchmark import load


@pytest.mark.parametrize(
    ("hits", "of", "most"),
    [(0, 128, 0.0231), (0, 300, 0.00994), (1, 128, 0.0366), (3, 60, 0.1248), (5, 5, 1.0), (0, 0, 1.0)],
)
def test_a_rate_is_no_more_than_what_was_measured_allows(hits: int, of: int, most: float) -> None:
    assert load("_common").most_of(hits, of) == pytest.approx(most, rel=0.005)


def test_a_promise_is_told_beside_what_was_measured() -> None:
    said = load("_common").designed_for(0.01, 0, 128)
    assert said == "designed for at most 1 %; measured 0 of 128, so at most 2.3 %"
