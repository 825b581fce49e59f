"""From recordings to roles, tables and trees: exact figures from small inputs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bottleneck_doctor.documents.report import CallNode, HotFunction
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.profiling import speedscope
from bottleneck_doctor.profiling.origin import Origin, in_package
from bottleneck_doctor.profiling.sampling import WAITING, open_recording, sampling_profile
from bottleneck_doctor.profiling.tree import DEEPEST, CallTree, Frames, Freezer

SITE = "/env/lib/python3.11/site-packages"
LOOP = f"_worker_loop ({SITE}/torch/utils/data/_utils/worker.py:349)"
MAIN = 'process 10:"python train.py"'


def record(folder: Path, *lines: str, name: str = "spy.raw") -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def short(row: HotFunction) -> tuple[str, str, int, str, int, int]:
    return row.role, row.name, row.line, row.own_name, row.own_line, row.count


def outline(node: CallNode) -> object:
    mark = "*" if node.own else ""
    return f"{node.name}:{node.line}{mark} {node.count}", [outline(child) for child in node.children]


def training(folder: Path) -> Path:
    """A main process, two workers that were forked from it, and a waiting helper."""
    forked = "main (/home/me/train.py:8);start (/usr/lib/python3.11/multiprocessing/process.py:121)"
    workers = [f'{MAIN};process {pid}:"python train.py";thread ({pid}): MainThread;{forked}' for pid in (11, 12)]
    decode = f"__getitem__ (/home/me/data.py:20);open ({SITE}/PIL/Image.py:3000);decode ({SITE}/PIL/ImageFile.py:"
    get = "get (/usr/lib/python3.11/multiprocessing/queues.py:113)"
    return record(
        folder,
        f"{MAIN};thread (10): MainThread;main (/home/me/train.py:8);__next__ ({SITE}/torch/utils/loader.py:700) 60",
        f"{MAIN};thread (10): MainThread;main (/home/me/train.py:9);forward ({SITE}/torch/nn/linear.py:100) 25",
        f"{MAIN};thread (10): MainThread;main (/home/me/train.py:12) 15",
        f"{MAIN};thread (19): Thread-1;_bootstrap (/usr/lib/python3.11/threading.py:1002);wait (x.py:1) 500",
        f"{workers[0]};{LOOP};{decode}293) 30",
        f"{workers[1]};{LOOP};{decode}300) 40",
        f"{workers[1]};{LOOP};__getitem__ (/home/me/data.py:22);augment (/home/me/data.py:30) 20",
        f"{workers[1]};{LOOP};collate ({SITE}/torch/utils/data/_utils/collate.py:5) 10",
        f"{workers[0]};{LOOP};{get} 50",
    )


def test_deepest_functions_of_main_and_workers(tmp_path: Path) -> None:
    rows = open_recording([training(tmp_path)]).functions()
    assert [short(row) for row in rows] == [
        ("main", "__next__", 700, "main", 8, 60),
        ("main", "forward", 100, "main", 9, 25),
        ("main", "main", 12, "main", 12, 15),
        ("workers", "decode", 300, "__getitem__", 20, 70),
        ("workers", "augment", 30, "augment", 30, 20),
        ("workers", "collate", 5, "", 0, 10),
    ]
    assert [row.share for row in rows] == [0.6, 0.25, 0.15, 0.7, 0.2, 0.1]
    assert rows[3].path == f"{SITE}/PIL/ImageFile.py"
    assert rows[3].own_path == "/home/me/data.py"


def test_lines_apart(tmp_path: Path) -> None:
    rows = open_recording([training(tmp_path)]).functions(merge=False)
    assert [(row.name, row.line, row.count) for row in rows if row.name == "decode"] == [
        ("decode", 300, 40),
        ("decode", 293, 30),
    ]
    assert len(open_recording([training(tmp_path)]).functions(merge=False, most=1)) == 2, "so many of each role"


def test_a_function_reached_from_two_own_functions_is_two_rows(tmp_path: Path) -> None:
    path = record(
        tmp_path,
        *[
            f"{caller} (/home/me/t.py:{line});sort ({SITE}/numpy/core.py:5) {count}"
            for caller, line, count in (("one", 1, 3), ("one", 2, 4), ("two", 9, 5))
        ],
    )
    rows = open_recording([path]).functions()
    assert [short(row) for row in rows] == [("main", "sort", 5, "one", 2, 7), ("main", "sort", 5, "two", 9, 5)]


def test_another_package_is_tagged(tmp_path: Path) -> None:
    recording = open_recording([training(tmp_path)])
    rows = recording.functions(library="torch")
    assert [(row.name, row.own_name) for row in rows] == [
        ("__next__", "__next__"),
        ("forward", "forward"),
        ("main", ""),
        ("decode", "_worker_loop"),
        ("augment", "_worker_loop"),
        ("collate", "collate"),
    ]
    assert recording.functions(library="PIL")[3].own_path == f"{SITE}/PIL/ImageFile.py"
    with pytest.raises(DoctorError) as raised:
        recording.functions(library="tensorflow")
    assert raised.value.slug == "unknown-library"


def test_the_profile_of_the_report(tmp_path: Path) -> None:
    profile = sampling_profile(
        [training(tmp_path)], rate=50, seconds=2.0, main_pids={10}, speedscope_file=tmp_path / "spy.speedscope.json"
    )
    assert profile.samples == {"main": 100, "workers": 100, WAITING: 50}
    assert profile.files == ["spy.raw", "spy.speedscope.json"]
    assert outline(profile.trees["main"]) == (
        "main:0 100",
        [("main:8* 100", [("__next__:700 60", []), ("forward:100 25", [])])],
    )
    assert outline(profile.trees["workers"]) == (
        "workers:0 100",
        [
            (
                "_worker_loop:349 100",
                [
                    ("__getitem__:20* 90", [("open:3000 70", [("decode:300 70", [])]), ("augment:30* 20", [])]),
                    ("collate:5 10", []),
                ],
            )
        ],
    )


def test_nothing_of_the_training_is_said(tmp_path: Path) -> None:
    path = record(tmp_path, "thread (9): Thread-1;run (a.py:1) 5")
    with pytest.raises(DoctorError) as raised:
        sampling_profile([path], rate=50, seconds=2.0)
    assert raised.value.slug == "raw-empty"


def test_launchers_and_other_children_are_left_out(tmp_path: Path) -> None:
    launcher = f'process 1:"torchrun train.py";main ({SITE}/torch/distributed/run.py:9)'
    rank = 'process 1:"torchrun train.py";process 2:"python train.py"'
    helper = f'{rank};process 3:"python -c tracker";main (/usr/lib/python3.11/multiprocessing/resource_tracker.py:9)'
    child = f'{rank};process 4:"python train.py";work (/home/me/other.py:3)'
    path = record(tmp_path, f"{launcher} 7", f"{rank};main (/home/me/train.py:3) 5", f"{helper} 9", f"{child} 2")
    recording = open_recording([path])
    assert [process.pid for process in recording.roles.main] == [2]
    assert [process.pid for process in recording.roles.others] == [1, 3, 4]
    assert recording.samples() == {"main": 5}
    assert recording.notes() == ["18 samples from processes that neither train nor load were left out."]
    assert [process.pid for process in open_recording([path], main_pids=[4]).roles.main] == [4]


def test_parents_of_workers_are_main(tmp_path: Path) -> None:
    parent = 'process 1:"python launch.py"'
    rank = f'{parent};process 2:"python"'
    path = record(
        tmp_path,
        f"{parent};main (/home/me/launch.py:3) 9",
        f"{rank};train (/home/me/train.py:3) 5",
        f'{rank};process 3:"python";{LOOP};x (/home/me/data.py:1) 4',
    )
    assert [process.pid for process in open_recording([path]).roles.main] == [2]


def test_two_nodes_are_added(tmp_path: Path) -> None:
    (tmp_path / "node1").mkdir()
    recording = open_recording([training(tmp_path), training(tmp_path / "node1")])
    assert recording.samples() == {"main": 200, "workers": 200, WAITING: 100}
    assert recording.functions()[0].count == 120
    assert recording.functions()[0].share == 0.6


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/home/me/train.py", True),
        ("C:\\work\\train.py", True),
        ("/home/me/run", True),
        ("train.py", True),
        ("project/data.py", True),
        ("<ipython-input-3-abc>", True),
        (f"{SITE}/torch/nn/modules/module.py", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        ("/opt/conda/lib/python3.11/threading.py", False),
        ("C:\\Python311\\Lib\\threading.py", False),
        ("/home/me/project/.venv/lib/python3.11/site-packages/x.py", False),
        ("/home/me/.venv/bin/torchrun", False),
        ("torch/nn/modules/module.py", False),
        ("threading.py", False),
        ("multiprocessing/queues.py", False),
        ("<frozen runpy>", False),
        ("<string>", False),
        ("libtorch_cpu.so", False),
        ("/usr/lib/libc.so.6", False),
        ("/src/bottleneck_doctor/profiling/raw.py", False),
        ("", False),
    ],
)
def test_whose_code_it_is(path: str, own: bool) -> None:
    assert Origin().is_own(path) is own
    assert Origin(["/home/me"]).is_own(path) is own


def test_roots_make_a_library_the_users_own() -> None:
    origin = Origin([f"{SITE}/timm"])
    assert origin.is_own(f"{SITE}/timm/train.py")
    assert not origin.is_own(f"{SITE}/timm_other/train.py")


def test_packages_by_name() -> None:
    assert in_package(f"{SITE}/torchvision/transforms/functional.py", "torchvision.transforms")
    assert in_package("PIL/Image.py", "PIL")
    assert in_package(f"{SITE}/six.py", "six")
    assert not in_package(f"{SITE}/torchvision/io.py", "torch")


def deep_tree(stacks: list[tuple[list[int], int]]) -> tuple[CallTree, Frames, list[int]]:
    tree, frames = CallTree(), Frames()
    root = tree.root()
    for stack, count in stacks:
        tree.add(root, [frames.number(f"f{each}", "t.py", each) for each in stack], count)
    return tree, frames, [root]


def test_small_nodes_are_left_out_and_totals_kept() -> None:
    tree, frames, roots = deep_tree([([1, 2], 997), ([1, 3], 2), ([1, 4], 1)])
    node = Freezer(tree, frames, [False] * len(frames)).freeze(roots, "main")
    assert outline(node) == ("main:0 1000", [("f1:1 1000", [("f2:2 997", [])])])
    node = Freezer(tree, frames, [False] * len(frames)).freeze(roots, "main", least_share=0, most=4)
    assert outline(node) == ("main:0 1000", [("f1:1 1000", [("f2:2 997", []), ("f3:3 2", [])])])


def test_endless_recursion_is_cut() -> None:
    tree, frames, roots = deep_tree([(list(range(5000)), 3)])
    node = Freezer(tree, frames, [False] * len(frames)).freeze(roots, "main")
    depth = 0
    while node.children:
        (node,) = node.children
        depth += 1
    assert depth == DEEPEST


@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 50)), max_size=20))
def test_frozen_trees_hold_every_sample(stacks: list[tuple[list[int], int]]) -> None:
    tree, frames, roots = deep_tree(stacks)
    node = Freezer(tree, frames, [False] * len(frames)).freeze(roots, "main", least_share=0)
    assert node.count == sum(count for _, count in stacks)

    def counted(each: CallNode, prefix: tuple[str, ...]) -> dict[tuple[str, ...], int]:
        found = {prefix: each.count}
        for child in each.children:
            found.update(counted(child, (*prefix, child.name)))
        return found

    expected: dict[tuple[str, ...], int] = {(): node.count}
    for stack, count in stacks:
        for end in range(1, len(stack) + 1):
            key = tuple(f"f{each}" for each in stack[:end])
            expected[key] = expected.get(key, 0) + count
    assert counted(node, ()) == expected


SPEEDSCOPE = {
    "type": "object",
    "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {
                "frames": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "file": {"type": "string"},
                            "line": {"type": "number"},
                        },
                        "additionalProperties": False,
                    },
                }
            },
        },
        "profiles": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
                "properties": {
                    "type": {"const": "sampled"},
                    "unit": {"enum": ["none", "seconds"]},
                    "samples": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
                    "weights": {"type": "array", "items": {"type": "number"}},
                },
            },
        },
    },
}
"""What the published schema asks of files with sampled profiles."""


@pytest.mark.parametrize("rate", [None, 50])
def test_speedscope(tmp_path: Path, rate: int | None) -> None:
    recording = open_recording([training(tmp_path)])
    path = tmp_path / "out.json"
    speedscope.write(recording.profile, recording.roles, path, rate=rate)
    document = json.loads(path.read_text())
    jsonschema.validate(document, SPEEDSCOPE)
    assert [each["name"] for each in document["profiles"]] == ["main process 10", "worker 11", "worker 12"]
    scale = rate or 1
    assert [each["endValue"] for each in document["profiles"]] == [100 / scale, 30 / scale, 70 / scale]
    for each in document["profiles"]:
        assert sum(each["weights"]) == pytest.approx(each["endValue"])
        assert len(each["samples"]) == len(each["weights"])
    frames = document["shared"]["frames"]
    hottest = document["profiles"][1]["samples"][0]
    assert [frames[number]["name"] for number in hottest] == ["_worker_loop", "__getitem__", "open", "decode"]
    assert frames[hottest[1]] == {"name": "__getitem__", "file": "/home/me/data.py", "line": 20}
