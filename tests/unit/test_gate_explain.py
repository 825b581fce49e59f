"""In which order both sides of a pair are sampled, and what is said where that fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.gate_samples import pair

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.cause import explain, hunks

STEP, GREW = 0.020, 0.0004
"""Seconds: a growth of 2 % takes as many samples as are taken at most."""


def process(name: str, workers: int) -> Any:
    return SimpleNamespace(side=SimpleNamespace(name=name, said=f"the {name}"), num_workers=workers)


def test_both_sides_are_sampled_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[tuple[str, float]] = []
    rates: list[int] = []
    read: dict[str, list[str]] = {}

    def recorded(side: Any, folder: Path, number: int, rate: int, seconds: float) -> Path:
        turns.append((side.name, seconds))
        rates.append(rate)
        return folder / f"{side.name}-{number}"

    def sampled(side: Any, files: Sequence[Path], _: float) -> Any:
        read[side.name] = [file.name for file in files]
        if side.name == "head":
            raise DoctorError("raw-empty", "No line of it holds a stack.", "Try again.")
        return None

    monkeypatch.setattr(explain, "_recorded", recorded)
    monkeypatch.setattr(explain, "_sampled", sampled)
    lives = [process("base", 0), process("head", 9)]
    both: Any = SimpleNamespace(lives=lives, prober=lambda live: None, outside=None)
    roots = {"base": (Path("b"),), "head": (Path("h"),)}
    found = explain.explain(both, roots, [pair(1, STEP, STEP + GREW)], GREW, hunks.Differences())
    assert [name for name, _ in turns] == ["base", "head", "head", "base", "base", "head", "head", "base"]
    # Ten processes of the head, with which 400 samples a second take the machine's time.
    assert set(rates) == {40}
    for side in ("base", "head"):
        seconds = sum(seconds for name, seconds in turns if name == side)
        assert explain.LEAST_SAMPLED < seconds <= explain.MOST_SAMPLED
        assert read[side] == [f"{side}-{number}" for number in range(4)]
    (missing,) = found.missing
    assert missing.slug == "culprits-missing"
    assert "the head could not be sampled" in missing.sentence
