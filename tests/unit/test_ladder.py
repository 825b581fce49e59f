"""The ladder loses what brings nothing on top of the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.test_judge import FOUND
from tests.unit.test_selection import Machine

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.examine.ladder import Ladder, Rungs, lightened, rungs
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import probe

CACHED: Setting = {"cached_samples": True}
BF16: Setting = {"autocast": "bfloat16"}
THREADS: Setting = {"num_workers": 2, "intra_op_threads": 1}
LAST: Setting = {"channels_last": True}
CHOSEN: Rungs = [
    ("cached-samples", CACHED),
    ("amp-bf16", {**CACHED, **BF16}),
    ("intra-op-threads", {**CACHED, **BF16, **THREADS}),
    ("channels-last", {**CACHED, **BF16, **THREADS, **LAST}),
]
LIGHTER: Rungs = [*CHOSEN[:2], ("channels-last", {**CACHED, **BF16, **LAST})]


def speeds(*values: float) -> Mapping[str, float]:
    return {key_of(setting): value for (_, setting), value in zip(CHOSEN, values, strict=True)}


@pytest.mark.parametrize(
    ("found", "sessions", "expected"),
    [
        ((1.5, 2.0, 2.2, 2.6), 2, CHOSEN),
        # One process may have it from bad luck, unless it shows a loss.
        ((1.5, 2.0, 2.01, 2.6), 1, CHOSEN),
        ((1.5, 2.0, 2.01, 2.6), 2, LIGHTER),
        ((1.5, 2.0, 1.9, 2.6), 1, LIGHTER),
        # The last rung as well.
        ((1.5, 2.0, 2.4, 2.41), 2, CHOSEN[:3]),
        # And the first: the training may be as fast without it.
        ((1.0, 1.5, 1.8, 2.0), 2, [
            ("amp-bf16", BF16), ("intra-op-threads", {**BF16, **THREADS}),
            ("channels-last", {**BF16, **THREADS, **LAST}),
        ]),
        # A ladder of one rung is none: that setting is known by itself.
        ((1.5, 1.4, 1.3, 1.2), 1, []),
    ],
)  # fmt: skip
def test_changes_that_bring_nothing_are_left_out(found: tuple[float, ...], sessions: int, expected: Rungs) -> None:
    assert lightened(CHOSEN, speeds(*found), sessions, 0) == expected


def test_a_rung_that_was_not_measured_stays() -> None:
    known = dict(speeds(1.5, 2.0, 2.2, 2.6))
    del known[key_of(CHOSEN[2][1])]
    assert lightened(CHOSEN, known, 2, 0) == CHOSEN


def test_what_needs_workers_goes_with_them() -> None:
    workers: Setting = {"num_workers": 2}
    made: Rungs = [
        ("amp-bf16", BF16),
        ("workers", {**BF16, **workers}),
        ("prefetch-factor", {**BF16, **workers, "prefetch_factor": 4}),
    ]
    known = {key_of(setting): value for (_, setting), value in zip(made, (2.0, 1.9, 2.2), strict=True)}
    assert lightened(made, known, 1, 0) == []
    assert lightened(made, known, 1, 3) == [made[0], ("prefetch-factor", {**BF16, "prefetch_factor": 4})]


def measured(sessions: range, of: Rungs, into: Measurements | None = None) -> Measurements:
    """Windows of these rungs. Workers bring nothing beside the cached samples."""
    made = into or Measurements(FOUND)

    def speed(setting: Setting, mode: str) -> float:
        return 1.5 * (1.4 if "autocast" in setting else 1.0) * (1.2 if "channels_last" in setting else 1.0)

    selection = Selection(made, frozenset(), frozenset())
    machine = Machine(selection, lambda setting, mode: speed(setting, mode) if setting else 1.0)
    baseline = probe("baseline", {})
    for session in sessions:
        for _, setting in of:
            machine.measure(session, baseline, probe(key_of(setting), setting), baseline)
    return made


def test_it_takes_processes_that_had_no_part_in_the_choice() -> None:
    ladder = Ladder()
    ladder.rungs = CHOSEN
    windows = measured(range(1, 2), CHOSEN)
    ladder.lighten(windows, chosen_after=1)
    assert ladder.rungs == CHOSEN
    measured(range(2, 4), CHOSEN, windows)
    ladder.lighten(windows, chosen_after=1)
    assert ladder.rungs == LIGHTER


def test_the_ladder_as_chosen_stands_until_the_lighter_one_has_its_processes() -> None:
    ladder = Ladder()
    ladder.rungs = CHOSEN
    windows = measured(range(1, 4), CHOSEN)
    assert ladder.claimable(windows) == CHOSEN
    ladder.lighten(windows, chosen_after=1)
    assert ladder.rungs == LIGHTER
    measured(range(4, 6), LIGHTER, windows)
    assert ladder.claimable(windows) == CHOSEN
    measured(range(6, 7), LIGHTER, windows)
    assert ladder.claimable(windows) == LIGHTER


def test_what_has_nothing_to_do_beside_another_change_is_not_put_on_top_of_it() -> None:
    batched: Setting = {"batched_transforms": True}
    tried = {"cached-samples": [CACHED], "batched-transforms": [batched], "amp-bf16": [BF16]}
    known = {key_of(CACHED): 3.0, key_of(batched): 1.5, key_of(BF16): 1.2}
    assert rungs(tried, known, {}, 0) == [("cached-samples", CACHED), ("amp-bf16", {**CACHED, **BF16})]
    known[key_of(batched)] = 4.0
    assert [fix for fix, _ in rungs(tried, known, {}, 0)] == ["batched-transforms", "amp-bf16"]


@pytest.mark.parametrize(
    ("cached", "bf16", "more", "fixes"),
    [
        (1.42, 1.01, {"amp-bf16"}, ["cached-samples", "amp-bf16"]),
        (1.42, 0.99, {"amp-bf16"}, ["cached-samples", "amp-bf16"]),
        (1.42, 0.97, {"amp-bf16"}, []),
        (1.25, 1.01, {"amp-bf16"}, []),
        (1.42, 1.01, set(), []),
    ],
)
def test_what_brought_nothing_alone_may_bring_something_on_top_of_much(
    cached: float, bf16: float, more: set[str], fixes: list[str]
) -> None:
    """A GAN computed 1.28 times as fast under autocast once its samples were kept, and 1.02 times before."""
    tried = {"cached-samples": [CACHED], "amp-bf16": [BF16]}
    known = {key_of(CACHED): cached, key_of(BF16): bf16}
    assert [fix for fix, _ in rungs(tried, known, {}, 0, more)] == fixes


@pytest.mark.parametrize(
    ("cached", "waits", "fixes"),
    [
        (0.97, 0.19, ["amp-bf16", "cached-samples"]),
        (1.01, 0.19, ["amp-bf16", "cached-samples"]),
        (0.97, 0.12, []),
        # It is slower, whatever it saves.
        (0.85, 0.19, []),
    ],
)
def test_what_loads_faster_is_tried_on_top_where_steps_wait(cached: float, waits: float, fixes: list[str]) -> None:
    """A list of samples measured 0.97 times in its one window, though steps waited in 12 % of their time, and in 19 %
    once they computed in bfloat16."""
    tried = {"amp-bf16": [BF16], "cached-samples": [CACHED], "channels-last": [LAST]}
    known = {key_of(BF16): 1.6, key_of(CACHED): cached, key_of(LAST): 0.9}
    shares = {key_of(BF16): waits, key_of({}): 0.12}
    assert [fix for fix, _ in rungs(tried, known, {}, 0, frozenset(), shares)] == fixes
    assert not rungs(tried, known, {}, 0)


@pytest.mark.parametrize(("left", "fix"), [(0.02, "cached-samples"), (0.2, "workers")])
def test_of_what_loads_the_one_is_tried_on_top_under_which_steps_wait_least(left: float, fix: str) -> None:
    """One window of each: how long steps wait is known better than how much faster they are."""
    one: Setting = {"num_workers": 1}
    tried = {"amp-bf16": [BF16], "workers": [one], "cached-samples": [CACHED]}
    known = {key_of(BF16): 1.4, key_of(one): 1.01, key_of(CACHED): 0.98}
    shares = {key_of(BF16): 0.21, key_of({}): 0.15, key_of(one): 0.13, key_of(CACHED): left}
    assert [fix for fix, _ in rungs(tried, known, {}, 0, frozenset(), shares)] == ["amp-bf16", fix]


@pytest.mark.parametrize(
    ("cached", "left", "fixes"),
    [
        (0.85, 0.02, ["amp-bf16", "cached-samples"]),
        (0.85, 0.08, []),
        # No luck makes so much.
        (0.7, 0.02, []),
    ],
)
def test_what_hardly_lets_steps_wait_is_tried_on_top_though_its_window_was_slow(
    cached: float, left: float, fixes: list[str]
) -> None:
    """A list of samples measured 0.87 times in its one window, whose memory the kernel had to give it page by page."""
    tried = {"amp-bf16": [BF16], "cached-samples": [CACHED]}
    known = {key_of(BF16): 1.4, key_of(CACHED): cached}
    shares = {key_of(BF16): 0.21, key_of({}): 0.15, key_of(CACHED): left}
    assert [fix for fix, _ in rungs(tried, known, {}, 0, frozenset(), shares)] == fixes
    with_workers: Setting = {"num_workers": 1}
    known, shares = {key_of(BF16): 1.4, key_of(with_workers): cached}, {**shares, key_of(with_workers): left}
    assert not rungs({"amp-bf16": [BF16], "workers": [with_workers]}, known, {}, 0, frozenset(), shares)


@pytest.mark.parametrize(
    ("left", "fixes"), [(0.14, ["amp-bf16", "cached-samples", "whole"]), (0.03, ["amp-bf16", "whole"])]
)
def test_what_gained_by_luck_and_lets_steps_wait_is_no_reason_to_leave_out_what_feeds_them(
    left: float, fixes: list[str]
) -> None:
    whole: Setting = {"prefetch_factor": 4}
    tried = {"amp-bf16": [BF16], "whole": [whole], "cached-samples": [CACHED]}
    known = {key_of(BF16): 1.4, key_of(whole): 1.04, key_of(CACHED): 0.98}
    shares = {key_of(BF16): 0.21, key_of({}): 0.15, key_of(whole): left, key_of(CACHED): 0.02}
    assert [fix for fix, _ in rungs(tried, known, {}, 2, frozenset(), shares)] == fixes


def test_what_loads_faster_already_gets_nothing_more_for_it() -> None:
    tried = {"threads": [THREADS], "cached-samples": [CACHED]}
    known = {key_of(THREADS): 1.6, key_of(CACHED): 0.98}
    assert not rungs(tried, known, {}, 0, frozenset(), {key_of(THREADS): 0.4})


def test_nothing_is_added_to_what_computes_faster_itself() -> None:
    threads: Setting = {"intra_op_threads": 1}
    known = {key_of(BF16): 2.5, key_of(threads): 1.01}
    assert not rungs({"amp-bf16": [BF16], "threads": [threads]}, known, {}, 0, {"amp-bf16", "threads"})


def test_only_the_best_of_them_is_added() -> None:
    threads: Setting = {"intra_op_threads": 1}
    tried = {"cached-samples": [CACHED], "amp-bf16": [BF16], "threads": [threads]}
    known = {key_of(CACHED): 2.0, key_of(BF16): 0.99, key_of(threads): 1.01}
    made = rungs(tried, known, {}, 0, {"amp-bf16", "threads"})
    assert made == [("cached-samples", CACHED), ("threads", {**CACHED, **threads})]


def tried(selection: Selection, worth: Mapping[str, float], session: int, *settings: Setting) -> None:
    """These settings in a session, each of worth as many times as what they change together."""
    machine = Machine(selection, lambda setting, mode: math.prod(worth.get(each, 1.0) for each in setting))
    machine.clock = 20.0 * len(selection.measured.windows)
    baseline = probe("baseline", {})
    machine.measure(session, baseline)
    for setting in settings:
        machine.measure(session, probe(key_of(setting), setting), baseline)


FUSED: Setting = {"fused_optimizer": True}
MERGED: Setting = {"merged_groups": True}
WORTH = {"autocast": 2.0, "fused_optimizer": 1.2}


def chosen(worth: Mapping[str, float], *settings: Setting) -> Selection:
    """The ladder of what the first session tried."""
    selection = Selection(
        Measurements(replace(FOUND, obstacles=dict.fromkeys((*WORTH, "merged_groups"), ""))), frozenset(), frozenset()
    )
    tried(selection, worth, 1, *settings)
    selection.choose(1)
    selection.climb()
    return selection


def test_what_a_later_session_tries_for_the_first_time_joins_the_ladder() -> None:
    selection = chosen(WORTH, BF16)
    assert not selection.ladder.rungs
    assert not selection.climb_on(), "nothing is new"
    tried(selection, WORTH, 2, BF16, FUSED)
    assert selection.climb_on()
    assert selection.ladder.rungs == [("amp-bf16", BF16), ("fused-optimizer", {**BF16, **FUSED})]
    assert not selection.climb_on(), "nothing is new since then"


def test_what_seems_to_bring_nothing_joins_no_ladder() -> None:
    selection = chosen(WORTH, BF16)
    tried(selection, {**WORTH, "fused_optimizer": 1.01}, 2, BF16, FUSED)
    assert not selection.climb_on()
    assert not selection.ladder.rungs


def test_the_first_rung_stays() -> None:
    """What led when the ladder was chosen was measured most, and nothing takes its place for one lucky window."""
    selection = chosen(WORTH, BF16, FUSED)
    before = selection.ladder.rungs
    assert [fix for fix, _ in before] == ["amp-bf16", "fused-optimizer"]
    slow = {"autocast": 0.4, "fused_optimizer": 1.2, "merged_groups": 1.5}
    tried(selection, slow, 2, *[BF16] * 4, MERGED)
    assert not selection.climb_on()
    assert selection.ladder.rungs == before
