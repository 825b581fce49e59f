"""Cores of one node of memory: what Linux tells of them, on a made-up machine, and how a training stays there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.test_fixes import FOUND

from bottleneck_doctor.fixes import NotApplicable, Offer, catalogue
from bottleneck_doctor.knobs import numa_node

FIX = next(fix for fix in catalogue() if fix.id == "numa-node")
NODES = numa_node.nodes
LISTS = {0: "0-3,8-11\n", 1: "4-7,12-15\n"}
"""Two nodes of four cores, each of which is two processors."""


def machine(folder: Path, lists: Mapping[int, str], monkeypatch: pytest.MonkeyPatch, mine: set[int]) -> None:
    for number, text in lists.items():
        node = folder / "node" / f"node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(text)
    for processor in range(16):
        topology = folder / "cpu" / f"cpu{processor}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{processor % 8},{processor % 8 + 8}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: mine)
    found = NODES(folder / "node", folder / "cpu")
    monkeypatch.setattr(numa_node, "nodes", lambda: found)
    for name in numa_node.CHOOSING:
        monkeypatch.delenv(name, raising=False)


def test_the_largest_node_is_offered_with_a_thread_for_each_of_its_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(tmp_path, LISTS, monkeypatch, set(range(16)) - {0, 8})
    cores = [node.cores for node in numa_node.nodes()]
    assert cores == [3, 4], "of the first node, one core is not ours"
    assert FIX.propose(replace(FOUND, threads=8)) == Offer(({"numa_node": "4 on 4-7,12-15"},))
    assert FIX.propose(replace(FOUND, threads=2)) == Offer(({"numa_node": "2 on 4-7,12-15"},))


def test_variables_make_one_place_of_all_its_processors() -> None:
    assert numa_node.variables("4 on 4-7,12-15") == {
        "OMP_PLACES": "{4:4,12:4}",
        "OMP_PROC_BIND": "true",
        "OMP_NUM_THREADS": "4",
    }
    assert numa_node.variables("1 on 3")["OMP_PLACES"] == "{3:1}"
    assert numa_node.variables("something else") == {}


def refusal(**changed: object) -> str:
    proposal = FIX.propose(replace(FOUND, **changed))  # type: ignore[arg-type]
    assert isinstance(proposal, NotApplicable)
    return proposal.reason


def test_where_it_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path / "two", LISTS, monkeypatch, set(range(16)))
    assert "a device" in refusal(device="cuda:0")
    monkeypatch.setenv("OMP_PROC_BIND", "close")
    assert refusal() == "already on: `OMP_PROC_BIND` says where threads stay"
    # A process that may use the cores of one node only has no other.
    machine(tmp_path / "bound", LISTS, monkeypatch, {0, 1, 8})
    assert "equally near" in refusal()
    machine(tmp_path / "one", {0: "0-15"}, monkeypatch, set(range(16)))
    assert "equally near" in refusal()
    machine(tmp_path / "strange", {0: "all", 1: "4-7"}, monkeypatch, set(range(16)))
    assert "equally near" in refusal()


PLACES = """
import os

import torch

torch.relu(torch.randn(4_000_000)).sum()
assert torch.get_num_threads() == 1, torch.get_num_threads()
threads = {tuple(os.sched_getaffinity(int(each))) for each in os.listdir("/proc/self/task")}
child = os.fork()
if not child:
    os._exit(len(os.sched_getaffinity(0)))
print(threads, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="nodes of memory are read on Linux")
def test_threads_and_forked_workers_stay_on_those_processors() -> None:
    mine = sorted(os.sched_getaffinity(0))
    for processors in ([mine[-1]], mine[:2]):
        value = numa_node.Node(tuple(processors), cores=1).value(threads=8)
        ran = subprocess.run(
            [sys.executable, "-c", PLACES],
            env={**os.environ, **numa_node.variables(value)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ran.stdout == f"{ {tuple(processors)} } {len(processors)}\n", ran.stderr
