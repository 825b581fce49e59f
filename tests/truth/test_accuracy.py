"""Analytic truth, in short: a program whose speed under every setting is known before it is examined.

The long form, with more programs, is `benchmarks/accuracy.py`.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.benchmark import load

WORST_ERROR = 0.15
"""Wider than the benchmark's own limit: this runs beside whatever else the machine does."""


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return load("accuracy")


@pytest.fixture(scope="module")
def overhead(benchmark: Any) -> Any:
    return benchmark.measure_overhead()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["six-batch epochs"])
def test_promises_match_what_is_known_beforehand(benchmark: Any, overhead: Any, name: str) -> None:
    case = next(case for case in benchmark.CASES if case.name == name)
    report = benchmark.examine(case, 60, seed=1)
    known = [(1.0, 1.0)]
    for setting, speedup in benchmark.settings_of(report):
        true = benchmark.truth(case, setting, overhead)
        if true is not None:
            known.append((true, speedup["estimate"]))
            assert abs(speedup["estimate"] / true - 1) < WORST_ERROR, (setting, true, speedup)
    assert len(known) >= 4
    for (true, promised), (other_true, other_promised) in itertools.combinations(known, 2):
        if max(true, other_true) / min(true, other_true) > 1.15:
            assert (true < other_true) == (promised < other_promised), known
    workers = next(fix for fix in report["fixes"] if fix["id"] == "workers")
    assert workers["status"] == "faster", workers
