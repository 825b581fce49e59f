"""What comes from outside, broken in every way: a clear error, or an answer, never a traceback of ours."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bottleneck_doctor.compare import Named, compare
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.render import comparison, html, terminal
from bottleneck_doctor.result import from_json
from bottleneck_doctor.runtime import messages

GOLDEN = Path(__file__).parents[1] / "golden"
DOCUMENTS = {name: json.loads((GOLDEN / f"{name}.json").read_bytes()) for name in ("pets", "gpu", "no-baseline")}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
odd_values = json_values | st.sampled_from([0, -1, 1e308, -1e308, 5e-324, 2**63, "", "\x00", "\u202e"])
whole_numbers = st.sampled_from([0, -1, 1, 10**9])
fractions = st.sampled_from([0.0, -1.0, 1e300, 1e-300])


# -- the channel -------------------------------------------------------------------------------------------------------

kinds = st.sampled_from(sorted(messages._KINDS))


@given(st.binary(max_size=200))
@example(b"null\n")
@example(b"[]\n")
@example(b'{"protocol": 1, "kind": []}\n')
def test_any_line_is_a_message_or_refused(line: bytes) -> None:
    try:
        messages.decode(line)
    except messages.ProtocolError:
        pass


@given(kinds, st.dictionaries(st.text(max_size=12), json_values, max_size=4))
def test_any_object_is_a_message_or_refused(kind: str, body: dict[str, Any]) -> None:
    line = json.dumps({"protocol": messages.PROTOCOL, "kind": kind, **body}).encode()
    try:
        messages.decode(line)
    except messages.ProtocolError:
        pass


# -- report.json -------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_anything_is_a_report_or_refused(data: bytes) -> None:
    with pytest.raises(DoctorError) as refused:
        from_json(data, source="report.json")
    assert refused.value.slug in ("report-unreadable", "report-too-new")


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in entries:
        found += _paths(inner, (*path, key))
    return found


PATHS = {name: _paths(document) for name, document in DOCUMENTS.items()}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_a_damaged_report_is_drawn_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(DOCUMENTS)))
    document = copy.deepcopy(DOCUMENTS[name])
    for path in data.draw(st.lists(st.sampled_from(PATHS[name]), min_size=1, max_size=3)):
        inner = document
        try:
            for key in path[:-1]:
                inner = inner[key]
            known = inner[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # What it was part of is gone already.
        change = data.draw(st.sampled_from(["odd", "same type", "empty", "gone"]))
        if change == "gone" and isinstance(inner, dict):
            del inner[path[-1]]
        elif change == "empty":
            inner[path[-1]] = type(known)() if known is not None else None
        elif change == "same type" and isinstance(known, (int, float)) and not isinstance(known, bool):
            inner[path[-1]] = data.draw(whole_numbers if isinstance(known, int) else fractions)
        else:
            inner[path[-1]] = data.draw(odd_values)
    try:
        result = from_json(json.dumps(document).encode(), source="report.json")
    except DoctorError:
        return
    page = html.render(result)
    assert "</html>" in page
    assert terminal.render(result, report_path=None, width=80, color=False)
    pets = from_json(json.dumps(DOCUMENTS["pets"]).encode(), source="pets.json")
    found = compare([Named("a", result), Named("b", pets)])
    assert comparison.text(found, width=None, color=False)
    assert "</html>" in comparison.html(found)
