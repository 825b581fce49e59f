"""Whether what is known is enough to end an examination: the rule, and how often it ends one wrongly."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.benchmark import load
from tests.unit.test_judge import BF16, BY_ID, FOUND, WORKERS_1, WORKERS_2, Experiment, timed

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.examine import judge, looks
from bottleneck_doctor.examine.evidence import Candidate, Estimates, JudgeEvidence
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import words

simulation = load("intervals")


def evidence(speeds: Sequence[tuple[Setting, float]], **experiment: Any) -> JudgeEvidence:
    """Three processes of settings whose speeds are known, each of a fix of its own."""
    windows = Experiment(timed(speeds), **{"sessions": 3, **experiment}).windows
    fixes = [replace(BY_ID["prefetch-factor"], id=key_of(setting)) for setting, _ in speeds]
    candidates = [Candidate(fix, settings=[setting]) for fix, (setting, _) in zip(fixes, speeds, strict=True)]
    return JudgeEvidence(
        found=FOUND, windows=windows, candidates=candidates, rungs=[], chosen_after=1, epoch_batches=None
    )


def is_enough(speeds: Sequence[tuple[Setting, float]], coming: Collection[Setting] = (), **experiment: Any) -> bool:
    return looks.Look(evidence(speeds, **experiment)).is_enough(by_key(*coming))


def by_key(*settings: Setting) -> dict[str, Setting]:
    return {key_of(setting): setting for setting in settings}


CLEAR = [(WORKERS_2, 2.0), (WORKERS_1, 1.3), (BF16, 1.0)]


def test_what_is_claimed_and_known_well_is_enough() -> None:
    assert is_enough(CLEAR)
    assert is_enough(CLEAR, coming=[WORKERS_2, WORKERS_1, BF16])


def test_nothing_is_enough_before_a_claim_may_be_made() -> None:
    assert not is_enough(CLEAR, sessions=1)


@pytest.mark.parametrize(("speed", "enough"), [(2.5, True), (1.3, False)])
def test_a_large_gain_is_known_well_enough_after_two_quiet_processes(speed: float, enough: bool) -> None:
    assert is_enough([(WORKERS_2, speed), (WORKERS_1, 1.1), (BF16, 1.0)], sessions=2) is enough
    assert is_enough([(WORKERS_2, speed), (WORKERS_1, 1.1), (BF16, 1.0)], sessions=3)


def test_a_claim_that_the_end_would_make_is_not_enough_for_a_look() -> None:
    """Clear of 1 at the level of the end, and not at that of a look, which is stricter."""
    seen = evidence([(WORKERS_2, 1.2), (WORKERS_1, 1.0), (BF16, 1.0)], luck=0.1, noise=0.02, sessions=4)
    assert looks.offered(judge.judge(seen)) is not None
    assert looks.offered(judge.judge(replace(seen, significance=speedups.INTERIM_SIGNIFICANCE))) is None
    assert not looks.Look(seen).is_enough({})


def test_a_claim_whose_gain_is_hardly_known_is_not_enough() -> None:
    for luck, speed, least in ((0.14, 2.0, looks.SURE_OF_LARGE_ESTIMATE), (0.1, 1.45, looks.SURE_OF_ESTIMATE)):
        seen = evidence([(WORKERS_2, speed), (WORKERS_1, 1.1), (BF16, 1.0)], luck=luck, noise=0.02, sessions=4)
        best = looks.offered(judge.judge(replace(seen, significance=speedups.INTERIM_SIGNIFICANCE)))
        assert best is not None
        assert best[1].low < least * best[1].estimate
        assert not looks.Look(seen).is_enough({})


def test_a_coarser_figure_of_a_gain_of_two_times_is_enough_if_the_changed_program_is_measured_next() -> None:
    seen = evidence([(WORKERS_2, 2.5), (WORKERS_1, 1.1), (BF16, 1.0)], sessions=2, luck=0.04, noise=0.03)
    best = looks.offered(judge.judge(replace(seen, significance=speedups.INTERIM_SIGNIFICANCE)))
    assert best is not None
    assert looks.SURE_IF_CONFIRMED <= best[1].low / best[1].estimate < looks.SURE_OF_LARGE_ESTIMATE
    assert not looks.Look(seen).is_enough({})
    assert looks.Look(seen).is_enough({}, confirms=True)


def test_what_may_still_win_is_waited_for() -> None:
    never: Setting = {"num_workers": 3}
    assert not is_enough(CLEAR, coming=[never]), "nobody has measured it"
    few: Mapping[str, Sequence[int]] = {key_of(WORKERS_1): (1,)}
    near = [(WORKERS_2, 2.0), (WORKERS_1, 1.9), (BF16, 1.0)]
    assert not is_enough(near, coming=[WORKERS_1], only_in=few), "one process says little"
    assert is_enough(near, coming=[WORKERS_1]), "it had its processes"
    assert is_enough(CLEAR, coming=[WORKERS_1], only_in=few), "so much slower is no luck"


def test_what_changes_more_than_what_is_claimed_needs_no_processes_of_its_own() -> None:
    """Beside it in the same process, it says whether it is faster."""
    few: Mapping[str, Sequence[int]] = {key_of({**WORKERS_2, **BF16}): (2,)}
    for speed, enough in ((2.0, True), (2.04, True), (2.3, False)):
        both: Setting = {**WORKERS_2, **BF16}
        assert is_enough([(WORKERS_2, 2.0), (both, speed), (WORKERS_1, 1.0)], coming=[both], only_in=few) is enough


@pytest.mark.parametrize(("speed", "enough"), [(2.0, True), (1.25, False)])
def test_what_adds_a_little_is_waited_for_only_beside_a_small_gain(speed: float, enough: bool) -> None:
    both: Setting = {**WORKERS_2, **BF16}
    few: Mapping[str, Sequence[int]] = {key_of(both): (2,)}
    speeds = [(WORKERS_2, speed), (both, 1.08 * speed), (WORKERS_1, 1.0)]
    assert is_enough(speeds, coming=[both], only_in=few, luck=0.004, noise=0.002) is enough


@pytest.mark.parametrize(("adds", "enough"), [(1.0, True), (1.06, False)])
def test_a_combination_is_waited_for_as_far_as_its_parts_add_to_what_is_claimed(adds: float, enough: bool) -> None:
    """Nobody has measured it. Each of its parts was measured on top of what is claimed."""
    queue, stays = {"prefetch_factor": 4}, {"persistent_workers": True}
    parts: list[tuple[Setting, float]] = [({**WORKERS_2, **part}, 2.0 * adds) for part in (queue, stays)]
    whole: Setting = {**WORKERS_2, **queue, **stays}
    assert is_enough([(WORKERS_2, 2.0), *parts], coming=[whole]) is enough
    # Where one of them was not, nobody knows.
    assert not is_enough([(WORKERS_2, 2.0), *parts[:1]], coming=[whole])


def test_what_is_claimed_is_not_waited_for_itself() -> None:
    assert is_enough(CLEAR, coming=[WORKERS_2], luck=0.004, noise=0.002)
    two = evidence(CLEAR, sessions=2)
    best = looks.offered(judge.judge(replace(two, significance=speedups.INTERIM_SIGNIFICANCE)))
    assert best is not None
    assert not looks._may_beat(Estimates(two), WORKERS_2, *best)


def test_what_looks_faster_than_what_is_claimed_is_waited_for() -> None:
    """By more than it would take to tell them apart."""
    one: Setting = {"intra_op_threads": 1}
    seen = evidence([(WORKERS_2, 1.5), (BF16, 1.0), (one, 1.0)])
    lucky = {1: 1.1, 2: 1.9, 3: 2.6}
    wild = [
        replace(window, setting=WORKERS_1, label=key_of(WORKERS_1), seconds=window.seconds / lucky[window.session])
        for window in seen.windows
        if window.setting == BF16
    ]
    seen = replace(seen, windows=[*seen.windows, *wild])
    assert looks.Look(seen).is_enough(by_key(WORKERS_2))
    assert not looks.Look(seen).is_enough(by_key(WORKERS_2, WORKERS_1))


def test_a_gain_of_a_hundred_times_need_not_be_told_from_one_of_fifty() -> None:
    """Processes differ by 10 %, which leaves the step at 1 % of its time, by a tenth of that or so."""
    huge = [(WORKERS_2, 100.0), (WORKERS_1, 1.3), (BF16, 1.0)]
    never: Setting = {"num_workers": 3}
    seen = evidence(huge, luck=0.1, noise=0.02, sessions=4)
    best = looks.offered(judge.judge(replace(seen, significance=speedups.INTERIM_SIGNIFICANCE)))
    assert best is not None
    assert best[1].low < looks.SURE_OF_ESTIMATE * best[1].estimate
    assert looks.Look(seen).is_enough(by_key(never, WORKERS_1)), "nothing can save more than 1 % of the time"
    ten = evidence([(WORKERS_2, 10.0), (WORKERS_1, 1.3), (BF16, 1.0)], luck=0.01, noise=0.005)
    assert looks.Look(ten).is_enough(by_key(WORKERS_1))
    assert not looks.Look(ten).is_enough(by_key(never)), "there are 10 % left to be saved"


@pytest.mark.parametrize("luck", [0.02, 0.9])
def test_a_gain_of_a_hundred_times_that_two_processes_show_has_an_interval(luck: float) -> None:
    seen = evidence([(WORKERS_2, 130.0), (WORKERS_1, 1.3), (BF16, 1.0)], luck=luck, noise=0.02, sessions=2)
    best = looks.offered(judge.judge(seen))
    assert best is not None
    assert best[1].low > 1
    assert words.lower_end(best[1]) == best[1].low
    assert looks.Look(seen).is_enough({}) is (luck < 0.5)


def test_that_nothing_helps_is_enough_once_all_is_decided() -> None:
    nothing = [(WORKERS_2, 1.0), (WORKERS_1, 0.6), (BF16, 1.0)]
    assert is_enough(nothing, coming=[WORKERS_2, BF16], luck=0.0005, noise=0.0005)
    assert not is_enough(nothing, coming=[WORKERS_2, BF16], luck=0.03)


def test_noise_that_decides_nothing_ends_once_hardly_anything_may_help() -> None:
    """Processes differ by 1 %: nothing is shown to be no difference, and no gain of 5 % is hidden."""
    nothing = [(WORKERS_2, 1.0), (WORKERS_1, 0.6), (BF16, 1.0)]
    noisy: dict[str, Any] = {"luck": 0.012, "noise": 0.01}
    assert not is_enough(nothing, sessions=looks.PATIENT - 1, **noisy)
    assert is_enough(nothing, sessions=looks.PATIENT, **noisy)
    # What may bring much is waited for, and so is what was measured in few processes.
    assert not is_enough([*nothing, ({"intra_op_threads": 1}, 1.15)], sessions=looks.PATIENT, luck=0.1, noise=0.01)
    few: Mapping[str, Sequence[int]] = {key_of(BF16): (1, 2)}
    assert not is_enough(nothing, sessions=looks.PATIENT, only_in=few, **noisy)


def test_settings_of_a_start_are_decided_by_pairs_of_their_own() -> None:
    seen = evidence([(WORKERS_2, 1.0), (WORKERS_1, 0.6), (BF16, 1.0)], luck=0.0005, noise=0.0005)
    beside = Candidate(BY_ID["allocator"], settings=[{"allocator": "keep"}])
    assert looks.Look(replace(seen, candidates=[*seen.candidates, beside])).is_enough({})


# -- how often it is wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shared 1 %, own 1 %", "shared 3 %, own 3 %", "shared 12 %"])
def test_looking_costs_hardly_any_false_claim_or_interval(name: str) -> None:
    """Over all looks together: nothing differs, or one setting is 1.5 times as fast."""
    scenario = next(each for each in simulation.LOOKED_AT if each.name == name)
    row = simulation.looking(replace(scenario, sessions=6, settings=4), 60, seed=3)
    print("\n" + simulation.looked_table([row]))
    assert row.false <= 0.05
    assert row.held >= 0.9  # 95 %, and the error of 60 examinations
    assert abs(row.off) <= 0.02
    assert row.found >= 0.9


def test_the_looks_end_an_examination_as_soon_as_it_is_sure() -> None:
    quiet = simulation.Scenario("quiet", 0.005, 0.003, 0.003, sessions=8, settings=4)
    ended = [simulation.looked(quiet, [math.log(1.5), 0, 0, 0], random.Random(seed)) for seed in range(10)]
    assert {end.processes for end in ended} == {2, 3}
