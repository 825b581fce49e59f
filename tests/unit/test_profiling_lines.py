"""Listings with their source, and the choice of functions to profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bottleneck_doctor.documents.report import CallNode, HotFunction, SamplingProfile
from bottleneck_doctor.profiling.lines import (
    CONTEXT_LINES,
    WHOLE_LINES,
    functions_to_profile,
    line_profile,
    line_setting,
    source_lines,
)
from bottleneck_doctor.runtime.wire.messages import Found, Site


def found(**more: Any) -> Found:
    return Found("optimizer step", 1, True, [0.1], [0.0], 4.0, "cpu", 2, 1, True, **more)


def function(path: Path, first: int, end: int, lines: list[list[float]], name: str = "train") -> dict[str, Any]:
    seconds = sum(line[2] for line in lines)
    return {"name": name, "path": str(path), "first_line": first, "end_line": end, "seconds": seconds, "lines": lines}


def test_a_short_function_is_listed_whole(tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("import x\n\ndef train():\n    # why\n    a()\n    b()\n\nrest = 1\n")
    detail = {"steps": 7, "functions": [function(source, 3, 6, [[5, 7, 0.3], [6, 7, 0.1]])]}
    profile = line_profile(detail, ["doctor.lprof"])
    assert (profile.steps, profile.files) == (7, ["doctor.lprof"])
    (listing,) = profile.listings
    assert (listing.name, listing.path, listing.first_line, listing.seconds) == ("train", str(source), 3, 0.4)
    assert [(line.line, line.text, line.hits, line.seconds) for line in listing.lines] == [
        (3, "def train():", None, None),
        (4, "    # why", None, None),
        (5, "    a()", 7, 0.3),
        (6, "    b()", 7, 0.1),
    ]
    assert [line.share for line in listing.lines] == [None, None, pytest.approx(0.75), pytest.approx(0.25)]


def test_functions_come_costliest_first(tmp_path: Path) -> None:
    costs = {"middle": 0.2, "least": 0.1, "most": 0.7}
    functions = [function(tmp_path / "gone.py", 1, 2, [[2, 1, cost]], name) for name, cost in costs.items()]
    profile = line_profile({"steps": 1, "functions": functions}, [])
    assert [listing.name for listing in profile.listings] == ["most", "middle", "least"]


def test_of_a_long_function_what_was_timed_is_shown_with_its_surroundings(tmp_path: Path) -> None:
    source = tmp_path / "long.py"
    source.write_text("".join(f"line {number}\n" for number in range(1, 1001)))
    timed = [[500, 1, 1.0], [503, 1, 1.0], [1000, 1, 1.0]]
    (listing,) = line_profile({"steps": 1, "functions": [function(source, 10, 1000, timed)]}, []).listings
    numbers = [line.line for line in listing.lines]
    around = range(500 - CONTEXT_LINES, 503 + CONTEXT_LINES + 1)
    assert numbers == [10, *around, *range(1000 - CONTEXT_LINES, 1001)]
    assert all(line.text == f"line {line.line}" for line in listing.lines)
    edge = function(source, 1, WHOLE_LINES, [[1, 1, 1.0]])
    (whole,) = line_profile({"steps": 1, "functions": [edge]}, []).listings
    assert len(whole.lines) == WHOLE_LINES


def test_a_source_that_is_gone_or_was_cut_leaves_the_figures(tmp_path: Path) -> None:
    short = tmp_path / "short.py"
    short.write_text("def f():\n")
    detail = {
        "steps": 1,
        "functions": [function(short, 1, 2, [[2, 3, 0.5]]), function(tmp_path / "gone.py", 1, 1, [[1, 3, 0.0]])],
    }
    cut, gone = line_profile(detail, []).listings
    assert [(line.text, line.hits) for line in cut.lines] == [("def f():", None), ("", 3)]
    # No time at all has no shares either.
    assert [(line.text, line.hits, line.share) for line in gone.lines] == [("", 3, None)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"# -*- coding: latin-1 -*-\nx = '\xe4'\n", "x = 'ä'"),
        (b"# -*- coding: no-such -*-\nx = 1\n", "x = 1"),
        (b"#\nx = '\xff'\n", "x = '\ufffd'"),
        (b"\xef\xbb\xbf#\r\nx = 2\r\n", "x = 2"),
        (b"#\nx = '\x0c'\n", "x = '\x0c'"),
    ],
)
def test_sources_in_any_coding(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "source.py"
    path.write_bytes(data)
    assert source_lines(str(path))[1] == expected


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    assert source_lines(str(tmp_path)) == []
    assert source_lines("<stdin>") == []
    assert source_lines("with\0null.py") == []


def hot(name: str, line: int, share: float, path: str = "/home/train.py") -> HotFunction:
    return HotFunction(
        role="main", name="sleep", path="", line=0, own_name=name, own_path=path, own_line=line, share=share, count=1
    )


def node(name: str, line: int, count: int, *children: CallNode, own: bool = True) -> CallNode:
    path = "/home/train.py" if own else "/lib/torch.py"
    return CallNode(name=name, path=path, line=line, count=count, own=own, children=list(children))


def test_hot_functions_of_the_users_own_are_chosen() -> None:
    tree = node("all", 0, 1000, node("main", 90, 1000, node("step", 40, 700), node("rare", 80, 3)), own=False)
    sampling = SamplingProfile(
        rate=100,
        seconds=10.0,
        samples={"main": 1000},
        functions=[hot("decode", 12, 0.5), hot("", 0, 0.2, path=""), hot("seldom", 70, 0.001), hot("decode", 14, 0.3)],
        trees={"main": tree},
    )
    chosen = functions_to_profile(sampling, found(forward_site=Site("/home/net.py", 7)))
    assert [(each["path"], each["name"], each["line"]) for each in chosen] == [
        ("/home/train.py", "main", 90),
        ("/home/train.py", "step", 40),
        ("/home/train.py", "decode", 12),
        ("/home/train.py", "decode", 14),
        ("/home/net.py", "", 7),
    ]


def test_without_a_sampling_profile_the_places_of_the_loop_are_left() -> None:
    sites = {"forward_site": Site("/home/a.py", 3), "backward_site": Site("/home/b.py", 4)}
    assert functions_to_profile(None, found(**sites)) == [
        {"path": "/home/a.py", "line": 3, "name": ""},
        {"path": "/home/b.py", "line": 4, "name": ""},
    ]
    assert functions_to_profile(None, found()) == []


def test_the_window_loads_in_its_own_process() -> None:
    assert line_setting(found(num_workers=4)) == {"num_workers": 0}
    assert line_setting(found(num_workers=0)) == {}
