"""Thresholds that can't be judged on a machine: given up early, with the floor, and never at the cost of an answer."""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.gate_samples import pair
from tests.unit.test_gate_decide import Ended, Luck, share
from tests.unit.test_gate_revision import repository

import bottleneck_doctor.gate.check
from bottleneck_doctor.cli import main
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.gate import decide, limits, metrics, verdict
from bottleneck_doctor.gate.cause.explain import GrowthExplanation
from bottleneck_doctor.gate.decide import GateEstimate
from bottleneck_doctor.gate.futility import futility
from bottleneck_doctor.measure.side_pairs import PairSample

__all__ = ["repository"]  # A fixture.


def simulate(luck: Luck, truth: float, threshold: float, most: int, generator: random.Random) -> tuple[Ended, bool]:
    """One check that is given up where nothing can come of it; whether it was. Logs."""
    values: list[float] = []
    owns: list[decide.Own] = []
    while True:
        value, own = luck.pair(generator, truth)
        values.append(value)
        owns.append(own)
        look = decide.interim_look_after(len(values), last=len(values) == most)
        if look is None:
            continue
        plain, weighted = decide.estimate(values, owns), decide.weighed(values, owns)
        seen, answer = decide.settle(plain, weighted, threshold, look)
        known = futility(plain, threshold, most, weighted=weighted)
        given_up = answer == "cannot_tell" and len(values) < most and known is not None and known.futile
        if answer != "cannot_tell" or len(values) == most or given_up:
            return Ended(answer, len(values), seen, values, look), given_up


RESTLESS = Luck(0.11, 0.10)
"""Processes that differ by 12 %, as a memory-bound net's do on a CPU."""


@pytest.mark.parametrize("most", [6, 14, 30])
def test_what_no_pair_can_tell_is_given_up(most: int) -> None:
    generator = random.Random(1)
    ends = [simulate(RESTLESS, 0.0, 0.02, most, generator) for _ in range(150)]
    assert sum(given_up for _, given_up in ends) >= 0.7 * len(ends)
    # Of six pairs the last look has more than half of the error rate, so a little more is hoped for.
    assert sum(end.pairs for end, _ in ends) <= (0.86 if most == 6 else 0.85) * most * len(ends)
    assert share([end for end, _ in ends], "regression") <= 0.02


@pytest.mark.parametrize("most", [6, 14, 30])
def test_a_large_regression_is_called_all_the_same(most: int) -> None:
    generator = random.Random(2)
    ends = [simulate(RESTLESS, math.log1p(0.5), 0.02, most, generator) for _ in range(150)]
    assert sum(given_up for _, given_up in ends) <= 0.02 * len(ends)
    assert share([end for end, _ in ends], "regression") >= 0.97


@pytest.mark.parametrize("truth", [0.0, 0.02, 0.05])
def test_a_threshold_above_the_floor_is_hardly_ever_given_up(truth: float) -> None:
    """One that lies at the change itself is no matter of the floor: more pairs may tell."""
    generator = random.Random(3)
    luck = Luck(0.007, 0.012)
    ends = [simulate(luck, truth, 0.05, 14, generator) for _ in range(200)]
    assert sum(given_up for _, given_up in ends) <= 0.02 * len(ends)


def test_so_many_pairs_as_are_named_would_do() -> None:
    seen = GateEstimate(7, 0.01, 0.03 / math.sqrt(7))
    known = futility(seen, 0.035, 10)
    assert known is not None
    assert known.pairs is not None
    assert known.floor > 0.035
    assert 10 < known.pairs <= decide.most_looked_at()
    floor = decide.floor(seen, known.pairs)
    assert floor is not None
    assert floor <= 0.035
    beyond = futility(seen, 0.005, 10)
    assert beyond is not None
    assert beyond.pairs is None
    assert futility(seen, 0.02, 2) is not None
    assert futility(GateEstimate(2, 0.0, 0.01), 0.02, 2) is None


def restless(spread: float, count: int) -> list[PairSample]:
    generator = random.Random(4)
    return [pair(number, 0.02, 0.02 * math.exp(generator.gauss(0, spread))) for number in range(1, count + 1)]


@pytest.mark.parametrize("most", [6, 12])
def test_no_threshold_is_suggested_that_nobody_would_want(most: int) -> None:
    """Pairs that differ by a factor of three: `--threshold 263%` would be no help."""
    pairs = restless(1.1, 6)
    how = metrics.Judging(limits.DEFAULTS, decide.interim_look_after(6, last=False), most)
    judged = metrics.judged(pairs, how)
    (warning,) = (each for each in verdict.weak_evidence(pairs, how, judged) if each.slug == "threshold-below-noise")
    refused = verdict.refusal(pairs, how, judged, pair_seconds=10.0)
    for said in (warning.sentence, refused):
        assert "not even 50 % can be judged" in said
        assert "Run the check on a machine where nothing else runs" in said
        assert "--threshold" not in said
        assert max(float(figure) for figure in re.findall(r"([\d.]+) ?%", said)) == 50


def test_a_threshold_that_people_use_is_still_suggested() -> None:
    pairs = restless(0.08, 6)
    how = metrics.Judging(limits.DEFAULTS, decide.interim_look_after(6, last=False), 8)
    refused = verdict.refusal(pairs, how, metrics.judged(pairs, how), pair_seconds=10.0)
    assert re.search(r"Give `--threshold \d+%`", refused)


class _Restless:
    """Stands in for the pairs of processes: what they would have measured, by chance."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._generator = random.Random(4)

    @contextlib.contextmanager
    def pair(self, number: int) -> Iterator[Any]:
        yield SimpleNamespace(broken=None)

    def measure(self, number: int, both: Any) -> Any:
        return pair(number, 0.02, 0.02 * math.exp(self._generator.gauss(0, 0.15)))


def test_the_command_says_what_could_be_judged(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr(bottleneck_doctor.gate.check, "Pairs", _Restless)
    monkeypatch.setattr(bottleneck_doctor.gate.check, "explain", lambda *_: GrowthExplanation([]))
    (repository / "train.py").write_text("import torch\n")
    arguments = ["--base-ref", "HEAD~1", "--threshold", "1%", "--json", "out.json", "train.py"]
    assert main(["check", "-q", *arguments]) == Exit.DONE
    said = " ".join(capsys.readouterr().out.split())
    found = json.loads((repository / "out.json").read_text())
    assert found["status"] == "cannot_tell"
    assert 5 <= len(found["pairs"]) < decide.most_looked_at()
    assert [each["slug"] for each in found["warnings"] if each["slug"].startswith("threshold")]
    assert "CANNOT TELL: Step time: a threshold of 1 % can't be judged here" in said
    named = re.search(r"Give `--threshold ([\d.]+)%`", said)
    assert named is not None
    assert 5 <= float(named[1]) <= 40
    (repository / "out.json").unlink()
    assert main(["check", "-q", "--inconclusive", "fail", *arguments]) == Exit.CANNOT_TELL
