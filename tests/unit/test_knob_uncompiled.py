"""What torch notes of functions that it compiles again, in the words of its older and newer releases."""

from __future__ import annotations

import sys
from collections import defaultdict
from types import CodeType, SimpleNamespace

import pytest

from bottleneck_doctor.runtime.knobs._modules import most_versions, recompiled
from bottleneck_doctor.runtime.knobs.uncompiled import Uncompiled
from bottleneck_doctor.runtime.loop.steps import Steps


def forward() -> None: ...


def other() -> None: ...


def noted(monkeypatch: pytest.MonkeyPatch, failures: dict[CodeType, list[str]], **config: int) -> None:
    kept: defaultdict[CodeType, list[str]] = defaultdict(list, failures)
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(guard_failures=kept))
    monkeypatch.setitem(sys.modules, "torch._dynamo.config", SimpleNamespace(**config))


def mismatch(expected: int, actual: int) -> str:
    return f"tensor 'rows' size mismatch at index 1. expected {expected}, actual {actual}"


def test_a_reason_is_noted_for_each_version_and_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [20, 21, 22, 23]
    reasons = [
        f"3/{version}: {mismatch(known, actual)}"
        for at, actual in enumerate(shapes)
        for version, known in enumerate(shapes[:at])
    ]
    noted(monkeypatch, {other.__code__: ["0/0: rows is None"], forward.__code__: reasons}, recompile_limit=16)
    first, second = recompiled()
    assert (first["times"], first["reason"]) == (3, mismatch(22, 23))
    assert (first["name"], first["file"], first["line"]) == ("forward", __file__, forward.__code__.co_firstlineno)
    assert (second["times"], second["reason"]) == (1, "rows is None")
    assert most_versions() == 16
    facts = Uncompiled.facts(Steps(), "cpu")
    assert (len(facts["recompiled"]), facts["most_versions"]) == (2, 16)


def test_older_releases_do_not_number_their_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = [mismatch(known, actual) for actual in (21, 22, 23) for known in range(20, actual)]
    noted(monkeypatch, {forward.__code__: reasons}, cache_size_limit=8)
    (again,) = recompiled()
    assert (len(reasons), again["times"]) == (6, 3)
    assert most_versions() == 8


def test_a_reason_of_several_lines_is_told_by_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    noted(monkeypatch, {forward.__code__: [f"0/0: {mismatch(2, 3)}\nUser stack trace:\n  here"]})
    assert recompiled()[0]["reason"] == mismatch(2, 3)


def test_where_nothing_was_compiled_again_there_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    noted(monkeypatch, {forward.__code__: []})
    assert recompiled() == []
    assert Uncompiled.facts(Steps(), "cpu") is None
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils")
    assert recompiled() == []
