"""Smaller forms of the bulky evidence, for a page that must stay light. All of it stays in report.json."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from bottleneck_doctor.documents.report import CallNode, LineListing, Profiles, Result, Utilization

SERIES_POINTS = 300
LISTING_LINES = 60
LEAST_SHARE = 0.005
DEEPEST = 120
"""Levels of a call tree that are kept: endless recursion is told by its first hundred calls."""


def pruned(tree: CallNode, least: float, deepest: int = DEEPEST) -> CallNode:
    """The tree without nodes below `least` of all its samples. Counts of what is kept stay as they are."""
    return _kept(tree, max(1.0, least * tree.count), deepest)


def _kept(node: CallNode, floor: float, levels: int) -> CallNode:
    below = [_kept(child, floor, levels - 1) for child in node.children if child.count >= floor] if levels > 1 else []
    return replace(node, children=below)


def thinned(utilization: Utilization, points: int = SERIES_POINTS) -> Utilization:
    """Every n-th sample, so that at most `points` are left."""
    stride = max(1, math.ceil(len(utilization.times) / points))
    return replace(
        utilization,
        times=utilization.times[::stride],
        series={name: values[::stride] for name, values in utilization.series.items()},
    )


def shortened(listing: LineListing, most: int = LISTING_LINES) -> LineListing:
    """The lines that take the most time, in their order."""
    costly = sorted(listing.lines, key=lambda line: -(line.seconds or 0.0))[:most]
    kept = {line.line for line in costly}
    return replace(listing, lines=[line for line in listing.lines if line.line in kept])


def without_windows(result: Result) -> Result:
    """Without raw windows, and without what each of them used."""
    used = result.utilization
    return replace(result, windows=[], utilization=replace(used, windows=[]) if used else None)


def with_thin_series(result: Result) -> Result:
    """With series of few points, and without timelines."""
    used = result.utilization
    return replace(result, utilization=thinned(used) if used else None, timelines=[])


def with_thin_profiles(result: Result) -> Result:
    """With pruned trees and cut listings."""
    profiles = result.profiles
    if profiles is None:
        return result
    sampling, lines = profiles.sampling, profiles.lines
    if sampling is not None:
        trees = {role: pruned(tree, LEAST_SHARE) for role, tree in sampling.trees.items()}
        sampling = replace(sampling, trees=trees, functions=sampling.functions[:60])
    if lines is not None:
        lines = replace(lines, listings=[shortened(listing) for listing in lines.listings[:20]])
    device = profiles.device
    if device is not None:
        device = replace(device, operators=device.operators[:40], kernels=device.kernels[:40])
    return replace(result, profiles=replace(profiles, sampling=sampling, lines=lines, device=device))


def without_trees(result: Result) -> Result:
    """Without call trees and series."""
    profiles, used = result.profiles, result.utilization
    if profiles is not None and profiles.sampling is not None:
        profiles = replace(profiles, sampling=replace(profiles.sampling, trees={}))
    return replace(result, profiles=profiles, utilization=replace(used, times=[], series={}) if used else None)


def without_evidence(result: Result) -> Result:
    """Without profiles and utilization altogether."""
    missing = Profiles(missing=result.profiles.missing) if result.profiles else None
    return replace(result, profiles=missing, utilization=None)


STEPS = (without_windows, with_thin_series, with_thin_profiles, without_trees, without_evidence)
"""In this order: what a reader of the page misses least goes first."""


def candidates(result: Result) -> Iterator[Result]:
    """The result itself, then ever smaller forms of it."""
    yield result
    for step in STEPS:
        result = step(result)
        yield result
