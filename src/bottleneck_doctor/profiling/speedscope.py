"""Writes a profile for https://www.speedscope.app, with one sampled profile for each process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from bottleneck_doctor import __version__
from bottleneck_doctor.profiling.hot import ROLES, Role, Roles
from bottleneck_doctor.profiling.raw import Process, RawProfile

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_ROLE_WORDS: dict[Role, str] = {"main": "main process", "workers": "worker"}


def write(profile: RawProfile, roles: Roles, path: Path, *, rate: int | None = None, name: str = "training") -> None:
    """Write `path`. Weights are seconds where the sampling `rate` is given, else samples. Raises `OSError`."""
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(document(profile, roles, rate=rate, name=name))


def document(profile: RawProfile, roles: Roles, *, rate: int | None = None, name: str = "training") -> Iterator[str]:
    """The file in parts: a long recording's is too large to be held in one piece."""
    frames = [_frame(frame.name, frame.path, frame.line) for frame in profile.frames]
    head = {"$schema": SCHEMA, "name": name, "exporter": f"bottleneck-doctor {__version__}", "activeProfileIndex": 0}
    yield f'{_json(head)[:-1]},"shared":{{"frames":{_json(frames)}}},"profiles":['
    separator = ""
    for label, nodes in _profiles(profile, roles):
        counts = [profile.tree.counts[node] for node in nodes]
        weights = [count / rate for count in counts] if rate else counts
        about = {
            "type": "sampled",
            "name": label,
            "unit": "seconds" if rate else "none",
            "startValue": 0,
            "endValue": sum(counts) / rate if rate else sum(counts),
            "weights": weights,
        }
        yield f'{separator}{_json(about)[:-1]},"samples":['
        for index, node in enumerate(nodes):
            yield ("," if index else "") + _json(profile.tree.stack(node))
        yield "]}"
        separator = ","
    yield "]}\n"


def _profiles(profile: RawProfile, roles: Roles) -> Iterator[tuple[str, list[int]]]:
    tree = profile.tree
    for role in ROLES:
        roots = roles.roots(role)
        inside = tree.inherited(roots)
        by_root: dict[int, list[int]] = {root: [] for root in roots}
        for node, count in enumerate(tree.counts):
            if count and inside[node] >= 0:
                by_root[inside[node]].append(node)
        processes = roles.main if role == "main" else roles.workers
        for process, root in _with_root(processes, role):
            if by_root[root]:
                number = f" {process.pid}" if process.pid is not None else ""
                yield f"{_ROLE_WORDS[role]}{number}", by_root[root]


def _with_root(processes: Iterable[Process], role: Role) -> Iterator[tuple[Process, int]]:
    for process in processes:
        root = process.loop_root if role == "workers" else process.root
        if root is not None:
            yield process, root


def _frame(name: str, path: str, line: int) -> dict[str, str | int]:
    frame: dict[str, str | int] = {"name": name}
    if path:
        frame["file"] = path
    if line:
        frame["line"] = line
    return frame


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
