"""Two revisions' calls as one tree and one drawing: what a reader sees of what grew, with colours and without."""

from __future__ import annotations

from xml.etree import ElementTree

from bottleneck_doctor.documents.check import GrowthNode, GrowthTree
from bottleneck_doctor.documents.report import CallNode
from bottleneck_doctor.gate.cause.growth import Grown, merged
from bottleneck_doctor.render.check import flame_growth


def node(name: str, count: int, *children: CallNode, path: str = "/lib/x.py", line: int = 7) -> CallNode:
    return CallNode(name=name, path=path, line=line, count=count, own=path.startswith("/one/"), children=list(children))


def tree() -> GrowthTree:
    """A step of 100 ms that became one of 140 ms: `prepare` is slower, `log` is gone, `sharpen` is new."""
    base = node(
        "main",
        1000,
        node("loop", 1000, node("prepare", 100, path="/one/base/a.py"), node("log", 180), node("forward", 720)),
        path="",
    )
    head = node(
        "main",
        700,
        node(
            "loop",
            700,
            node("prepare", 250, node("sharpen", 200), path="/one/head/a.py", line=9),
            node("forward", 348),
            node("tiny", 2),
        ),
        path="",
    )
    return merged(
        "main",
        Grown(base, 0.1 / 1000, lambda path: path.removeprefix("/one/base/")),
        Grown(head, 0.14 / 700, lambda path: path.removeprefix("/one/head/")),
    )


def by_name(root: GrowthNode) -> dict[str, GrowthNode]:
    return {root.name: root, **{name: each for child in root.children for name, each in by_name(child).items()}}


def test_functions_are_followed_by_name_and_caller() -> None:
    found = by_name(tree().root)
    assert sorted(found) == ["forward", "log", "loop", "main", "prepare", "sharpen"]
    assert (round(found["main"].base, 9), round(found["main"].head, 9)) == (0.1, 0.14)
    prepare = found["prepare"]
    assert (prepare.path, prepare.line, prepare.own) == ("a.py", 9, True)
    assert (round(prepare.base, 9), round(prepare.head, 9)) == (0.01, 0.05)
    assert (round(found["log"].base, 9), found["log"].head) == (0.018, 0)
    assert (found["sharpen"].base, round(found["sharpen"].head, 9)) == (0, 0.04)
    assert [child.name for child in found["loop"].children] == ["forward", "prepare", "log"]


def drawn() -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(flame_growth.flame(tree(), label="main process"))
    return {(group.findtext("title") or "").partition(" (")[0]: group for group in root.iter("g")}


def text(group: ElementTree.Element) -> str:
    return next((each.text or "" for each in group.iter("text")), "")


def test_a_frame_says_what_it_gained_or_lost_without_its_colour() -> None:
    frames = drawn()
    assert text(frames["prepare"]) == "+40 ms  prepare  a.py:9"
    assert text(frames["log"]) == "\N{MINUS SIGN}18 ms  log"
    assert text(frames["forward"]) == "forward"
    assert frames["prepare"].findtext("title") == ("prepare (a.py, line 9): 50 ms a step, 10 ms on the base (+40 ms)")
    assert (frames["forward"].findtext("title") or "").endswith("70 ms a step, 72 ms on the base")


def test_colours_follow_size_and_sign_and_need_no_stylesheet() -> None:
    frames = drawn()
    assert {name: frames[name].attrib["class"] for name in ("prepare", "sharpen", "log", "forward")} == {
        "prepare": "grew-3",
        "sharpen": "grew-3",
        "log": "shrank-2",
        "forward": "same",
    }
    assert all(rect.attrib["fill"].startswith("#") for group in frames.values() for rect in group.iter("rect"))


def test_frames_hold_the_larger_side_and_stay_inside_their_callers() -> None:
    def place(name: str) -> tuple[float, float]:
        box = next(drawn()[name].iter("svg"))
        return float(box.attrib["x"].rstrip("%")), float(box.attrib["width"].rstrip("%"))

    widths = {name: place(name)[1] for name in ("prepare", "log", "forward", "loop")}
    # 72, 50 and 18 of the 140 ms that all of them take on their slower sides.
    assert widths["forward"] > widths["prepare"] > widths["log"] > 0
    assert round(widths["prepare"] / widths["log"], 2) == 2.78
    assert widths["forward"] + widths["prepare"] + widths["log"] <= widths["loop"] + 0.01
    assert place("sharpen")[0] >= place("prepare")[0]


def test_the_luck_of_sampling_is_no_change() -> None:
    few = GrowthTree(
        role="main",
        base_samples=50,
        head_samples=50,
        root=GrowthNode(name="main", path="", line=0, base=0.1, head=0.1),
    )
    assert not flame_growth.changed(0.02, 0.03, few)
    assert flame_growth.changed(0.02, 0.06, few)
