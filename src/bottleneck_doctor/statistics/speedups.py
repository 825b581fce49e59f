"""Speedups with intervals, and the verdicts that they allow.

Logs of (setting's speed / speed of the baseline around it) go in, one per pair of windows. Ratios with a confidence
interval, a p-value and a verdict come out. Pure, standard library only. Intervals come from the spread between
sessions, because processes differ more than the windows inside one of them do. `docs/statistics.md` explains the
method, and `benchmarks/intervals.py` prints how often the intervals contain the truth.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median
from typing import Literal

from bottleneck_doctor.statistics.distributions import student_t_quantile, student_t_tail
from bottleneck_doctor.statistics.spread import (
    MINIMUM_STANDARD_ERROR as MINIMUM_STANDARD_ERROR,
)
from bottleneck_doctor.statistics.spread import (
    Means,
    Spread,
    groups_sharing_sessions,
    spread_of_difference,
    spreads,
    together,
    variance,
    with_others,
)

MINIMUM_SESSIONS = 3
"""Sessions that a setting needs before its own spread allows any claim about it."""

SESSIONS_OF_A_LARGE_CLAIM = 2
"""Sessions that are enough for a claim of a change that is large beside what processes of other programs differ by."""

MINIMUM_FLOOR = 0.01
"""Deviations from 1 below this are never claimed, however well windows repeat."""

EQUIVALENCE = 0.02
"""Default width of "no difference": a ratio within 2 % of 1 is not worth an edit."""

SIGNIFICANCE = 0.05
"""Largest Holm-adjusted p-value with which a difference is claimed."""

INTERIM_SIGNIFICANCE = 0.01
"""The same at an interim look, after which measuring may end because of what it shows. Intervals then have the matching
level. So all looks together make hardly more false claims, and miss the truth hardly more often, than a single look at
the end, which keeps `SIGNIFICANCE` (J. L. Haybittle, Repeated assessment of results in clinical trials of cancer
treatment, 1971; R. Peto and others, Design and analysis of randomized clinical trials, 1976). `benchmarks/intervals.py`
simulates it."""

Verdict = Literal["faster", "slower", "no_difference", "cannot_tell"]


@dataclass(frozen=True)
class Observation:
    """One window of a setting against the baseline around it in the same process.

    `log_ratio` is log(speed of the setting / speed of the baseline): above 0 is faster. `of_processes`: it compares two
    processes instead, one started with the setting and one without.
    """

    session: int
    block: int
    setting: str
    log_ratio: float
    of_processes: bool = False


@dataclass(frozen=True)
class SpeedupEstimate:
    """What one setting is worth: a ratio to the baseline (above 1 is faster) with its confidence interval.

    `p_value` is two-sided, for the hypothesis that the ratio is 1. It is below 1 - level exactly if the interval
    excludes 1. `log_mean` and `standard_error` are on the log scale. With one session, nothing is known of the spread
    between sessions: the interval is (0, infinity), the p-value 1 and the degrees of freedom 0. `lent`: there were two
    sessions, so the spread is also that of other programs (`spread.OF_PROCESSES`).
    """

    setting: str
    estimate: float
    low: float
    high: float
    pairs: int
    sessions: int
    log_mean: float
    standard_error: float
    degrees_of_freedom: float
    p_value: float
    lent: bool = False


def estimate_all(
    observations: Collection[Observation], level: float = 0.95, control: str = "aa"
) -> dict[str, SpeedupEstimate]:
    """The worth of every setting, by name, each with its confidence interval at `level`.

    The control (the baseline judged as if it were a fix) is estimated from its own sessions alone. The deviation of a
    process cancels if the baseline is compared with itself, so the control says nothing of how the others deviate.
    With two sessions, the spread between them is also learnt from other programs. Raises ValueError for a log ratio
    that is not finite or a level outside (0, 1).
    """
    means, windows = _session_means(observations, level)
    found: dict[str, Spread] = {}
    for group in groups_sharing_sessions(means, control):
        found.update(spreads({setting: means[setting] for setting in group}))
    # What is known of other programs is how windows of a process deviate from those of another one.
    apart = {control, *(seen.setting for seen in observations if seen.of_processes)}
    return {
        setting: _estimate(
            setting, list(sessions.values()), windows[setting], found.get(setting), level, lends=setting not in apart
        )
        for setting, sessions in means.items()
    }


def differences(
    observations: Iterable[Observation], over: Mapping[str, str], level: float = 0.95, control: str = "aa"
) -> dict[str, SpeedupEstimate]:
    """What settings are worth beside the settings that they build on, in the sessions that have both. `over`: from the
    name of a setting to that of the one that it builds on; one without such a session is left out.

    What a session does to both cancels, so this is known better than either speedup. Raises as `estimate_all`.
    """
    means, windows = _session_means(observations, level)
    groups = groups_sharing_sessions(means, control)
    found = {}
    for setting, base in over.items():
        both = [session for session in means.get(setting, ()) if session in means.get(base, ())]
        if not both:
            continue
        group = next((each for each in groups if setting in each and base in each), [])
        spread = spread_of_difference({each: means[each] for each in group}, setting, base) if group else None
        values = [means[setting][session] - means[base][session] for session in both]
        # Settings differ less from one another than from the training as written, so this is lent too much spread.
        found[setting] = _estimate(setting, values, min(windows[setting], windows[base]), spread, level, lends=True)
    return found


def _session_means(observations: Iterable[Observation], level: float) -> tuple[Means, dict[str, int]]:
    """The mean of each setting in each session, and how many windows each setting has."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    windows: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seen in observations:
        if not math.isfinite(seen.log_ratio):
            raise ValueError(f"log ratio of {seen.setting!r} in session {seen.session} is {seen.log_ratio}")
        windows[seen.setting][seen.session].append(seen.log_ratio)
    # Sums are made in sorted order, so that the order of the observations changes no digit.
    means = {
        setting: {session: math.fsum(values) / len(values) for session, values in sorted(sessions.items())}
        for setting, sessions in sorted(windows.items())
    }
    return means, {setting: sum(map(len, sessions.values())) for setting, sessions in windows.items()}


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for the number of claims made, in the order given.

    If only adjusted values of at most 0.05 are claimed, the chance of any false claim among all of them is at most 5 %,
    however they depend on one another (S. Holm, A simple sequentially rejective multiple test procedure, 1979).
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def noise_floor(estimates: Mapping[str, SpeedupEstimate], control: str = "aa", minimum: float = MINIMUM_FLOOR) -> float:
    """The deviation from 1 below which no difference is claimed, for example 0.01: what doing nothing looks like.

    It is the larger of two values: the control's apparent deviation, and its standard error. The control's interval is
    not used, because the intervals of the settings include that variation already. If the control's deviation may be
    chance, the floor is limited to three times the typical standard error of the settings. So one extreme window raises
    the floor but does not hide everything. If the control's interval excludes 1, the measurement is biased, and the
    deviation counts in full.
    """
    seen = estimates.get(control)
    if seen is None:
        return minimum
    leans = not seen.low <= 1 <= seen.high
    floor = abs(seen.log_mean)
    if not leans:
        known = [each.standard_error for each in estimates.values() if math.isfinite(each.standard_error)]
        if math.isfinite(seen.standard_error):
            floor = min(max(floor, seen.standard_error), 3 * median(known))
    return max(minimum, _exp(floor) - 1)


def verdict(
    estimate: SpeedupEstimate,
    *,
    adjusted_p: float,
    floor: float,
    equivalence: float = EQUIVALENCE,
    significance: float = SIGNIFICANCE,
) -> Verdict:
    """The verdict on a setting. `adjusted_p` comes from `holm` over all fixes tried, `floor` from `noise_floor`.
    `significance`: the largest adjusted p-value with which a difference is claimed.

    An interval inside 1 ± `equivalence` is no difference, even if it excludes 1: such a difference is too small to
    matter. The lower bound is 1 / (1 + equivalence), so that faster and slower are judged alike.
    """
    if estimate.sessions < MINIMUM_SESSIONS and not estimate.lent:
        return "cannot_tell"
    if 1 / (1 + equivalence) <= estimate.low and estimate.high <= 1 + equivalence:
        return "no_difference"
    if adjusted_p <= significance:
        if estimate.low > 1 + floor:
            return "faster"
        if estimate.high < 1 / (1 + floor):
            return "slower"
    return "cannot_tell"


def surely_faster(one: SpeedupEstimate, other: SpeedupEstimate, level: float = 0.95) -> bool:
    """Whether the interval of `one` over `other` lies above 1, for two estimates that need not come from the same
    sessions. In sessions that measured both, `differences` knows more."""
    errors = [Spread(each.standard_error**2, each.degrees_of_freedom) for each in (one, other)]
    if not all(math.isfinite(each.variance) for each in errors):
        return False
    return one.log_mean - other.log_mean > _half_width(together(*errors), level)


def difference(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Mean of `first` minus mean of `second`, and the half width of its interval at `level`.

    The values are logs, one for each process, in two groups that share no process. The groups may differ in spread (B.
    L. Welch, The generalization of "Student's" problem when several different population variances are involved, 1947).
    None if a group has fewer than two values.
    """
    if len(first) < 2 or len(second) < 2:
        return None
    # No loop repeats to better than this, whatever the group seems to show.
    least = MINIMUM_STANDARD_ERROR**2
    errors = [Spread(max(least, variance(group) / len(group)), len(group) - 1) for group in (first, second)]
    return fmean(first) - fmean(second), _half_width(together(*errors), level)


def _half_width(error: Spread, level: float) -> float:
    """Half the width of an interval at `level`, of an error with this variance."""
    return student_t_quantile((1 + level) / 2, error.degrees_of_freedom) * math.sqrt(error.variance)


def sessions_needed(
    estimate: SpeedupEstimate,
    *,
    floor: float,
    fixes_tried: int = 1,
    equivalence: float = EQUIVALENCE,
    level: float = 0.95,
    limit: int = 100,
) -> int | None:
    """About how many more sessions, with as many blocks as before, would turn `cannot_tell` into another verdict.

    This assumes that the estimate and the spread between sessions stay as they are, and that the first step of Holm's
    correction applies to the claim. None if `limit` more would not decide: then the estimate lies between the floor and
    the equivalence, or too near to either. With one session, the answer is the number that any claim needs at least.
    """
    least = max(0, MINIMUM_SESSIONS - estimate.sessions)
    if estimate.sessions < 2:
        return least
    spread = estimate.standard_error * math.sqrt(estimate.sessions)
    # From three sessions on, nothing is learnt from other programs.
    degrees = estimate.sessions - 1 if estimate.lent else estimate.degrees_of_freedom
    distance = abs(estimate.log_mean)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    for more in range(least, limit + 1):
        sessions = estimate.sessions + more
        error = max(MINIMUM_STANDARD_ERROR, spread / math.sqrt(sessions))
        # If infinite degrees of freedom are not enough, fewer are not either, and their quantile takes long to compute.
        far, near = distance - normal * error > math.log1p(floor), distance + normal * error <= math.log1p(equivalence)
        if not (far or near):
            continue
        df = degrees * (sessions - 1) / (estimate.sessions - 1)
        half_width = student_t_quantile((1 + level) / 2, df) * error
        corrected = student_t_quantile(1 - SIGNIFICANCE / (2 * max(1, fixes_tried)), df) * error
        if distance + half_width <= math.log1p(equivalence):
            return more
        if distance - half_width > math.log1p(floor) and distance > corrected:
            return more
    return None


def blocks_needed(
    estimate: SpeedupEstimate,
    *,
    floor: float,
    fixes_tried: int = 1,
    equivalence: float = EQUIVALENCE,
    level: float = 0.95,
    limit: int = 100,
) -> int | None:
    """About how many more blocks would decide, spread over the new sessions of `sessions_needed`.

    More blocks inside the old sessions would not help: they say nothing new about the spread between sessions.
    """
    sessions = sessions_needed(
        estimate, floor=floor, fixes_tried=fixes_tried, equivalence=equivalence, level=level, limit=limit
    )
    return None if sessions is None else sessions * max(1, round(estimate.pairs / estimate.sessions))


def promised_log_ratio(
    epoch_batches: int | None, step_base: float, overhead_base: float, step_setting: float, overhead_setting: float
) -> float:
    """Log of the speedup of whole epochs: (L·step + overhead) of the baseline over that of the setting.

    `step_*`: seconds a batch. `overhead_*`: seconds that starting and ending an epoch cost beyond its steps. If
    `epoch_batches` is None, the epoch never ends, and the ratio is that of the steps.
    """
    if epoch_batches is None:
        return math.log(step_base / step_setting)
    return math.log((epoch_batches * step_base + overhead_base) / (epoch_batches * step_setting + overhead_setting))


def baseline_at(times: Sequence[float], costs: Sequence[float], at: float) -> float:
    """The baseline's cost at the moment `at`, from the baseline windows of the same process.

    Between two windows it is interpolated linearly on the log scale, so that steady drift cancels in the ratio. Before
    the first and after the last window it is that of the nearest one. `times` are the middles of the windows in any
    order, in seconds; `costs` are seconds a sample, above 0. Raises ValueError if there is none.
    """
    windows = sorted(zip(times, costs, strict=True))
    if not windows:
        raise ValueError("no baseline window in this block")
    after = bisect.bisect_left([time for time, _ in windows], at)
    if after == 0:
        return windows[0][1]
    if after == len(windows):
        return windows[-1][1]
    (start, first), (end, last) = windows[after - 1], windows[after]
    share = (at - start) / (end - start)
    return math.exp((1 - share) * math.log(first) + share * math.log(last))


# One setting


def _estimate(
    setting: str, session_means: Sequence[float], pairs: int, spread: Spread | None, level: float, *, lends: bool
) -> SpeedupEstimate:
    """`lends`: whether what is known of other programs holds for this."""
    # Sessions count alike, however many windows each has: sessions vary more than their windows do. The spread of
    # unweighted means is an unbiased measure of the error of their mean, even if some of them are noisier.
    sessions = len(session_means)
    log_mean = math.fsum(session_means) / sessions
    if spread is None:
        return SpeedupEstimate(setting, _exp(log_mean), 0.0, math.inf, pairs, sessions, log_mean, math.inf, 0.0, 1.0)
    lent = lends and sessions == SESSIONS_OF_A_LARGE_CLAIM
    spread = with_others(spread) if lent else spread
    error = max(MINIMUM_STANDARD_ERROR, math.sqrt(spread.variance / sessions))
    df = spread.degrees_of_freedom
    half_width = student_t_quantile((1 + level) / 2, df) * error
    return SpeedupEstimate(
        setting=setting,
        estimate=_exp(log_mean),
        low=_exp(log_mean - half_width),
        high=_exp(log_mean + half_width),
        pairs=pairs,
        sessions=sessions,
        log_mean=log_mean,
        standard_error=error,
        degrees_of_freedom=df,
        p_value=min(1.0, 2 * student_t_tail(abs(log_mean) / error, df)),
        lent=lent,
    )


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf
