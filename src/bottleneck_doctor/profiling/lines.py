"""Line profile: the result of the guest's `lines` window in, listings with the source text out.

It also chooses which functions to profile: the user's own functions that the sampling profile found hot, and those in
which the loop was seen to compute. Only source files are read; everything else is a function of its arguments.
"""

from __future__ import annotations

import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bottleneck_doctor.documents.report import CallNode, LineCost, LineListing, LineProfile, SamplingProfile, Setting
from bottleneck_doctor.knobs import num_workers
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.runtime.wire.notebooks import is_notebook, program_of

WHOLE_LINES = 80
"""A function up to this long is listed whole."""
CONTEXT_LINES = 4
"""Of a longer function, this many lines around each timed line are listed."""
MOST_PLACES = 40
LEAST_SHARE = 0.02
"""A function below this share of all samples costs too little to matter."""


def line_setting(found: Found) -> Setting:
    """The setting of the window, because batches must be made in the process that is profiled."""
    return num_workers.setting_of(0) if found.num_workers else {}


def functions_to_profile(sampling: SamplingProfile | None, found: Found) -> list[dict[str, Any]]:
    """The user's own hot functions, hottest first, each as `{"path", "line", "name"}` with a line inside it.

    The guest adds those that it knows better: the loop, the dataset, the collate function and the transforms.
    """
    shares: dict[tuple[str, str, int], float] = {}

    def saw(path: str, name: str, line: int, share: float) -> None:
        if path and line > 0 and share >= LEAST_SHARE:
            shares[path, name, line] = max(share, shares.get((path, name, line), 0.0))

    if sampling is not None:
        for hot in sampling.functions:
            saw(hot.own_path, hot.own_name, hot.own_line, hot.share)
        for tree in sampling.trees.values():
            for node in _own_nodes(tree):
                saw(node.path, node.name, node.line, node.count / max(tree.count, 1))
    # Two classes may have a method of one name: it is the line that tells them apart, and the guest takes each once.
    hottest = sorted(shares, key=lambda key: -shares[key])[:MOST_PLACES]
    sites = [(site.file, "", site.line) for site in (found.forward_site, found.backward_site) if site is not None]
    return [{"path": path, "line": line, "name": name} for path, name, line in hottest + sites]


def _own_nodes(tree: CallNode) -> Iterator[CallNode]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.own:
            yield node


def line_profile(detail: dict[str, Any], files: Sequence[str]) -> LineProfile:
    """Listings, slowest function first. `files`: files beside the report that other tools can read."""
    listings = [_listing(each) for each in detail.get("functions", ())]
    listings.sort(key=lambda listing: (-listing.seconds, listing.path, listing.first_line))
    return LineProfile(steps=detail.get("steps", 0), listings=listings, files=list(files))


def _listing(function: dict[str, Any]) -> LineListing:
    path, first, seconds = function["path"], function["first_line"], function["seconds"]
    timed = {line: (hits, cost) for line, hits, cost in function["lines"]}
    text = source_lines(path)
    lines = []
    for number in _shown(first, function["end_line"], sorted(timed)):
        hits, cost = timed.get(number, (None, None))
        share = cost / seconds if cost is not None and seconds > 0 else None
        written = text[number - 1] if 0 < number <= len(text) else ""
        lines.append(LineCost(line=number, text=written, hits=hits, seconds=cost, share=share))
    return LineListing(name=function["name"], path=path, first_line=first, seconds=seconds, lines=lines)


def _shown(first: int, last: int, timed: Sequence[int]) -> list[int]:
    """The lines of a listing: all of a short function; of a longer one, the first line and those around timed lines."""
    if last - first < WHOLE_LINES:
        return list(range(first, last + 1))
    around = {number for line in timed for number in range(line - CONTEXT_LINES, line + CONTEXT_LINES + 1)}
    return sorted(number for number in {first, *around} if first <= number <= last)


def source_lines(path: str) -> list[str]:
    """A file's lines without line ends; none if the file is gone. The declared encoding is used; no byte fails."""
    try:
        if is_notebook(path):
            return program_of(path, Path(path).read_bytes()).decode("utf-8", "replace").split("\n")
        try:
            with tokenize.open(path) as file:
                return file.read().split("\n")
        except (SyntaxError, ValueError):  # No such coding, or bytes that are not of it.
            return Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    except (OSError, ValueError):
        return []
