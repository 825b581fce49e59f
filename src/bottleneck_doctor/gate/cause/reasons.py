"""Why a step takes longer: tables, call trees and the changed lines in; what grew out, with changed code first. Pure.

A function or line of the user's that grew and was changed is the reason itself. A library's code is not the user's to
change, so for a library function, the place that is given is the changed line that names it. Code that takes longer
only because of what it calls, such as the line of the training loop, is not named if something below it can be named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bottleneck_doctor.documents.check import Culprit, GrowthTree
from bottleneck_doctor.documents.report import Site
from bottleneck_doctor.gate.cause import culprits
from bottleneck_doctor.gate.cause.culprits import MOST, Table
from bottleneck_doctor.gate.cause.hunks import Differences
from bottleneck_doctor.gate.cause.mentions import LOADER, Sources, for_lines, function_lines, is_read, mentions
from bottleneck_doctor.gate.cause.named import MOSTLY, SAYS_ALL, Called, Calls, Function, Named, is_above
from bottleneck_doctor.wording import words


def no_sources(path: str) -> str:
    """For a program whose files can't be read."""
    return ""


@dataclass(frozen=True)
class Seen:
    """What was seen of both sides. `grew`: seconds by which a step grew. `trees`: empty if lines were timed."""

    base: Table
    head: Table
    grew: float
    differences: Differences
    trees: Sequence[GrowthTree] = ()
    sources: Sources = no_sources


def reasons(seen: Seen, phases: Sequence[Culprit] = ()) -> list[Culprit]:
    """What explains the growth: changed code, largest first; then `phases`; then other code that grew, functions before
    lines. At most `MOST` of each kind, both of changed and of other code."""
    return _Reasons(seen).ordered(phases)


@dataclass(frozen=True)
class _Own:
    """A function or line of the user's. `weight`: seconds of the growth that its changed lines, or all its lines,
    explain."""

    culprit: Culprit
    function: Function
    weight: float
    called: Called | None
    """The function including everything that it calls; None if that was not seen."""


class _Reasons:
    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._calls = Calls(seen.trees, seen.sources)
        self._grown = culprits.line_growth(seen.base, seen.head, seen.differences)
        table = (seen.base, seen.head, seen.grew, seen.differences)
        self._functions = [self._function(each) for each in culprits.grown_functions(*table)]
        self._lines = [self._line(each) for each in culprits.grown_lines(*table)]
        self._named = self._find_named()
        self._unnamed = self._find_unnamed()

    # -- the user's own ------------------------------------------------------------------------------------------------

    def _function(self, found: Culprit) -> _Own:
        assert found.site is not None
        path, line = found.site.file, found.site.line
        called = self._calls.total((path, found.name))
        weight = found.head - found.base
        if found.changed_here:
            weight = min(weight, self._grown[path, found.name, line])
        elif called is not None and not called.around:
            near = self._changed_near(path, line)
            if near is not None:
                line, found = near, replace(found, site=Site(file=path, line=near), changed_here=True)
        if found.changed_here:
            said = f"{found.sentence.rstrip('.')}; {words.line_text(path, line)} of it was changed."
            found = replace(found, sentence=said)
        return _Own(found, (path, found.name), weight, called)

    def _changed_near(self, path: str, line: int) -> int | None:
        """The changed line of the function around `line` that lies nearest to it."""
        inside = function_lines(self._seen.sources(path), line)
        changed = [each for each in inside if self._seen.differences.changed(path, each)]
        return min(changed, key=lambda each: (abs(each - line), each), default=None)

    def _line(self, found: Culprit) -> _Own:
        assert found.site is not None
        path, line = found.site.file, found.site.line
        if found.changed_here:
            found = replace(found, sentence=f"{found.sentence.rstrip('.')}; it was changed.")
        function = next(each[:2] for each in self._grown if (each[0], each[2]) == (path, line))
        return _Own(found, function, found.head - found.base, self._calls.total(function))

    # -- what is called ------------------------------------------------------------------------------------------------

    def _matters(self, before: float, after: float) -> bool:
        return culprits.matters(before, after, self._seen.grew, self._seen.base, self._seen.head)

    def _find_named(self) -> list[Named]:
        found = mentions(self._seen.sources, self._seen.differences)
        own = [each.called for each in self._functions if each.called is not None]
        return [each for each in self._calls.named(found, own, self._matters) if not self._is_said_by_own(each)]

    def _is_said_by_own(self, named: Named) -> bool:
        """Whether changed code of the user's explains as much: the line itself, or a changed function inside."""
        for each in (*self._functions, *self._lines):
            if not each.culprit.changed_here or each.weight < SAYS_ALL * named.called.grew:
                continue
            site, mention = each.culprit.site, named.mention
            if site is not None and (site.file, site.line) == (mention.path, mention.line):
                return True
            if each.called is not None and (
                each.called.function == named.called.function or is_above(named.called, each.called)
            ):
                return True
        return False

    def _find_unnamed(self) -> list[Called]:
        changed = [each for each in self._functions if each.culprit.changed_here]
        return [
            each
            for each in self._calls.unnamed(self._matters)
            if not any(
                each.function == other.called.function
                or is_above(other.called, each)
                or (is_above(each, other.called) and other.called.grew >= SAYS_ALL * each.grew)
                for other in self._named
            )
            and not any(
                own.called is not None and each.lead == own.called.function and own.weight >= SAYS_ALL * each.grew
                for own in changed
            )
        ]

    # -- in order ------------------------------------------------------------------------------------------------------

    def ordered(self, phases: Sequence[Culprit]) -> list[Culprit]:
        own = [*self._functions, *(self._no_more_than_its_function(each) for each in self._lines)]
        changed = [(each.weight, each.culprit) for each in own if each.culprit.changed_here]
        changed += [(each.called.grew, self._of_named(each)) for each in self._named]
        changed.sort(key=lambda each: (-round(each[0], 6), each[1].kind, each[1].name))
        first = [culprit for _, culprit in changed]
        note = "" if first or not is_read(self._seen.sources, self._seen.differences) else "; no changed line names it"
        rest = [each for each in own if not each.culprit.changed_here and not self._is_too_general(each)]
        taken = {each.called.function for each in self._named}
        rest = [
            each
            for each in rest
            if each.culprit.kind == "line" or each.called is None or each.called.function not in taken
        ]
        others = [(self._explains(each.function) >= MOSTLY * each.weight, each.weight, each.culprit) for each in rest]
        others += [(False, each.grew, self._of_unnamed(each)) for each in self._unnamed]
        others.sort(key=lambda each: (each[2].kind, each[0], -each[1], each[2].name))
        last = [replace(each, sentence=each.sentence.rstrip(".") + f"{note}.") for _, _, each in others]
        return [*_most(first), *phases, *_most(last)]

    def _no_more_than_its_function(self, line: _Own) -> _Own:
        """The line, with no more weight than the function that is named with it. Sampling error could give it more, and
        then the function would not come first."""
        same = [each.weight for each in self._functions if each.culprit.site == line.culprit.site]
        return replace(line, weight=min([line.weight, *same]))

    def _explains(self, function: Function) -> float:
        """Seconds of a function's growth that are explained by something more specific that is named below it."""
        below = [*(each.called for each in self._named), *self._unnamed]
        known = self._calls.total(function)
        return 0.0 if known is None else sum(each.grew for each in below if known.function in each.callers)

    def _is_too_general(self, own: _Own) -> bool:
        """Whether this is the loop or around it, and something below it is named."""
        site = own.culprit.site
        explained = self._explains(own.function) > 0
        around = own.called is not None and own.called.around
        if site is None or not around:
            return explained and own.culprit.name == "<module>"
        if site.line in for_lines(self._seen.sources(site.file)):
            return explained or self._is_loading_named()
        led = any(each.general and each.lead == own.function for each in self._unnamed)
        return explained and (own.culprit.kind == "function" or led)

    def _is_loading_named(self) -> bool:
        """Whether something is named that makes batches. The loop waits for it, but what workers call is not below any
        line of the loop."""
        called = [*(each.called for each in self._named), *self._unnamed, *(each.called for each in self._functions)]
        return any(each is not None and each.loads for each in called)

    def _of_named(self, named: Named) -> Culprit:
        called, mention = named.called, named.mention
        place = f"{words.line_text(mention.path, mention.line)} of `{mention.path}`"
        if mention.name == LOADER and called.name != LOADER:
            ending = f"{place}, which says how batches are loaded, was changed"
        elif mention.through:
            ending = f"{place}, which sets `{mention.through}` for it, was changed"
        elif mention.defined:
            ending = f"{place}, where it is defined, was changed"
        else:
            ending = f"{place} names it and was changed"
        return _called(called, ending, Site(file=mention.path, line=mention.line), changed=True)

    def _of_unnamed(self, called: Called) -> Culprit:
        return _called(called, "", None if called.general else self._site_in(called.lead))

    def _site_in(self, function: Function | None) -> Site | None:
        """The line of a function that grew most."""
        own = {
            place: grown
            for place, grown in self._grown.items()
            if function is not None and place[0] == function[0] and self._calls.is_same(place[:2], function)
        }
        if not own:
            return None
        place = max(own, key=lambda each: (own[each], each))
        return Site(file=place[0], line=place[2])


def _called(called: Called, ending: str, site: Site | None, *, changed: bool = False) -> Culprit:
    before = max(0.0, called.base)
    said = culprits.sentence(f"`{called.name}`", before, called.head)
    return Culprit(
        kind="function",
        name=called.name,
        base=before,
        head=called.head,
        sentence=f"{said.rstrip('.')}; {ending}." if ending else said,
        site=site,
        changed_here=changed,
    )


def _most(found: Iterable[Culprit]) -> list[Culprit]:
    """The first few of each kind."""
    kept: list[Culprit] = []
    for each in found:
        if sum(other.kind == each.kind for other in kept) < MOST:
            kept.append(each)
    return kept
