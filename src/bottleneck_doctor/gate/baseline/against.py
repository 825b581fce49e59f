"""Compares one figure of some processes now with the same figure of processes at other times. Pure.

Processes of one time share conditions that those of another time don't: who else uses the machine, what its memory
looks like, how warm it is. So each time is a random sample of its own, and the head's time is one more. Without a real
change, the head's mean differs from the stored means as much as these differ from one another. Many processes of one
time therefore say no more than a few:

    variance = B (1 + 1/T) + W (1/h - 1/n)    B: variance of the means of T times, W: of processes inside a time,
                                              h: processes of the head, n: of a stored time (harmonic mean)

where the second term counts only if the head has fewer processes than a stored time. Both are estimates, so the sum has
Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946). Fewer than three times can't show B. Then times are
assumed to differ by `assumed`. Where times drift, B grows with the age of the last one (`aging`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.baseline import aging
from bottleneck_doctor.gate.decide import POWER, GateEstimate, InterimLook
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.speedups import MINIMUM_STANDARD_ERROR
from bottleneck_doctor.statistics.spread import variance

LEAST_TIMES = 3
"""This many stored times are needed to estimate how much times differ."""
LOOKED_AT_TWICE = 6
"""From this many times on, there are looks before the end. With fewer, an early look would cost more certainty than it
would save time: at a fifth of the error rate, Student's t with two degrees of freedom is 15.8 instead of 7.0."""
LEAST_PROCESSES = 5
"""The head gets at least this many processes, even if a stored time has fewer."""
_MANY = 1e6
"""Degrees of freedom of a variance that is assumed to be known."""


@dataclass(frozen=True)
class Against(GateEstimate):
    """The head's mean over its processes (their number is `pairs`) minus the mean of the stored times.

    `between`: B, the variance of the mean of one time. `inside`: W, the variance of a process inside a time. `times`:
    the number of stored times. `degrees`: the degrees of freedom of `between` and of `inside`. `each`: 1/n, as in the
    module's docstring.
    """

    times: int
    between: float
    inside: float
    degrees: tuple[float, float]
    each: float
    aged: float = 0.0
    """The variance that the age of the stored times adds."""

    def bar(self, threshold: float, pairs: int) -> float:
        # No extra bar for few processes: their variance is estimated from all times, and is part of the error.
        return threshold

    def half_width(self, rate: float) -> float:
        return student_t_quantile(1 - rate, self.freedom(self.pairs)) * self.standard_error

    def parts(self, processes: int) -> tuple[float, float, float]:
        """Both terms of the variance, if the head had `processes` processes, and what age adds."""
        return self.between * (1 + 1 / self.times), self.inside * max(0.0, 1 / processes - self.each), self.aged

    def error(self, processes: int) -> float:
        """The standard error, if the head had `processes` processes."""
        return max(MINIMUM_STANDARD_ERROR, math.sqrt(sum(self.parts(processes))))

    def freedom(self, processes: int) -> float:
        """The degrees of freedom of that standard error."""
        parts = self.parts(processes)
        if not sum(parts):
            return self.degrees[0]
        shares, every = [part / sum(parts) for part in parts], (*self.degrees, aging.DEGREES)
        return 1 / sum(share**2 / degrees for share, degrees in zip(shares, every, strict=True) if share)


def estimate(
    head: Sequence[float],
    times: Sequence[Sequence[float]],
    windows: float,
    assumed: float,
    ages: Sequence[float] = (),
) -> Against:
    """The head's processes against those of stored times, one number for each process; no time may be empty.

    `windows`: the standard error that a process's number has by its windows alone; processes are taken to agree no
    better than that. `assumed`: the standard deviation between times, if too few are stored to estimate it. `ages`:
    seconds from each time to the head's, oldest first; without them, nothing is known of drift. Raises `ValueError` for
    a head of fewer than two.
    """
    if len(head) < 2 or not times:
        raise ValueError("one process says nothing of how much processes differ")
    means = [fmean(time) for time in times]
    groups = [group for group in (*times, head) if len(group) > 1]
    degrees = sum(len(group) - 1 for group in groups)
    inside = sum(variance(group) * (len(group) - 1) for group in groups) / degrees
    inside = max(inside, windows**2)
    each = fmean(1 / len(time) for time in times)
    # Means of times are taken to agree no better than the processes inside them allow.
    own = inside * each
    if len(times) < LEAST_TIMES:
        between, known = assumed**2 + own, _MANY
        if len(times) > 1 and variance(means) > between:
            # The two times refute the assumption, but one difference says little about how much times differ.
            between, known = variance(means), 1.0
        freedom = (known, float(degrees))
    else:
        between = max(variance(means), own)
        freedom = (float(len(times) - 1), float(degrees))
    made = Against(
        pairs=len(head),
        mean=fmean(head) - fmean(means),
        standard_error=0.0,
        times=len(times),
        between=between,
        inside=inside,
        degrees=freedom,
        each=each,
        aged=aging.added(means, ages),
    )
    return Against(**{**made.__dict__, "standard_error": made.error(len(head))})


def smallest(
    seen: Against, threshold: float, most: int, *, fixed: bool, error_rate: float = decide.ERROR_RATE
) -> float | None:
    """The smallest change that would have been called a regression nine times in ten, in the unit of the values.

    As `decide.smallest`, with `most` processes of the head. None if there is no time for a claim.
    """
    beyond = _seen_beyond(seen, most, fixed, error_rate)
    return None if beyond is None else threshold + beyond


def floor(seen: Against, most: int, *, fixed: bool) -> float | None:
    """The smallest threshold that can be judged, as `decide.floor`."""
    return _seen_beyond(seen, most, fixed, decide.PASSING_RATE)


def _seen_beyond(seen: Against, most: int, fixed: bool, error_rate: float) -> float | None:
    processes = max(seen.pairs, most)
    look = decide.interim_look_after(processes, last=True, fixed=fixed)
    if look is None or processes < decide.LEAST_PAIRS:
        return None
    df = seen.freedom(processes)
    # The spread of a few values is more often too small than too large (as in `decide`).
    median: float = (1 - 2 / (9 * df)) ** 1.5
    error = max(MINIMUM_STANDARD_ERROR, seen.error(processes) / median)
    limit: float = student_t_quantile(1 - error_rate * look.share, df)
    distance: float = limit + NormalDist().inv_cdf(POWER) * math.sqrt(1 + limit * limit / (2 * df))
    return distance * error


def looked_at_once(times: int) -> bool:
    """Whether the only look is after all processes of the head were measured."""
    return times < LOOKED_AT_TWICE


def interim_look_after(processes: int, times: int, *, last: bool, fixed: bool = False) -> InterimLook | None:
    """The look to take after this many processes of the head. `last`, `fixed`: as for `decide.interim_look_after`."""
    return decide.interim_look_after(processes, last=last, fixed=fixed or looked_at_once(times))


def wanted(stored: Sequence[int]) -> int:
    """How many processes the head gets, if the stored times have `stored` processes: as many as one time, because more
    would not help.

    The number depends on what was planned and not on what was measured, so it gives chance no second opportunity.
    """
    most = math.ceil(len(stored) / sum(1 / count for count in stored))
    return min(max(most, LEAST_PROCESSES), decide.most_looked_at())
