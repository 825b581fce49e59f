"""Finds the user's lines: sampled stacks and line listings in, places in the user's code out.

A stack belongs to the innermost phase that it passes through: loading, forward, backward or optimizer. If it passes
through none of them, it is the user's own work between them. Listings and sampled stacks both measure wall time,
including waiting. A listing knows each line, so it is used first if there is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.documents.report import CallNode, LineCost, LineListing, Site
from bottleneck_doctor.knobs import intra_op_threads
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.system.paths import same_file

LIBRARY = re.compile(r"(site|dist)-packages/|/lib/python3|^<|^$|bottleneck_doctor/runtime/")
MARKERS = (
    ("torch/utils/data/", "loading"),
    ("torch/optim/", "optimizer"),
    ("torch/autograd/__init__.py", "backward"),
    ("torch/autograd/graph.py", "backward"),
    ("torch/autograd/function.py", "backward"),
    ("torch/_tensor.py", "tensor"),
    ("torch/nn/modules/module.py", "forward"),
    ("bottleneck_doctor/runtime/", "guest"),
)
STEP_CALL = re.compile(r"\.backward\(|\.step\(\)|\w*(opt|scaler)\w*\.step\(|zero_grad\(|^for\b|^async for\b|\bnext\(")
"""Lines of a training function that don't count as work between the phases: the passes, the optimizer, and taking the
next batch."""
SETS_THREADS = re.compile(r"set_num_threads\(|OMP_NUM_THREADS|MKL_NUM_THREADS|OPENBLAS_NUM_THREADS|threadpool_limits\(")
LOOP_HEAD = re.compile(r"(async )?(for|while)\b")
CALLED = re.compile(r"(\w+)\s*\(")
DESCEND = 0.4
"""If a line calls a listed function that took this part of the line's time, the time went there."""
PART_LISTED = 0.3
"""Lines of the training function that took a smaller part of the time between the passes are not the ones to name."""
DOMINATES = 0.3
"""A line that takes this part of its function's time or more is named in the function's place."""


@dataclass(frozen=True)
class HotLine:
    """A line of the user's, and its share of the time in question. `listed`: whether it was timed line by line."""

    site: Site
    share: float
    listed: bool = False


# -- stacks ----------------------------------------------------------------------------------------------------------


def stacks(tree: CallNode) -> Iterator[tuple[tuple[CallNode, ...], int]]:
    """Every stack in which samples ended, outermost frame first, with the number of these samples."""
    waiting: list[tuple[CallNode, tuple[CallNode, ...]]] = [(tree, ())]
    while waiting:
        node, above = waiting.pop()
        frames = (*above, node)
        own = node.count - sum(child.count for child in node.children)
        if own > 0:
            yield frames, own
        waiting += [(child, frames) for child in node.children]


def kind_of(frames: tuple[CallNode, ...]) -> str:
    """The phase that a stack of the main process belongs to, or "between" if it belongs to none.

    Only files decide: a tree holds one line for each function, which says little about a single stack.
    """
    kind = "between"
    for frame in frames:
        path = frame.path.replace("\\", "/")
        marker = next((name for part, name in MARKERS if part in path), "")
        if marker == "tensor":
            marker = "backward" if frame.name.endswith("backward") else ""
        # What an optimizer calls, as Lightning has it do, is the training step itself.
        if kind == "optimizer" and "closure" in frame.name.lower():
            kind = "between"
        kind = marker or kind
    return kind


def loading_stacks(evidence: Evidence) -> list[tuple[tuple[CallNode, ...], int]]:
    """Stacks in which a batch was being made, wherever the user's setting makes them, from torch's fetcher inwards.

    Frames above the fetcher are left out: the loop's line that asks for a batch does not make it.
    """
    if evidence.sampling is None or evidence.as_written is None:
        return []
    role = "workers" if evidence.as_written.num_workers > 0 else "main"
    tree = evidence.sampling.trees.get(role)
    if tree is None:
        return []
    making = ("torch/utils/data/_utils/fetch.py", "torch/utils/data/_utils/collate.py")

    found = []
    for frames, count in stacks(tree):
        first = next((at for at, frame in enumerate(frames) if any(part in frame.path for part in making)), None)
        if first is not None:
            found.append((frames[first:], count))
    return found


def deepest_own(frames: tuple[CallNode, ...]) -> CallNode | None:
    """The innermost frame of the user's own code."""
    return next((frame for frame in reversed(frames) if is_own(frame)), None)


def is_own(frame: CallNode) -> bool:
    return frame.own and frame.line > 0


def own_path(path: str) -> bool:
    """Whether a file is the user's own, and not a library's."""
    return not LIBRARY.search(path.replace("\\", "/"))


# -- listings --------------------------------------------------------------------------------------------------------


def listing_at(evidence: Evidence, site: Site | messages.Site | None) -> LineListing | None:
    """The listing of the function in which a place lies; of nested functions, the innermost."""
    if evidence.lines is None or site is None:
        return None
    around = [
        listing
        for listing in evidence.lines.listings
        if same_file(listing.path, site.file) and listing.first_line <= site.line <= _last(listing)
    ]
    return max(around, key=lambda listing: listing.first_line, default=None)


def refined(evidence: Evidence, site: Site | None) -> Site | None:
    """The line on which the function at `site` spends its time, followed into functions that it calls; else `site`."""
    listing = listing_at(evidence, site)
    hot = _followed(evidence, listing, set(), "") if listing is not None else None
    return hot.site if hot is not None and hot.share >= DOMINATES else site


def refined_below_the_loop(evidence: Evidence, site: Site | None) -> Site | None:
    """As `refined`, for a function that a step calls; a line of the function that holds the loop stays as it is.

    The hottest line of that function often belongs to another phase.
    """
    listing = listing_at(evidence, site)
    passes = [each for each in (evidence.found.forward_site, evidence.found.backward_site) if each is not None]
    if listing is not None and any(listing_at(evidence, each) is listing for each in passes):
        return site
    return refined(evidence, site)


def refined_in_loading(evidence: Evidence, site: Site | None) -> Site | None:
    """As `refined`, for a function that makes batches; by sampled stacks if it was not timed line by line."""
    if site is not None and listing_at(evidence, site) is None:
        return _sampled_in(evidence, site) or site
    return refined(evidence, site)


def _sampled_in(evidence: Evidence, site: Site) -> Site | None:
    """The line of the function beginning at `site` on which most sampled stacks of loading are.

    Stacks do not say where a function ends: the first function of that file at or below the site is taken for it.
    """
    found = loading_stacks(evidence)

    def lines(frames: tuple[CallNode, ...]) -> list[int]:
        return [
            frame.line
            for frame in frames
            if is_own(frame) and same_file(frame.path, site.file) and frame.line >= site.line
        ]

    nearest = min((line for frames, _ in found for line in lines(frames)), default=None)
    through = [(frames, count) for frames, count in found if nearest in lines(frames)]
    # If few stacks pass through, it is some other function that happens to be further down.
    if sum(count for _, count in through) < DOMINATES * sum(count for _, count in found) or not through:
        return None
    hot = _most_sampled(evidence, through)
    return hot.site if hot is not None and hot.share >= DOMINATES else None


def share_of_lines(
    evidence: Evidence, site: Site | None, pattern: re.Pattern[str], but: re.Pattern[str] | None = None
) -> float | None:
    """The part of the time of the function at `site` that its matching lines take, or those of functions it calls.

    `but`: lines that match this are left out.
    """
    listing = listing_at(evidence, site)
    return _matching(evidence, listing, pattern, set(), but) if listing is not None else None


def share_of_sites(evidence: Evidence, sites: set[tuple[str, int]]) -> float | None:
    """The part of their functions' time that these lines take; None if no listing holds them."""
    shares = []
    for path, line in sites:
        listing = listing_at(evidence, Site(file=path, line=line))
        if listing is not None and listing.seconds > 0:
            shares.append(sum(each.seconds or 0.0 for each in listing.lines if each.line == line) / listing.seconds)
    return min(1.0, sum(shares)) if shares else None


def _last(listing: LineListing) -> int:
    return max((line.line for line in listing.lines), default=listing.first_line)


def _hottest(listing: LineListing, without: str = "") -> LineCost | None:
    costly = [line for line in listing.lines if line.seconds and not _left_out(line, listing, without)]
    # A loop's work is in its body. Its head is timed as often as the body, and each time costs a little.
    return max(
        costly,
        key=lambda line: (line.seconds or 0.0) * (0.5 if LOOP_HEAD.match(line.text.strip()) else 1.0),
        default=None,
    )


def _left_out(line: LineCost, listing: LineListing, without: str) -> bool:
    text = line.text.strip()
    return bool(without) and (bool(STEP_CALL.search(text)) or f"{listing.path}:{line.line}" in without.split("|"))


def _followed(evidence: Evidence, listing: LineListing, seen: set[str], without: str) -> HotLine | None:
    """The hottest line of a function, or of the function that this line calls."""
    hot = _hottest(listing, without)
    if hot is None or not listing.seconds:
        return None
    seen = seen | {_key(listing)}
    callee = _callee(evidence, hot, seen)
    share = (hot.seconds or 0.0) / listing.seconds
    if callee is not None:
        below = _followed(evidence, callee, seen, "")
        if below is not None and below.share >= DOMINATES:
            return HotLine(below.site, share, listed=True)
    return HotLine(Site(file=listing.path, line=hot.line), share, listed=True)


def _matching(
    evidence: Evidence, listing: LineListing, pattern: re.Pattern[str], seen: set[str], but: re.Pattern[str] | None
) -> float:
    if listing.seconds <= 0:
        return 0.0
    seen = seen | {_key(listing)}
    total = 0.0
    for line in listing.lines:
        if not line.seconds:
            continue
        if pattern.search(line.text) and not (but is not None and but.search(line.text)):
            total += line.seconds
        else:
            callee = _callee(evidence, line, seen)
            if callee is not None:
                total += line.seconds * _matching(evidence, callee, pattern, seen, but)
    return min(1.0, total / listing.seconds)


def _callee(evidence: Evidence, line: LineCost, seen: set[str]) -> LineListing | None:
    """The listed function that a line calls by name and that could hold its time."""
    names = set(CALLED.findall(line.text))
    spent = line.seconds or 0.0
    able = [
        listing
        for listing in (evidence.lines.listings if evidence.lines is not None else [])
        if listing.name.rpartition(".")[2] in names
        and _key(listing) not in seen
        and DESCEND * spent <= listing.seconds <= 1.5 * spent
    ]
    return max(able, key=lambda listing: listing.seconds, default=None)


def _key(listing: LineListing) -> str:
    return f"{listing.path}:{listing.first_line}"


# -- the questions that rules ask ------------------------------------------------------------------------------------


def hottest_loading(evidence: Evidence) -> HotLine | None:
    """The user's line that takes most of the time of making a sample, in `__getitem__` or in what it calls."""
    loading = evidence.as_written
    if loading is None:
        return None
    listing = listing_at(evidence, loading.fetch_site)
    hot = _followed(evidence, listing, set(), "") if listing is not None else None
    if hot is not None:
        return hot
    return _most_sampled(evidence, loading_stacks(evidence))


def fetch_site(evidence: Evidence) -> Site | None:
    """The hottest line of the user's `__getitem__` or of what it calls; where it begins, if no profile tells."""
    loading = evidence.as_written
    if loading is None:
        return None
    if listing_at(evidence, loading.fetch_site) is not None:
        return refined(evidence, loading.fetch_site)
    hot = hottest_loading(evidence)
    return hot.site if hot is not None and hot.share >= DOMINATES else loading.fetch_site


def hottest_between(evidence: Evidence) -> HotLine | None:
    """The user's line on which most of the work between the passes is done. The share is of that work."""
    training = training_listing(evidence)
    if training is not None:
        passes = [evidence.found.forward_site, evidence.found.method_site, evidence.found.backward_site]
        without = "|".join(f"{training.path}:{site.line}" for site in passes if site is not None) or "-"
        hot = _followed(evidence, training, set(), without)
        rest = sum(line.seconds or 0.0 for line in training.lines if not _left_out(line, training, without))
        if hot is not None and rest > 0 and _explains(evidence, rest):
            return HotLine(hot.site, min(1.0, hot.share * training.seconds / rest), listed=True)
    return _most_sampled(evidence, _below_the_loop(evidence, main_stacks(evidence, ("between",))))


def _explains(evidence: Evidence, seconds: float) -> bool:
    """Whether so many seconds in the function that makes the steps are a good part of the work between the passes:
    the loop around it may lie in another function."""
    if evidence.lines is None or evidence.shares is None or evidence.step_ms is None or not evidence.lines.steps:
        return True
    return 1000 * seconds / evidence.lines.steps >= PART_LISTED * evidence.shares.between * evidence.step_ms


def _below_the_loop(
    evidence: Evidence, found: list[tuple[tuple[CallNode, ...], int]]
) -> list[tuple[tuple[CallNode, ...], int]]:
    """The stacks without the user's frames above a framework's loop.

    The line that calls `trainer.fit` leads to everything in a step, so nobody would change it for one part of a step.
    """

    def call(frames: tuple[CallNode, ...]) -> tuple[int, tuple[str, ...]] | None:
        place = max((at for at, frame in enumerate(frames) if is_own(frame)), default=len(frames))
        if place + 1 >= len(frames):
            return None
        own, below = frames[place], frames[place + 1]
        return place, (own.path, own.name, below.path, below.name)

    passes = main_stacks(evidence, ("forward", "backward", "optimizer"))
    # A user's loop calls each pass by a different function; a call that leads to two passes holds the loop.
    led: dict[tuple[str, ...], set[str]] = {}
    for frames, _ in passes:
        called = call(frames)
        if called is not None:
            led.setdefault(called[1], set()).add(kind_in(evidence, frames))
    loops = {key for key, kinds in led.items() if len(kinds) > 1}
    kept = []
    for frames, count in found:
        called = call(frames)
        kept.append((frames[called[0] + 1 :] if called is not None and called[1] in loops else frames, count))
    return kept


def main_stacks(evidence: Evidence, kinds: tuple[str, ...]) -> list[tuple[tuple[CallNode, ...], int]]:
    tree = evidence.sampling.trees.get("main") if evidence.sampling is not None else None
    if tree is None:
        return []
    return [(frames, count) for frames, count in stacks(tree) if kind_in(evidence, frames) in kinds]


def kind_in(evidence: Evidence, frames: tuple[CallNode, ...]) -> str:
    """As `kind_of`, where the loop may call methods of the model in place of the model."""
    kind, methods = kind_of(frames), evidence.found.methods
    # From Python 3.11 on, a frame's name begins with that of its class.
    called = kind == "between" and any(
        frame.name.rpartition(".")[2] == name and same_file(frame.path, file)
        for file, name in methods
        for frame in frames
    )
    return "forward" if called else kind


def hottest_of(evidence: Evidence, *kinds: str) -> HotLine | None:
    """The user's line on which the main process spends most of these phases, by sampled stacks."""
    return _most_sampled(evidence, main_stacks(evidence, kinds))


def _most_sampled(evidence: Evidence, found: list[tuple[tuple[CallNode, ...], int]]) -> HotLine | None:
    """The user's innermost function that most stacks pass through, at the line that they pass.

    In a tree, a function has one line, and that of a training function may be another phase's. The table of functions
    knows from which line each innermost function was reached, so it is asked first.
    """
    counts: Counter[tuple[str, str]] = Counter()
    lines: dict[tuple[str, str], tuple[int, int]] = {}
    leaves: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for frames, count in found:
        own = deepest_own(frames)
        if own is not None:
            key = own.path, own.name
            counts[key] += count
            lines[key] = max(lines.get(key, (0, 0)), (count, own.line))
            leaves.setdefault(key, set()).add((frames[-1].path, frames[-1].name))
    if not counts:
        return None
    (path, name), most = counts.most_common(1)[0]
    reached: Counter[int] = Counter()
    for row in evidence.sampling.functions if evidence.sampling is not None else []:
        if (row.own_path, row.own_name) == (path, name) and (row.path, row.name) in leaves[path, name]:
            reached[row.own_line] += row.count
    line = reached.most_common(1)[0][0] if reached else lines[path, name][1]
    # Of all stacks, including those without a function of the user's.
    return HotLine(Site(file=path, line=line), most / sum(count for _, count in found))


def sampled_share(evidence: Evidence, kind: str) -> float | None:
    """The part of the training process's samples that a phase has; None without samples."""
    found = main_stacks(evidence, (kind,))
    tree = evidence.sampling.trees.get("main") if evidence.sampling is not None else None
    return sum(count for _, count in found) / tree.count if tree is not None and tree.count else None


def loader_place(evidence: Evidence) -> Site | None:
    """The user's line that makes the training loader."""
    site = evidence.found.loader_site
    return Site(file=site.file, line=site.line) if site is not None else None


def training_listing(evidence: Evidence) -> LineListing | None:
    """The listing of the function that holds the loop: where backward is called, or else the model."""
    found = evidence.found
    for site in (found.backward_site, found.forward_site):
        listing = listing_at(evidence, site)
        if listing is not None and any(STEP_CALL.search(line.text.strip()) for line in listing.lines):
            return listing
    return None


def text_at(evidence: Evidence, site: Site | None) -> str:
    """A listed line of the user's; "" where none is listed there."""
    listing = listing_at(evidence, site)
    if listing is None or site is None:
        return ""
    return next((each.text for each in listing.lines if each.line == site.line), "")


def line_with(evidence: Evidence, pattern: re.Pattern[str]) -> Site | None:
    """A listed line of the user's that matches; the one most time was spent on."""
    matching = [
        (line.seconds or 0.0, listing.path, line.line)
        for listing in (evidence.lines.listings if evidence.lines is not None else [])
        for line in listing.lines
        if pattern.search(line.text)
    ]
    if not matching:
        return None
    _, path, number = max(matching)
    return Site(file=path, line=number)


def line_that_sets_threads(evidence: Evidence) -> Site | None:
    """A listed line of the user's that sets how many threads compute, in torch or elsewhere."""
    return line_with(evidence, SETS_THREADS)


def threads_set_at(evidence: Evidence) -> Site | None:
    """The user's line that sets how many threads torch computes with."""
    called = intra_op_threads.set_at(evidence.found)
    return line_that_sets_threads(evidence) if called is None else Site(file=called.file, line=called.line)
