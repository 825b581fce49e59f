"""How much settings differ from one session to the next: means of sessions in, variances out. Pure.

`docs/statistics.md` explains the method; `speedups` makes intervals of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from bottleneck_doctor.statistics.distributions import digamma, trigamma, trigamma_inverse

MINIMUM_STANDARD_ERROR = 0.001
"""Smallest standard error of a log ratio that is believed. No loop repeats to better than a tenth of a percent."""

LARGEST_PRIOR_DF = 4.0
"""Most degrees of freedom that the other settings may lend to one setting's spread. Settings do differ in spread, and a
few of them show badly by how much. Without this limit, the coverage of the noisiest setting falls."""

SMALLEST_POOL = 3
"""This many settings must share sessions before they inform one another's spread."""

Means = Mapping[str, Mapping[int, float]]
"""The mean log ratio of each setting in each session that has it."""


def variance(values: Sequence[float], about: float | None = None) -> float:
    """As `statistics.variance`, in a tenth of its time: that one computes with fractions, which logs of times need not.
    `about`: their mean, where it is known. Raises `ValueError` for fewer than two."""
    if len(values) < 2:
        raise ValueError("one value has no variance")
    mean = fmean(values) if about is None else about
    return math.fsum((each - mean) ** 2 for each in values) / (len(values) - 1)


@dataclass(frozen=True)
class Spread:
    """Variance of a setting's session means, and its degrees of freedom."""

    variance: float
    degrees_of_freedom: float


OF_PROCESSES = Spread(0.057**2, 2.7)
"""How much processes of one program differ in what they say of a setting: the typical variance of session means, and
how many degrees of freedom say so. Fitted to 175 settings of 29 programs (`benchmarks/process_luck.py`)."""


def groups_sharing_sessions(means: Means, control: str) -> list[list[str]]:
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


def spreads(means: Means) -> dict[str, Spread]:
    """Variance of every setting's session means, for settings that share sessions.

    The mean of setting k in session s is a sum of three terms: the setting's worth, the session effect a[s], which all
    settings share, and the setting's own deviation e[k, s] there. There are only as many session effects as sessions,
    so few say how much they vary. The settings' own deviations are many and inform one another. So the two are
    separated. Only the second is moderated over the settings, and their sum gets its degrees of freedom by
    Satterthwaite's rule.
    """
    found = _own_deviations(means)
    if found is None:
        return {setting: own_spread(list(row.values())) for setting, row in means.items()}
    own, luck = found
    error_of_luck = fmean(
        [1 / math.fsum(1 / own[setting].variance for setting, row in means.items() if s in row) for s in luck]
    )
    shared = Spread(max(variance(list(luck.values())), error_of_luck), len(luck) - 1)
    # The variance of the session effects already includes the settings' own deviations once, averaged.
    return {
        setting: together(shared, Spread(max(0.0, each.variance - error_of_luck), each.degrees_of_freedom))
        for setting, each in own.items()
    }


def spread_of_difference(means: Means, one: str, other: str) -> Spread | None:
    """Variance of how much two settings of a group differ in a session; None if no two sessions have both.

    What a session does to all settings cancels, so only the two settings' own deviations remain. These are known from
    all settings together, so much better than from the differences themselves.
    """
    seen = [value - means[other][session] for session, value in means[one].items() if session in means[other]]
    if len(seen) < 2:
        return None
    found = _own_deviations(means)
    if found is None:
        return own_spread(seen)
    own, _ = found
    return together(own[one], own[other])


def together(one: Spread, other: Spread) -> Spread:
    """The spread of a sum, with Satterthwaite's degrees of freedom."""
    total = one.variance + other.variance
    degrees = one.variance**2 / one.degrees_of_freedom + other.variance**2 / other.degrees_of_freedom
    return Spread(total, total**2 / degrees)


def _own_deviations(means: Means) -> tuple[dict[str, Spread], dict[int, float]] | None:
    """The spread of each setting's own deviations, and the session effects; None if too little is shared to tell one
    from the other."""
    settings = list(means)
    cells = [means[setting] for setting in settings]
    sessions = sorted({session for row in cells for session in row})
    spare = sum(map(len, cells)) - len(settings) - len(sessions) + 1
    if len(settings) < SMALLEST_POOL or spare < len(settings) - 1:
        return None
    own = [Spread(1.0, 0.0)] * len(settings)
    luck: dict[int, float] = {}
    # Settings with less noise show a session effect better, so settings weigh by their precision. It is known only
    # after the fit, hence the rounds; the third one changes little.
    for _ in range(3):
        weights = [1 / each.variance for each in own]
        totals = {s: math.fsum(weights[k] for k, row in enumerate(cells) if s in row) for s in sessions}
        luck = _session_luck(cells, weights, totals)
        own = _own_luck(cells, weights, totals, luck, spare)
    return dict(zip(settings, own, strict=True)), luck


def own_spread(session_means: Sequence[float]) -> Spread:
    return Spread(variance(session_means), len(session_means) - 1)


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
) -> list[Spread]:
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
    return moderate([Spread(square / df, df) for square, df in zip(squares, degrees, strict=True)])


def moderate(spreads: Sequence[Spread]) -> list[Spread]:
    """Variances drawn up towards what is typical of them all.

    Because the variances are few and unlike, two things differ from limma's `squeezeVar`. The prior weighs at most
    `LARGEST_PRIOR_DF`. A variance above the typical one stays as it is, with its own degrees of freedom: a variance
    that is small by chance is dangerous, but a large one may be true of that setting.
    """
    total = math.fsum(each.degrees_of_freedom for each in spreads)
    smallest = max(MINIMUM_STANDARD_ERROR**2, 1e-3 * median(each.variance for each in spreads))
    raised = [Spread(max(smallest, each.variance), each.degrees_of_freedom) for each in spreads]
    prior = typical(raised, LARGEST_PRIOR_DF)

    moderated = []
    for each in raised:
        df = each.degrees_of_freedom
        if each.variance > prior.variance:
            moderated.append(Spread(each.variance, max(1.0, df)))
        else:
            drawn = _drawn(each, prior)
            moderated.append(replace(drawn, degrees_of_freedom=min(drawn.degrees_of_freedom, total)))
    return moderated


def with_others(few: Spread, prior: Spread = OF_PROCESSES) -> Spread:
    """The spread that few sessions show, with what is known of other programs' processes.

    A small variance is drawn up, since two sessions may agree by chance. A large one is kept, since it may be true of
    this program. As much is known of both as their degrees of freedom say together.
    """
    drawn = _drawn(few, prior)
    return replace(drawn, variance=max(few.variance, drawn.variance))


def _drawn(own: Spread, prior: Spread) -> Spread:
    """A variance drawn towards the prior's, by the degrees of freedom of each, and those of both together."""
    df = prior.degrees_of_freedom + own.degrees_of_freedom
    return Spread((prior.degrees_of_freedom * prior.variance + own.degrees_of_freedom * own.variance) / df, df)


def typical(spreads: Sequence[Spread], most_degrees: float) -> Spread:
    """What is typical of variances, and how many degrees of freedom say so, `most_degrees` at most.

    A scaled inverse chi-square prior, fitted to the logs of the variances (G. K. Smyth, Linear models and empirical
    Bayes methods for assessing differential expression, 2004, section 6.2; `fitFDist` of limma). Logs weigh by their
    precision, since degrees of freedom differ (R. DerSimonian & N. Laird, Meta-analysis in clinical trials, 1986).
    """
    halves = [each.degrees_of_freedom / 2 for each in spreads]
    logs = [math.log(e.variance) - digamma(h) + math.log(h) for e, h in zip(spreads, halves, strict=True)]
    weights = [1 / trigamma(h) for h in halves]
    weight = math.fsum(weights)
    centre = math.fsum(w * x for w, x in zip(weights, logs, strict=True)) / weight
    scatter = math.fsum(w * (x - centre) ** 2 for w, x in zip(weights, logs, strict=True))
    excess = (scatter - (len(logs) - 1)) / (weight - math.fsum(w * w for w in weights) / weight)
    degrees = most_degrees if excess <= 0 else min(most_degrees, 2 * trigamma_inverse(excess))
    return Spread(math.exp(centre + digamma(degrees / 2) - math.log(degrees / 2)), degrees)
