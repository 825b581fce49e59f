"""The order of a confirmation: it makes the change, runs pairs of processes as written and changed, and puts what came
of it into the result. Nothing of the user's is edited (`gate/sides/of_edit.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bottleneck_doctor.confirm import agreement, room
from bottleneck_doctor.confirm.instead import instead
from bottleneck_doctor.confirm.likely import settled, supposed
from bottleneck_doctor.confirm.way import Way, not_in_effect, way
from bottleneck_doctor.documents.check import DEVICE_MEMORY, HOST_MEMORY, STEP_TIME, Check
from bottleneck_doctor.documents.report import Confirmation, Confirmed, ConfirmedBy, PeakMemory, Result, Speedup
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.examine.request import ExaminationRequest
from bottleneck_doctor.gate.check import check
from bottleneck_doctor.gate.limits import DEFAULTS
from bottleneck_doctor.gate.paired import EditedFailed
from bottleneck_doctor.gate.request import TryRequest
from bottleneck_doctor.gate.sides.edit import Edit, project_of
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.patches.kept import is_as_kept
from bottleneck_doctor.patches.plan import PlannedFile, after
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import promise_words, ranking, words
from bottleneck_doctor.wording.check_words import loss_moved


@dataclass(frozen=True)
class Wanted:
    """What is asked of a confirmation. `asked`: the user did, so it may take time of its own. `costs`: what windows of
    the examination cost, and `loop`: what it found; None if that is not known. `command`: what measures a change that
    is made in this way, if it is left out; "" for nothing."""

    request: ExaminationRequest
    asked: bool = False
    costs: Costs | None = None
    loop: Found | None = None
    command: Callable[[Way], str] = lambda way: ""
    settles: bool = False
    """Whether nothing is promised yet, so that the changed program has to be faster for certain."""


class _LeftOut(Exception):
    """Nothing is measured; the text is a sentence that says why. `command`: what measures it all the same."""

    def __init__(self, sentence: str, command: str = "") -> None:
        super().__init__(sentence)
        self.command = command


def confirmations(
    result: Result, wanted: Wanted, progress: Progress, outside: Outside | None = None
) -> Iterator[Result]:
    """The result with what the changed program says of its promise. Where that program refuses it, the result with the
    next best claim in its place comes first, and then what the changed program says of that one, and so on. Where
    nothing is promised but something likely, it says whether that is so."""
    asked = supposed(result)
    if asked is not None:
        made = confirm(asked, replace(wanted, settles=True), progress, outside)
        yield settled(result, made)
        return
    while True:
        promise = ranking.promise(result)
        result = confirm(result, wanted, progress, outside)
        another = None if promise is None else instead(result, promise.setting)
        if another is None:
            yield result
            return
        yield another
        result = another


def confirm(result: Result, wanted: Wanted, progress: Progress, outside: Outside | None = None) -> Result:
    """The result with what the changed program says of its promise; as it is where nothing is promised.

    `KeyboardInterrupt` is passed on: the result that went in is whole.
    """
    promise = ranking.promise(result)
    if promise is None or promise.speedup is None:
        return result
    begun = (outside or Outside()).now()
    by: ConfirmedBy = "edit"
    known = None if wanted.costs is None else room.costs_of(wanted.costs, promise.speedup.estimate)
    try:
        chosen = _way(result, promise, wanted, known, outside or Outside())
        by = chosen.by
        confirmation = _tried(result, promise, chosen, wanted, known, progress, outside)
    except _LeftOut as why:
        confirmation = _missing(promise.speedup, str(why), why.command)
    except EditedFailed as failed:
        confirmation = _failed(promise.speedup, failed, by)
    except DoctorError as error:
        confirmation = _missing(promise.speedup, error.sentence)
    lasted = (outside or Outside()).now() - begun
    return told(result, promise, replace(confirmation, seconds=lasted))


def _way(result: Result, promise: ranking.Promise, wanted: Wanted, known: Costs | None, outside: Outside) -> Way:
    start = wanted.request.start
    found = way(result, promise, () if start.words else start.arguments)
    if isinstance(found, str):
        raise _LeftOut(found)
    if not wanted.asked:
        left = room.seconds_left(result, wanted.request.budget, asked=False, known=known)
        refusal = room.not_unasked(result, start) or room.no_time(result, left, known)
        if refusal or (refusal := room.no_memory(result, outside.free_bytes)):
            raise _LeftOut(refusal, wanted.command(found))
    return found


def _tried(
    result: Result,
    promise: ranking.Promise,
    chosen: Way,
    wanted: Wanted,
    known: Costs | None,
    progress: Progress,
    outside: Outside | None,
) -> Confirmation:
    """What the changed program says. If it fails, it is started once more, where there is time: a start may also fail
    for another reason, and whoever reads that the program fails with the change does not make it."""
    left = room.seconds_left(result, wanted.request.budget, asked=wanted.asked, known=known)
    begun = (outside or Outside()).now()
    try:
        return _measured(result, promise, chosen, wanted, known, left, progress, outside)
    except EditedFailed as failed:
        first, lasted = failed, (outside or Outside()).now() - begun
    left = None if left is None else left - lasted
    if not first.alone or (left is not None and left < lasted):
        raise first
    progress.note("It failed with the change made; it is started once more.")
    try:
        return _measured(result, promise, chosen, wanted, known, left, progress, outside)
    except EditedFailed:
        raise
    except DoctorError:
        raise first from None


def _measured(
    result: Result,
    promise: ranking.Promise,
    chosen: Way,
    wanted: Wanted,
    known: Costs | None,
    left: float | None,
    progress: Progress,
    outside: Outside | None,
) -> Confirmation:
    """What the changed program says, in the seconds that are `left` (None: as many as it takes)."""
    assert promise.speedup is not None
    asked, promised = wanted.request, promise.speedup
    request = TryRequest(
        start=asked.start,
        budget=left,
        limits=DEFAULTS,
        seed=result.method.seed,
        verbose=asked.verbose,
        discretion=asked.discretion,
        edit=_edit(chosen, asked),
        pairs_wanted=room.pairs_planned(result, asked.budget, left, known),
        known=known,
        loop=None if result.ranks else wanted.loop,
        explains=False,
    )
    progress.stage(f"Confirming it {promise_words.CHANGED[chosen.by]}, beside the training as written")
    done = check(request, progress, outside)
    found = done.loops.get("head")
    # What is switched is no value of the script's own, and each window checks that it takes effect.
    lacking = not_in_effect(promise.setting, found) if found is not None and not chosen.setting else ""
    if lacking:
        raise _LeftOut(f"The edit alone does not bring {lacking}.")
    figure = None if done.check.edit is None else done.check.edit.speedup
    if figure is None or figure.sessions < 2:
        raise _LeftOut("There was no time for enough processes.", wanted.command(chosen))
    outcome, losses = agreement.outcome(promised, figure), done.check.losses
    if wanted.settles and outcome in ranking.CONFIRMED and not _is_faster(done.check):
        outcome = "unclear"
    said = _SAID[outcome](promised, figure, chosen.by)
    if outcome == "unclear" and not words.has_interval(figure):
        said += promise_words.measured_by(wanted.command(chosen))
    if losses is not None and losses.verdict != "unknown":
        said = f"{said} {losses.sentence}"
        outcome = "other_loss" if loss_moved(losses) else outcome
    if outcome in _NOT_AS_PROMISED:
        said = " ".join([said, *(each.sentence for each in done.check.warnings if each.slug == "other-load")])
    if chosen.why:
        said = f"{said} {promise_words.instead_of_edit(chosen.why)}"
    return Confirmation(
        outcome=outcome,
        sentence=said,
        promised=promised,
        speedup=figure,
        by=chosen.by,
        memory=_memory(done.check),
        alike_steps=losses.steps if losses is not None and losses.verdict in ("same", "alike") else 0,
    )


def _is_faster(check: Check) -> bool:
    """Whether the check calls the changed program faster by itself, as often wrong as a check promises."""
    return any(each.id == STEP_TIME and each.verdict == "improvement" for each in check.metrics)


def _memory(check: Check) -> list[PeakMemory]:
    peaks: dict[str, Literal["host", "device"]] = {HOST_MEMORY: "host", DEVICE_MEMORY: "device"}
    return [
        PeakMemory(where=peaks[each.id], written=each.base, changed=each.head)
        for each in check.metrics
        if each.id in peaks and each.base is not None and each.head is not None
    ]


def _edit(chosen: Way, asked: ExaminationRequest) -> Edit:
    root = project_of(asked.start, Path.cwd())
    files: dict[str, bytes | None] = {}
    before: dict[str, bytes | None] = {}
    for planned in chosen.files:
        path, content, edited = _edited(planned, root)
        before[path], files[path] = content, edited
    return Edit(
        root=root,
        files=files,
        before=before,
        arguments=chosen.arguments,
        variables=dict(chosen.variables),
        setting=chosen.setting,
        name="what doctor promises",
    )


def _edited(planned: PlannedFile, root: Path) -> tuple[str, bytes, bytes]:
    """A file's path from the root, and its content as it is and with the change made."""
    path, name = Path(planned.source.file).resolve(), planned.source.path
    try:
        content = path.read_bytes()
    except OSError:
        raise _LeftOut(f"{name} can't be read any more.") from None
    if not is_as_kept(planned.source, content):
        raise _LeftOut(f"{name} was changed meanwhile.")
    edited = after(planned, content)
    if edited is None:
        raise _LeftOut(f"Together, the changes would break {name}.")
    if not path.is_relative_to(root):
        raise _LeftOut(f"{name} lies outside of {root}.")
    return path.relative_to(root).as_posix(), content, edited


_NOT_AS_PROMISED: tuple[Confirmed, ...] = ("differs", "unclear", "not_faster")
"""Outcomes whose reader asks for the reason. Other programs can be one."""

_SAID = {
    "agrees": promise_words.agrees,
    "differs": promise_words.differs,
    "unclear": promise_words.unclear,
    "not_faster": promise_words.refuted,
}


def _failed(promised: Speedup, failed: EditedFailed, by: ConfirmedBy) -> Confirmation:
    if not failed.alone:
        # What ended both may be that there were two of them.
        return _missing(promised, failed.sentence)
    said = promise_words.failed(failed.sentence, by)
    return Confirmation(outcome="failed", sentence=said, promised=promised, by=by)


def _missing(promised: Speedup, reason: str, command: str = "") -> Confirmation:
    return Confirmation(outcome="missing", sentence=promise_words.missing(reason, command), promised=promised)


def told(result: Result, promise: ranking.Promise, confirmation: Confirmation) -> Result:
    """The result with its confirmation, and with a verdict that says what that changes."""
    verdict = result.verdict
    setting, device, promised = promise.setting, ranking.device(result), confirmation.promised
    by: ConfirmedBy = confirmation.by or "edit"
    figure = confirmation.speedup
    before, claim = promise_words.claim(setting, promised, device), ""
    if confirmation.outcome in ranking.REFUSED:
        claim = promise_words.refused(setting, confirmation, device)
    elif figure is not None and confirmation.outcome in ranking.CONFIRMED:
        claim = promise_words.confirmed_claim(setting, figure, device, by)
    elif figure is not None and confirmation.outcome == "unclear" and agreement.is_surer(figure, promised):
        # It had no part in the choice of what is promised, so luck did not make it look better.
        claim = f"{before} {promise_words.unconfirmed(figure, by)}"
    if claim:
        # Whatever else it says, a verdict that keeps the old figure would contradict the new one.
        sentence = verdict.sentence.replace(before, claim) if before in verdict.sentence else claim
        if confirmation.outcome in ranking.REFUSED:
            # What nobody promises has no risk, needs no part of itself, and prepares nothing.
            taken_back = (
                *promise_words.RISK_TOLD.values(),
                promise_words.needless(result.combination, device),
                promise_words.kept_memory(setting),
                promise_words.preparing(promise.preparation),
                promise_words.beside_others(setting, words.least_other_load(result.method.sessions)),
            )
            for told_of_it in filter(None, taken_back):
                sentence = sentence.replace(f" {told_of_it}", "")
        elif confirmation.alike_steps:
            # What the user is asked to compare was compared.
            compared = promise_words.same_losses(confirmation.alike_steps)
            sentence = sentence.replace(promise_words.RISK_TOLD["numerics"], compared)
        verdict = replace(verdict, sentence=sentence)
    return replace(result, verdict=verdict, confirmation=confirmation)
