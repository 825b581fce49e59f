"""Where a regression comes from: a live pair that regressed in, what grew out. Nothing here is counted.

Both processes are sampled by py-spy for a few seconds, one after the other, and what takes longer on the head is told,
with the phases that the pairs have shown already. A part that can't be had is missing, with a warning.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bottleneck_doctor import scratch
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate import culprits
from bottleneck_doctor.gate.document import Culprit
from bottleneck_doctor.gate.duel import Corner, LivePair
from bottleneck_doctor.gate.hunks import Differences
from bottleneck_doctor.gate.metrics import PairSample
from bottleneck_doctor.prober import OutOfTime, SessionOver
from bottleneck_doctor.profiling.pyspy import RATE, Sampler
from bottleneck_doctor.profiling.sampling import open_recording
from bottleneck_doctor.result import Warning
from bottleneck_doctor.schedule import BASELINE, probe

LEAST_SAMPLED, MOST_SAMPLED = 2.0, 10.0
"""Seconds under py-spy of each side."""
GROWN_SAMPLES = 25
"""So many samples should fall into what grew: five times their own luck."""


def explain(
    live: LivePair, pairs: Sequence[PairSample], differences: Differences
) -> tuple[list[Culprit], list[Warning]]:
    """What grew, phases before functions before lines, and what could not be found out."""
    grew = culprits.growth(pairs)
    found = culprits.grown_phases(pairs, grew)
    if grew <= 0:
        return found, []
    record = pairs[-1].record()
    seconds = GROWN_SAMPLES / (RATE * grew / record.head_step_seconds)
    seconds = max(LEAST_SAMPLED, min(seconds, MOST_SAMPLED))
    tables = []
    with scratch.borrowed() as folder:
        for corner, step in ((live.base, record.base_step_seconds), (live.head, record.head_step_seconds)):
            try:
                made = _sampled(corner, folder, step, seconds)
            except (SessionOver, OutOfTime, DoctorError) as problem:
                made = _missing(f"{corner.contender.said} could not be sampled: {problem}")
            if isinstance(made, Warning):
                return found, [made]
            tables.append(made)
    base, head = tables
    found += culprits.grown_functions(base, head, grew, differences)
    found += culprits.grown_lines(base, head, grew, differences)
    return found, []


def _sampled(corner: Corner, folder: Path, step_seconds: float, seconds: float) -> culprits.Table | Warning:
    hello = corner.session.hello
    if hello is None:
        return _missing("the process did not say who it is")
    sampler = Sampler(hello.pid, folder, name=corner.contender.name)
    try:
        sampler.start()
        each = probe("sampled:" + BASELINE, {}, mode="sampled")
        corner.measures.explain(corner.session, each, seconds, {})
    except BaseException:
        sampler.abandon()
        raise
    file = sampler.stop()
    if isinstance(file, Warning):
        return file
    roots = [str(root) for root in corner.contender.roots]
    roots += _linked(corner.contender.environment.get("PYTHONPATH", ""))
    recording = open_recording([file], main_pids=[hello.pid], own_roots=roots)
    samples = recording.samples().get("main", 0)
    if not samples:
        return _missing(f"no sample was taken of {corner.contender.said}")
    # The main process was sampled all the time, so its samples share out a step; the workers' are counted alike.
    grain = step_seconds / samples
    table: defaultdict[culprits.Place, float] = defaultdict(float)
    for row in recording.functions(merge=False):
        if row.own_path:
            table[_from_root(row.own_path, corner.contender.roots), row.own_name, row.own_line] += row.count * grain
    return culprits.Table(dict(table), grain, step_seconds)


def _linked(python_path: str) -> list[str]:
    """Folders of links through which the base imports; their files are the user's own."""
    return [entry for entry in python_path.split(os.pathsep) if scratch.PREFIX in entry]


def _from_root(path: str, roots: Sequence[Path]) -> str:
    """A file as both revisions call it: from the root of the repository, if it lies there."""
    real = Path(os.path.realpath(path))
    return next((str(real.relative_to(root)) for root in roots if real.is_relative_to(root)), path)


def _missing(why: str) -> Warning:
    return Warning(slug="culprits-missing", sentence=f"What grew inside a step could not be found out: {why}.")
