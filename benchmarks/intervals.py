"""How often the intervals of `stats` hold the truth, and how often its claims are false: simulated examinations.

    python benchmarks/intervals.py --replications 2000

Every examination has two levels of luck with known truth: the session's (shared by all settings, and of each setting
by itself) and the window's (of the setting, and of the baseline of the block, which its settings share). The control
shares no luck of the session: the baseline is compared with itself. `tests/truth/test_stats_coverage.py` runs a
small version of the same grid.

The last table is of whole examinations, which look after each process from the second on whether that is enough:
windows go through the judge and the rule that ends it (`examine/looks.py`). `tests/unit/test_looks.py` runs a small
version.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

from bottleneck_doctor.documents.labels import BASELINE, key_of
from bottleneck_doctor.documents.report import Setting, Speedup, Window
from bottleneck_doctor.examine import deciding, looks
from bottleneck_doctor.examine.evidence import Candidate, JudgeEvidence
from bottleneck_doctor.examine.judge import judge
from bottleneck_doctor.fixes import catalogue
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.statistics import speedups

CONTROL = "aa"
LOSER = math.log(0.7)


@dataclass(frozen=True)
class Scenario:
    """Standard deviations are of log ratios: 0.04 is 4 %.

    `spreads`: "alike", "unlike" (every third setting is three times as noisy on both levels), "one wild" (setting 0
    has a luck of its own of 12 %, the others have none) or "one quiet" (setting 0 has none, the others 12 %).
    `selection`: "full" (every setting in every block), "thin" (a setting that lost session 1 gets one window in each
    later session) or "leave" (it is gone after session 2). `luck`: how all luck is distributed, "heavy" (Student's t
    with 3 degrees of freedom) or "skewed" (one draw in ten lies five standard deviations lower). `planned`: processes
    after which an examination that looks ends, unless what leads is likely to help and a few more may decide
    (`examine/deciding.py`).
    """

    name: str
    window: float
    shared: float
    own: float
    spreads: Literal["alike", "unlike", "one wild", "one quiet"] = "alike"
    selection: Literal["full", "thin", "leave"] = "full"
    luck: Literal["normal", "heavy", "skewed"] = "normal"
    sessions: int = 3
    settings: int = 8
    blocks: int = 3
    planned: int | None = None


NOISES = (
    Scenario("windows 2 %", 0.02, 0.0, 0.0),
    Scenario("windows 6 %", 0.06, 0.0, 0.0),
    Scenario("shared 3 %", 0.04, 0.03, 0.0),
    Scenario("own 6 %", 0.04, 0.0, 0.06),
    Scenario("shared 6 %, own 6 %", 0.03, 0.06, 0.06),
    Scenario("shared 12 %, own 3 %", 0.03, 0.12, 0.03),
    Scenario("shared 12 %", 0.02, 0.12, 0.0),
    Scenario("unlike, own 4 %", 0.03, 0.0, 0.04, "unlike"),
    Scenario("unlike, shared 6 %, own 3 %", 0.03, 0.06, 0.03, "unlike"),
    Scenario("one wild", 0.02, 0.0, 0.0, "one wild"),
    Scenario("one quiet", 0.02, 0.0, 0.0, "one quiet"),
    Scenario("thin selection, shared 6 %, own 6 %", 0.06, 0.06, 0.06, selection="thin"),
    Scenario("thin selection, unlike", 0.06, 0.03, 0.03, "unlike", selection="thin"),
    Scenario("leaving, shared 6 %, own 6 %", 0.03, 0.06, 0.06, selection="leave"),
    Scenario("leaving, unlike", 0.03, 0.06, 0.03, "unlike", selection="leave"),
)
SESSIONS = (3, 4, 6)
SETTINGS = (3, 8, 12)


NOT_NORMAL = ("windows 6 %", "own 6 %", "shared 6 %, own 6 %", "shared 12 %, own 3 %")


def full_grid() -> Iterator[Scenario]:
    for noise in NOISES:
        for sessions in SESSIONS:
            for settings in SETTINGS:
                yield replace(noise, sessions=sessions, settings=settings)


@dataclass(frozen=True)
class _Luck:
    """Draws what is random in a scenario."""

    scenario: Scenario
    rng: random.Random

    def draw(self, deviation: float) -> float:
        value = self.rng.gauss(0, 1)
        if self.scenario.luck == "heavy":
            value /= math.sqrt(self.rng.gammavariate(1.5, 2) / 3)
        elif self.scenario.luck == "skewed":
            value += 0.5 - (5 if self.rng.random() < 0.1 else 0)
        return deviation * value

    def noisy(self, setting: int) -> float:
        return 3.0 if self.scenario.spreads == "unlike" and setting % 3 == 0 else 1.0

    def own(self, setting: int) -> float:
        if self.scenario.spreads == "one wild":
            return 0.12 if setting == 0 else 0.0
        if self.scenario.spreads == "one quiet":
            return 0.0 if setting == 0 else 0.12
        return self.scenario.own * self.noisy(setting)


def examine(scenario: Scenario, truth: list[float], rng: random.Random) -> list[speedups.Observation]:
    """The observations of one examination; `truth` holds the log speedup of every setting."""

    luck_of = _Luck(scenario, rng)
    draw, noisy, own = luck_of.draw, luck_of.noisy, luck_of.own
    seen: list[speedups.Observation] = []
    lost: set[int] = set()
    for session in range(scenario.sessions):
        shared = draw(scenario.shared)
        luck = [shared + draw(own(setting)) for setting in range(scenario.settings)]
        for block in range(scenario.blocks):
            baseline = draw(scenario.window)
            control = draw(scenario.window) - baseline
            seen.append(speedups.Observation(session, block, CONTROL, control))
            for setting in range(scenario.settings):
                if setting in lost and (session > 1 if scenario.selection == "leave" else block > 0):
                    continue
                window = draw(scenario.window * noisy(setting)) - baseline
                value = truth[setting] + luck[setting] + window
                seen.append(speedups.Observation(session, block, f"fix {setting}", value))
        if session == 0 and scenario.selection != "full":
            first = [(fmean(s.log_ratio for s in seen if s.setting == f"fix {k}"), k) for k in range(len(truth))]
            lost = {k for mean, k in first if mean < LOSER / 2}
    return seen


@dataclass(frozen=True)
class Coverage:
    """Shares of intervals that held the truth, and the median half width of an interval, in logs."""

    scenario: Scenario
    mean: float
    worst: float
    half_width: float


def coverage(scenario: Scenario, replications: int, seed: int) -> Coverage:
    rng = random.Random(seed)
    truth = [(0.0, math.log(1.5), LOSER, math.log(1.1))[k % 4] for k in range(scenario.settings)]
    held = [0] * scenario.settings
    widths = []
    for _ in range(replications):
        estimates = speedups.estimate_all(examine(scenario, truth, rng))
        for k, log_ratio in enumerate(truth):
            estimate = estimates[f"fix {k}"]
            held[k] += estimate.low <= math.exp(log_ratio) <= estimate.high
            widths.append(math.log(estimate.high / estimate.low) / 2)
    shares = [count / replications for count in held]
    return Coverage(scenario, fmean(shares), min(shares), sorted(widths)[len(widths) // 2])


def verdicts(scenario: Scenario, truth: list[float], rng: random.Random) -> list[speedups.Verdict]:
    """The verdicts of one examination, in the order of `truth`."""
    estimates = speedups.estimate_all(examine(scenario, truth, rng))
    floor = speedups.noise_floor(estimates, CONTROL)
    fixes = [estimates[f"fix {k}"] for k in range(scenario.settings)]
    adjusted = speedups.holm([fix.p_value for fix in fixes])
    return [speedups.verdict(fix, adjusted_p=p, floor=floor) for fix, p in zip(fixes, adjusted, strict=True)]


@dataclass(frozen=True)
class Claims:
    """Shares of examinations in which something was called faster, or either faster or slower."""

    scenario: Scenario
    faster: float
    different: float


def false_claims(scenario: Scenario, replications: int, seed: int) -> Claims:
    """What is claimed where no setting differs from the baseline."""
    rng = random.Random(seed)
    said = [set(verdicts(scenario, [0.0] * scenario.settings, rng)) for _ in range(replications)]
    return Claims(
        scenario,
        fmean("faster" in each for each in said),
        fmean("faster" in each or "slower" in each for each in said),
    )


def power(scenario: Scenario, log_ratio: float, replications: int, seed: int) -> float:
    """Share of examinations that call one setting faster that is, among settings that change nothing."""
    rng = random.Random(seed)
    truth = [0.0] * (scenario.settings - 1) + [log_ratio]
    return fmean(verdicts(scenario, truth, rng)[-1] == "faster" for _ in range(replications))


# -- examinations that look, and end once they are sure ---------------------------------------------------------------

LOOKED_AT = (
    Scenario("windows 4 %", 0.04, 0.0, 0.0),
    Scenario("shared 1 %, own 1 %", 0.02, 0.01, 0.01),
    Scenario("shared 3 %, own 3 %", 0.04, 0.03, 0.03),
    Scenario("shared 6 %, own 2 %", 0.03, 0.06, 0.02),
    Scenario("own 6 %", 0.04, 0.0, 0.06),
    Scenario("shared 12 %", 0.02, 0.12, 0.0),
    Scenario("unlike, shared 6 %, own 3 %", 0.03, 0.06, 0.03, "unlike"),
    Scenario("own 3 %, heavy", 0.04, 0.0, 0.03, luck="heavy"),
    Scenario("shared 3 %, skewed", 0.02, 0.03, 0.0, luck="skewed"),
)
MOST_PROCESSES = ((None, 4), (None, 8), (4, 8))
"""After how many processes an examination ends that goes on if a few more may decide (None: it never does), and the
most that there are."""
STEP = 0.1
LOOP = Found(
    rung="optimizer step",
    period=1,
    periodic=True,
    step_seconds=[STEP] * 8,
    wait_seconds=[STEP / 2] * 8,
    samples_per_step=4.0,
    device="cpu",
    usable_cpus=2,
    threads=1,
    has_loader=True,
    batch_size=4,
)


def setting_of(number: int) -> Setting:
    """The setting of one of the fixes that are made up. All are of one kind, which no other rides on."""
    return {"intra_op_threads": number + 2}


def windows_of(scenario: Scenario, truth: list[float], rng: random.Random) -> list[Window]:
    """The windows of one examination, a block in each process; `truth` as in `examine`."""
    luck = _Luck(scenario, rng)
    windows: list[Window] = []
    for session in range(1, scenario.sessions + 1):
        shared = luck.draw(scenario.shared)
        order = rng.sample(range(scenario.settings), scenario.settings)
        for number, setting in enumerate(order):
            if number % 3 == 0:
                windows.append(_window(session, len(windows), {}, luck.draw(scenario.window)))
            worth = truth[setting] + shared + luck.draw(luck.own(setting))
            speed = worth + luck.draw(scenario.window * luck.noisy(setting))
            windows.append(_window(session, len(windows), setting_of(setting), speed))
        windows.append(_window(session, len(windows), {}, luck.draw(scenario.window)))
    return windows


def _window(session: int, number: int, setting: Setting, log_speed: float) -> Window:
    return Window(
        session=session,
        rank=0,
        block=session,
        setting=setting,
        mode="timed",
        steps=20,
        samples=80.0,
        seconds=20 * STEP * math.exp(-log_speed),
        lead_in_steps=2,
        lead_in_seconds=0.0,
        wait_seconds=0.0,
        turn_seconds=None,
        whole_epochs=0,
        queue_change=0,
        ready_share=None,
        effect={},
        started=10.0 * number,
        label=key_of(setting) if setting else BASELINE,
    )


@dataclass(frozen=True)
class Ended:
    """How an examination ended: after how many processes, and what it offers (number of the setting, speedup)."""

    processes: int
    offered: tuple[int, Speedup] | None


def looked(scenario: Scenario, truth: list[float], rng: random.Random) -> Ended:
    """One examination of at most `scenario.sessions` processes. Nothing but the rule itself keeps it going: no other
    setting is waited for, so that it ends as soon as it ever may."""
    windows = windows_of(scenario, truth, rng)
    fix = next(iter(catalogue()))
    evidence = JudgeEvidence(
        found=LOOP,
        windows=windows,
        candidates=[Candidate(replace(fix, id=f"{k}"), settings=[setting_of(k)]) for k in range(scenario.settings)],
        rungs=[],
        chosen_after=1,
        epoch_batches=None,
    )
    last = scenario.planned or scenario.sessions
    for processes in range(looks.FIRST, scenario.sessions + 1):
        seen = replace(evidence, windows=[window for window in windows if window.session <= processes])
        if processes == scenario.planned and (wanted := deciding.lacking(seen)) is not None:
            last = processes + wanted[1]
            if last <= scenario.sessions:
                continue
            last = processes  # More would not fit.
        if processes < last:
            if not looks.Look(seen).is_enough({}):
                continue
            seen = replace(seen, significance=speedups.INTERIM_SIGNIFICANCE)
        best = looks.offered(judge(seen))
        if best is None:
            return Ended(processes, None)
        setting, worth = best
        return Ended(processes, (int(setting["intra_op_threads"]) - 2, worth))
    raise AssertionError("the last look ends it")


@dataclass(frozen=True)
class Looked:
    """Of examinations that look: the share with a false claim where nothing differs; and of those in which one setting
    is 1.5 times as fast, the share that claims it, of those the share whose interval holds that, how far the median of
    the estimates is off, and the processes that they took in the mean."""

    scenario: Scenario
    false: float
    found: float
    held: float
    off: float
    processes: float


def looking(scenario: Scenario, replications: int, seed: int) -> Looked:
    rng = random.Random(seed)
    nothing = [looked(scenario, [0.0] * scenario.settings, rng) for _ in range(replications)]
    truth = [math.log(1.5)] + [0.0] * (scenario.settings - 1)
    something = [looked(scenario, truth, rng) for _ in range(replications)]
    claims = [end.offered[1] for end in something if end.offered is not None and end.offered[0] == 0]
    return Looked(
        scenario,
        false=fmean(end.offered is not None for end in nothing),
        found=len(claims) / replications,
        held=fmean([claim.low <= 1.5 <= claim.high for claim in claims] or [math.nan]),
        off=median([claim.estimate for claim in claims] or [math.nan]) / 1.5 - 1,
        processes=fmean(end.processes for end in something),
    )


def looked_grid() -> Iterator[Scenario]:
    for scenario in LOOKED_AT:
        for planned, sessions in MOST_PROCESSES:
            yield replace(scenario, sessions=sessions, settings=5, planned=planned)


def looked_table(rows: Iterable[Looked]) -> str:
    lines = ["at most  false claims  1.5x found  interval holds  median off  processes  noise"]
    for row in rows:
        figures = f"{row.false:12.1%}  {row.found:10.1%}  {row.held:14.1%}  {row.off:10.1%}  {row.processes:9.1f}"
        planned = row.scenario.planned
        most = f"{planned} or {row.scenario.sessions}" if planned else f"{row.scenario.sessions}"
        lines.append(f"{most:>7}  {figures}  {row.scenario.name}")
    return "\n".join(lines)


def coverage_table(rows: Iterable[Coverage]) -> str:
    lines = ["sessions  settings  coverage  worst setting  half width  noise"]
    for row in rows:
        s = row.scenario
        figures = f"{row.mean:8.1%}  {row.worst:13.1%}  {row.half_width:10.3f}"
        lines.append(f"{s.sessions:8}  {s.settings:8}  {figures}  {s.name}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replications", type=int, default=1000, help="examinations for each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--looks", action="store_true", help="only the last table: of examinations that end early")
    options = parser.parse_args()

    started = time.monotonic()
    if not options.looks:
        print_intervals(options.replications, options.seed)
    print("\nexaminations that look after each process from the second on, and end once they are sure")
    each = max(1, options.replications // 2)
    print(looked_table(looking(scenario, each, options.seed + i) for i, scenario in enumerate(looked_grid())))
    print(f"\n{options.replications} replications, {time.monotonic() - started:.0f} s")


def print_intervals(replications: int, seed: int) -> None:
    rows = [coverage(scenario, replications, seed + i) for i, scenario in enumerate(full_grid())]
    print(coverage_table(rows))
    lowest = min(rows, key=lambda row: row.mean)
    print(f"\nmean coverage {fmean(row.mean for row in rows):.1%}, lowest row {lowest.mean:.1%}")
    for sessions in SESSIONS:
        print(f"  {sessions} sessions: {fmean(row.mean for row in rows if row.scenario.sessions == sessions):.1%}")

    print("\nluck that is not normal: coverage, and share of examinations with a false claim where nothing differs")
    print("sessions  coverage  faster  faster or slower  luck    noise")
    for tails in ("heavy", "skewed"):
        for noise in (each for each in NOISES if each.name in NOT_NORMAL):
            for sessions in SESSIONS:
                scenario = replace(noise, luck=tails, sessions=sessions)
                row = coverage(scenario, replications, seed)
                claims = false_claims(scenario, replications, seed)
                shares = f"{row.mean:8.1%}  {claims.faster:6.1%}  {claims.different:16.1%}"
                print(f"{sessions:8}  {shares}  {tails:6}  {noise.name}")

    print("\nexaminations in which nothing differs: share with a false claim")
    print("sessions  settings  faster  faster or slower  noise")
    for i, scenario in enumerate(s for s in full_grid() if s.settings != 3 and s.selection == "full"):
        claims = false_claims(scenario, replications, seed + 1000 + i)
        shares = f"{claims.faster:6.1%}  {claims.different:16.1%}"
        print(f"{scenario.sessions:8}  {scenario.settings:8}  {shares}  {scenario.name}")

    print("\nshare of examinations of ten settings that find the one that is faster (windows 4 %)")
    print("sessions  luck of a session    1.05   1.10   1.20   1.50")
    for sessions in SESSIONS:
        for luck in (0.01, 0.05):
            scenario = Scenario("power", 0.04, luck / math.sqrt(2), luck / math.sqrt(2), sessions=sessions, settings=10)
            found = [
                power(scenario, math.log(speedup), max(1, replications // 4), seed) for speedup in (1.05, 1.1, 1.2, 1.5)
            ]
            print(f"{sessions:8}  {luck:17.0%}  " + " ".join(f"{share:6.0%}" for share in found))


if __name__ == "__main__":
    main()
