"""Looks for the origin of a regression: a live pair that regressed in, what grew out. Nothing measured here counts for
the verdict.

py-spy samples both processes for a few seconds, in turns. The result is what takes longer on the head, with the phases
that the pairs have shown already. If py-spy can't read the processes, lines are timed instead: those of the functions
that make up a step, and of those that were changed. A part that can't be measured is left out, with a warning.
"""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bottleneck_doctor.documents.check import Culprit, GrowthTree
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import CallNode, Warning
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.cause import culprits, growth
from bottleneck_doctor.gate.cause.hunks import Differences
from bottleneck_doctor.gate.cause.mentions import Sources
from bottleneck_doctor.gate.cause.reasons import Seen, reasons
from bottleneck_doctor.gate.metrics import record_of
from bottleneck_doctor.measure.budget import OutOfTime
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.sampled import elsewhere, folder_of, not_sampled_elsewhere, sampled
from bottleneck_doctor.measure.schedule import probe
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.measure.starter import Live
from bottleneck_doctor.profiling.lines import functions_to_profile, line_setting, source_lines
from bottleneck_doctor.profiling.pyspy import usual_rate
from bottleneck_doctor.profiling.sampling import open_recording
from bottleneck_doctor.protection import scratch
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.runtime.wire.notebooks import SOURCES
from bottleneck_doctor.session.ending import SessionOver

LEAST_SAMPLED, MOST_SAMPLED = 2.0, 10.0
"""Seconds under py-spy of each side."""
TURN_SECONDS = 2.5
"""About one turn under py-spy. The machine changes within seconds, and both sides should meet the same conditions."""
GROWN_SAMPLES = 25
"""This many samples should fall into what grew: five times their standard deviation."""
TIMED_SECONDS = 3.0
"""Seconds for which the lines of each side are timed if py-spy is refused."""
MOST_CHANGED = 40
"""At most this many changed places have their functions timed line by line."""


@dataclass
class GrowthExplanation:
    """What grew, with changed code first; the growth call by call; and warnings about what could not be found out."""

    culprits: list[Culprit]
    growth: list[GrowthTree] = field(default_factory=list)
    missing: list[Warning] = field(default_factory=list)


@dataclass(frozen=True)
class _Sampled:
    """What py-spy saw of one side. `grain`: seconds a step that one sample stands for."""

    table: culprits.Table
    trees: dict[str, CallNode]
    grain: float


@dataclass(frozen=True)
class _Looked:
    """A process that is profiled. `roots`: of its files, and of those that it shares with the other process."""

    live: Live
    prober: Prober
    outside: Outside
    roots: Sequence[Path]

    @property
    def name(self) -> str:
        return self.live.side.name

    @property
    def said(self) -> str:
        return self.live.side.said


class _Refused(Exception):
    """py-spy showed nothing of one side. `warning`: the reason that it gave."""

    def __init__(self, warning: Warning) -> None:
        super().__init__(warning.sentence)
        self.warning = warning


def explain(
    both: SideBySide,
    roots: Mapping[str, Sequence[Path]],
    pairs: Sequence[PairSample],
    grew: float,
    differences: Differences,
    texts: Mapping[str, str] | None = None,
) -> GrowthExplanation:
    """Profile both processes of a pair that regressed. `roots`: those of each side's files, by the side's name, the
    repository's first. `grew`: seconds by which a step grew."""
    found = GrowthExplanation(culprits.grown_phases(pairs, grew))
    if grew <= 0:
        return found
    record = record_of(pairs[-1])
    # The same for both sides: what sampling costs a step should be the same, too.
    rate = usual_rate(1 + max(each.num_workers for each in both.lives))
    seconds = GROWN_SAMPLES / (rate * grew / record.head_step_seconds)
    seconds = max(LEAST_SAMPLED, min(seconds, MOST_SAMPLED))
    steps = (record.base_step_seconds, record.head_step_seconds)
    sides = []
    looked = [_Looked(each, both.prober(each), both.outside, roots[each.side.name]) for each in both.lives]
    process = looked[0]
    with scratch.borrowed() as folder:
        try:
            files: dict[str, list[Path]] = {"base": [], "head": []}
            turns = max(1, round(seconds / TURN_SECONDS))
            for number in range(turns):
                for process in looked if number % 2 == 0 else reversed(looked):
                    files[process.name].append(_recorded(process, folder, number, rate, seconds / turns))
            for process, step in zip(looked, steps, strict=True):
                sides.append(_sampled(process, files[process.name], step))
        except _Refused as refused:
            _by_lines(found, looked, steps, grew, differences, refused.warning, texts or {})
            return found
        except (SessionOver, OutOfTime, DoctorError) as problem:
            found.missing.append(_missing(f"{process.said} could not be sampled: {problem}"))
            return found
    base, head = sides
    found.growth = _grown_trees(looked, base, head, differences)
    sources = _sources(looked[1].roots[0], texts or {})
    seen = Seen(base.table, head.table, grew, differences, found.growth, sources)
    found.culprits = [culprits.with_interval(each, base.table, head.table) for each in reasons(seen, found.culprits)]
    return found


# -- by samples --------------------------------------------------------------------------------------------------------


def _recorded(process: _Looked, folder: Path, number: int, rate: int, seconds: float) -> Path:
    """The raw file of one side's turn under py-spy, at `rate` samples a second. Raises `_Refused`, `SessionOver` and
    `OutOfTime`."""
    hello = _hello(process)
    if elsewhere(hello):
        raise _Refused(not_sampled_elsewhere(hello))
    sampler = process.outside.sampler(hello.pid, folder, rate=rate, name=f"{process.name}-{number}")
    file = sampled(sampler, process.prober, process.live.session, seconds)
    if isinstance(file, Warning):
        raise _Refused(file)
    return file


def _sampled(process: _Looked, files: Sequence[Path], step_seconds: float) -> _Sampled:
    """What py-spy saw of one side. Raises `_Refused` if it saw nothing, and the `DoctorError`s of `raw.read`."""
    roots = [str(root) for root in process.roots]
    roots += _linked(process.live.side.environment.get("PYTHONPATH", ""))
    recording = open_recording(files, main_pids=[_hello(process).pid], own_roots=roots)
    samples = recording.samples().get("main", 0)
    if not samples:
        raise _Refused(_missing(f"no sample was taken of {process.said}"))
    # The main process was sampled all the time, so its samples divide up a step. Those of workers count the same.
    grain = step_seconds / samples
    table: defaultdict[culprits.Place, float] = defaultdict(float)
    for row in recording.functions(merge=False):
        if row.own_path:
            table[_from_root(row.own_path, process.roots), row.own_name, row.own_line] += row.count * grain
    trees = recording.trees(least_share=growth.LEAST_SHARE, most=growth.MOST_NODES)
    return _Sampled(culprits.Table(dict(table), grain, step_seconds), trees, grain)


def _hello(process: _Looked) -> messages.Hello:
    if process.live.session.hello is None:
        raise _Refused(_missing("the process did not say who it is"))
    return process.live.session.hello


def _grown_trees(both: Sequence[_Looked], base: _Sampled, head: _Sampled, differences: Differences) -> list[GrowthTree]:
    def on_base(path: str) -> str:
        there = _from_root(path, both[0].roots)
        return differences.renamed.get(there, there)

    def on_head(path: str) -> str:
        return _from_root(path, both[1].roots)

    made = []
    for role in ("main", "workers"):
        trees = [side.trees.get(role, CallNode(name=role, path="", line=0, count=0)) for side in (base, head)]
        if any(tree.count for tree in trees):
            sides = (growth.Grown(trees[0], base.grain, on_base), growth.Grown(trees[1], head.grain, on_head))
            made.append(growth.merged("main" if role == "main" else "workers", *sides))
    return made


def _linked(python_path: str) -> list[str]:
    """Folders of links through which the base imports. Their files are the user's own."""
    return [entry for entry in python_path.split(os.pathsep) if scratch.PREFIX in entry]


# -- by lines ----------------------------------------------------------------------------------------------------------


def _by_lines(
    found: GrowthExplanation,
    both: Sequence[_Looked],
    steps: tuple[float, float],
    grew: float,
    differences: Differences,
    refused: Warning,
    texts: Mapping[str, str],
) -> None:
    """Time lines, and put the result into `found`. `refused`: why py-spy shows nothing."""
    tables = []
    for process, step in zip(both, steps, strict=True):
        try:
            made = _timed(process, step, differences)
        except (SessionOver, OutOfTime) as problem:
            made = f"{process.said} ended ({problem})"
        if isinstance(made, str):
            found.missing += [refused, _missing(f"nor could lines be timed: {made}")]
            return
        tables.append(made)
    base, head = tables
    seen = Seen(base, head, grew, differences, sources=_sources(both[1].roots[0], texts))
    found.culprits = reasons(seen, found.culprits)
    workers = " with batches made in the main process" if both[1].live.num_workers else ""
    said = (
        f"{refused.sentence} Lines were timed instead{workers}; the time of a line includes everything that it calls."
    )
    found.missing.append(replace(refused, sentence=said))


def _timed(process: _Looked, step_seconds: float, differences: Differences) -> culprits.Table | str:
    """Seconds a step by line, for the functions that make up a step and those that were changed; or the reason why
    not."""
    options: dict[str, Any] = {
        "functions": [*_changed_places(process, differences), *functions_to_profile(None, process.live.loop)],
        "import_path": folder_of("line_profiler"),
    }
    setting = line_setting(process.live.loop)
    window, detail = process.prober.explain(
        process.live.session, probe("lines:" + BASELINE, setting, mode="lines"), TIMED_SECONDS, options
    )
    if window.status != "ok":
        return window.reason
    if not detail.get("steps"):
        return "the loop paused too often"
    table: defaultdict[culprits.Place, float] = defaultdict(float)
    for function in detail.get("functions", ()):
        path = _from_root(function["path"], process.roots)
        for line, _, seconds in function["lines"]:
            table[path, function["name"], line] += seconds / detail["steps"]
    return culprits.Table(dict(table), 0.0, step_seconds)


def _changed_places(process: _Looked, differences: Differences) -> list[dict[str, Any]]:
    """The lines of each changed stretch, numbered as on this side. The functions around them are timed."""
    root, on_head = process.roots[0], process.name == "head"
    before = {new: old for old, new in differences.renamed.items()}
    places = [
        (path if on_head else before.get(path, path), line)
        for path, hunks in differences.hunks.items()
        if path.endswith(SOURCES)
        for hunk in hunks
        for first, count in [(hunk.new, hunk.new_lines) if on_head else (hunk.old, hunk.old_lines)]
        for line in range(max(1, first), max(1, first) + max(1, count))
    ]
    return [{"path": str(root / path), "line": line, "name": ""} for path, line in places[:MOST_CHANGED]]


# -- both --------------------------------------------------------------------------------------------------------------


def _from_root(path: str, roots: Iterable[Path]) -> str:
    """A file as both revisions call it: from the root of the repository, if it lies there."""
    real = Path(os.path.realpath(path))
    return next((str(real.relative_to(root)) for root in roots if real.is_relative_to(root)), path)


def _sources(root: Path, texts: Mapping[str, str]) -> Sources:
    """The text of the head's files, and of libraries', each read once."""

    @functools.cache
    def read(path: str) -> str:
        if path in texts:
            return texts[path]
        return "\n".join(source_lines(str(root / path)))

    return read


def _missing(why: str) -> Warning:
    return Warning(slug="culprits-missing", sentence=f"What grew inside a step could not be found: {why.rstrip('.')}.")
