"""What an examination hands back: a `Result` with its warnings. `no_result` says why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path, PurePath

from bottleneck_doctor import __version__, knobs
from bottleneck_doctor.diagnose import Diagnosis, Evidence, Headline, diagnose, headline, whole_run
from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import (
    Entrypoint,
    Environment,
    Method,
    Protection,
    Rank,
    Result,
    SessionRecord,
    Tool,
    Utilization,
    Verdict,
    Warning,
    Window,
)
from bottleneck_doctor.examine import judge, looks
from bottleneck_doctor.examine.beside import Beside
from bottleneck_doctor.examine.evidence import TIME_OVER
from bottleneck_doctor.examine.interim import Interim
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.examine.settling import Command, settling
from bottleneck_doctor.examine.sources import sources
from bottleneck_doctor.explain.explainer import Explanation
from bottleneck_doctor.fixes import catalogue
from bottleneck_doctor.measure import pairing, schedule
from bottleneck_doctor.runtime.wire.messages import Found, Hello
from bottleneck_doctor.runtime.wire.notebooks import LINES, is_notebook
from bottleneck_doctor.session import environment
from bottleneck_doctor.session.ending import Ending
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import words

NOISY_FLOOR = 0.05
RUNGS = {"backward": "backward passes", "gradient scaler": "those of the gradient scaler"}
"""Values of `Found.rung`, as parts of a sentence."""


UNJUDGED = "Doctor could not judge what it measured, because of a bug of its own. The report holds the windows."


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """All that an examination knows when it ends. `selection` is None if the loop was never found."""

    argv: Sequence[str]
    repeat: list[str]
    seed: int
    budget: float
    seconds: float
    fresh_runs: bool
    interrupted: bool
    records: list[SessionRecord]
    endings: Mapping[int, Ending]
    """How sessions ended that ended by themselves, by their number."""
    hello: Hello | None
    selection: Selection | None
    has_baseline: bool
    interim: Interim | None = None
    """The interim looks; None if there was no loop."""
    beside: Beside | None = None
    unmeasured: str = ""
    """The sentence that says why there is no baseline, unless the user interrupted."""
    explanation: Explanation | None = None
    ranks: Sequence[Rank] = ()
    missing_ranks: Sequence[int] = ()
    protection: Protection | None = None
    lost_files: Sequence[str] = ()
    """Files of the user's that could not be put back."""
    source: bool = True
    """Whether the report may show lines of the user's code."""
    settling: Command | None = None
    """Makes the command that examines some of the fixes again; None: no command is shown."""

    @property
    def sure_after(self) -> float | None:
        """Seconds from the start when an interim look ended the measuring; None if no look did."""
        return None if self.interim is None else self.interim.sure_after

    def ended(self, how: Ending) -> list[SessionRecord]:
        """The sessions that ended in this way, in order."""
        return [record for record in self.records if self.endings.get(record.number) is how]


def result_and_bug(gathered: Gathered) -> tuple[Result, Exception | None]:
    """The result, and the bug that kept it from being judged, if there was one. Minutes of measuring should not be lost
    to a bug in a sentence, so the result then holds the windows and why the training is slow, but judges no fix."""
    try:
        return result(gathered), None
    except Exception as error:
        if not gathered.has_baseline:
            raise
        return result(replace(gathered, has_baseline=False, unmeasured=UNJUDGED)), error


def result(gathered: Gathered) -> Result:
    """The result of what was gathered. Fixes are judged only if there is a baseline."""
    selection = gathered.selection
    judged: judge.Judgement | None = None
    if selection is not None and gathered.has_baseline:
        judged = judge.judge(
            looks.evidence_of(
                selection,
                gathered.beside,
                other_load=_other_load(gathered),
                least_other_load=words.least_other_load(gathered.records),
                cut=_cut(gathered),
                settling=settling(
                    gathered.settling,
                    selection.measured.windows,
                    gathered.beside.windows if gathered.beside is not None else (),
                    gathered.records,
                    has_loader=selection.found.has_loader,
                    explains=gathered.explanation is not None,
                    fresh_runs=gathered.fresh_runs,
                ),
                significance=speedups.SIGNIFICANCE if gathered.sure_after is None else speedups.INTERIM_SIGNIFICANCE,
                entrypoint=gathered.argv,
            )
        )
    told = gathered.explanation or Explanation()
    environment_seen = environment.describe(gathered.hello, selection.found if selection else None)
    windows = list(selection.measured.windows) if selection else []
    used = told.utilization(windows, _best_label(judged))
    evidence = _evidence(gathered, judged, environment_seen, used)
    found_out = Diagnosis([], []) if evidence is None else diagnose(evidence)
    return Result(
        tool=Tool(name="bottleneck-doctor", version=__version__),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        entrypoint=Entrypoint(argv=list(gathered.argv), cwd=str(Path.cwd())),
        environment=environment_seen,
        verdict=_verdict(gathered, judged, found_out),
        baseline=judged.baseline if judged else None,
        noise=judged.noise if judged else None,
        ceilings=judged.ceilings if judged else {},
        fixes=judged.fixes if judged else [],
        combination=judged.combination if judged else None,
        workers=judged.workers if judged else None,
        phases=told.phases,
        utilization=used,
        profiles=told.profiles(),
        findings=found_out.findings,
        warnings=_warnings(gathered, judged),
        windows=[*windows, *(gathered.beside.windows if gathered.beside is not None else ())],
        method=Method(
            command=gathered.repeat,
            seed=gathered.seed,
            budget_seconds=gathered.budget,
            seconds=gathered.seconds,
            sure_after_seconds=gathered.sure_after,
            claimed_after_seconds=None if gathered.interim is None else gathered.interim.claimed_after,
            ways="fresh-runs" if gathered.fresh_runs else "windows",
            sessions=gathered.records,
            equivalence=speedups.EQUIVALENCE,
            protection=gathered.protection,
            source=gathered.source,
        ),
        steps=told.steps,
        epoch_pause=told.epoch_pause,
        interruption=told.interruption,
        long_pause=told.long_pause,
        loading=told.loading,
        timelines=told.timelines,
        synchronising=told.synchronising or [],
        garbage=told.garbage,
        not_judged=found_out.not_judged,
        ranks=list(gathered.ranks),
        without_ceilings="" if selection is None or judged is None else selection.without_ceilings,
        whole_run=None if evidence is None else whole_run(evidence),
        sources=sources(judged.fixes, judged.combination, Path.cwd()) if judged and gathered.source else None,
    )


def _best_label(judged: judge.Judgement | None) -> str | None:
    """The label of the windows of the setting that the verdict names."""
    if judged is None:
        return None
    best = looks.offered(judged)
    return None if best is None else labels.key_of(knobs.switched(best[0]))


def _evidence(
    gathered: Gathered, judged: judge.Judgement | None, seen: Environment, used: Utilization | None
) -> Evidence | None:
    """What the cause is drawn from; None if nothing was gathered to explain it. Phases alone are enough, without a
    baseline, because they need no comparison."""
    told = gathered.explanation
    if gathered.selection is None or told is None or (judged is None and told.phases is None):
        return None
    return Evidence(
        found=gathered.selection.found,
        baseline=judged.baseline if judged else None,
        environment=seen,
        phases=told.phases,
        steps=told.steps,
        epoch_pause=told.epoch_pause,
        interruption=told.interruption,
        long_pause=told.long_pause,
        loading=told.loading,
        utilization=used,
        profiles=told.profiles(),
        synchronising=told.synchronising,
        garbage=told.garbage,
        exchanges=told.exchanges,
        frozen=told.frozen,
        fixes=judged.fixes if judged else [],
        ceilings=judged.ceilings if judged else {},
        workers=judged.workers if judged else None,
        noise=judged.noise if judged else None,
        windows=gathered.selection.measured.windows,
        ranks=gathered.ranks,
        setup_seconds=[record.setup_seconds for record in gathered.records if record.setup_seconds > 0],
    )


def _verdict(gathered: Gathered, judged: judge.Judgement | None, found_out: Diagnosis) -> Verdict:
    """The judge's sentence. It opens with the cause, if one was found."""
    cause = headline(found_out.findings, found_out.clauses)
    if judged is None:
        sentence = gathered.unmeasured or "Interrupted before the training as written could be measured."
        if cause is None:
            return Verdict(sentence=sentence)
        return Verdict(sentence=f"{cause.opening} {sentence}", finding=cause.finding)
    if cause is None:
        return judged.verdict
    cause = leading_to(judged.verdict.fix, cause, found_out)
    return replace(judged.verdict, sentence=judge.opened_by(judged, cause.opening), finding=cause.finding)


def leading_to(fix: str | None, cause: Headline, found_out: Diagnosis) -> Headline:
    """The headline, so that a reader sees why this fix follows. Beside a wait for data, computing may take most of the
    time and be named by no finding."""
    of_computing = any(each.id == fix and each.target == "compute" for each in catalogue())
    if not of_computing or cause.finding not in found_out.of_data or found_out.computing is None:
        return cause
    weight = next(each.weight for each in found_out.findings if each.id == cause.finding)
    return cause.beside_computing(found_out.computing) if found_out.computing > weight else cause


def _warnings(gathered: Gathered, judged: judge.Judgement | None) -> list[Warning]:
    """Everything that makes the figures less certain."""
    found = []
    if gathered.interrupted:
        found.append(
            Warning(
                slug="interrupted",
                sentence="The examination was interrupted; the report holds what was known by then.",
            )
        )
    if judged is not None:
        found += _weak_evidence(judged, sure=gathered.sure_after is not None)
    if gathered.selection is not None:
        measured = gathered.selection.measured
        found += odd_loop(measured.found, steps_followed=measured.steps_followed)
    found += [cells_counted(word) for word in gathered.argv if is_notebook(word)][:1]
    if gathered.missing_ranks:
        found.append(rank_missing(gathered.missing_ranks))
    if gathered.lost_files:
        found.append(
            Warning(
                slug="files-not-restored",
                sentence=f"{_named(gathered.lost_files)} could not be restored to what it was before the examination.",
            )
        )
    load = _other_load(gathered)
    if load is not None and load > words.OTHER_LOAD:
        found.append(
            Warning(
                slug="other-load",
                sentence=f"Other programs kept up to {words.busy_cores(load)} busy during the examination.",
            )
        )
    if Ending.OURS in gathered.endings.values():
        found.append(
            Warning(
                slug="guest-failed-later",
                sentence="A bug in doctor ended a process. Please report it, with the reason of the failed window.",
            )
        )
    apart = gathered.ended(Ending.APART)
    if apart:
        found.append(Warning(slug="ranks-apart-later", sentence=f"Doctor ended a process because {apart[-1].ended}."))
    failed = gathered.ended(Ending.CRASH)
    if failed:
        selection = gathered.selection
        if selection is None:
            found.append(failed_later(failed, ()))
        else:
            found.append(failed_later(failed, selection.measured.windows, selection.measured.found.device))
    return found


def failed_later(failed: Sequence[SessionRecord], windows: Sequence[Window], device: str = "") -> Warning:
    """The warning that the script failed after it had been measured, under a setting, or perhaps because of one.
    `failed`: the processes in which it did, in order."""
    return Warning(slug="script-failed-later", sentence=_how_it_failed(failed, windows, device))


def _how_it_failed(failed: Sequence[SessionRecord], windows: Sequence[Window], device: str) -> str:
    record = failed[-1]
    ended = record.ended.rstrip(".")
    mine = [window for window in windows if window.session == record.number]
    last = mine[-1] if mine else None
    if last is not None and last.setting and last.status == "failed" and last.reason and last.reason in record.ended:
        return (
            f"With {words.window_code(last, device)}, which doctor tried, {ended}. As written, it had trained before."
        )
    alike = sum(each.ended == record.ended for each in failed)
    if alike > 1:
        return f"{alike} processes ended in the same way: {ended}. So it may fail there without doctor as well."
    if not mine and windows and not record.setup_seconds:
        return f"Before its first steps in one process, {ended}. Other processes trained."
    if not mine and windows:
        why = "so what doctor did to see where the time goes may be the reason"
        return f"Before a window of one process had ended, {ended}. Other processes trained on, {why}."
    switched = " Doctor had switched settings in that process before, which may be the reason."
    return f"After some windows had been measured, {ended}.{switched if any(each.setting for each in mine) else ''}"


def _cut(gathered: Gathered) -> str:
    """What ended the measuring."""
    if gathered.interrupted:
        return "the examination was interrupted"
    if gathered.interim is not None and gathered.interim.left_to_confirming:
        return "the time that was left was kept for the program with the change made"
    if gathered.sure_after is not None:
        return "the examination was sure of the rest and ended"
    if gathered.ended(Ending.APART):
        return "the ranks stopped at different steps"
    windows = gathered.selection.measured.windows if gathered.selection is not None else []
    nothing = not any(pairing.usable(window) and window.setting for window in windows)
    return "the script came to its end" if gathered.ended(Ending.END) and nothing else TIME_OVER


def _other_load(gathered: Gathered) -> float | None:
    """Most cores that other programs kept busy in a session; None if that was never seen."""
    return max(words.other_loads(gathered.records), default=None)


def _named(paths: Sequence[str]) -> str:
    names = sorted(set(paths))
    return names[0] + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")


def _weak_evidence(judged: judge.Judgement, *, sure: bool) -> list[Warning]:
    """`sure`: measuring ended because what is known is enough, however few processes that took."""
    found = []
    if judged.floor > NOISY_FLOOR:
        found.append(
            Warning(
                slug="noisy",
                sentence="Measurements of the same, unchanged training differ from each other, so no "
                f"difference{words.below_text(judged.floor)} is claimed.",
            )
        )
    sessions = judged.baseline.sessions if judged.baseline else 0
    # Fixes that were measured by pairs of processes need no sessions.
    switched = [fix for fix in judged.fixes if not knobs.of_layer(fix.setting, "session")]
    if not sure and sessions < schedule.LEAST_SESSIONS and any(fix.status != "not_applicable" for fix in switched):
        found.append(
            Warning(
                slug="few-processes",
                sentence=f"Only {sessions} of {schedule.LEAST_SESSIONS} processes could be measured; processes differ, "
                "so only large speedups can be sure. Give more time with `--budget`.",
            )
        )
    return found


def odd_loop(found: Found, *, steps_followed: bool) -> list[Warning]:
    """What may be odd about a loop that was found. `steps_followed`: as in `Measurements`."""
    odd = []
    if not found.periodic:
        odd.append(
            Warning(
                slug="no-period",
                sentence="The loop's steps show no regular pattern, so some windows may hold more work than others.",
            )
        )
    if found.of_closure:
        odd.append(
            Warning(
                slug="closure-steps",
                sentence="A step is one call of the optimizer's closure here: the optimizer's own steps take long.",
            )
        )
    elif steps_followed:
        odd.append(
            Warning(
                slug="lower-rung",
                sentence="The loop was found by its batches alone, and an optimizer made steps later. So what was "
                "measured may be a look through the data before training, and not the training.",
            )
        )
    elif found.steps_before:
        made = words.count_text(found.steps_before, "optimizer step")
        odd.append(
            Warning(
                slug="lower-rung",
                sentence=f"The loop was found by its backward passes, after {made}. So what was measured may be an "
                "evaluation that computes gradients, and not the training.",
            )
        )
    elif found.rung != "optimizer step":
        odd.append(
            Warning(
                slug="lower-rung",
                sentence=f"No optimizer step was seen; steps are counted by {RUNGS.get(found.rung, found.rung)}.",
            )
        )
    if found.open_handle and found.num_workers == 0 and found.start_method in ("", "fork") and not found.workers_unsafe:
        odd.append(
            Warning(
                slug="shared-handle",
                sentence=f"The dataset has held {found.open_handle}, since before its loader was made: forked workers "
                "would share its position and could read each other's data. Before you add workers, open it in the "
                "first `__getitem__`.",
            )
        )
    if found.iterable:
        odd.append(
            Warning(
                slug="iterable-restarted",
                sentence="The dataset is an iterable, which starts from its beginning wherever doctor starts its "
                "loader anew, so its first samples are read more often than in training.",
            )
        )
    return odd


def cells_counted(notebook: str) -> Warning:
    """How lines of a notebook are numbered."""
    example = 2 * LINES + 7
    return Warning(
        slug="notebook-lines",
        sentence=f"Lines of {PurePath(notebook).name} are numbered by its cells: line {example} is line 7 of cell 2. "
        "Cells with code are counted from 1, as `In [2]` is after they were run in order.",
    )


def rank_missing(ranks: Iterable[int]) -> Warning:
    """The warning that some ranks don't train."""
    named = ", ".join(str(rank) for rank in sorted(ranks))
    return Warning(
        slug="rank-missing",
        sentence=f"Doctor saw no training loop in rank {named}, and did not measure what happens there.",
    )
