"""The edit that sets arguments of a loader: in the call that makes it, or where the call takes them from.

What comes out always parses, and where no safe edit exists the note says what to do instead. Pure: files are read by
the project that is given in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from bottleneck_doctor.edits.call_arguments import Refused, planned, say, written_into
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.drafts import Drafts, OneFile, Told
from bottleneck_doctor.edits.elsewhere import write_elsewhere
from bottleneck_doctor.edits.loader_target import Target, Unclear, taken_on, target_on
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.runtime.wire.messages import Site, Taker

NOTHING: Mapping[str, object] = MappingProxyType({})
Find = Callable[[Follower], Target | Unclear | None]
"""Finds the call again, in the texts as they are by then."""


def loader_change(
    source: str, line: int, keywords: Mapping[str, object], without: Mapping[str, object] = NOTHING
) -> ChangeText | None:
    """Set `keywords` in the call that makes the loader, or where this file gives it its values.

    `line` is any line of the call, as a frame's line number has it. Values are bool, int, float, str or None.
    `without`: arguments that are taken out of the call, in `keywords` or not, each with the value that is as good as
    none. Returns None where `source` has no call there.
    """
    drafts = Drafts(OneFile(source))
    return as_text(drafts, set_arguments(drafts, OneFile.path, line, keywords, without))


def as_text(drafts: Drafts, told: Sequence[Told]) -> ChangeText | None:
    """The change of the one file of `drafts`; None where nothing is told of it."""
    if not told:
        return None
    note = " ".join(dict.fromkeys(each.note for each in told if each.note))
    if not drafts.changed():
        return ChangeText(line=told[0].line, diff="", note=note)
    return as_change(*drafts.changed()[OneFile.path], told[0].line, note)


def set_arguments(
    drafts: Drafts,
    file: str,
    line: int,
    keywords: Mapping[str, object],
    without: Mapping[str, object] = NOTHING,
    running: Running | None = None,
) -> list[Told]:
    """Write the edits of `loader_change` into `drafts`, in whichever files they lie, and say what there is to say;
    nothing where there is no call.

    `line` is that of the file as it is.
    """

    def found(follower: Follower) -> Target | Unclear | None:
        tree = follower.tree(file)
        return None if tree is None else target_on(file, tree, drafts.line(file, line), follower)

    def follower() -> Follower:
        return Follower(drafts, running)

    return set_in(drafts, found, follower, keywords, without)


def set_taken(
    drafts: Drafts,
    site: Site,
    takers: Sequence[Taker],
    running: Running | None,
    wanted: Mapping[str, object],
    without: Mapping[str, object] = NOTHING,
) -> list[Told]:
    """The same in the call that was seen to take arguments of what a library makes on a line; nothing is told where
    none was."""

    def found(follower: Follower) -> Target | None:
        return taken_on(site.file, drafts.line(site.file, site.line), takers, follower)

    return set_in(drafts, found, lambda: Follower(drafts, running), wanted, without)


def set_in(
    drafts: Drafts,
    find: Find,
    follower: Callable[[], Follower],
    keywords: Mapping[str, object],
    without: Mapping[str, object],
) -> list[Told]:
    """The edits of the call that `find` finds."""
    wanted = {name: value for name, value in keywords.items() if name not in without}
    now = follower()
    target = find(now)
    if target is None:
        return []
    if isinstance(target, Unclear):
        return [Told(target.file, target.line, target.reason.format(wanted=say(wanted)))]
    path, line = target.at.path, target.at.line
    try:
        plan = planned(target, now, wanted, without)
    except Refused as refused:
        return [Told(path, line, str(refused).format(wanted=say(wanted)))]
    changes = written_into(drafts, target, plan)
    if changes is None:
        return []
    if not changes and not plan.elsewhere:
        return [Told(path, line, "The call has these values already.")]
    told = [Told(path, line, " ".join(plan.notes))]
    for name, before in plan.elsewhere.items():
        there = {name: before}
        if drafts.changed():
            # In the texts as the edits so far have left them.
            now = follower()
            target = find(now)
            there = planned(target, now, {name: wanted[name]}, {}).elsewhere if isinstance(target, Target) else {}
        if name in there:
            told += write_elsewhere(drafts, there[name], now, path, line)
        else:
            told.append(Told(path, line, f"Set {say({name: wanted[name]})} where `{before.spelled}` comes from."))
    return told
