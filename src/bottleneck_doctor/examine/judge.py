"""From evidence to outcomes: estimates, verdicts on fixes, ceilings, the curve of workers, the combination, and the
verdict's sentence.

Pure: a `JudgeEvidence` goes in, the parts of a `Result` come out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from bottleneck_doctor.documents.labels import BASELINE, CONTROL, LOADER_ONLY, REPLAY, key_of
from bottleneck_doctor.documents.report import (
    Baseline,
    Change,
    Combination,
    FixOutcome,
    LadderStep,
    Noise,
    Setting,
    Speedup,
    Status,
    Verdict,
    WorkerPoint,
    Workers,
)
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.examine import headline, undecided
from bottleneck_doctor.examine.doubt import Doubt
from bottleneck_doctor.examine.evidence import LARGEST_RATIO, TOO_LITTLE, Candidate, Estimates, JudgeEvidence, speedup
from bottleneck_doctor.examine.headline import Claim
from bottleneck_doctor.examine.kept_memory import KeptMemory
from bottleneck_doctor.examine.memory_use import MemoryUse
from bottleneck_doctor.examine.spoilt import Spoilt
from bottleneck_doctor.knobs import num_workers, own_settings, preparation
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.measure import repeats
from bottleneck_doctor.measure.schedule import fewest_workers
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import promise_words, ranking, words
from bottleneck_doctor.wording.doubt import settle_text


@dataclass(frozen=True)
class Judgement:
    """What `judge` concluded."""

    baseline: Baseline | None
    noise: Noise | None
    ceilings: dict[str, Speedup]
    fixes: list[FixOutcome]
    combination: Combination | None
    workers: Workers | None
    verdict: Verdict
    floor: float
    claimed: Claim | None = None
    """What the verdict names, as windows measured it: without the variables that its edit needs to be as fast."""


def judge(evidence: JudgeEvidence) -> Judgement:
    """Everything that the evidence allows to be said. Needs at least one counted baseline window."""
    spoilt = Spoilt(evidence.windows, evidence.candidates)
    evidence = replace(evidence, rungs=[rung for rung in evidence.rungs if not spoilt.why(rung[1])])
    estimates = Estimates(evidence)
    ladder = _ladder(evidence, estimates)
    outcomes, surely = _outcomes(evidence, estimates, ladder[1:])
    outcomes = [spoilt.told(outcome) for outcome in outcomes]
    doubt = Doubt(evidence, estimates)
    outcomes = _with_worth([doubt.told(outcome) for outcome in outcomes], evidence.candidates)
    baseline = _baseline(evidence)
    ceilings = _ceilings(evidence, estimates)
    control = estimates.promised.get(CONTROL)
    noise = Noise(aa_ratio=speedup(control) if control else None, floor=estimates.floor)
    workers = _workers(evidence, estimates, baseline)
    leading = headline.named(headline.claims(evidence, outcomes, surely, ladder, estimates), estimates.adds)
    if leading is not None and not leading.alone:
        outcomes = [headline.as_claimed(each) if each.id == leading.fix else each for each in outcomes]
    combination = _combination(evidence, estimates, ladder, leading)
    needed = MemoryUse(evidence.windows)
    outcomes, combination = [needed.fix(outcome) for outcome in outcomes], needed.together(combination)
    kept = KeptMemory(evidence.windows, evidence.found.device, lambda setting: _changes(setting, evidence))
    outcomes, combination = [kept.fix(outcome) for outcome in outcomes], kept.together(combination)
    together = combination if leading is not None and leading.fix is None else None
    verdict = _verdict(evidence, baseline, outcomes, leading, together, kept, ceilings, estimates, doubt)
    return Judgement(baseline, noise, ceilings, outcomes, combination, workers, verdict, estimates.floor, leading)


# -- fixes -----------------------------------------------------------------------------------------------------------


def _outcomes(
    evidence: JudgeEvidence, estimates: Estimates, rungs: Sequence[LadderStep]
) -> tuple[list[FixOutcome], list[LadderStep]]:
    """The outcome of each fix, and the rungs that may be claimed to be faster. Each rung counts as one more trial."""
    measured = [
        (candidate, _best_setting(candidate, estimates, evidence.best_workers)) for candidate in evidence.candidates
    ]
    tried = [(candidate, setting) for candidate, setting in measured if setting is not None]
    decisive = [estimates.decisive(candidate.key(setting), candidate.base) for candidate, setting in tried]
    together = [estimates.promised[key_of(rung.setting)] for rung in rungs]
    adjusted = speedups.holm([estimate.p_value for estimate in [*decisive, *together]])
    p_of = {id(candidate): p for (candidate, _), p in zip(tried, adjusted, strict=False)}
    outcomes = []
    for candidate, setting in measured:
        if setting is None:
            outcomes.append(_unmeasured(candidate, evidence.found.device, evidence.cut, rungs))
        else:
            outcomes.append(_measured(evidence, candidate, setting, estimates, p_of[id(candidate)], len(adjusted)))
    of_rungs = adjusted[len(tried) :]
    surely = [
        rung
        for rung, estimate, p_value in zip(rungs, together, of_rungs, strict=True)
        if speedups.verdict(estimate, adjusted_p=p_value, floor=estimates.floor, significance=evidence.significance)
        == "faster"
    ]
    return outcomes, surely


def _best_setting(candidate: Candidate, estimates: Estimates, best_workers: Setting) -> Setting | None:
    known = [setting for setting in candidate.settings if candidate.key(setting) in estimates.promised]
    if not known:
        return None
    most = max(estimates.promised[candidate.key(setting)].sessions for setting in known)
    known = [setting for setting in known if estimates.promised[candidate.key(setting)].sessions == most]
    if best_workers and best_workers in known:
        return best_workers
    counts = {num_workers.alone(setting): estimates.promised[candidate.key(setting)].estimate for setting in known}
    if None not in counts:
        return num_workers.setting_of(fewest_workers({n: speed for n, speed in counts.items() if n is not None}))
    return max(known, key=lambda setting: estimates.promised[candidate.key(setting)].low)


def _measured(
    evidence: JudgeEvidence, candidate: Candidate, setting: Setting, estimates: Estimates, p_value: float, tried: int
) -> FixOutcome:
    whole: Setting = {**candidate.base, **setting}
    key = key_of(whole)
    decisive = estimates.decisive(key, candidate.base)
    judged = speedups.verdict(decisive, adjusted_p=p_value, floor=estimates.floor, significance=evidence.significance)
    status: Status = judged
    promised, steady = estimates.promised[key], estimates.steady.get(key)
    if status == "faster" and promised.estimate <= 1.0:
        # It only makes up for some of what its base costs, so it is no fix to offer.
        status = "no_difference" if promised.high <= 1 + speedups.EQUIVALENCE else "cannot_tell"
    confirmed = estimates.confirmed.get(key)
    added = estimates.added.get(key) if candidate.base else None
    more = None
    reason = ""
    if status == "cannot_tell":
        more = speedups.blocks_needed(decisive, floor=estimates.floor, fixes_tried=tried)
        base = words.setting_code(candidate.base, evidence.found.device) if added is decisive else ""
        reason = undecided.reason(decisive, floor=estimates.floor, tried=tried, over=base)
        if judged == "faster":
            reason = undecided.reason(promised, floor=estimates.floor, tried=tried)
    changes = _changes(whole, evidence) if status in ("faster", "cannot_tell") else []
    return FixOutcome(
        id=candidate.fix.id,
        title=candidate.fix.title,
        why=candidate.fix.why,
        setting=whole,
        status=status,
        risk=candidate.risk,
        reason=reason,
        speedup=speedup(promised),
        steady=speedup(steady) if steady else None,
        over=candidate.base,
        added=speedup(added) if added else None,
        confirmed=speedup(confirmed) if confirmed and confirmed.sessions >= 2 else None,
        change=next(iter(changes), None),
        more_changes=changes[1:],
        more_blocks=more,
        preparation=preparation(whole, evidence.found),
    )


def _with_worth(outcomes: Sequence[FixOutcome], candidates: Sequence[Candidate]) -> list[FixOutcome]:
    """The outcomes, those that are on already with what they are worth: the inverse of what taking them back is."""
    worth: dict[str, Speedup] = {}
    for candidate, outcome in zip(candidates, outcomes, strict=True):
        back = outcome.speedup
        if back is None or outcome.status == "cannot_tell" or min(back.low, back.estimate) <= 0:
            continue
        told = replace(back, estimate=1 / back.estimate, low=1 / back.high, high=1 / back.low)
        worth |= dict.fromkeys(candidate.fix.undoes, told)
    return [replace(each, worth=worth.get(each.id)) if each.status == "not_applicable" else each for each in outcomes]


def _unmeasured(candidate: Candidate, device: str, cut: str, rungs: Sequence[LadderStep]) -> FixOutcome:
    status: Status = "not_applicable"
    reason = candidate.refusal
    if reason.startswith(TOO_LITTLE) and candidate.fix.id in {rung.fix for rung in rungs}:
        reason += "; that is so by itself, and it was measured together with what makes computing faster"
    if candidate.failures:
        status, reason = "failed", next(iter(candidate.failures.values()))
    elif candidate.idle:
        key, idle = next(iter(candidate.idle.items()))
        whole = next({**candidate.base, **each} for each in candidate.settings if candidate.key(each) == key)
        without = words.setting_code({name: whole[name] for name in idle}, device)
        status, reason = "failed", f"{without} did not take effect, so it was not measured"
    elif candidate.settings or not reason:
        status, reason = "cannot_tell", f"{cut} before it could be measured"
    return FixOutcome(
        id=candidate.fix.id,
        title=candidate.fix.title,
        why=candidate.fix.why,
        setting={**candidate.base, **candidate.settings[0]} if candidate.settings else {},
        status=status,
        risk=candidate.risk,
        reason=reason,
        over=candidate.base,
    )


# -- the rest of the result --------------------------------------------------------------------------------------------


def _baseline(evidence: JudgeEvidence) -> Baseline | None:
    windows = [w for w in evidence.windows if ev.usable(w) and w.label == BASELINE]
    if not windows:
        return None
    per_step = ev.samples_per_step(evidence.windows)
    by_session: dict[int, list[float]] = {}
    for window in windows:
        by_session.setdefault(window.session, []).append(math.log(ev.step_cost(window, per_step)))
    step = math.exp(fmean(fmean(costs) for costs in by_session.values()))
    found = evidence.found
    return Baseline(
        samples_per_second=per_step / step,
        steps_per_second=1 / step,
        step_ms=1000 * step,
        windows=len(windows),
        sessions=len(by_session),
        data_wait_share=ev.wait_share(evidence.windows) if found.has_loader else None,
        settings=own_settings(found),
        rung=found.rung,
        period=found.period,
        batch_size=per_step if _counts_samples(found, per_step) else None,
        epoch_batches=evidence.epoch_batches,
        epoch_turn_seconds=ev.baseline_epoch_overhead(evidence.windows),
        collecting_seconds=ev.collecting_a_turn(evidence.windows),
        device=found.device,
    )


def _counts_samples(found: Found, per_step: float) -> bool:
    """Whether samples were counted. They can't be without a loader, or if the batches don't show how many they hold."""
    return found.has_loader and not (per_step == 1.0 and (found.batch_size or 1) > 1)


def _ceilings(evidence: JudgeEvidence, estimates: Estimates) -> dict[str, Speedup]:
    """The ceilings. None of them is below the measured speed of a setting that it bounds."""
    measured = [
        (window.label, window.setting)
        for window in evidence.windows
        if ev.usable(window) and window.mode == "timed" and window.label in estimates.promised and window.setting
    ]
    settings = {label: setting for label, setting in measured if label != REPLAY}
    changes = repeats.baseline_changes(evidence.windows)

    def above(name: str, ceiling: speedups.SpeedupEstimate, workers: int | None = None) -> Speedup:
        worth = [
            speedup(table[label])
            for table in (estimates.promised, estimates.confirmed)
            for label, setting in settings.items()
            if label in table and ranking.bounded(name, setting, workers)
        ]
        return ranking.raised(_within_a_process(speedup(ceiling), changes), worth)

    ceilings = {}
    if REPLAY in estimates.promised:
        ceilings["synthetic"] = above("synthetic", estimates.promised[REPLAY])
    only = {key: value for key, value in estimates.promised.items() if key.startswith(LOADER_ONLY)}
    own = LOADER_ONLY
    if own in only:
        ceilings["loader_only"] = above("loader_only", only[own])
    others = {key: value for key, value in only.items() if key != own}
    if others:
        best = max(others, key=lambda key: others[key].estimate)
        workers = next((num_workers.asked(w.setting) for w in evidence.windows if w.label == best), None)
        ceilings["loader_only_best_workers"] = above("loader_only_best_workers", others[best], workers)
    return ceilings


def _within_a_process(ceiling: Speedup, changes: Sequence[float]) -> Speedup:
    """A ceiling comes from one process, so it has no interval as fixes have. It gets one of what windows differ by."""
    half = repeats.half_width(changes, ceiling.pairs)
    if words.has_interval(ceiling) or half is None or ceiling.estimate <= 0:
        return ceiling
    return replace(
        ceiling, low=ceiling.estimate / math.exp(half), high=min(LARGEST_RATIO, ceiling.estimate * math.exp(half))
    )


def _workers(evidence: JudgeEvidence, estimates: Estimates, baseline: Baseline | None) -> Workers | None:
    found = evidence.found
    if baseline is None or not found.has_loader:
        return None
    own = Speedup(estimate=1.0, low=1.0, high=1.0, pairs=baseline.windows, sessions=baseline.sessions)
    curve = [
        WorkerPoint(
            num_workers=found.num_workers,
            samples_per_second=baseline.samples_per_second,
            speedup=own,
            steady=own,
            is_baseline=True,
        )
    ]
    counts = {
        count
        for window in evidence.windows
        if ev.usable(window) and window.mode == "timed" and (count := num_workers.alone(window.setting)) is not None
    }
    for count in sorted(counts - {found.num_workers}):
        key = key_of(num_workers.setting_of(count))
        if key in estimates.promised:
            promised = estimates.promised[key]
            curve.append(
                WorkerPoint(
                    num_workers=count,
                    samples_per_second=baseline.samples_per_second * promised.estimate,
                    speedup=speedup(promised),
                    steady=speedup(estimates.steady[key]),
                )
            )
    curve.sort(key=lambda point: point.num_workers)
    return Workers(curve=curve, usable_cpus=found.usable_cpus) if len(curve) > 1 else None


def _ladder(evidence: JudgeEvidence, estimates: Estimates) -> list[LadderStep]:
    """Fixes on top of one another, as far as they were measured; empty if there are fewer than two."""
    ladder: list[LadderStep] = []
    for fix, setting in evidence.rungs:
        estimate = estimates.promised.get(key_of(setting))
        if estimate is None:
            break
        # Leave out a rung that brings nothing: fewer changes for the same speed.
        if ladder and estimate.estimate < ladder[-1].speedup.estimate * (1 + 0.5 * speedups.EQUIVALENCE):
            continue
        more = estimates.over(setting, ladder[-1].setting) if ladder else None
        step = LadderStep(fix=fix, setting=setting, speedup=speedup(estimate), added=speedup(more) if more else None)
        ladder.append(step)
    return ladder if len(ladder) > 1 else []


def _combination(
    evidence: JudgeEvidence, estimates: Estimates, ladder: Sequence[LadderStep], leading: Claim | None
) -> Combination | None:
    """The fixes together: up to the rung that the verdict names, or all of them if it names a single fix."""
    if not ladder:
        return None
    named = [rung for rung in ladder if leading is not None and leading.fix is None and rung.setting == leading.setting]
    top = named[0] if named else ladder[-1]
    confirmed = estimates.confirmed.get(key_of(top.setting))
    return Combination(
        setting=top.setting,
        speedup=top.speedup,
        confirmed=speedup(confirmed) if confirmed and confirmed.sessions >= 2 else None,
        ladder=list(ladder),
        risk=headline.gravest(evidence, headline.up_to(ladder, top.setting)),
        changes=_changes(top.setting, evidence),
        preparation=preparation(top.setting, evidence.found),
    )


def _changes(setting: Setting, evidence: JudgeEvidence) -> list[Change]:
    return changes_for(setting, evidence.found, evidence.entrypoint) if evidence.edits else []


def _verdict(
    evidence: JudgeEvidence,
    baseline: Baseline | None,
    outcomes: Sequence[FixOutcome],
    leading: Claim | None,
    together: Combination | None,
    kept: KeptMemory,
    ceilings: Mapping[str, Speedup],
    estimates: Estimates,
    doubt: Doubt,
) -> Verdict:
    """`together`: the fixes that `leading` is made of, where it is several."""
    if baseline is None:
        return Verdict(sentence="Cannot tell: the training as written could not be measured.")
    opening = _opening(baseline)
    if leading is not None:
        whole = kept.setting(leading.setting)
        sentence = f"{opening} {promise_words.claim(whole, leading.figure, evidence.found.device)}"
        single = leading.fix or _best_single(outcomes)
        told = (
            sentence,
            promise_words.needless(together, evidence.found.device),
            promise_words.may_do(headline.may_do(leading, outcomes, estimates.adds), evidence.found.device),
            *promise_words.terms(whole, preparation(whole, evidence.found), leading.risk, evidence.least_other_load),
        )
        return Verdict(
            sentence=" ".join(filter(None, told)),
            fix=single,
            together=leading.fix is None,
        )
    unsettled = [outcome for outcome in outcomes if outcome.status == "cannot_tell"]
    if unsettled:
        return _undecided(evidence, opening, outcomes, unsettled, estimates, doubt)
    measured = estimates.promised.get(REPLAY)
    free = None
    if measured is not None and "synthetic" in ceilings:
        # If it was measured below 1, take the measured value: the ceiling was raised above it and not measured.
        free = measured.estimate if measured.estimate < 1 else ceilings["synthetic"].estimate
    return Verdict(sentence=undecided.nothing_faster(outcomes, free))


def _undecided(
    evidence: JudgeEvidence,
    opening: str,
    outcomes: Sequence[FixOutcome],
    unsettled: Sequence[FixOutcome],
    estimates: Estimates,
    doubt: Doubt,
) -> Verdict:
    """The verdict if nothing is faster and something is open, with the next step at its end."""
    if estimates.floor > ranking.TOO_NOISY:
        return Verdict(
            sentence=f"{opening} Cannot tell what would help: {_too_noisy(evidence, estimates.floor)}. "
            f"{undecided.quieter(unsettled, evidence.found.device, others=_others_busy(evidence))}"
        )
    decided = [outcome for outcome in outcomes if outcome.status != "cannot_tell" and outcome.speedup is not None]
    told = undecided.sentence(unsettled, decided, evidence.found.device, evidence.cut)
    step = doubt.next_step(outcomes)
    if step is None:
        return Verdict(sentence=f"{opening} {told}")
    settle, short = step
    rest = not any(each.id in settle.fixes and each.speedup is not None for each in unsettled)
    return Verdict(sentence=f"{opening} {told} {settle_text(short, settle.seconds, rest=rest)}", settle=settle)


def _best_single(outcomes: Sequence[FixOutcome]) -> str | None:
    """The best of the fixes that are faster by themselves; None if none is."""
    faster = [outcome for outcome in outcomes if outcome.status == "faster"]
    best = max(faster, key=lambda outcome: words.lower_end(outcome.speedup), default=None)
    return None if best is None else best.id


def _too_noisy(evidence: JudgeEvidence, floor: float) -> str:
    """Why there is too much noise. Other programs are blamed only if they were seen: training can vary by itself."""
    vary = f"measurements of the same training differ so much that a gain{words.below_text(floor)} may be chance"
    if evidence.other_load is None or not _others_busy(evidence):
        return vary
    return f"other programs kept up to {words.busy_cores(evidence.other_load)} busy meanwhile, and {vary}"


def _others_busy(evidence: JudgeEvidence) -> bool:
    return evidence.other_load is not None and evidence.other_load > words.OTHER_LOAD


def opened_by(judged: Judgement, cause: str) -> str:
    """The verdict with its general opening replaced by the sentence `cause`, or the cause put before it."""
    sentence = judged.verdict.sentence
    opening = _opening(judged.baseline) if judged.baseline is not None else ""
    if opening and sentence.startswith(opening):
        return cause + sentence.removeprefix(opening)
    return f"{cause} {sentence}"


def _opening(baseline: Baseline) -> str:
    if baseline.data_wait_share is None:
        return f"Training runs at {words.amount_text(baseline.steps_per_second)} steps a second."
    return f"Training waits for data {words.share_text(baseline.data_wait_share)} of the time."
