"""What earlier checks say of how much pairs of processes differ: their documents in, a spread out. Pure.

Three pairs say little of how much pairs differ, so the bounds around their mean are wide: at the first look, Student's
t has two degrees of freedom. Earlier checks of the same program on the same machine have seen more. Their spreads lend
degrees of freedom to this one (G. K. Smyth, Linear models and empirical Bayes methods for assessing differential
expression, 2004), the fewer the more unlike they are. A spread that is larger today than it was is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck_doctor.documents.check import Check, LentSpread
from bottleneck_doctor.statistics.spread import (
    LARGEST_PRIOR_DF,
    MINIMUM_STANDARD_ERROR,
    SMALLEST_POOL,
    Spread,
    own_spread,
    typical,
)

MOST_CHECKS = 30
"""Only so many of the newest are asked: a machine and its neighbours change."""

LARGEST_LOG = 10.0
"""A pair whose sides differ by more than a factor of 20 000 was not measured: its file is damaged."""


@dataclass(frozen=True)
class Alike:
    """What a check has to have in common with this one to lend to it. `machine`: the fingerprint of its environment."""

    argv: list[str]
    machine: str
    steady: bool

    def matches(self, check: Check) -> bool:
        return (
            check.edit is None
            and check.stored is None
            and check.environment is not None
            and check.environment.fingerprint == self.machine
            and check.entrypoint.argv == self.argv
            and check.steady == self.steady
        )


@dataclass(frozen=True)
class Lent:
    """How much step times of pairs differed in `checks` earlier checks, as a spread of logs of ratios."""

    spread: Spread
    checks: int

    def document(self) -> LentSpread:
        return LentSpread(
            checks=self.checks, spread=self.spread.variance**0.5, degrees_of_freedom=self.spread.degrees_of_freedom
        )


def lent(earlier: Sequence[Check], alike: Alike) -> Lent | None:
    """What those of `earlier` that are like this check lend to it; None if they are too few to say how unlike they
    are."""
    chosen = sorted((check for check in earlier if alike.matches(check)), key=lambda check: check.created)
    seen = [[pair.log_ratio for pair in check.pairs] for check in chosen[-MOST_CHECKS:]]
    spreads = [own_spread(logs) for logs in seen if len(logs) > 1 and max(map(abs, logs)) < LARGEST_LOG]
    found = of_spreads(spreads)
    return None if found is None else Lent(found, len(spreads))


def of_spreads(spreads: Sequence[Spread]) -> Spread | None:
    """What the spreads of some checks lend to another one; None for fewer than `SMALLEST_POOL`."""
    if len(spreads) < SMALLEST_POOL:
        return None
    raised = [Spread(max(each.variance, MINIMUM_STANDARD_ERROR**2), each.degrees_of_freedom) for each in spreads]
    return typical(raised, LARGEST_PRIOR_DF)
