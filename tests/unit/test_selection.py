"""Who is measured next, on a machine whose speeds are known: exact windows, no clock, no process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import CallNode, SamplingProfile, Setting, Window
from bottleneck_doctor.examine.evidence import Candidate
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import Probe, probe
from bottleneck_doctor.runtime.wire.messages import Found

FOUND = Found(
    rung="optimizer step",
    period=1,
    periodic=True,
    step_seconds=[0.1] * 8,
    wait_seconds=[0.07] * 8,
    samples_per_step=4.0,
    device="cpu",
    usable_cpus=2,
    threads=2,
    has_loader=True,
    batch_size=4,
    epoch_batches=400,
    start_method="fork",
    has_root_module=True,
)

Speed = Callable[[Setting, str], float]


def io_bound(setting: Setting, mode: str) -> float:
    """0.07 s to load, 0.03 s to compute; persistent workers and a longer queue bring nothing."""
    workers = int(setting.get("num_workers", 0))
    if mode == "loader_only":
        return 0.1 / (0.07 / max(1, workers))
    if setting.get("replay"):
        return 0.1 / 0.03
    compute = 0.02 if "autocast" in setting else 0.03
    # Of equals the fewest workers are a little faster, so that no rounding says which is best.
    return 0.1 / (0.07 + compute if workers == 0 else max(compute, 0.07 / workers) * (1 + 1e-9 * workers))


class Machine:
    """Measures whatever it is asked to, exactly, and keeps the windows in the selection."""

    def __init__(self, selection: Selection, speed: Speed, wait: float = 0.7) -> None:
        self.selection, self.speed, self.wait = selection, speed, wait
        self.clock = 0.0

    def measure(self, session: int, *probes: Probe) -> None:
        for each in probes:
            seconds = 10.0 / self.speed(each.as_setting(), each.mode)
            self.clock += 20.0
            self.selection.measured.windows.append(
                Window(
                    session=session,
                    rank=0,
                    block=1,
                    setting=each.as_setting(),
                    mode=each.mode,
                    steps=100,
                    samples=400.0,
                    seconds=seconds,
                    lead_in_steps=2,
                    lead_in_seconds=0.1,
                    wait_seconds=self.wait * seconds,
                    turn_seconds=None,
                    whole_epochs=0,
                    queue_change=0,
                    ready_share=None,
                    effect={},
                    started=self.clock,
                    label=each.key,
                )
            )

    def block(self, session: int, *, first: bool = True) -> list[Probe]:
        probes = self.selection.probes(session, first_block=first)
        baseline = probe(BASELINE, {})
        self.measure(session, baseline, *probes, baseline)
        return probes


def keys(probes: list[Probe]) -> set[str]:
    return {each.key for each in probes}


def candidate(selection: Selection, fix: str) -> Candidate:
    return next(each for each in selection.outcomes() if each.fix.id == fix)


@pytest.fixture
def selection() -> Selection:
    return Selection(Measurements(FOUND), frozenset(), frozenset())


def test_switches_that_are_on_are_tried_off_from_the_first_block_on() -> None:
    found = replace(FOUND, own={"detect_anomaly": True})
    selection = Selection(Measurements(found), frozenset(), frozenset())

    def switched(setting: Setting, mode: str) -> float:
        return 1.6 if "detect_anomaly" in setting else io_bound(setting, mode)

    machine = Machine(selection, switched)
    assert "detect_anomaly=False" in keys(machine.block(1))
    assert candidate(selection, "debug-switches").risk == "identical"
    selection.choose(1)
    selection.climb()
    assert "debug-switches" in [fix for fix, _ in selection.ladder.rungs]


def test_the_first_block_explores_what_stands_by_itself(selection: Selection) -> None:
    machine = Machine(selection, io_bound)
    asked = keys(machine.block(1))
    assert {"num_workers=1", "num_workers=2", "num_workers=4", "autocast=bfloat16", labels.REPLAY} <= asked
    assert not any("persistent_workers" in key or "prefetch_factor" in key for key in asked)
    assert selection.explored()


def test_choosing_gives_dependent_fixes_the_best_number_of_workers(selection: Selection) -> None:
    machine = Machine(selection, io_bound)
    machine.block(1)
    selection.choose(1)
    assert selection.best_workers() == {"num_workers": 4}
    assert candidate(selection, "persistent-workers").base == {"num_workers": 4}
    assert not selection.explored()
    asked = keys(machine.block(1, first=False))
    assert {"num_workers=4,persistent_workers=True", "num_workers=4,prefetch_factor=4"} <= asked
    assert selection.explored()


def test_the_sweep_widens_around_the_best(selection: Selection) -> None:
    machine = Machine(selection, io_bound)
    machine.block(1)
    selection.choose(1)
    counts = {setting["num_workers"] for setting in candidate(selection, "workers").settings}
    assert counts >= {1, 2, 3, 4}


def test_the_ladder_holds_what_gained_alone_best_first(selection: Selection) -> None:
    machine = Machine(selection, io_bound)
    machine.block(1)
    selection.choose(1)
    machine.block(1, first=False)
    selection.climb()
    fixes = [fix for fix, _ in selection.ladder.rungs]
    assert fixes[0] in ("workers", "intra-op-threads")
    assert fixes[1] == "amp-bf16"
    assert selection.ladder.rungs[-1][1]["autocast"] == "bfloat16"
    assert "persistent-workers" not in fixes
    top = labels.key_of(selection.ladder.rungs[-1][1])
    later = selection.probes(2, first_block=True)
    assert top in keys(later)
    assert next(each for each in later if each.key == top).priority == 0


def test_a_fix_climbs_with_the_best_of_its_settings_and_with_what_is_new() -> None:
    """Other numbers of threads took the place of what would have brought more on top."""
    selection = Selection(Measurements(replace(FOUND, threads=16, usable_cpus=4)), frozenset(), frozenset())

    def crowded(setting: Setting, mode: str) -> float:
        # The fewer the better, most of all beside workers, whose number then says nothing more.
        speed = 1.0 + 1.0 / float(setting.get("intra_op_threads", 20))
        return speed * (1.5 if "num_workers" in setting else 1.0) * (1.3 if "autocast" in setting else 1.0)

    machine = Machine(selection, crowded)
    asked = keys(machine.block(1))
    assert {f"intra_op_threads={count}" for count in (1, 2, 4)} <= asked
    selection.choose(1)
    selection.climb()
    # Of the numbers of threads only the best; workers with threads of their own bring nothing that is new then.
    assert [fix for fix, _ in selection.ladder.rungs] == ["threads", "workers", "amp-bf16"]


def test_losers_are_measured_once_a_session_and_no_more(selection: Selection) -> None:
    selection.focuses = False
    machine = Machine(selection, io_bound)
    machine.block(1)
    selection.choose(1)
    assert "num_workers=1" not in keys(selection.probes(1, first_block=False))
    for session in (2, 3):
        assert "num_workers=1" in keys(machine.block(session))
        assert "num_workers=1" not in keys(selection.probes(session, first_block=False))
    assert "num_workers=1" not in keys(selection.probes(4, first_block=True))


def test_what_is_known_is_no_news(selection: Selection) -> None:
    machine = Machine(selection, io_bound)
    assert selection.news(selection.probes(1, first_block=True)) == selection.probes(1, first_block=True)
    machine.block(1)
    assert not selection.news(selection.probes(1, first_block=False))
    selection.choose(1)
    news = keys(selection.news(selection.probes(1, first_block=False)))
    assert {"num_workers=3", "num_workers=4,persistent_workers=True"} <= news
    assert "num_workers=4" not in news


def test_once_settled_only_the_best_of_each_fix_stays(selection: Selection) -> None:
    selection.focuses = False
    machine = Machine(selection, io_bound)
    machine.block(1)
    selection.choose(1)
    machine.block(1, first=False)
    selection.climb()
    now, later = (keys(selection.probes(2, first_block=True, settled=settled)) for settled in (False, True))
    assert "num_workers=1" in now - later
    assert {"num_workers=4", labels.key_of(selection.ladder.rungs[-1][1])} <= later < now
    for session in (2, 3):
        machine.block(session)
    assert (
        keys(selection.probes(4, first_block=True))
        == keys(selection.probes(4, first_block=True, settled=True))
        == later
    )


def test_what_brings_nothing_leaves_its_time_to_what_may(selection: Selection) -> None:
    selection.focuses = False
    machine = Machine(selection, io_bound)
    machine.block(1)
    selection.choose(1)
    machine.block(1, first=False)
    selection.climb()
    useless = {"num_workers=4,persistent_workers=True", "num_workers=4,prefetch_factor=4"}
    for session in (2, 3):
        assert useless <= keys(selection.probes(session, first_block=True)), "a verdict needs three processes"
        machine.block(session)
    assert not useless & keys(selection.probes(4, first_block=True))
    rungs = [labels.key_of(setting) for _, setting in selection.ladder.rungs]
    assert rungs[-1] in keys(selection.probes(4, first_block=True))
    assert not set(rungs[:-1]) - {"num_workers=4"} & keys(selection.probes(4, first_block=True))


@pytest.mark.parametrize(("gain", "again"), [(1.05, False), (1.15, True)])
def test_beside_a_large_gain_a_small_one_is_measured_once(selection: Selection, gain: float, again: bool) -> None:
    def loading(setting: Setting, mode: str) -> float:
        # Two workers do; one is not enough, but is a part of what is.
        speed = 1.08 if setting.get("num_workers") == 1 else 3.0 if "num_workers" in setting else 1.0
        return speed * (gain if "autocast" in setting else 1.0)

    machine = Machine(selection, loading)
    machine.block(1)
    selection.choose(1)
    selection.climb()
    asked = keys(machine.block(2))
    assert {"num_workers=2", "autocast=bfloat16,num_workers=2"} <= asked
    assert ("autocast=bfloat16" in asked) is again


def test_where_nothing_helps_time_goes_into_making_sure(selection: Selection) -> None:
    def idle(setting: Setting, mode: str) -> float:
        return 1.4 if mode == "loader_only" or setting.get("replay") else 1.0

    machine = Machine(selection, idle)
    machine.block(1)
    selection.choose(1)
    selection.climb()
    for session in (2, 3, 4):
        machine.block(session)
    later = keys(selection.probes(5, first_block=True))
    assert "autocast=bfloat16" in later
    assert any(key.startswith("num_workers=") for key in later)


def test_what_clearly_loses_needs_no_more_than_a_verdict(selection: Selection) -> None:
    machine = Machine(selection, lambda setting, mode: 1.0 if not setting or setting.get("replay") else 0.5)
    machine.block(1)
    selection.choose(1)
    selection.climb()
    for session in (2, 3):
        assert keys(machine.block(session))
    assert not selection.probes(4, first_block=True), "no process has to be started for it"


def test_no_workers_where_none_is_faster(selection: Selection) -> None:
    def in_memory(setting: Setting, mode: str) -> float:
        return 0.5 if setting.get("num_workers") else 1.0

    machine = Machine(selection, in_memory)
    machine.block(1)
    selection.choose(1)
    assert selection.best_workers() == {}
    assert "faster than loading in the main process" in candidate(selection, "persistent-workers").refusal
    selection.climb()
    assert selection.ladder.rungs == []


def test_what_is_tried_on_request_is_tried_where_it_is_named() -> None:
    found = replace(FOUND, obstacles={"compiled": ""})

    def tried(*only: str) -> list[str]:
        made = Selection(Measurements(found), frozenset(only), frozenset())
        return [each.fix.id for each in made.candidates if each.settings]

    assert "compile" not in tried()
    assert tried("compile") == ["compile"]


def test_ceilings_leave_out_what_cannot_pay(selection: Selection) -> None:
    def compute_bound(setting: Setting, mode: str) -> float:
        return 1.005 if setting.get("replay") else 1.0

    machine = Machine(selection, compute_bound, wait=0.004)
    baseline = probe(BASELINE, {})
    machine.measure(1, baseline, probe(labels.REPLAY, {"replay": True}), baseline)
    selection.heed_ceilings()
    assert candidate(selection, "workers").settings == []
    assert candidate(selection, "workers").refusal.startswith(
        "too little to gain: if every batch were ready at once, training would be only"
    )
    assert candidate(selection, "amp-bf16").settings
    asked = keys(selection.probes(1, first_block=False))
    assert not any("num_workers" in key for key in asked)


def test_a_ceiling_that_one_way_of_knowing_denies_is_not_heeded(selection: Selection) -> None:
    def slow_replay(setting: Setting, mode: str) -> float:
        return 0.98 if setting.get("replay") else 1.0

    machine = Machine(selection, slow_replay, wait=0.5)
    baseline = probe(BASELINE, {})
    machine.measure(1, baseline, probe(labels.REPLAY, {"replay": True}), baseline)
    selection.heed_ceilings()
    assert candidate(selection, "workers").settings


def test_what_was_asked_for_is_tried_whatever_the_ceiling() -> None:
    selection = Selection(Measurements(FOUND), frozenset({"workers"}), frozenset())
    machine = Machine(selection, lambda setting, mode: 1.0, wait=0.0)
    baseline = probe(BASELINE, {})
    machine.measure(1, baseline, probe(labels.REPLAY, {"replay": True}), baseline)
    selection.heed_ceilings()
    assert candidate(selection, "workers").settings
    assert candidate(selection, "amp-bf16").refusal == "left out on request"


SHARES = {"data_wait": 0.0, "host_to_device": 0.0, "forward": 0.5, "backward": 0.4, "optimizer": 0.01, "zero_grad": 0.0}
SHARES |= {"between": 0.09, "communication": 0.0}


OUTSIDE_STEPS = replace(FOUND, facts={"gc_freeze": {"share": 0.001, "collections": 1, "on": True, "frozen": False}})


def collected(selection: Selection, seconds: float) -> None:
    """A block in whose windows as written the collector runs for so long after each epoch of 400 steps of 10 ms."""
    Machine(selection, lambda setting, mode: 10.0).block(1)
    windows = selection.measured.windows
    windows[:] = [replace(each, turns=1, turns_collecting=seconds) for each in windows]
    selection.heed_windows()


def test_a_collector_that_runs_between_epochs_is_frozen_once_windows_show_it() -> None:
    selection = Selection(Measurements(OUTSIDE_STEPS), frozenset(), frozenset())
    assert "took only 0.1 %" in candidate(selection, "gc-freeze").refusal
    collected(selection, 0.05)
    assert not candidate(selection, "gc-freeze").settings
    collected(selection, 10.0)
    offered = candidate(selection, "gc-freeze")
    assert (offered.settings, offered.refusal) == ([{"gc_freeze": 50_000}], "")
    assert labels.key_of({"gc_freeze": 50_000}) in keys(selection.probes(1, first_block=False))


@pytest.mark.parametrize(
    ("only", "skip"), [(frozenset({"amp-bf16"}), frozenset()), (frozenset(), frozenset({"gc-freeze"}))]
)
def test_what_was_left_out_on_request_stays_out(only: frozenset[str], skip: frozenset[str]) -> None:
    selection = Selection(Measurements(OUTSIDE_STEPS), only, skip)
    collected(selection, 10.0)
    assert candidate(selection, "gc-freeze").refusal == "left out on request"


@pytest.fixture
def able() -> Selection:
    """One of a loop whose optimizer can be changed."""
    found = replace(FOUND, obstacles={"fused_optimizer": "", "merged_groups": "", "zero_grad_none": ""})
    return Selection(Measurements(found), frozenset(), frozenset())


def test_phases_leave_out_what_acts_on_too_small_a_part(able: Selection) -> None:
    able.heed_phases(SHARES)
    for small in ("fused-optimizer", "merged-groups"):
        assert candidate(able, small).settings == []
        assert candidate(able, small).refusal == "too little to gain: the optimizer takes only 1 % of the time"
    # What it saves of the backward pass is not known, so that all of that counts.
    for large in ("zero-grad-none", "amp-bf16", "workers", "allocator"):
        assert candidate(able, large).settings, large
    able.heed_phases(dict.fromkeys(SHARES, 0.0) | {"data_wait": 0.999, "backward": 0.001})
    reason = "too little to gain: clearing gradients and the backward pass take only 0.1 % of the time"
    assert candidate(able, "zero-grad-none").refusal == reason
    assert candidate(able, "workers").settings


def test_phases_that_are_not_known_leave_nothing_out(able: Selection) -> None:
    able.heed_phases(None)
    assert candidate(able, "fused-optimizer").settings


def test_phases_leave_out_nothing_that_was_measured_already(able: Selection) -> None:
    machine = Machine(able, io_bound)
    machine.block(1)
    able.heed_phases(SHARES)
    assert candidate(able, "fused-optimizer").settings


def test_phases_leave_out_nothing_that_was_asked_for(able: Selection) -> None:
    asked = Selection(Measurements(able.found), frozenset({"fused-optimizer"}), frozenset())
    asked.heed_phases(SHARES)
    assert candidate(asked, "fused-optimizer").settings


def sampled(total: int, in_dropout: int) -> SamplingProfile:
    """A profile of the main process, with samples in dropout layers at two places of a model."""
    near, far = in_dropout // 2, in_dropout - in_dropout // 2
    layers = [
        CallNode(name="forward", path="net.py", line=line, count=count + 10, children=[_dropout(count)])
        for line, count in ((3, near), (7, far))
    ]
    rest = CallNode(name="backward", path="torch/autograd/graph.py", line=1, count=total - in_dropout - 20)
    tree = CallNode(name="<module>", path="train.py", line=1, count=total, children=[rest, *layers])
    return SamplingProfile(rate=100, seconds=total / 100, samples={"main": total}, functions=[], trees={"main": tree})


def _dropout(count: int) -> CallNode:
    inner = CallNode(name="dropout", path="/lib/torch/nn/functional.py", line=1, count=count)
    return CallNode(name="forward", path="/lib/torch/nn/modules/dropout.py", line=1, count=count, children=[inner])


@pytest.fixture
def dropping() -> Selection:
    return Selection(Measurements(replace(FOUND, facts={"quick_dropout": {"obstacle": ""}})), frozenset(), frozenset())


def test_samples_leave_out_what_acts_within_a_function_that_takes_no_time(dropping: Selection) -> None:
    dropping.heed_samples(sampled(800, in_dropout=1))
    assert candidate(dropping, "quick-dropout").settings == []
    assert candidate(dropping, "quick-dropout").refusal == (
        "too little to gain: `dropout` took at most 0.7 % of the time"
    )
    assert candidate(dropping, "amp-bf16").settings


@pytest.mark.parametrize(("total", "in_dropout"), [(100, 0), (800, 20), (800, 200)])
def test_samples_that_allow_a_gain_leave_nothing_out(dropping: Selection, total: int, in_dropout: int) -> None:
    dropping.heed_samples(sampled(total, in_dropout))
    assert candidate(dropping, "quick-dropout").settings == [{"quick_dropout": True}]


def test_without_samples_nothing_is_left_out(dropping: Selection) -> None:
    dropping.heed_samples(None)
    dropping.heed_samples(replace(sampled(800, 0), trees={}))
    assert candidate(dropping, "quick-dropout").settings


def test_samples_leave_out_nothing_that_may_save_time_elsewhere() -> None:
    attends = {"quick_dropout": {"obstacle": "", "attention": True}}
    selection = Selection(Measurements(replace(FOUND, facts=attends)), frozenset(), frozenset())
    selection.heed_samples(sampled(800, 0))
    assert candidate(selection, "quick-dropout").settings == [{"quick_dropout": "attention"}]


def test_samples_leave_out_nothing_that_was_measured_or_asked_for(dropping: Selection) -> None:
    asked = Selection(dropping.measured, frozenset({"quick-dropout"}), frozenset())
    asked.heed_samples(sampled(800, 0))
    assert candidate(asked, "quick-dropout").settings
    Machine(dropping, io_bound).block(1)
    dropping.heed_samples(sampled(800, 0))
    assert candidate(dropping, "quick-dropout").settings


def test_what_failed_is_out_and_says_why(selection: Selection) -> None:
    each = probe("num_workers=2", {"num_workers": 2})
    selection.measured.rule_out(each, "RuntimeError: boom")
    assert not selection.alive(each)
    assert "num_workers=2" not in keys(selection.probes(1, first_block=True))
    assert candidate(selection, "workers").failures == {"num_workers=2": "RuntimeError: boom"}
    bfloat = probe("autocast=bfloat16", {"autocast": "bfloat16"})
    selection.measured.rule_out_idle(bfloat, ["autocast"])
    assert candidate(selection, "amp-bf16").idle == {"autocast=bfloat16": ("autocast",)}


def test_a_loop_without_a_loader_has_no_loader_fixes() -> None:
    selection = Selection(Measurements(replace(FOUND, has_loader=False)), frozenset(), frozenset())
    assert keys(selection.probes(1, first_block=True)) == {"autocast=bfloat16", "intra_op_threads=1"}


def test_workers_that_fail_whatever_their_number_are_tried_no_more() -> None:
    selection = Selection(Measurements(FOUND), frozenset(), frozenset())
    machine = Machine(selection, io_bound)
    one = probe("num_workers=1", {"num_workers": 1})
    machine.measure(1, probe(BASELINE, {}), one, probe(BASELINE, {}))
    selection.measured.rule_out_workers("with workers the dataset hangs")
    assert selection.alive(one), "it was measured"
    left = selection.probes(1, first_block=True)
    assert not any(int(each.as_setting().get("num_workers", 0)) > 1 for each in left)
    workers = next(candidate for candidate in selection.outcomes() if candidate.fix.id == "workers")
    assert set(workers.failures.values()) == {"with workers the dataset hangs"}
