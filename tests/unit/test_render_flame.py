"""Flame graphs: places that a reader compares by eye, nothing of the user's as markup, and the page around them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from bottleneck_doctor.documents.report import CallNode, HotFunction
from bottleneck_doctor.render import flame_page
from bottleneck_doctor.render.flame import DEEPEST, ROW, flame, placed, short_path
from bottleneck_doctor.render.page import content_security_policy

HOSTILE = "</svg><script>alert(1)</script>\"onload='x' &amp; \x1b[31m\u202e"


def node(
    name: str, count: int, *children: CallNode, path: str = "/env/lib/python3.11/x.py", own: bool = False
) -> CallNode:
    return CallNode(name=name, path=path, line=7, count=count, own=own, children=list(children))


def training() -> CallNode:
    step = node("step", 600, node("forward", 400), node("backward", 150), path="/home/me/train.py", own=True)
    return node("main", 1000, node("<module>", 1000, step, node("next", 399), node("tiny", 1), own=True), path="")


def frames(drawing: str) -> dict[str, ElementTree.Element]:
    """Each frame's group by the name that its title begins with."""
    found = {}
    for group in ElementTree.fromstring(drawing).iter("g"):
        title = group.findtext("title")
        assert title is not None
        found[title.partition(" (")[0]] = group
    return found


def box(group: ElementTree.Element) -> tuple[float, float, float]:
    drawn = group.find("svg")
    assert drawn is not None
    return float(drawn.attrib["x"].rstrip("%")), float(drawn.attrib["y"]), float(drawn.attrib["width"].rstrip("%"))


def test_frames_lie_below_their_callers_and_are_as_wide_as_their_share() -> None:
    drawing = frames(flame(training(), label="main process"))
    assert {name: box(group) for name, group in drawing.items()} == {
        "<module>": (0, 0, 100),
        "step": (0, ROW, 60),
        "next": (60, ROW, 39.9),
        "forward": (0, 2 * ROW, 40),
        "backward": (40, 2 * ROW, 15),
    }


def test_titles_say_function_place_and_share() -> None:
    drawing = flame(training(), label="main process")
    assert "<title>Flame graph, main process: 1000 samples</title>" in drawing
    assert frames(drawing)["step"].findtext("title") == "step (/home/me/train.py, line 7): 60 %, 600 samples"


def test_own_frames_have_their_class_and_their_line() -> None:
    drawing = frames(flame(training(), label="main process"))
    assert drawing["step"].attrib["class"] == "own"
    assert drawing["step"].findtext("svg/text") == "step  train.py:7"
    assert re.fullmatch(r"lib-\d", drawing["forward"].attrib["class"])
    assert drawing["forward"].attrib["class"] == drawing["backward"].attrib["class"], "one file, one shade"


def test_narrow_frames_are_left_out_or_hold_no_text() -> None:
    tree = node("main", 10_000, node("a", 9900), node("b", 16), node("c", 14))
    drawing = frames(flame(tree, label="x"))
    assert set(drawing) == {"a", "b"}
    assert drawing["b"].find("svg/text") is None
    assert set(frames(flame(tree, label="x", least=0.5))) == {"a"}


def test_long_runs_of_library_calls_are_one_row() -> None:
    site = "/env/lib/python3.11/site-packages/lightning/loops.py"
    inner = node("training_step", 90, path="/home/me/train.py", own=True)
    for name in ("e", "d", "c", "b", "a"):
        inner = node(name, 90, inner, path=site)
    rows = placed(node("main", 100, node("main", 100, inner, own=True)))
    assert [(frame.node.name, frame.row, len(frame.run)) for frame in rows] == [
        ("main", 0, 0),
        ("a", 1, 5),
        ("training_step", 2, 0),
    ]
    drawing = flame(node("main", 90, inner), label="x")
    assert "… 5 calls in lightning …" in drawing
    assert f"5 calls, from a ({site}, line 7) to e ({site}, line 7): 100 %, 90 samples" in drawing


def test_a_tree_as_deep_as_they_come_is_drawn() -> None:
    tree = node("leaf", 5, own=True)
    for _ in range(900):
        tree = node("again", 5, tree, own=True)
    assert max(frame.row for frame in placed(tree)) == DEEPEST - 1
    ElementTree.fromstring(flame(tree, label="x"))


def test_an_empty_tree_is_drawn() -> None:
    assert frames(flame(node("main", 0), label="x")) == {}


def test_nothing_of_the_users_is_markup() -> None:
    tree = node("main", 10, node(HOSTILE, 10, path=HOSTILE, own=True))
    drawing = flame(tree, label=HOSTILE)
    root = ElementTree.fromstring(drawing)
    assert {element.tag for element in root.iter()} == {"svg", "title", "g", "rect", "text"}
    assert all(
        set(element.attrib)
        <= {"class", "role", "x", "y", "width", "height", "focusable", "fill", "stroke", "font-size"}
        for element in root.iter()
    )
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", drawing)


def test_library_paths_are_short() -> None:
    assert short_path("/env/lib/python3.11/site-packages/torch/nn/x.py") == "torch/nn/x.py"
    assert short_path("/usr/lib/python3.11/threading.py") == "threading.py"
    assert short_path("/home/me/train.py") == "/home/me/train.py"
    assert short_path("/home/me/train.py", "/home/me") == "train.py"


@pytest.fixture
def page() -> str:
    hot = HotFunction(
        role="main", name="forward", path="/x/site-packages/torch/a.py", line=3, own_name="step",
        own_path="/home/me/train.py", own_line=7, share=0.4, count=400,
    )  # fmt: skip
    bad = HotFunction(
        role="workers", name=HOSTILE, path=HOSTILE, line=3, own_name="", own_path="", own_line=0, share=1.0, count=5
    )
    return flame_page.render(
        name=HOSTILE,
        trees={"main": training(), "workers": node("workers", 5, node(HOSTILE, 5))},
        functions=[hot, bad],
        notes=[HOSTILE],
        led_by="your line that called it",
        cwd="/home/me",
    )


def test_the_page_allows_its_stylesheet_and_nothing_else(page: str) -> None:
    style = page.partition("<style>")[2].partition("</style>")[0]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].replace("&#39;", "'") == content_security_policy(style)
    rest = page.replace(style, "")
    assert "<script" not in rest
    assert not re.search(r'\son\w+="|style="|https?://|src=', rest)
    assert rest.count("</svg>") == rest.count("<svg"), "nothing of the user's ends a drawing"


def test_the_page_holds_drawings_and_tables(page: str) -> None:
    assert "Main process" in page
    assert "Loader workers" in page
    assert "torch/a.py, line 3" in page
    assert "train.py, line 7" in page
    assert page.rstrip().endswith("</html>")
