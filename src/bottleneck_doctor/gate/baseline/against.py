"""What may be said of one figure of some processes now against processes of other times. Pure.

Processes of one time share luck that those of another don't: who else uses the machine, what its memory looks like, how
warm it is. So a time is a draw of its own, and the head's is one more. Its mean lies as far from that of the stored
times as those lie from one another, and for that reason many processes of one time say no more than a few:

    variance = B (1 + 1/T) + W (1/h - 1/n)    B: variance of the means of T times, W: of processes inside a time,
                                              h: processes of the head, n: of a stored time (harmonic mean)

where the second term counts only if the head has fewer processes than a stored time. Both are estimates, so the sum has
Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946). With fewer than three times B can't be had from them:
then times are supposed to differ by as much as `assumed` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.decide import POWER, GateEstimate, InterimLook
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.speedups import MINIMUM_STANDARD_ERROR

LEAST_TIMES = 3
"""As many times are needed to tell from them how much times differ."""
LOOKED_AT_TWICE = 6
"""Times from which on it is looked before the end. With fewer, a look early costs more sureness than it saves time: at
a fifth of the error rate, Student's t with two degrees of freedom is 15.8 and not 7.0."""
LEAST_PROCESSES = 5
"""What the head gets at least, if a stored time has fewer."""
_MANY = 1e6
"""Degrees of freedom of what is taken as known."""


@dataclass(frozen=True)
class Against(GateEstimate):
    """The head's mean over its processes (`pairs` in number) less the mean of the stored times.

    `between`: variance of the mean of one more time, as great as in the stored ones; `inside`: of a process in a time.
    `times`: how many were stored. `degrees`: those of `between` and of `inside`. `each`: 1/n of the module's words.
    """

    times: int
    between: float
    inside: float
    degrees: tuple[float, float]
    each: float

    def bar(self, threshold: float, pairs: int) -> float:
        # How processes of one time differ is known from many, and part of the error.
        return threshold

    def half_width(self, rate: float) -> float:
        return student_t_quantile(1 - rate, self.freedom(self.pairs)) * self.standard_error

    def parts(self, processes: int) -> tuple[float, float]:
        """Both terms of the variance, if the head had so many processes."""
        return self.between * (1 + 1 / self.times), self.inside * max(0.0, 1 / processes - self.each)

    def error(self, processes: int) -> float:
        """The standard error, if the head had so many processes."""
        return max(MINIMUM_STANDARD_ERROR, math.sqrt(sum(self.parts(processes))))

    def freedom(self, processes: int) -> float:
        """The degrees of freedom of that."""
        parts = self.parts(processes)
        if not sum(parts):
            return self.degrees[0]
        shares = [part / sum(parts) for part in parts]
        return 1 / sum(share**2 / degrees for share, degrees in zip(shares, self.degrees, strict=True) if share)


def estimate(head: Sequence[float], times: Sequence[Sequence[float]], windows: float, assumed: float) -> Against:
    """The head's processes against those of stored times, a number a process; none of the times may be empty.

    `windows`: the standard error that a process's number has by its windows alone, which processes can't agree better
    than. `assumed`: the standard deviation between times, where too few are stored to know it. Raises `ValueError` for
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
    # Means of times can't agree better than processes inside them allow.
    own = inside * each
    if len(times) < LEAST_TIMES:
        between, known = assumed**2 + own, _MANY
        if len(times) > 1 and variance(means) > between:
            # What was supposed is refuted, and one difference says little of how much times differ.
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
    )
    return Against(**{**made.__dict__, "standard_error": made.error(len(head))})


def smallest(
    seen: Against, threshold: float, most: int, *, fixed: bool, error_rate: float = decide.ERROR_RATE
) -> float | None:
    """The smallest change that would have been called a regression nine times in ten, in the unit of the values.

    As `decide.smallest`, with `most` processes of the head. None where there is no room for a claim.
    """
    beyond = _seen_beyond(seen, most, fixed, error_rate)
    return None if beyond is None else threshold + beyond


def floor(seen: Against, most: int, *, fixed: bool) -> float | None:
    """What doing nothing looks like at most, as `decide.floor`."""
    return _seen_beyond(seen, most, fixed, decide.PASSING_RATE)


def _seen_beyond(seen: Against, most: int, fixed: bool, error_rate: float) -> float | None:
    processes = max(seen.pairs, most)
    look = decide.interim_look_after(processes, last=True, fixed=fixed)
    if look is None or processes < decide.LEAST_PAIRS:
        return None
    df = seen.freedom(processes)
    # The spread of a few is more often too small than too large (as in `decide`).
    median: float = (1 - 2 / (9 * df)) ** 1.5
    error = max(MINIMUM_STANDARD_ERROR, seen.error(processes) / median)
    limit: float = student_t_quantile(1 - error_rate * look.share, df)
    distance: float = limit + NormalDist().inv_cdf(POWER) * math.sqrt(1 + limit * limit / (2 * df))
    return distance * error


def looked_at_once(times: int) -> bool:
    """Whether it is looked only when all processes of the head were measured."""
    return times < LOOKED_AT_TWICE


def interim_look_after(processes: int, times: int, *, last: bool, fixed: bool = False) -> InterimLook | None:
    """The look to take after so many processes of the head. `last`, `fixed`: as for `decide.interim_look_after`."""
    return decide.interim_look_after(processes, last=last, fixed=fixed or looked_at_once(times))


def wanted(stored: Sequence[int]) -> int:
    """How many processes the head gets, where times have so many: as many as one of them, for more would say no more.

    It follows from what was planned and not from what was measured, so that it is no second chance for luck.
    """
    most = math.ceil(len(stored) / sum(1 / count for count in stored))
    return min(max(most, LEAST_PROCESSES), decide.most_looked_at())
