"""Which function was met most often in sampled stacks: stacks in; its name, file and share out.

A function of the user's own is named by its line instead (`_places`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePath
from typing import ClassVar

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import DOMINATES, loading_stacks, main_stacks, own_path
from bottleneck_doctor.documents.report import CallNode
from bottleneck_doctor.wording import words

MOST = 0.5
"""Where samples end in many functions, one through which this part of them passes is named. Ours."""
_HELPERS = re.compile(r"/(\w+_)?util(ity|itie)?s?(/|\.py$)")
"""Files of what other parts of a library share, as torch's `utils/data`."""
FAR_MORE = 1.5
"""A function is named in the place of one that it calls if so many times as many samples pass through it. Ours."""


@dataclass(frozen=True)
class Met:
    """A function that was running as stacks were sampled, and its share of the samples that were asked about."""

    name: str
    file: str
    share: float
    did: ClassVar[str] = "was running"

    @property
    def text(self) -> str:
        """As a sentence names it: `inflate` (gzip.py)."""
        return f"`{self.name}` ({PurePath(self.file).name})" if self.file else f"`{self.name}`"

    def sentence(self, of: str) -> str:
        """To go behind another sentence; `of`: what was being done when the samples were taken."""
        return f" In {words.share_text(self.share)} of the stack samples of {of}, {self.text} {self.did}."


def met_in_loading(evidence: Evidence) -> Met | None:
    """The function in which most samples of making batches ended, or a function of a library's that called it, if far
    more of them pass through that one; None if they are spread over many functions."""
    found = loading_stacks(evidence)
    return _far_more(_met(found), _passed(found, _without_a_name(found)))


def _far_more(ended: Met | None, passed: Met | None) -> Met | None:
    """The function through which samples pass, if those are far more than end in the other one."""
    return passed if passed is not None and (ended is None or passed.share >= FAR_MORE * ended.share) else ended


def _without_a_name(found: list[tuple[tuple[CallNode, ...], int]]) -> set[tuple[str, str]]:
    frames = {(frame.name, frame.path) for stack, _ in found for frame in stack}
    return {key for key in frames if not _says_what_it_does(*key)}


def _says_what_it_does(name: str, path: str) -> bool:
    """Whether a function has a name of its own: all that is loaded passes through `__getitem__` and `_call_impl`, and
    what calls a helper says more than that."""
    last = name.rpartition(".")[2]
    private = name.startswith("_") or last.startswith(("_", "<")) or "<locals>" in name
    return not private and last != "forward" and not _HELPERS.search(path.replace("\\", "/"))


def passed_in_loading(evidence: Evidence, name: str, file: str) -> float:
    """The part of the samples of making batches that pass through a function; `file`: how its path ends."""
    found = loading_stacks(evidence)
    through = sum(
        count
        for frames, count in found
        if any(frame.name == name and frame.path.replace("\\", "/").endswith(file) for frame in frames)
    )
    return through / max(1, sum(count for _, count in found))


def met_between(evidence: Evidence) -> Met | None:
    """The same for what the loop does between loading, the passes and the optimizer: no function is named that leads to
    a pass. If samples end in many functions, it may be one without a name of its own."""
    found = main_stacks(evidence, ("between",))
    passes = main_stacks(evidence, ("forward", "backward", "optimizer"))
    to_passes = {(each.name, each.path) for frames, _ in passes for each in frames}
    named = _passed(found, to_passes | _without_a_name(found))
    return _far_more(_met(found), named) or _passed(found, to_passes)


def _met(found: list[tuple[tuple[CallNode, ...], int]]) -> Met | None:
    counts: Counter[tuple[str, str]] = Counter()
    for frames, count in found:
        counts[frames[-1].name, frames[-1].path] += count
    if not counts:
        return None
    (name, path), most = counts.most_common(1)[0]
    share = most / sum(counts.values())
    # A function of the user's own is named by its line.
    return Met(name, path, share) if share >= DOMINATES and not own_path(path) else None


def _passed(found: list[tuple[tuple[CallNode, ...], int]], elsewhere: Collection[tuple[str, str]]) -> Met | None:
    """The innermost function of a library's through which most of these stacks pass, but none of `elsewhere`, by name
    and file."""
    whole, inner, names = sum(count for _, count in found), (0, 0), ("", "")
    counts: Counter[tuple[str, str]] = Counter()
    for frames, count in found:
        for key in {(frame.name, frame.path) for frame in frames}:
            counts[key] += count
    for frames, _ in found:
        for depth, frame in enumerate(frames):
            key = frame.name, frame.path
            if counts[key] >= MOST * whole and key not in elsewhere and not own_path(frame.path) and frame.path:
                inner, names = max((inner, names), ((whole - counts[key], depth), key))
    return Met(*names, counts[names] / whole) if names[1] else None
