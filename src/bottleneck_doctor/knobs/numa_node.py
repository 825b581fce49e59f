"""`numa_node`: the cores that all threads stay on, those of one node of the machine's memory, and how many threads
compute there: `16 on 0-15,32-47`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import Variables
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "numa_node"
NODES = Path("/sys/devices/system/node")
"""Where Linux tells which processors belong to which node."""
PROCESSORS = Path("/sys/devices/system/cpu")
CHOOSING = ("OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
"""Variables by which a user says where threads stay."""
_VALUE = re.compile(r"(\d+) on ([\d,-]+)")


@dataclass(frozen=True)
class Node:
    """One node of memory. `processors` are those of it that this process may use; two of a core count as one in
    `cores`."""

    processors: tuple[int, ...]
    cores: int

    def value(self, threads: int) -> str:
        """The knob's value for a training with so many threads."""
        return f"{min(threads, self.cores)} on {_text(self.processors)}"


def nodes(of_nodes: Path = NODES, of_processors: Path = PROCESSORS) -> list[Node]:
    """The nodes that have processors which this process may use, as Linux tells; empty where it tells nothing."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    mine, found = os.sched_getaffinity(0), []
    for folder in sorted(of_nodes.glob("node[0-9]*")):
        try:
            processors = [each for each in _listed((folder / "cpulist").read_text()) if each in mine]
        except (OSError, ValueError):
            continue
        if processors:
            found.append(Node(tuple(processors), len({_core(each, of_processors) for each in processors})))
    return found


def chosen(environment: Mapping[str, str]) -> str:
    """The variable by which the user has said where threads stay; "" if they have said nothing."""
    return next((name for name in CHOOSING if environment.get(name)), "")


def variables(value: SettingValue) -> Mapping[str, str]:
    """What is set around a process for a value. All processors are one place of OpenMP's, so that each thread, and each
    worker that is forked, may use them all: with a place for each core, workers would share the first one."""
    read = _VALUE.fullmatch(str(value))
    if read is None:
        return {}
    runs = [f"{first}:{last - first + 1}" for first, last in _runs(_listed(read[2]))]
    return {"OMP_PLACES": f"{{{','.join(runs)}}}", "OMP_PROC_BIND": "true", "OMP_NUM_THREADS": read[1]}


def _core(processor: int, of_processors: Path) -> str:
    """What the processors of one core share."""
    try:
        return (of_processors / f"cpu{processor}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        return str(processor)


def _listed(text: str) -> list[int]:
    """The numbers of a list as Linux writes it, `0-3,8`. Raises `ValueError` for other text."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    return numbers


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last of those that follow one another."""
    made = []
    for _, group in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        run = [number for _, number in group]
        made.append((run[0], run[-1]))
    return made


def _text(numbers: Sequence[int]) -> str:
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in _runs(numbers))


KNOB = KnobSpec(name=NAME, layer="session", edit=Variables(variables), shares_cores=True)
