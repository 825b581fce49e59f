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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median, variance
from typing import Literal

from bottleneck_doctor.statistics.distributions import (
    digamma,
    student_t_quantile,
    student_t_tail,
    trigamma,
    trigamma_inverse,
)

MINIMUM_STANDARD_ERROR = 0.001
"""Smallest standard error of a log ratio that is believed. No loop repeats to better than a tenth of a percent."""

MINIMUM_SESSIONS = 3
"""Sessions that a setting needs before anything is claimed about it."""

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

LARGEST_PRIOR_DF = 4.0
"""Most degrees of freedom that the other settings may lend to one setting's spread. Settings do differ in spread, and a
few of them show badly by how much. Without this limit, the coverage of the noisiest setting falls."""

SMALLEST_POOL = 3
"""This many settings must share sessions before they inform one another's spread."""

Verdict = Literal["faster", "slower", "no_difference", "cannot_tell"]


@dataclass(frozen=True)
class Observation:
    """One window of a setting against the baseline around it in the same process.

    `log_ratio` is log(speed of the setting / speed of the baseline): above 0 is faster.
    """

    session: int
    block: int
    setting: str
    log_ratio: float


@dataclass(frozen=True)
class SpeedupEstimate:
    """What one setting is worth: a ratio to the baseline (above 1 is faster) with its confidence interval.

    `p_value` is two-sided, for the hypothesis that the ratio is 1. It is below 1 - level exactly if the interval
    excludes 1. `log_mean` and `standard_error` are on the log scale. With one session, nothing is known of the spread
    between sessions: the interval is (0, infinity), the p-value 1 and the degrees of freedom 0.
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


def estimate_all(
    observations: Iterable[Observation], level: float = 0.95, control: str = "aa"
) -> dict[str, SpeedupEstimate]:
    """The worth of every setting, by name, each with its confidence interval at `level`.

    The control (the baseline judged as if it were a fix) is estimated from its own sessions alone. The deviation of a
    process cancels if the baseline is compared with itself, so the control says nothing of how the others deviate.
    Raises ValueError for a log ratio that is not finite or a level outside (0, 1).
    """
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
    spreads: dict[str, _Spread] = {}
    for group in _groups_sharing_sessions(means, control):
        spreads.update(_spreads({setting: means[setting] for setting in group}))
    return {
        setting: _estimate(
            setting,
            list(sessions.values()),
            pairs=sum(len(values) for values in windows[setting].values()),
            spread=spreads.get(setting),
            level=level,
        )
        for setting, sessions in means.items()
    }


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
    if estimate.sessions < MINIMUM_SESSIONS:
        return "cannot_tell"
    if 1 / (1 + equivalence) <= estimate.low and estimate.high <= 1 + equivalence:
        return "no_difference"
    if adjusted_p <= significance:
        if estimate.low > 1 + floor:
            return "faster"
        if estimate.high < 1 / (1 + floor):
            return "slower"
    return "cannot_tell"


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
    errors = [max(least, variance(group) / len(group)) for group in (first, second)]
    df = sum(errors) ** 2 / sum(
        error**2 / (len(group) - 1) for error, group in zip(errors, (first, second), strict=True)
    )
    half_width = student_t_quantile((1 + level) / 2, df) * math.sqrt(sum(errors))
    return fmean(first) - fmean(second), half_width


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
    distance = abs(estimate.log_mean)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    for more in range(least, limit + 1):
        sessions = estimate.sessions + more
        error = max(MINIMUM_STANDARD_ERROR, spread / math.sqrt(sessions))
        # If infinite degrees of freedom are not enough, fewer are not either, and their quantile takes long to compute.
        far, near = distance - normal * error > math.log1p(floor), distance + normal * error <= math.log1p(equivalence)
        if not (far or near):
            continue
        df = estimate.degrees_of_freedom * (sessions - 1) / (estimate.sessions - 1)
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


# The spread between sessions


@dataclass(frozen=True)
class _Spread:
    """Variance of a setting's session means, and its degrees of freedom."""

    variance: float
    degrees_of_freedom: float


def _estimate(
    setting: str, session_means: Sequence[float], pairs: int, spread: _Spread | None, level: float
) -> SpeedupEstimate:
    # Sessions count alike, however many windows each has: sessions vary more than their windows do. The spread of
    # unweighted means is an unbiased measure of the error of their mean, even if some of them are noisier.
    sessions = len(session_means)
    log_mean = math.fsum(session_means) / sessions
    if spread is None:
        return SpeedupEstimate(setting, _exp(log_mean), 0.0, math.inf, pairs, sessions, log_mean, math.inf, 0.0, 1.0)
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
    )


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _groups_sharing_sessions(means: Mapping[str, Mapping[int, float]], control: str) -> list[list[str]]:
    """Settings seen in two sessions or more, grouped so that no two groups share a session.

    The control is a group of its own.
    """
    groups: list[tuple[set[int], list[str]]] = []
    for setting, sessions in means.items():
        if len(sessions) < 2 or setting == control:
            continue
        joined_sessions, joined_settings = set(sessions), [setting]
        for group in [group for group in groups if group[0] & joined_sessions]:
            groups.remove(group)
            joined_sessions |= group[0]
            joined_settings += group[1]
        groups.append((joined_sessions, joined_settings))
    settings = [sorted(group) for _, group in groups]
    return [*settings, [control]] if len(means.get(control, ())) >= 2 else settings


def _spreads(means: Mapping[str, Mapping[int, float]]) -> dict[str, _Spread]:
    """Variance of every setting's session means, for settings that share sessions.

    The mean of setting k in session s is a sum of three terms: the setting's worth, the session effect a[s], which all
    settings share, and the setting's own deviation e[k, s] there. There are only as many session effects as sessions,
    so few say how much they vary. The settings' own deviations are many and inform one another. So the two are
    separated. Only the second is moderated over the settings, and their sum gets its degrees of freedom by
    Satterthwaite's rule.
    """
    settings = list(means)
    cells = [means[setting] for setting in settings]
    sessions = sorted({session for row in cells for session in row})
    spare = sum(map(len, cells)) - len(settings) - len(sessions) + 1
    if len(settings) < SMALLEST_POOL or spare < len(settings) - 1:
        return {setting: _own_spread(list(row.values())) for setting, row in means.items()}

    own = [_Spread(1.0, 0.0)] * len(settings)
    # Settings with less noise show a session effect better, so settings weigh by their precision. It is known only
    # after the fit, hence the rounds; the third one changes little.
    for _ in range(3):
        weights = [1 / each.variance for each in own]
        totals = {s: math.fsum(weights[k] for k, row in enumerate(cells) if s in row) for s in sessions}
        luck = _session_luck(cells, weights, totals)
        own = _own_luck(cells, weights, totals, luck, spare)

    error_of_luck = fmean(
        [1 / math.fsum(1 / own[k].variance for k, row in enumerate(cells) if s in row) for s in sessions]
    )
    shared = max(variance(list(luck.values())), error_of_luck)
    spreads = {}
    for setting, each in zip(settings, own, strict=True):
        # The variance of the session effects already includes the settings' own deviations once, averaged.
        rest = max(0.0, each.variance - error_of_luck)
        df = (shared + rest) ** 2 / (shared**2 / (len(sessions) - 1) + rest**2 / each.degrees_of_freedom)
        spreads[setting] = _Spread(shared + rest, df)
    return spreads


def _own_spread(session_means: Sequence[float]) -> _Spread:
    return _Spread(variance(session_means), len(session_means) - 1)


def _session_luck(
    cells: Sequence[Mapping[int, float]], weights: Sequence[float], totals: Mapping[int, float]
) -> dict[int, float]:
    """Weighted least squares fit of (worth of setting + session effect), alternating; exact at once if nothing is
    missing."""
    luck = dict.fromkeys(totals, 0.0)
    for _ in range(200):
        worth = [fmean([value - luck[session] for session, value in row.items()]) for row in cells]
        fitted = {
            session: math.fsum(weights[k] * (row[session] - worth[k]) for k, row in enumerate(cells) if session in row)
            / total
            for session, total in totals.items()
        }
        change = max(abs(fitted[session] - luck[session]) for session in luck)
        luck = fitted
        if change < 1e-10 or len({len(row) for row in cells} | {len(luck)}) == 1:
            break
    return luck


def _own_luck(
    cells: Sequence[Mapping[int, float]],
    weights: Sequence[float],
    totals: Mapping[int, float],
    luck: Mapping[int, float],
    spare: int,
) -> list[_Spread]:
    """Variance of each setting's own deviations, moderated over the settings.

    Each residual of setting k keeps (1 - 1/sessions)(1 - its weight in the session) degrees of freedom. This is exact
    if no setting misses a session and the weights are right; otherwise it is scaled to the exact sum.
    """
    squares, degrees = [], []
    for k, row in enumerate(cells):
        residuals = [value - luck[session] for session, value in row.items()]
        mean = fmean(residuals)
        squares.append(math.fsum((residual - mean) ** 2 for residual in residuals))
        degrees.append(math.fsum((1 - 1 / len(row)) * (1 - weights[k] / totals[session]) for session in row))
    scale = spare / math.fsum(degrees)
    # A setting that was alone in its sessions leaves no residual; a small value keeps its logarithm finite.
    degrees = [max(0.01, scale * df) for df in degrees]
    return moderate([_Spread(square / df, df) for square, df in zip(squares, degrees, strict=True)])


def moderate(spreads: Sequence[_Spread]) -> list[_Spread]:
    """Variances drawn up towards what is typical of them all.

    Empirical Bayes with a scaled inverse chi-square prior fitted to the logs of the variances (G. K. Smyth, Linear
    models and empirical Bayes methods for assessing differential expression, 2004, section 6.2; `fitFDist` of limma).
    Because the variances are few and unlike, three things differ. Logs weigh by their precision, since degrees of
    freedom differ (R. DerSimonian & N. Laird, Meta-analysis in clinical trials, 1986). The prior weighs at most
    `LARGEST_PRIOR_DF`. A variance above the typical one stays as it is, with its own degrees of freedom: a variance
    that is small by chance is dangerous, but a large one may be true of that setting.
    """
    total = math.fsum(each.degrees_of_freedom for each in spreads)
    smallest = max(MINIMUM_STANDARD_ERROR**2, 1e-3 * median(each.variance for each in spreads))
    raised = [_Spread(max(smallest, each.variance), each.degrees_of_freedom) for each in spreads]
    halves = [each.degrees_of_freedom / 2 for each in raised]
    logs = [math.log(e.variance) - digamma(h) + math.log(h) for e, h in zip(raised, halves, strict=True)]
    weights = [1 / trigamma(h) for h in halves]
    weight = math.fsum(weights)
    centre = math.fsum(w * x for w, x in zip(weights, logs, strict=True)) / weight
    scatter = math.fsum(w * (x - centre) ** 2 for w, x in zip(weights, logs, strict=True))
    excess = (scatter - (len(logs) - 1)) / (weight - math.fsum(w * w for w in weights) / weight)
    prior_df = LARGEST_PRIOR_DF if excess <= 0 else min(LARGEST_PRIOR_DF, 2 * trigamma_inverse(excess))
    typical = math.exp(centre + digamma(prior_df / 2) - math.log(prior_df / 2))

    moderated = []
    for each in raised:
        df = each.degrees_of_freedom
        if each.variance > typical:
            moderated.append(_Spread(each.variance, max(1.0, df)))
        else:
            drawn = (prior_df * typical + df * each.variance) / (prior_df + df)
            moderated.append(_Spread(drawn, min(prior_df + df, total)))
    return moderated
