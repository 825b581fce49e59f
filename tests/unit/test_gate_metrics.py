"""Metrics of a check: how pairs become one number each, and what is said of it."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import pytest
from tests.unit.gate_samples import pair, side

from bottleneck_doctor.config import Config, MetricConfig
from bottleneck_doctor.documents.check import HOST_MEMORY, STEP_TIME, Level, Metric
from bottleneck_doctor.documents.measured import Surroundings
from bottleneck_doctor.gate import decide, verdict
from bottleneck_doctor.gate.cause import culprits
from bottleneck_doctor.gate.limits import DEFAULTS, MetricLimit, configured
from bottleneck_doctor.gate.metrics import Judging, Series, judged, judged_series, record_of, sentence
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.wording.check_words import is_shown

NOISE = (0.002, -0.003, 0.001, -0.001, 0.003)


def how(pairs: int, **limits: MetricLimit) -> Judging:
    return Judging({**DEFAULTS, **limits}, decide.interim_look_after(pairs, last=True), pairs)


def early(pairs: int, **limits: MetricLimit) -> Judging:
    """With room for more."""
    return Judging({**DEFAULTS, **limits}, decide.interim_look_after(pairs, last=False), 20)


def metrics(pairs: list[PairSample], **limits: MetricLimit) -> dict[str, Metric]:
    return {each.id: each for each in judged(pairs, how(len(pairs), **limits))}


def noisy(change: float) -> list[PairSample]:
    return [pair(n, 0.020, 0.020 * (1 + change) * math.exp(noise)) for n, noise in enumerate(NOISE, 1)]


def test_a_slower_step_is_a_regression_with_its_figures() -> None:
    step = metrics(noisy(0.30))[STEP_TIME]
    assert step.verdict == "regression"
    assert step.change == pytest.approx(0.30, abs=0.01)
    assert step.low is not None
    assert step.high is not None
    assert 0.05 < step.low < 0.30 < step.high
    assert step.smallest is not None
    assert 0.05 < step.smallest < 0.30
    assert step.base == pytest.approx(0.020)
    assert "the limit is 5 %" in step.sentence


@pytest.mark.parametrize(
    ("change", "expected"), [(0.0, "unchanged"), (-0.2, "improvement"), (0.05, "cannot_tell"), (0.2, "regression")]
)
def test_verdicts(change: float, expected: str) -> None:
    found = metrics(noisy(change))
    assert found[STEP_TIME].verdict == expected
    whole = {"regression": "regressed", "cannot_tell": "cannot_tell"}.get(expected, "passed")
    assert verdict.status(list(found.values())) == whole


def test_what_grew_is_what_the_verdict_rests_on() -> None:
    found = metrics(noisy(0.30))
    step = found[STEP_TIME]
    assert step.base is not None
    assert step.head is not None
    assert verdict.growth(list(found.values())) == step.head - step.base
    assert verdict.growth(list(metrics(noisy(0.0)).values())) is None


def test_without_the_step_itself_its_phases_grew() -> None:
    phases = {"forward": 0.010, "backward": 0.010}
    both = (phases, {"forward": 0.018, "backward": 0.010})
    pairs = [pair(n, 0.020, 0.020 * math.exp(noise), phases=both) for n, noise in enumerate(NOISE, 1)]
    found = metrics(pairs, phase_forward=MetricLimit(0.1, "warn"))
    assert found[STEP_TIME].verdict == "unchanged"
    assert verdict.growth(list(found.values())) == pytest.approx(0.008)


def test_a_stall_now_and_then_weighs_as_much_as_it_takes() -> None:
    """One window in three takes twice as long on the head: a third more in all."""

    def stalling(noise: float) -> PairSample:
        head = side(0.020 * (1 + noise))
        slow = head.windows[1]
        head.windows[1] = replace(slow, seconds=2 * slow.seconds)
        return PairSample(number=1, base=side(0.020), head=head)

    step = metrics([replace(stalling(noise), number=n) for n, noise in enumerate(NOISE, 1)])[STEP_TIME]
    assert step.change == pytest.approx(1 / 3, abs=0.002)


def test_a_window_that_was_cut_short_weighs_less() -> None:
    """Steps of 10 ms, and one stall of 3 s, in which the window was cut after 10 steps of 70."""
    head = side(0.010)
    head.windows[:] = [
        replace(head.windows[0], steps=70, samples=280.0, seconds=0.7),
        replace(head.windows[1], steps=10, samples=40.0, seconds=3.1),
    ]
    seen = PairSample(number=1, base=side(0.010), head=head)
    assert list(seen.means()) == pytest.approx([0.010, 3.8 / 80])
    assert seen.ratio().log == pytest.approx(math.log(4.75))
    record = record_of(seen)
    assert record.head_step_seconds == pytest.approx(0.0475)
    assert record.windows == 4


def test_turns_of_one_side_only_are_left_out() -> None:
    """The head's loader has no length any more, so what its epochs cost is unknown: steps are compared, as is said."""
    pairs = [
        PairSample(number=n, base=side(0.020, turn=1.0), head=side(0.024 * math.exp(noise), turn=1.0, epoch=None))
        for n, noise in enumerate(NOISE, 1)
    ]
    step = metrics(pairs)[STEP_TIME]
    assert step.change == pytest.approx(0.2, abs=0.01)
    assert step.base == pytest.approx(0.020)
    assert [each.slug for each in verdict.weak_evidence(pairs, how(5), [step])] == ["loops-differ"]


@pytest.mark.parametrize(
    ("head", "base", "told"), [(6, 0, True), (5, 0, False), (8, 1, True), (8, 3, False), (0, 6, False)]
)
def test_a_head_that_stalls_is_told_where_it_is_no_accident(head: int, base: int, told: bool) -> None:
    pairs = [pair(number, 0.020, 0.020) for number in range(1, 11)]
    for number in range(max(head, base)):
        for side_, count in ((pairs[number].head, head), (pairs[number].base, base)):
            if number < count:
                side_.windows[0] = replace(side_.windows[0], seconds=1.5 * side_.windows[0].seconds)
    slugs = [each.slug for each in verdict.weak_evidence(pairs, how(10), [])]
    assert ("head-stalls" in slugs) is told


@pytest.mark.parametrize(
    ("busy", "told"),
    [([0.9, 0.8, 1.0], True), ([0.9, 0.1, 1.0], False), ([0.0, 0.0, 0.0], False), ([0.9, None, 1.0], False)],
)
def test_other_programs_beside_all_pairs_are_told(busy: list[float | None], told: bool) -> None:
    pairs = [pair(number, 0.020, 0.020) for number in range(1, 4)]
    for each, others in zip(pairs, busy, strict=True):
        around = None if others is None else Surroundings(others_cpu=others)
        for side_ in (each.base, each.head):
            side_.windows[:] = [replace(window, around=around) for window in side_.windows]
    found = [each.sentence for each in verdict.weak_evidence(pairs, how(3), []) if each.slug == "other-load"]
    assert [each.startswith("Other programs kept at least 0.8 cores busy") for each in found] == [True] * told


def test_starting_an_epoch_weighs_by_its_length() -> None:
    """Steps alike, 1 s more at each epoch of 100 steps of 20 ms: half as much again."""
    pairs = [
        PairSample(number=n, base=side(0.020 * (1 + noise)), head=side(0.020, turn=1.0))
        for n, noise in enumerate(NOISE, 1)
    ]
    found = metrics(pairs)
    assert found[STEP_TIME].change == pytest.approx(0.5, abs=0.01)
    assert found["epoch_turn"].verdict == "regression"


def test_no_turn_takes_less_than_no_time() -> None:
    """A turn's measure is noisy: one of nothing comes out below nothing now and then. It shortens no step."""
    pairs = [
        PairSample(number=n, base=side(0.020 * (1 + noise), turn=-0.000559), head=side(0.020, turn=-0.3))
        for n, noise in enumerate(NOISE, 1)
    ]
    found = metrics(pairs)
    turn = found["epoch_turn"]
    assert (turn.base, turn.head, turn.change) == (0, 0, 0)
    assert turn.verdict == "unchanged"
    assert "-" not in turn.sentence
    assert found[STEP_TIME].head == pytest.approx(0.020)
    assert found[STEP_TIME].verdict == "unchanged"


def test_what_counts_as_more_than_it_is_is_told_so() -> None:
    """From 3 ms to 100 ms is more than 100 %, but the change is that from 50 ms."""
    pairs = [
        PairSample(number=n, base=side(0.020 * (1 + noise), turn=0.003), head=side(0.020, turn=0.1))
        for n, noise in enumerate(NOISE, 1)
    ]
    turn = metrics(pairs)["epoch_turn"]
    assert turn.change == pytest.approx(1.0)
    assert "by 100 %, from under 50 ms to 100 ms" in turn.sentence


def test_turns_that_luck_puts_around_nothing_cancel() -> None:
    seen = side(0.020)
    seen.windows[:] = [
        replace(each, turn_seconds=turn) for each, turn in zip(seen.windows, (-0.1, 0.1, 0), strict=True)
    ]
    assert seen.epoch_overhead() == pytest.approx(0)


def test_batches_of_another_size_are_compared_by_sample() -> None:
    pairs = [
        PairSample(number=n, base=side(0.020 * (1 + noise)), head=side(0.040, samples=8.0))
        for n, noise in enumerate(NOISE, 1)
    ]
    step = metrics(pairs)[STEP_TIME]
    assert step.verdict == "unchanged"
    assert [each.slug for each in verdict.weak_evidence(pairs, how(5), [step])] == ["loops-differ"]


def test_a_loader_that_disappears_is_a_finding() -> None:
    pairs = [PairSample(number=n, base=side(0.02), head=side(0.02, loader=False)) for n in range(1, 6)]
    assert metrics(pairs)["data_wait"].verdict == "gone"


def test_shares_change_by_points_and_memory_by_part() -> None:
    pairs = [
        PairSample(number=n, base=side(0.02, wait=0.1), head=side(0.02, wait=0.3 + noise, peak_bytes=3 << 29))
        for n, noise in enumerate(NOISE, 1)
    ]
    found = metrics(pairs)
    assert found["data_wait"].change == pytest.approx(0.2, abs=0.01)
    assert found["data_wait"].verdict == "regression"
    assert found["host_memory"].change == pytest.approx(0.5)
    assert found["host_memory"].level == "warn"
    # Neither can fail a check by itself.
    assert verdict.status(list(found.values())) == "passed"


def test_the_first_pair_may_have_caches_to_make() -> None:
    pairs = [pair(1, 0.02, 0.02), *[pair(n, 0.02, 0.02) for n in range(2, 7)]]
    pairs[0] = replace(pairs[0], head=side(0.02, first_step=400.0))
    assert metrics(pairs)["first_step"].verdict == "unchanged"


def test_nothing_is_decided_before_it_is_looked() -> None:
    """Of the first pair the start is not counted: what was not measured yet has not passed."""
    limits = {"step_time": MetricLimit(0.05, "warn"), "first_step": MetricLimit(0.2, "error")}
    one = [pair(1, 0.02, 0.02)]
    assert verdict.is_open(judged(one, early(1, **limits)), early(1, **limits))
    many = [pair(n, 0.02, 0.02) for n in range(1, 6)]
    found = judged(many, early(5, **limits))
    assert not verdict.is_open(found, early(5, **limits))
    assert verdict.status(found) == "passed"


def test_what_may_fail_a_check_and_was_not_measured_has_not_passed() -> None:
    pairs = [PairSample(number=n, base=side(0.02, peak_bytes=None), head=side(0.02, peak_bytes=None)) for n in range(5)]
    assert verdict.status(judged(pairs, how(5))) == "passed"
    strict = how(5, host_memory=MetricLimit(0.1, "error", most=1 << 31))
    found = judged(pairs, strict)
    assert verdict.status(found) == "cannot_tell"
    assert not verdict.is_open(found, strict), "more pairs would not show it"
    assert "Peak memory: could not be measured" in verdict.sentence(found, "main", 5, [])
    memory = next(each for each in found if each.id == "host_memory")
    assert is_shown(memory)
    assert not is_shown(replace(memory, level="warn"))


def test_what_one_pair_lacks_is_not_gone() -> None:
    limit = MetricLimit(0.1, "error")
    pairs = [PairSample(number=n, base=side(0.02), head=side(0.02, peak_bytes=None)) for n in range(1, 6)]
    found = judged(pairs[:1], how(1, host_memory=limit))
    assert verdict.status(found) == "cannot_tell"
    assert "measured on the base only, which may be chance" in verdict.sentence(found, "main", 1, [])
    assert verdict.status(judged(pairs, how(5, host_memory=limit))) == "regressed"


def test_a_phase_that_took_no_time_took_none() -> None:
    """It has grown, or fallen, and is neither new nor gone; it is gone where the head shows no phases at all."""
    before, after = {"forward": 0.019, "host_to_device": 0.0}, {"forward": 0.018, "host_to_device": 0.002}
    grown = metrics([pair(n, 0.02, 0.02, phases=(before, after)) for n in range(1, 6)])["phase_host_to_device"]
    assert grown.verdict == "regression"
    assert grown.base == 0
    assert grown.head == pytest.approx(0.002)
    fallen = metrics([pair(n, 0.02, 0.02, phases=(after, before)) for n in range(1, 6)])["phase_host_to_device"]
    assert fallen.verdict == "improvement"
    gone = metrics([pair(n, 0.02, 0.02, phases=(after, None)) for n in range(1, 6)])
    assert {name: each.verdict for name, each in gone.items() if name.startswith("phase_")} == {
        "phase_forward": "gone",
        "phase_host_to_device": "gone",
    }


def test_small_phases_are_no_metrics() -> None:
    told = ({"forward": 0.010, "zero_grad": 0.0001}, {"forward": 0.015, "zero_grad": 0.0003})
    found = metrics([pair(n, 0.02, 0.02, phases=told) for n in range(1, 6)])
    assert found["phase_forward"].verdict == "regression"
    assert "phase_zero_grad" not in found


def test_phases_of_larger_steps_are_compared_by_sample() -> None:
    """Twice the batch in twice the time is the same work, in each phase too."""
    told = {"forward": 0.010, "backward": 0.008}
    twice = {name: 2 * seconds for name, seconds in told.items()}
    pairs = [
        PairSample(number=n, base=side(0.02, phases=told), head=side(0.04, samples=8.0, phases=twice))
        for n in range(1, 6)
    ]
    found = metrics(pairs)
    assert found[STEP_TIME].verdict == found["phase_forward"].verdict == found["phase_backward"].verdict == "unchanged"
    assert found["phase_forward"].head == pytest.approx(0.010)
    assert culprits.grown_phases(pairs, 0.001) == []
    # Of loops that take no samples a step is a step.
    bare = [replace(each, base=replace(each.base, has_loader=False)) for each in pairs]
    assert metrics(bare)["phase_forward"].verdict == "regression"


def test_memory_of_a_device() -> None:
    """Not there without one, gone where only the base had one; what was reserved is judged where it is asked for."""
    pairs = [pair(n, 0.02, 0.02) for n in range(1, 6)]
    assert metrics(pairs)["device_memory"].verdict == "not_measured"
    assert "device_reserved" not in metrics(pairs)
    on_it = [replace(each, base=side(0.02, device_bytes=1 << 30)) for each in pairs]
    assert metrics(on_it)["device_memory"].verdict == "gone"
    more = [replace(each, head=side(0.02, device_bytes=(1 << 30) + (1 << 28))) for each in on_it]
    found = metrics(more, device_reserved=MetricLimit(0.1, "error", most=1 << 31))
    assert found["device_memory"].verdict == "regression"
    assert found["device_memory"].change == pytest.approx(0.25)
    assert found["device_reserved"].base == 1 << 31
    assert found["device_reserved"].verdict == "regression"


def test_what_may_not_be_exceeded_at_all() -> None:
    pairs = [pair(n, 0.02, 0.02) for n in range(1, 6)]
    strict = metrics(pairs, host_memory=MetricLimit(0.1, "error", most=1 << 29))
    assert strict["host_memory"].verdict == "regression"
    assert "at most" in strict["host_memory"].sentence
    allowed = metrics(pairs, host_memory=MetricLimit(0.1, "error", most=1 << 31))["host_memory"]
    assert allowed.verdict == "unchanged"
    assert allowed.sentence.endswith("At most 2 GiB is allowed.")


def test_what_may_be_too_much_stays_open() -> None:
    """Three to five percent over, on both sides: three pairs can't be sure of it, more can."""
    limit = MetricLimit(0.1, "error", most=8_000_000_000)
    sizes = [round(8e9 * (1 + over)) for over in (0.0325, 0.0375, 0.0425, 0.035, 0.04, 0.0375, 0.033)]
    pairs = [
        PairSample(number=n, base=side(0.02, peak_bytes=size), head=side(0.02, peak_bytes=size))
        for n, size in enumerate(sizes, 1)
    ]
    few = early(3, host_memory=limit)
    found = judged(pairs[:3], few)
    assert verdict.is_open(found, few)
    assert "cannot tell whether that exceeds the limit of 7.5 GiB" in verdict.sentence(found, "main", 3, [])
    assert verdict.status(judged(pairs, early(7, host_memory=limit))) == "regressed"


def test_metrics_that_can_fail_a_check_share_its_error_rate() -> None:
    two = how(5, host_memory=MetricLimit(0.1, "error"))
    assert two.rate(STEP_TIME) == decide.ERROR_RATE / 2
    assert two.rate("first_step") == decide.ERROR_RATE
    three = how(5, host_memory=MetricLimit(0.1, "error", most=1 << 31))
    assert three.rate(STEP_TIME) == three.rate("host_memory") == decide.ERROR_RATE / 3


@pytest.mark.parametrize("level", ["warn", "error"])
def test_an_absolute_limit_is_no_second_chance_for_luck(level: Level) -> None:
    """Identical revisions that stand at both of their limits: either test alone may be wrong half as often."""
    generator = random.Random(19)
    most, checks = 1 << 30, 6000
    limits = dict.fromkeys(DEFAULTS, MetricLimit(0.05, "off"))
    limits[HOST_MEMORY] = MetricLimit(0.0, level, most=most)
    set_out = Judging(limits, decide.InterimLook(6, 1.0), 6, fixed=True)

    def alarm() -> bool:
        base, head = ([most * (1 + generator.gauss(0, 0.01)) for _ in range(6)] for _ in range(2))
        logs = [math.log(after / before) for before, after in zip(base, head, strict=True)]
        (found,) = judged_series([Series(HOST_MEMORY, base, head, logs)], set_out)
        return found.verdict == "regression"

    alarms = sum(alarm() for _ in range(checks)) / checks
    assert alarms <= decide.ERROR_RATE + 2 * math.sqrt(decide.ERROR_RATE / checks)
    assert alarms >= decide.ERROR_RATE / 2, "and it wastes little of it"


def test_a_threshold_below_the_noise_is_named_with_the_floor() -> None:
    pairs = noisy(0.0)
    limit = MetricLimit(0.003, "error")
    found = judged(pairs, how(5, step_time=limit))
    slugs = [each.slug for each in verdict.weak_evidence(pairs, how(5, step_time=limit), found)]
    assert slugs == ["threshold-below-noise"]
    assert verdict.status(found) == "cannot_tell"


def test_too_few_pairs_claim_nothing() -> None:
    pairs = [pair(1, 0.02, 0.04), pair(2, 0.02, 0.04)]
    found = judged(pairs, how(2))
    assert verdict.status(found) == "cannot_tell"
    (few,) = (each for each in verdict.weak_evidence(pairs, how(2), found, 3) if each.slug == "few-pairs")
    assert few.sentence.endswith("Give more time: `--budget 3m`.")
    (few,) = (each for each in verdict.weak_evidence(pairs, how(2), found) if each.slug == "few-pairs")
    assert "--budget" not in few.sentence


def test_the_command_line_wins_over_the_project() -> None:
    config = Config(metrics={STEP_TIME: MetricConfig(threshold=0.1, level="warn"), "host_memory": MetricConfig(most=9)})
    limits = configured(config, 0.02)
    assert limits[STEP_TIME] == MetricLimit(0.02, "warn")
    assert limits["host_memory"] == MetricLimit(DEFAULTS["host_memory"].threshold, "error", most=9)
    assert configured(Config(), None) == DEFAULTS


@pytest.mark.parametrize(
    ("change", "said"), [(0.3, "longer than on main"), (0.0, "has not become slower"), (-0.3, "less time")]
)
def test_the_sentence(change: float, said: str) -> None:
    found = list(metrics(noisy(change)).values())
    assert said in verdict.sentence(found, "main", 5, [])


def test_means_that_tell_another_story_than_the_pairs_are_left_out() -> None:
    """A pair or two that are slow as a whole outweigh the others in the means, and not in the change."""
    step = replace(metrics(noisy(0.0))[STEP_TIME], verdict="cannot_tell")
    restless = replace(step, base=0.212, head=0.261, change=-0.12)
    assert sentence(restless, how(5)) == "Step time: seems to have fallen by 12 %, but that may be chance."
    assert "from 212 ms to 187 ms" in sentence(replace(restless, head=0.187), how(5))
    hardly = replace(step, base=4.801, head=4.830, change=0.006)
    assert sentence(hardly, how(5)) == "Step time: seems to have grown by 0.6 %, but that may be chance."


@pytest.mark.parametrize("scale", [13.0, 15.5, 18.0])
def test_the_threshold_to_give_is_the_same_wherever_it_is_said(scale: float) -> None:
    """Rounded up in both: the one that is typed must not be refused by the next check."""
    pairs = [pair(n, 0.020, 0.020 * math.exp(scale * noise)) for n, noise in enumerate(NOISE, 1)]
    found = list(metrics(pairs, step_time=MetricLimit(0.02, "error")).values())
    judging = how(len(pairs), step_time=MetricLimit(0.02, "error"))
    given = re.search(r"--threshold (\d+%)", verdict.refusal(pairs, judging, found, 30.0))
    assert given is not None
    warned = next(each for each in verdict.weak_evidence(pairs, judging, found) if each.slug == "threshold-below-noise")
    assert given[1].replace("%", " %") in warned.sentence


def test_the_sentence_says_what_could_not_be_told() -> None:
    """Steps are as quick as before, and memory, which may fail the check, is not known well enough."""
    pairs = noisy(0.0)
    for number, (before, change) in enumerate(zip(pairs, (0.0, 0.2, 0.05, 0.2, 0.1), strict=False)):
        more = replace(before.head, peak_bytes=round((1 << 30) * (1 + change)))
        pairs[number] = replace(before, head=more)
    found = list(metrics(pairs, host_memory=MetricLimit(0.1, "error")).values())
    assert verdict.status(found) == "cannot_tell"
    said = verdict.sentence(found, "main", 5, [])
    assert "has not become slower" in said
    assert "Peak memory: seems to have grown" in said
    alone = list(metrics(pairs, step_time=MetricLimit(0.05, "off"), host_memory=MetricLimit(0.5, "error")).values())
    assert verdict.status(alone) == "passed"
    assert verdict.sentence(alone, "main", 5, []).startswith("Peak memory: has not grown by 50 %")
