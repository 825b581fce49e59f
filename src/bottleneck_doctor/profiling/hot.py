"""The role of each sampled process, and the table of functions that were running, with the user's line that called
each.

A `RawProfile` goes in. Roles with their parts of its tree, and `HotFunction` rows, come out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bottleneck_doctor.documents.report import HotFunction
from bottleneck_doctor.profiling.raw import Process, RawProfile

Role = Literal["main", "workers"]
ROLES: tuple[Role, ...] = ("main", "workers")


@dataclass(frozen=True)
class Roles:
    """The parts of a profile by role. `others`: processes that neither train nor load, left out of both."""

    main: list[Process] = field(default_factory=list)
    workers: list[Process] = field(default_factory=list)
    others: list[Process] = field(default_factory=list)

    def roots(self, role: Role) -> list[int]:
        """Where the stacks of a role begin in the tree."""
        if role == "workers":
            return [process.loop_root for process in self.workers if process.loop_root is not None]
        return [process.root for process in self.main if process.root is not None]


def assign_roles(profile: RawProfile, own: Sequence[bool], main_pids: Collection[int] = ()) -> Roles:
    """Find the main processes, the loader workers and the others.

    Workers are the processes seen in the loop of a loader worker. Main processes are `main_pids`. If these are not
    known, they are the parents of workers; without workers, the outermost processes that run the user's own code
    (`own`, by frame), so that launchers are left out; without those, all processes that are left.
    """
    workers = [process for process in profile.processes if process.is_worker]
    rest = [process for process in profile.processes if not process.is_worker]
    main = [process for process in rest if process.pid is not None and process.pid in main_pids]
    if not main:
        parents = {id(process.parent) for process in workers}
        main = [process for process in rest if id(process) in parents]
    if not main:
        led = profile.tree.inherited([process.root for process in rest if process.root is not None])
        frames = profile.tree.frames
        with_own = {led[node] for node in range(len(frames)) if frames[node] >= 0 and own[frames[node]]}
        runs_own = {id(process) for process in rest if process.root in with_own}
        main = [each for each in rest if id(each) in runs_own and not _has_ancestor_in(each, runs_own)]
    main = main or rest
    chosen = {id(process) for process in main}
    return Roles(main, workers, [process for process in rest if id(process) not in chosen])


def _has_ancestor_in(process: Process, members: Collection[int]) -> bool:
    parent = process.parent
    while parent is not None:
        if id(parent) in members:
            return True
        parent = parent.parent
    return False


def hot_functions(
    profile: RawProfile, roles: Roles, tagged: Sequence[bool], *, merge: bool = True, most: int | None = None
) -> list[HotFunction]:
    """The functions that were running, by samples, main before workers, `most` of each.

    `tagged` marks the frames that count as callers: the user's own code, or a package. With `merge`, a function has one
    row for each tagged function that called it, with the lines that had the most samples; without, each line has its
    own row. Shares are of the samples of the role.
    """
    tree = profile.tree
    rows: list[HotFunction] = []
    for role in ROLES:
        roots = roles.roots(role)
        inside = tree.inherited(roots)
        leads = tree.inherited(roots, tagged)
        pairs: Counter[tuple[int, int]] = Counter()
        for node, count in enumerate(tree.counts):
            if count and inside[node] >= 0 and tree.frames[node] >= 0:
                pairs[tree.frames[node], leads[node]] += count
        total = pairs.total()
        ranked = _merged(profile, pairs) if merge else [(leaf, lead, count) for (leaf, lead), count in pairs.items()]
        found = [_row(profile, role, leaf, lead, count, total) for leaf, lead, count in ranked]
        found.sort(key=lambda row: (-row.count, row.path, row.line, row.own_path, row.own_line, row.name))
        rows += found[:most]
    return rows


def _merged(profile: RawProfile, pairs: Counter[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Leaf, lead and count, for each function and each function that called it, at the lines seen most."""
    frames = profile.frames
    groups: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for (leaf, lead), count in pairs.items():
        key = frames[leaf].function, frames[lead].function if lead >= 0 else -1
        groups.setdefault(key, []).append((leaf, lead, count))
    merged = []
    for members in groups.values():
        leaves: Counter[int] = Counter()
        leads: Counter[int] = Counter()
        for leaf, lead, count in members:
            leaves[leaf] += count
            leads[lead] += count
        merged.append((_most_seen(profile, leaves), _most_seen(profile, leads), leaves.total()))
    return merged


def _most_seen(profile: RawProfile, counts: Counter[int]) -> int:
    return min(counts, key=lambda frame: (-counts[frame], profile.frames[frame].line if frame >= 0 else 0))


def _row(profile: RawProfile, role: Role, leaf: int, lead: int, count: int, total: int) -> HotFunction:
    frame = profile.frames[leaf]
    led = profile.frames[lead] if lead >= 0 else None
    return HotFunction(
        role=role,
        name=frame.name,
        path=frame.path,
        line=frame.line,
        own_name=led.name if led else "",
        own_path=led.path if led else "",
        own_line=led.line if led else 0,
        share=count / total,
        count=count,
    )
