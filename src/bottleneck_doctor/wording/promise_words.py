"""What is said of a promise: as the verdict makes it, and once the program with the change made has been measured."""

from __future__ import annotations

import math

from bottleneck_doctor.documents.report import (
    Combination,
    Confirmation,
    Confirmed,
    ConfirmedBy,
    FixOutcome,
    Preparation,
    Risk,
    Setting,
    Speedup,
)
from bottleneck_doctor.knobs import allocator, needs_workers, shares_cores, shrinking
from bottleneck_doctor.statistics.speedups import EQUIVALENCE
from bottleneck_doctor.wording import words

CHANGED: dict[ConfirmedBy, str] = {
    "edit": "with the change made",
    "variables": "with the change made",
    "setting": "with the setting on throughout",
}
"""What a program is like that a promise is held against."""
RISK_TOLD: dict[Risk, str] = {
    "identical": "",
    "order": "Runs with the same seed are then no longer alike: the order of samples depends on how long each takes.",
    "numerics": "This changes rounding: compare the loss curves before you keep it.",
    "semantics": "This changes the training itself.",
}
"""What the verdict says about the risk of the setting that it names."""
_PEAKS = {"host": "Its peak memory is", "device": "On the device it is"}
_LABELS: dict[Confirmed, str] = {
    "agrees": "Confirmed",
    "differs": "Confirmed as faster",
    "unclear": "Not confirmed",
    "not_faster": "Not confirmed",
    "failed": "Not confirmed",
    "other_loss": "Not confirmed",
    "missing": "Not confirmed",
}


def label(confirmation: Confirmation) -> str:
    """What stands before the sentence of a confirmation."""
    return _LABELS[confirmation.outcome]


def memory(confirmation: Confirmation) -> str:
    """How much memory the changed program needs, as sentences; "" where that is not known."""
    said = []
    for each in confirmation.memory:
        written, changed = words.bytes_text(each.written), words.bytes_text(each.changed)
        beside = "as much as before" if written == changed else f"{written} as written"
        said.append(f"{_PEAKS[each.where]} {changed}, {beside}.")
    return " ".join(said)


def claim(setting: Setting, figure: Speedup, device: str) -> str:
    """The verdict's sentence: `num_workers=2` makes training 1.63× faster (95 % 1.60–1.66, 27 pairs)."""
    what = words.speedup_text(figure).replace("× (", "× faster (", 1)
    return f"{subject(setting, device)} training {what}."


def needless(combination: Combination | None, device: str) -> str:
    """Which part of a promise of several fixes brought nothing when it was measured without the rest, as a sentence; ""
    where that was seen of none. Fixes that add nothing to those below them are in no combination: only the first can
    be such a part, because of luck when the order of the fixes was chosen."""
    if combination is None or not combination.ladder:
        return ""
    first = combination.ladder[0]
    rest: Setting = {name: value for name, value in combination.setting.items() if name not in first.setting}
    if not shrinking(rest):
        rest.pop(allocator.NAME, None)
    if first.speedup.estimate > 1 + EQUIVALENCE or not rest or needs_workers(rest):
        return ""
    return (
        f"{words.setting_code(first.setting, device)} measured {words.speedup_text(first.speedup)} without the rest, "
        f"so {words.setting_code(rest, device)} alone may be enough."
    )


def may_do(part: FixOutcome | None, device: str) -> str:
    """That a part of a promise may do by itself, as a sentence: nothing shows that the rest adds anything to it; ""
    where there is none."""
    if part is None or part.speedup is None:
        return ""
    name = words.setting_code(part.setting, device)
    return f"{name} alone measured {words.speedup_text(part.speedup)}, and may be enough."


def kept_memory(setting: Setting) -> str:
    """Why variables that keep memory in the process belong to a setting that makes tensors smaller, as a sentence; ""
    where they don't."""
    if allocator.NAME not in setting or not shrinking(setting):
        return ""
    return (
        "The variables belong to it: without them, a program that starts so gives memory back to the system at every "
        "step, and is slower than measured here."
    )


def preparing(preparation: Preparation | None) -> str:
    """What a promise takes before training begins, as a sentence; "" where it takes nothing."""
    if preparation is None or not math.isfinite(preparation.seconds):
        return ""
    samples = f"{words.number_text(preparation.samples)} {words.plural('sample', preparation.samples)}"
    return (
        f"Preparing all {samples} takes about {words.duration_text(preparation.seconds)} when training starts, and "
        f"about {words.bytes_text(preparation.bytes)} of memory."
    )


def beside_others(setting: Setting, others: float | None) -> str:
    """That a promise may not hold once other programs leave more cores to the training, as a sentence; "" where they
    did not keep any busy, or it does not depend on them. `others`: cores that they kept busy all the while."""
    if others is None or others <= words.OTHER_LOAD or not shares_cores(setting):
        return ""
    return (
        f"This was measured while other programs kept at least {words.busy_cores(others)} busy, and may be worth less, "
        "or cost time, without them: run doctor again once they have ended."
    )


def terms(setting: Setting, preparation: Preparation | None, risk: Risk, others: float | None) -> list[str]:
    """What belongs to a promise, a sentence each: why its variables do, what it takes first, its risk, and that it
    depends on other programs. `others`: see `beside_others`."""
    said = (kept_memory(setting), preparing(preparation), RISK_TOLD[risk], beside_others(setting, others))
    return [told for told in said if told]


def confirmed_claim(setting: Setting, figure: Speedup, device: str, by: ConfirmedBy) -> str:
    """The same by the program with the change made."""
    return f"{subject(setting, device)} training {in_pairs(figure, 'faster')}, measured {CHANGED[by]}."


def unconfirmed(figure: Speedup, by: ConfirmedBy) -> str:
    """What the verdict adds to a promise of which the changed program may bring nothing."""
    return f"{_ran(figure, by)}, so it may bring nothing."


def same_losses(steps: int) -> str:
    """What the verdict says about the risk of changed rounding where the losses of both programs were alike."""
    return (
        f"This changes rounding. Over {words.count_text(steps, 'step')} the losses were alike; look at them again in a "
        "long run."
    )


def refused(setting: Setting, confirmation: Confirmation, device: str) -> str:
    """What the verdict says of a promise that the program with the change made refuses: it does not train, it trains
    to another loss, or what was promised does not come."""
    by, figure = confirmation.by or "edit", confirmation.speedup
    looked = words.estimate_text(confirmation.promised)
    said = "fails."
    if confirmation.outcome == "other_loss":
        said = "trains to another loss."
    elif confirmation.outcome == "not_faster" and figure is not None:
        seems = "is slower" if figure.high < 1 else "is not known to be faster"
        said = f"{seems}: {in_pairs(figure, 'as fast')}."
    return (
        f"{words.setting_code(setting, device)} looked {looked} faster while it was switched, but {CHANGED[by]} the "
        f"program {said}"
    )


def agrees(promised: Speedup, figure: Speedup, by: ConfirmedBy) -> str:
    """What the program with the change made says, where it is as was promised."""
    return f"{_ran(figure, by)}. {_promised(promised)}, which agrees."


def differs(promised: Speedup, figure: Speedup, by: ConfirmedBy) -> str:
    """The same where it is faster by another factor."""
    surer = "Switching misses what depends on how a process starts, so the changed program is the surer one."
    if by == "setting":
        surer = "Switching misses what builds up in a process, so the figure of whole processes is the surer one."
    return f"{_apart(promised, figure, by)} {surer}"


def unclear(promised: Speedup, figure: Speedup, by: ConfirmedBy) -> str:
    """The same where it may or may not be faster."""
    said = "Its processes differ too much"
    if not words.has_interval(figure):
        said = f"{figure.sessions} {words.plural('pair', figure.sessions)} are too few"
    return f"{_ran(figure, by)}. {_promised(promised)}. {said} to confirm that or to deny it."


def refuted(promised: Speedup, figure: Speedup, by: ConfirmedBy) -> str:
    """The same where what was promised does not come."""
    return _apart(promised, figure, by)


def failed(reason: str, by: ConfirmedBy) -> str:
    """The program does not train with the change made. `reason`: a sentence."""
    return f"The program was started {CHANGED[by]}, and did not train. {reason}"


def instead_of_edit(why: str) -> str:
    """Why a promise was held against a setting that is on throughout, and not against an edit. `why`: a sentence."""
    return f"{why} So each changed process had the setting switched on for all of its windows instead."


def missing(reason: str, command: str = "") -> str:
    """The program was not measured so. `reason`: a sentence. `command`: what measures it."""
    return f"The program {CHANGED['edit']} was not measured. {reason}{measured_by(command)}"


def measured_by(command: str) -> str:
    """What goes behind the sentence that says what was not measured; "" without a command that does."""
    return f" `{command}` measures it." if command else ""


def subject(setting: Setting, device: str) -> str:
    """How a sentence begins that says what a setting makes of training: ``pin_memory=True` makes`."""
    make = "makes" if len(words.setting_parts(setting, device)) == 1 else "make"
    return f"{words.setting_code(setting, device)} {make}"


def in_pairs(figure: Speedup, what: str) -> str:
    """A speedup that pairs of processes measured: `1.8× as fast (1.6–2.0, 5 pairs of processes)`."""
    pairs = words.count_text(figure.sessions, "pair")
    return f"{words.estimate_text(figure)} {what} ({words.interval_text(figure)}, {pairs} of processes)"


def _ran(figure: Speedup, by: ConfirmedBy) -> str:
    return f"{CHANGED[by].capitalize()}, the program ran {in_pairs(figure, 'as fast')}"


def _apart(promised: Speedup, figure: Speedup, by: ConfirmedBy) -> str:
    return f"{_ran(figure, by)}. {_promised(promised)}, and chance hardly explains the difference."


def _promised(promised: Speedup) -> str:
    worth = f"{words.estimate_text(promised)} ({words.interval_text(promised)})"
    return f"Switched while the training ran, it had brought {worth}"
