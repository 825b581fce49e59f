"""What earlier checks lend to one: which of them may, how sure it makes an answer, and how often that is wrong."""

from __future__ import annotations

import math
import random
import runpy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import pytest
from tests.unit.test_gate_decide import Ended, Luck, TwoKinds, share, simulate

from bottleneck_doctor.documents.check import Check, PairRecord, StoredBase, TriedEdit
from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.lent import MOST_CHECKS, Alike, lent
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.spread import LARGEST_PRIOR_DF, Spread

CHECKS: dict[str, Check] = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "checks.py"))["results"]()
PASSED = CHECKS["passed"]
assert PASSED.environment is not None
ALIKE = Alike(PASSED.entrypoint.argv, PASSED.environment.fingerprint, PASSED.steady)


def earlier(spread: float, pairs: int = 5, *, seed: int = 1, created: str = "2026-01-01T00:00:00+00:00") -> Check:
    """The golden check, with pairs that differ by so much."""
    generator = random.Random(seed)
    return with_logs([generator.gauss(0.0, spread) for _ in range(pairs)], created)


def with_logs(logs: Sequence[float], created: str = "2026-01-01T00:00:00+00:00") -> Check:
    made = [
        PairRecord(number=number, base_step_seconds=0.01, head_step_seconds=0.01, log_ratio=log, windows=4)
        for number, log in enumerate(logs, 1)
    ]
    return replace(PASSED, pairs=made, created=created)


# -- who lends ---------------------------------------------------------------------------------------------------------


def test_fewer_than_three_lend_nothing() -> None:
    assert lent([earlier(0.01), earlier(0.01, seed=2)], ALIKE) is None
    three = lent([earlier(0.01, seed=seed) for seed in range(3)], ALIKE)
    assert three is not None
    assert three.checks == 3
    assert 0.005 < math.sqrt(three.spread.variance) < 0.02


@pytest.mark.parametrize(
    "other",
    [
        replace(PASSED, entrypoint=replace(PASSED.entrypoint, argv=["train.py", "--other"])),
        replace(PASSED, environment=replace(PASSED.environment, fingerprint="another")),
        replace(PASSED, environment=None),
        replace(PASSED, steady=not PASSED.steady),
        replace(PASSED, edit=TriedEdit()),
        replace(PASSED, stored=StoredBase(file="base.json", taken=[], processes=8)),
        replace(PASSED, pairs=PASSED.pairs[:1]),
        replace(PASSED, pairs=[replace(PASSED.pairs[0], log_ratio=1e308), *PASSED.pairs]),
    ],
    ids=["command", "machine", "unknown machine", "allocator", "edit", "stored baseline", "one pair", "damaged"],
)
def test_only_checks_of_the_same_kind_lend(other: Check) -> None:
    two = [earlier(0.01, seed=seed) for seed in range(2)]
    assert lent([*two, other, other], ALIKE) is None


def test_only_the_newest_are_asked() -> None:
    old = [earlier(0.2, seed=seed, created=f"2025-01-{seed + 1:02d}T00:00:00+00:00") for seed in range(9)]
    new = [earlier(0.01, seed=seed) for seed in range(MOST_CHECKS)]
    found = lent([*new, *old], ALIKE)
    assert found is not None
    assert found.checks == MOST_CHECKS
    assert found.spread == lent(new, ALIKE).spread  # type: ignore[union-attr]


def test_pairs_that_agree_exactly_lend_no_more_than_anything_repeats() -> None:
    found = lent([with_logs([0.01, 0.01, 0.01])] * 3, ALIKE)
    assert found is not None
    assert math.sqrt(found.spread.variance) >= 0.0009


def test_unlike_checks_lend_less() -> None:
    even = lent([earlier(0.01, 20, seed=seed) for seed in range(8)], ALIKE)
    uneven = lent([earlier(0.002 * 3**seed, 20, seed=seed) for seed in range(5)], ALIKE)
    assert even is not None
    assert uneven is not None
    assert uneven.spread.degrees_of_freedom < 1.5 < even.spread.degrees_of_freedom == LARGEST_PRIOR_DF


# -- what it makes of an estimate --------------------------------------------------------------------------------------


def test_what_is_lent_counts_as_degrees_of_freedom() -> None:
    values = [0.01, -0.01, 0.0]
    alone, helped = decide.estimate(values), decide.estimate(values, lent=Spread(0.01**2, 4.0))
    assert helped.mean == alone.mean
    assert helped.standard_error == pytest.approx(alone.standard_error)
    assert (alone.df, helped.df) == (2.0, 6.0)
    assert helped.half_width(0.01) == pytest.approx(student_t_quantile(0.99, 6.0) * 0.01 / math.sqrt(3))
    assert (helped.df_among(10), alone.df_among(10)) == (13.0, 9.0)


def test_a_small_spread_is_drawn_up_and_a_large_one_kept() -> None:
    typical = Spread(0.01**2, 4.0)
    drawn = decide.estimate([0.0, 0.0001, -0.0001], lent=typical)
    assert drawn.standard_error == pytest.approx(math.sqrt(4 / 6) * 0.01 / math.sqrt(3), rel=0.01)
    wide = [0.1, -0.1, 0.0]
    assert decide.estimate(wide, lent=typical).standard_error == decide.estimate(wide).standard_error


def test_windows_that_differ_more_than_was_lent_are_believed() -> None:
    owns = [decide.Own(0.05, 3)] * 3
    helped = decide.estimate([0.0, 0.001, -0.001], owns, lent=Spread(0.001**2, 4.0))
    assert helped.standard_error == pytest.approx(0.05 / math.sqrt(3))


def test_weights_are_helped_too() -> None:
    owns = [decide.Own(0.01, 3)] * 4 + [decide.Own(0.2, 3)]
    values = [0.01, -0.01, 0.005, -0.005, 0.2]
    alone, helped = decide.weighed(values, owns), decide.weighed(values, owns, lent=Spread(0.008**2, 4.0))
    assert helped.mean == alone.mean
    assert helped.df == alone.df + 4.0
    assert helped.half_width(0.01) < alone.half_width(0.01)


# -- how often it is wrong ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """How much pairs differ on one, as the deviation of a log, and windows inside a pair. `days`: by how much that
    varies from check to check, as the deviation of its log."""

    pairs: float
    windows: float
    days: float = 0.0

    def today(self, generator: random.Random) -> Luck:
        return Luck(self.pairs * math.exp(generator.gauss(0.0, self.days)), self.windows)


def checked(
    machine: Machine, truth: float, threshold: float, lends: Spread | None, generator: random.Random, most: int = 20
) -> Ended:
    """One check of at most so many pairs, on a day of its own."""
    return simulate(machine.today(generator), truth, threshold, most, generator, lends)


def series(machine: Machine, truth: float, threshold: float, count: int, before: int = 6) -> list[Ended]:
    """The last checks of so many series, each of which has lent to all later ones as soon as there were three."""
    generator = random.Random(11)
    found = []
    for _ in range(count):
        done: list[Check] = []
        for _ in range(before):
            done.append(with_logs(checked(machine, 0.0, threshold, _lends(done), generator).values))
        found.append(checked(machine, truth, threshold, _lends(done), generator))
    return found


def _lends(done: Sequence[Check]) -> Spread | None:
    found = lent(done, ALIKE)
    return None if found is None else found.spread


MACHINES = [Machine(0.007, 0.012), Machine(0.03, 0.04), Machine(0.01, 0.01, days=0.5)]


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("threshold", [0.0, 0.03])
def test_identical_revisions_are_hardly_ever_called_worse(machine: Machine, threshold: float) -> None:
    ends = series(machine, 0.0, threshold, 300)
    assert share(ends, "regression") <= 2 * decide.ERROR_RATE  # 0 to 2 % of 300, at a rate of 1 %.
    assert share(ends, "improvement") <= 2 * decide.ERROR_RATE


@pytest.mark.parametrize("gap", [0.03, 0.06, 0.11])
def test_processes_of_two_kinds_are_hardly_ever_called_worse(gap: float) -> None:
    """Each is fast or slow for its whole life. All of three pairs fall the same way once in 64 checks; what earlier
    checks lend has to hold them up, for no other limit does."""
    generator = random.Random(17)
    luck, threshold = TwoKinds(gap, 0.001), math.log1p(0.02)

    def check(lends: Spread | None) -> Ended:
        return simulate(luck, 0.0, threshold, 20, generator, lends)

    answers = []
    for _ in range(400):
        done: list[Check] = []
        for _ in range(5):
            done.append(with_logs(check(_lends(done)).values))
        answers.append(check(_lends(done)).answer)
    assert answers.count("regression") / len(answers) <= 2 * decide.ERROR_RATE  # At a rate of 1 %, of 400.


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_a_change_of_the_threshold_itself_hardly_ever_passes(machine: Machine) -> None:
    ends = series(machine, 0.03, 0.03, 300)
    assert share(ends, "unchanged", "improvement") <= 0.05  # At a rate of 2.5 %.
    within = [low <= 0.03 <= high for end in ends for low, high in [decide.interval(end.seen, end.look)]]
    assert fmean(within) >= 0.92


def test_an_unchanged_training_passes_sooner() -> None:
    machine = Machine(0.012, 0.012)
    helped = series(machine, 0.0, 0.03, 150)
    generator = random.Random(12)
    alone = [checked(machine, 0.0, 0.03, None, generator) for _ in range(300)]
    assert share(helped, "unchanged", "improvement") >= 0.98
    assert fmean(len(end.values) for end in helped) < 0.85 * fmean(len(end.values) for end in alone)
