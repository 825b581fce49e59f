"""Why nothing is claimed about a setting: its estimate and the noise floor in, the end of a sentence out. Pure.

Every sentence is made from the interval that it describes, so its figures agree with it. Figures have as many decimals
as they need to lie on the same side of 1, and of one another, as the values do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bottleneck_doctor.documents.report import FixOutcome, Speedup
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import doubt, promise_words, ranking, words

MOST_DIGITS = 6
WORTH_A_WORD = 0.5
"""A fix with at least this chance is named if noise hides everything, and has the verdict's last word if nothing could
be done to know it better."""
WORTH_NAMING = 1 + speedups.EQUIVALENCE
"""An undecided setting is named if its estimate is above this: anything nearer to 1 is no difference."""


def reason(estimate: speedups.SpeedupEstimate | Speedup, *, floor: float, tried: int, over: str = "") -> str:
    """Why `speedups.verdict` can't tell anything from this estimate.

    `floor`: the deviation from 1 below which nothing is claimed. `tried`: how many fixes were tried. `over`: the
    setting that the estimate is relative to, in words; "" for the training as written.
    """
    subject = f"on top of {over} it" if over else "it"
    if estimate.sessions < speedups.MINIMUM_SESSIONS:
        return (
            f"{subject} was measured in only {words.count_text(estimate.sessions, 'process')}, and since processes "
            f"differ, {_takes(estimate.sessions)} to be sure"
        )
    low, high = estimate.low, estimate.high
    if low < 1 < high:
        low_text, high_text = _apart(low, 1.0, high)[::2]
        return f"{subject} may be slower or faster: the interval reaches from {low_text} to {high_text}"
    if low >= 1:
        least = 1 + floor
        if low <= least:
            low_text, _, least_text = _apart(low, 1.0, least)
            return (
                f"{subject} looks faster, but the interval begins at {low_text}, and with this much noise it would "
                f"have to begin above {least_text}"
            )
        return f"{subject} looks faster, and the interval begins at {_apart(low, 1.0)[0]}, {_chance(tried)}"
    most = 1 / (1 + floor)
    if high >= most:
        high_text, _, most_text = _apart(high, 1.0, most)
        return (
            f"{subject} looks slower, but the interval ends at {high_text}, and with this much noise it would have "
            f"to end below {most_text}"
        )
    return f"{subject} looks slower, and the interval ends at {_apart(high, 1.0)[0]}, {_chance(tried)}"


AND_NEVER = "; "
"""Between a reason and why more time would not help."""
PAIRS_TAKEN = (
    "more time would not settle it, because it is measured in a fixed number of pairs of processes, but another run may"
)


def never(floor: float, *, between: bool) -> str:
    """Why more time would not decide it. `between`: whether such an estimate would be undecided even without noise."""
    if not between:
        return "more time would hardly settle it, because processes differ too much, but a quieter machine may"
    small = words.share_text(speedups.EQUIVALENCE)
    if floor > speedups.EQUIVALENCE:
        hidden = words.share_text(floor) if floor < 1 else words.ratio_text(1 + floor, 1)
        return (
            f"more time would not settle it: the difference seems larger than {small}, so it may matter, but smaller "
            f"than the {hidden} that this much noise hides"
        )
    return f"more time would hardly settle it: the difference is too close to {small}, the smallest that matters"


def quieter(unsettled: Sequence[FixOutcome], device: str, *, others: bool) -> str:
    """What would help if there is too much noise, and which fix looks best so far. `others`: whether other programs
    were seen to be busy."""
    advice = "Stop those programs, then run it again." if others else "Run it again when the machine is quiet."
    best = ranking.likeliest(unsettled)
    if best is None or best.chance is None or best.chance < WORTH_A_WORD:
        return advice
    name = words.setting_code(best.setting, device)
    return f"{advice} Best chance so far: {name} ({doubt.percent_text(best.chance)})."


def _chance(tried: int) -> str:
    """The interval is clear of everything, and the claim is one of several."""
    return "but that may still be chance" + (f", since {tried} fixes were tried" if tried > 1 else "")


def _apart(*values: float) -> list[str]:
    """The values as ratios, with the fewest decimals (at least two) that keep different values apart."""
    different = len(set(values))
    for digits in range(2, MOST_DIGITS):
        texts = [_text(value, digits) for value in values]
        if len(set(texts)) == different:
            return texts
    return [_text(value, MOST_DIGITS) for value in values]


def _text(value: float, digits: int) -> str:
    return f"{value:.{digits}f}{words.TIMES}" if math.isfinite(value) else words.DASH


# -- the verdict if nothing is claimed ---------------------------------------------------------------------------------


def sentence(unsettled: Sequence[FixOutcome], others: Sequence[FixOutcome], device: str, cut: str) -> str:
    """What the verdict says if nothing is faster and something is undecided.

    `unsettled`: the undecided fixes, at least one. `others`: fixes that were measured and decided. `cut`: what ended
    the measuring. Only a fix that looks like a gain is named.
    """
    measured = [outcome for outcome in unsettled if outcome.speedup is not None]
    late = len(unsettled) - len(measured)
    if not measured and not others:
        return f"{doubt.OPEN} what would help: {cut} before it could be measured."
    leading = next(filter(_gains, ranking.by_chance(measured)), None)
    hardly = all(outcome.chance is not None and outcome.chance < ranking.HARDLY for outcome in measured)
    rest = f" {words.capitalised(cut)} before {words.count_text(late, 'more fix')} could be measured." if late else ""
    if leading is not None and leading.speedup is not None and not hardly:
        if _in_vain(leading):
            return f"Nothing that was tried is sure to help{_likeliest(measured, device)}.{rest}"
        likely = doubt.is_likely_text(leading.chance) if leading.at_least is None else ""
        return " ".join(filter(None, (_leads(leading, leading.speedup, device), likely)))
    if hardly and measured:
        return f"Nothing that was tried is likely to help{_likeliest(measured, device)}.{rest}"
    few = [outcome for outcome in measured if _sessions(outcome) < speedups.MINIMUM_SESSIONS]
    if few:
        least = words.count_text(min(map(_sessions, few)), "process")
        return (
            f"{doubt.OPEN} yet: nothing that was tried looks faster so far, but some of it was measured in only "
            f"{least}, and {_takes(min(map(_sessions, few)))} to be sure.{rest}"
        )
    highest = max((outcome.speedup.high for outcome in measured if outcome.speedup is not None), default=0.0)
    if highest > WORTH_NAMING:
        return f"Nothing we tried is clearly faster, but noise could hide gains of up to {_gain_text(highest)}.{rest}"
    return f"Nothing that was measured is faster.{rest}" if late else "Nothing we tried is faster."


def _takes(sessions: int) -> str:
    """How many processes it takes, where there were so few. After two, it is known that they were not enough."""
    few = sessions < speedups.SESSIONS_OF_A_LARGE_CLAIM
    least = speedups.SESSIONS_OF_A_LARGE_CLAIM if few else speedups.MINIMUM_SESSIONS
    return f"it takes {least} or more"


def _in_vain(leading: FixOutcome) -> bool:
    """Whether a fix is no more likely to help than not, and nothing could be done to know it better."""
    return leading.chance is not None and leading.chance < WORTH_A_WORD and AND_NEVER in leading.reason


def _leads(leading: FixOutcome, figure: Speedup, device: str) -> str:
    """What may be said about the fix that has the best chance."""
    name = words.setting_code(leading.setting, device)
    if leading.at_least is not None:
        return (
            f"{promise_words.subject(leading.setting, device)} training at least {words.bound_text(leading.at_least)} "
            f"faster: it was {words.estimate_text(figure)} as fast in the one process that was measured, and processes "
            "differ."
        )
    if figure.sessions < speedups.MINIMUM_SESSIONS:
        return (
            f"{doubt.OPEN} yet: {name} looked {words.estimate_text(figure)} as fast in "
            f"{words.count_text(figure.sessions, 'process')}, but {_takes(figure.sessions)} to be sure."
        )
    told = f"{doubt.OPEN}: {name} was measured at {words.speedup_text(figure)}"
    reason, _, hopeless = leading.reason.partition(AND_NEVER)
    more = f" M{hopeless[1:]}." if hopeless else ""
    if leading.added is None and figure.low < 1 < figure.high:
        return f"{told}, so it may be slower or faster.{more}"  # The interval stands there already.
    # That it looks faster is told by the figure.
    rest = reason.removeprefix("it looks faster")
    return (f"{told}{rest}." if rest != reason else f"{told}, but {reason}.") + more


def _likeliest(measured: Sequence[FixOutcome], device: str) -> str:
    """What stands behind `Nothing is likely to help`: the likeliest of what looks like a gain, and its chance; "" if
    nothing does."""
    likeliest = ranking.likeliest(filter(_gains, measured))
    if likeliest is None or likeliest.speedup is None or likeliest.chance is None:
        return ""
    name, figure = words.setting_code(likeliest.setting, device), words.speedup_text(likeliest.speedup)
    chance = doubt.percent_text(likeliest.chance)
    chance = chance if chance.startswith("under") else f"about {chance}"
    return f": the likeliest is {name}, measured at {figure}, with a chance of {chance} to be worth the edit"


def _gains(outcome: FixOutcome) -> bool:
    """Whether it looks like a gain worth naming, also without the gain of what it builds on."""
    figures = [figure for figure in (outcome.speedup, outcome.added) if figure is not None]
    return all(figure.estimate > WORTH_NAMING for figure in figures)


def _sessions(outcome: FixOutcome) -> int:
    return outcome.speedup.sessions if outcome.speedup is not None else 0


def _gain_text(ratio: float) -> str:
    """How much faster it is at most. Rounded up, because it is a bound."""
    return f"{math.ceil(100 * (ratio - 1) - 1e-9)} %" if ratio < 10 else f"{math.ceil(ratio)}{words.TIMES}"


def nothing_faster(outcomes: Sequence[FixOutcome], free_data: float | None) -> str:
    """What the verdict says if everything is decided and nothing is faster.

    `free_data`: how much faster training was measured to be with every batch ready; None where it was not measured.
    """
    if any(outcome.speedup is not None for outcome in outcomes):
        said = "Nothing we tried is faster."
    else:
        failed = sum(outcome.status == "failed" for outcome in outcomes)
        refused = len(outcomes) - failed
        does = "does not apply here or has" if refused == 1 else "do not apply here or have"
        parts = [f"{words.count_text(refused, 'fix')} {does} too little to gain"]
        parts = (parts if refused else []) + ([f"{words.count_text(failed, 'fix')} failed"] if failed else [])
        said = f"Nothing could be tried: {' and '.join(parts) or 'no fix was asked for'}."
    if free_data is None:
        return said
    if free_data < 1:
        # Noise has it below what it bounds: it says no more than that there is little to gain.
        return f"{said} Even with every batch ready at once, training was not faster."
    share = words.share_text(1 / free_data)
    return f"{said} Training already runs at {share} of the speed that it would have {words.AT_ONCE}."
