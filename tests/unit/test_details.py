"""What windows that explain found: what fits its shape is read, whatever it holds, and all else is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.test_phases import detail, pauses

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.explain import details
from bottleneck_doctor.explain.explanation import Explanation
from bottleneck_doctor.profiling.device import device_profile
from bottleneck_doctor.profiling.lines import line_profile

LEAVES = {
    float: st.floats(0, 1e6) | st.integers(0, 10**6),
    int: st.integers(0, 10**6),
    str: st.text(max_size=8),
    bool: st.booleans(),
    type(None): st.none(),
}

LINES = {
    "steps": 3,
    "functions": [
        {"name": "f", "path": "/a/b.py", "first_line": 1, "end_line": 4, "seconds": 0.5, "lines": [[2, 3, 0.5]]}
    ],
}
TRACE = {"steps": 2, "seconds": 0.5, "device": False, "operators": [["aten::mm", 4, 10.0, 0.0]], "waiting": "data"}


def of_shape(shape: Any) -> st.SearchStrategy[Any]:
    """Anything of a shape in `details`, as JSON holds it: seconds and bytes are finite and not below 0."""
    if shape in LEAVES:
        return LEAVES[shape]
    if is_typeddict(shape):
        fields = {name: of_shape(each) for name, each in get_type_hints(shape).items()}
        needed = {name: each for name, each in fields.items() if name in shape.__required_keys__}
        return st.fixed_dictionaries(
            needed, optional={name: each for name, each in fields.items() if name not in needed}
        )
    parts = get_args(shape)
    if get_origin(shape) is list:
        return st.lists(of_shape(parts[0]), max_size=3)
    if get_origin(shape) is tuple:
        return st.tuples(*map(of_shape, parts)).map(list)
    return st.one_of(*map(of_shape, parts))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything that is no list and no object."""
    if isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, key))
    else:
        yield path


@pytest.mark.parametrize(
    ("good", "shape"),
    [
        (detail(), details.PhasesDetail),
        (pauses(), details.PausesTold),
        (LINES, details.LinesDetail),
        (TRACE, details.TraceDetail),
    ],
    ids=["phases", "pauses", "lines", "trace"],
)
def test_every_field_is_checked(good: dict[str, Any], shape: type) -> None:
    details.check({**good, "more": 1}, shape)
    for path in places(good):
        bad = copy.deepcopy(good)
        holder: Any = bad
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = {"no": "such"}
        with pytest.raises(details.Unreadable):
            details.check(bad, shape)
    for name in good:
        with pytest.raises(details.Unreadable):
            details.check({key: value for key, value in good.items() if key != name}, shape)


@given(st.lists(of_shape(details.PhasesDetail), min_size=1, max_size=2))
def test_all_phases_of_the_shape_are_read(several: list[dict[str, Any]]) -> None:
    explanation = Explanation()
    found: Any = SimpleNamespace(has_loader=True, first_step_seconds=1.0, first_batch_seconds=0.1)
    settings: list[Setting] = [{}, {"num_workers": 2}]
    for setting in settings:
        explanation.read_phases(setting, several, found)


@given(st.lists(of_shape(details.PausesTold), max_size=3))
def test_all_pauses_of_the_shape_are_read(told: list[dict[str, Any]]) -> None:
    explanation = Explanation()
    explanation.read_pauses(told, [])
    assert not explanation.missing


def test_pauses_of_another_shape_are_left_out_and_the_report_says_so() -> None:
    explanation = Explanation()
    explanation.read_pauses([pauses(), {"epoch_pause": 3}], [])
    assert (explanation.epoch_pause, explanation.interruption) == (None, None)
    (missing,) = explanation.missing
    assert missing.sentence.startswith("The report lacks what lies between epochs")


@given(of_shape(details.LinesDetail))
def test_all_lines_of_the_shape_are_read(told: dict[str, Any]) -> None:
    details.check(told, details.LinesDetail)
    line_profile(told, [])


@given(of_shape(details.TraceDetail))
def test_all_traces_of_the_shape_are_read(told: dict[str, Any]) -> None:
    details.check(told, details.TraceDetail)
    device_profile(told, None, [])
