"""One step of a change: it writes one edit into the user's files as the steps before it left them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.runtime.wire.messages import Found, Site


@dataclass(frozen=True)
class Outcome:
    """What a step said. `elsewhere`: what to do where no line is known, as sentences without their ends. `codes`: what
    to write before training begins, since it is switched on in none of the files that are known."""

    told: Sequence[Told] = ()
    elsewhere: Sequence[str] = ()
    codes: Sequence[str] = ()


Step = Callable[[Drafts], Outcome]
Change = Callable[[str, int], ChangeText | None]
"""One edit: the text of a file and a line of it in, the edited text out, or nothing where it can't."""


@dataclass
class Steps:
    """The steps of a setting, in order, and what has no line of its own, as whole sentences. `by_hand`: what is to be
    done in a file all the same."""

    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)


def at(site: Site, edit: Change, otherwise: str | Step) -> Step:
    """The step that edits one file near a line. `otherwise`: where it can't, the note, or another step."""

    def step(drafts: Drafts) -> Outcome:
        text = drafts.text(site.file)
        made = None if text is None else edit(text, drafts.line(site.file, site.line))
        if made is None:
            return (noting(site, otherwise) if isinstance(otherwise, str) else otherwise)(drafts)
        if made.edited:
            drafts.write(site.file, made.edited)
        return Outcome([Told(site.file, made.line, made.note, made.unfinished)])

    return step


def noting(site: Site, note: str) -> Step:
    """The step that edits nothing, and says at this line what to do."""
    return lambda _: Outcome([Told(site.file, site.line, note)])


def first_of(sites: Sequence[Site], edit: Callable[[Site], Change], otherwise: Step) -> Step:
    """The step that edits near the first of these lines where it can, each with its own edit; `otherwise` where it can
    nowhere."""
    step = otherwise
    for site in reversed(sites):
        step = at(site, edit(site), step)
    return step


def sites(found: Found) -> list[Site]:
    """The lines of a loop that are known: of the model's call, of the backward pass, and of the loader."""
    return [site for site in (found.forward_site, found.backward_site, found.loader_site) if site is not None]


def files(found: Found) -> list[str]:
    """Their files."""
    return list(dict.fromkeys(site.file for site in sites(found)))
