"""A stored baseline: what is read and what is refused, and what a check against it says."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.gate_samples import side
from tests.unit.stored_samples import CALIBRATION, NOISE, draw, moment, stored, take

from bottleneck_doctor.documents import stored_baseline as stored_
from bottleneck_doctor.documents.check import FIRST_STEP, PHASE, STEP_TIME, Metric
from bottleneck_doctor.documents.stored_baseline import Draw, Stored, from_json, times, to_json
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate import metrics, verdict
from bottleneck_doctor.gate.baseline import against, unpaired
from bottleneck_doctor.gate.baseline.fingerprint import differences, drifted
from bottleneck_doctor.gate.limits import DEFAULTS, KINDS
from bottleneck_doctor.gate.metrics import Judging
from bottleneck_doctor.render import baseline as text

ROOT = Path(__file__).parents[2]
SAMPLE = json.loads(to_json(stored(times=3, processes=2)))


# -- the document ------------------------------------------------------------------------------------------------------


def test_it_is_read_as_it_was_written() -> None:
    assert from_json(to_json(stored()), source="x") == stored()


def test_committed_schema_is_generated_and_holds() -> None:
    path = ROOT / "docs" / "baseline.schema.json"
    assert path.read_bytes() == stored_.json_schema(), "run python -m bottleneck_doctor.documents.stored_baseline"
    schema = json.loads(path.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(SAMPLE, schema, cls=jsonschema.Draft202012Validator)


def refused(data: bytes) -> str:
    with pytest.raises(DoctorError) as error:
        from_json(data, source="base.json")
    assert "base.json" in error.value.sentence
    return error.value.slug


def changed(**given: Any) -> bytes:
    return json.dumps({**SAMPLE, **given}).encode()


@pytest.mark.parametrize(
    ("data", "slug"),
    [
        (b"", "baseline-unreadable"),
        (b"[]", "baseline-unreadable"),
        (b"{}", "baseline-unreadable"),
        (b"\xff\xfe", "baseline-unreadable"),
        (b"[" * 100_000, "baseline-unreadable"),
        (changed(format=2), "baseline-too-new"),
        (changed(format=-3), "baseline-unreadable"),
        (changed(format=1 << 40), "baseline-unreadable"),
        (changed(takes=[]), "baseline-unreadable"),
        (changed(kind="another"), "baseline-unreadable"),
        (changed(takes=[{**SAMPLE["takes"][0], "taken": "yesterday"}]), "baseline-unreadable"),
        (changed(takes=[{**SAMPLE["takes"][0], "commit": "--output=x"}]), "baseline-unreadable"),
        ((ROOT / "tests" / "golden" / "pets.json").read_bytes(), "baseline-is-report"),
        ((ROOT / "tests" / "golden" / "checks" / "passed.json").read_bytes(), "baseline-unreadable"),
    ],
)
def test_what_is_no_baseline_of_ours_is_refused(data: bytes, slug: str) -> None:
    assert refused(data) == slug


def test_a_format_measured_in_another_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_, "OLDEST_FORMAT", 2)
    monkeypatch.setattr(stored_, "FORMAT", 2)
    assert refused(to_json(stored())) == "baseline-too-old"


def test_a_report_is_told_what_to_do() -> None:
    with pytest.raises(DoctorError) as error:
        from_json((ROOT / "tests" / "golden" / "pets.json").read_bytes(), source="report.json")
    assert "doctor baseline" in error.value.next_step
    assert "allocator" in error.value.sentence


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(DoctorError) as error:
            stored_.read(path)
        assert error.value.slug == "baseline-missing"


def test_the_allocator_has_to_be_as_it_was() -> None:
    assert stored_.way(stored(), True, "x") is True
    for steady in (True, False):
        with pytest.raises(DoctorError) as error:
            stored_.way(stored(steady=not steady), steady, "x")
        assert error.value.slug == "baseline-other-way"


ODD: list[Any] = [None, True, 0, -1, 1e308, 5e-324, 2**63, "", "\x00", [], {}, "9999-12-31T23:59:59-23:59", 1e18]
odd = st.sampled_from(ODD)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, inner in entries:
        found += paths(inner, (*path, key))
    return found


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(paths(SAMPLE)), odd), min_size=1, max_size=3))
@example([(("takes", 0, "draws", 0, "steps", 0), 5e-324)])
@example([(("takes", 0, "draws", 0, "figures", "host_memory"), 0)])
@example([(("takes", 0, "draws", 0, "samples_per_step"), 1e9), (("takes", 1, "draws", 0, "steps", 0), 1e-300)])
@example([(("takes", 0, "draws", 0, "taken"), "0001-01-01T00:00:00+23:59")])
def test_a_damaged_baseline_is_used_or_refused(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = copy.deepcopy(SAMPLE)
    for path, value in changes:
        inner = document
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue  # What it was part of is gone already.
    try:
        read = from_json(json.dumps(document).encode(), source="base.json")
    except DoctorError:
        return
    found = judged(read, head(0.02, 5))
    assert verdict.sentence(list(found.values()), "base", 0, [], counted="5 processes")
    differences(read.machine, stored().machine)
    drifted(read.calibrations, CALIBRATION)
    said = text.render(read, [], file="base.json", check=["doctor"], limits=DEFAULTS, width=None)
    assert "\x00" not in said


# -- times -------------------------------------------------------------------------------------------------------------


def test_draws_of_one_hour_are_of_one_time() -> None:
    one = take([draw(0.02, 0.0), draw(0.02, 0.02)])
    soon = take([draw(0.02, 0.03)])
    later = take([draw(0.02, 0.08)])
    assert [len(time) for time in times([later, one, soon])] == [3, 1]
    # What lies near to the last of a long row shares its luck.
    assert [len(time) for time in times([take([draw(0.02, minutes / 1440) for minutes in range(0, 240, 8)])])] == [30]
    # A long take is of several times: what counts is when each process ran.
    assert [len(time) for time in times([take([draw(0.02, day / 10) for day in range(4)])])] == [1, 1, 1, 1]


def test_moments_with_and_without_a_zone() -> None:
    assert stored_.moment("2026-11-14T03:17:00Z") == stored_.moment(moment(0)) == stored_.moment("2026-11-14T03:17:00")
    assert stored_.moment(stored_.now())


# -- what a check says -------------------------------------------------------------------------------------------------


def head(step: float, count: int, **given: Any) -> list[Draw]:
    return [draw(step * (1 + NOISE[number % 5]), 9, **given) for number in range(count)]


def how(base: Stored, count: int) -> Judging:
    number = len(times(base.takes))
    look = against.interim_look_after(count, number, last=True)
    return Judging(DEFAULTS, look, count, against.looked_at_once(number))


def judged(base: Stored, draws: list[Draw]) -> dict[str, Metric]:
    found = unpaired.judged(times(base.takes), draws, how(base, len(draws)))
    return {each.id: each for each in found}


@pytest.mark.parametrize(
    ("step", "expected"), [(0.020, "unchanged"), (0.016, "improvement"), (0.021, "cannot_tell"), (0.030, "regression")]
)
def test_verdicts(step: float, expected: str) -> None:
    found = judged(stored(), head(step, 5))
    seen = found[STEP_TIME]
    assert seen.verdict == expected
    assert seen.change == pytest.approx(step / 0.02 - 1, abs=0.01)
    assert seen.change is not None
    assert seen.low is not None
    assert seen.high is not None
    assert seen.smallest is not None
    assert seen.low < seen.change < seen.high
    assert seen.smallest > 0.05
    said = verdict.sentence(list(found.values()), "the baseline b.json of 3 May", 0, [], counted="5 processes")
    assert "the baseline b.json of 3 May" in said


def test_a_baseline_of_one_time_sees_large_changes_only() -> None:
    base = stored(times=1)
    assert judged(base, head(0.024, 5))[STEP_TIME].verdict == "cannot_tell"
    assert judged(base, head(0.020, 5))[STEP_TIME].verdict == "cannot_tell"
    found = judged(base, head(0.060, 5))[STEP_TIME]
    assert found.verdict == "regression"
    assert found.smallest is not None
    assert 0.8 < found.smallest < 1.6
    said = unpaired.weak_evidence(times(base.takes), head(0.02, 5), how(base, 5), [found])
    assert [each.slug for each in said] == ["few-times"]


def test_it_says_beforehand_what_it_would_see() -> None:
    """Near to what a check then says, and less with more times."""
    for number in (1, 4, 8):
        base = stored(times=number)
        expected = unpaired.expected(times(base.takes), DEFAULTS)
        told = judged(base, head(0.02, 5))[STEP_TIME].smallest
        assert expected is not None
        assert told == pytest.approx(expected, rel=0.3)
    said = [unpaired.expected(times(stored(times=number).takes), DEFAULTS) or math.inf for number in (1, 3, 5, 9)]
    assert said[0] > said[1] > said[2] > said[3]


def test_times_that_differ_more_than_the_threshold_are_named() -> None:
    takes = [take([draw(0.02 * factor, day)] * 3) for day, factor in enumerate((1.0, 1.2, 0.9, 1.1))]
    base = stored(takes=takes)
    found = list(judged(base, head(0.02, 5)).values())
    said = unpaired.weak_evidence(times(base.takes), head(0.02, 5), how(base, 5), found)
    assert "threshold-below-noise" in [each.slug for each in said]


def test_times_that_differ_by_far_suggest_no_threshold_that_nobody_would_want() -> None:
    base = stored(takes=[take([draw(0.02 * factor, day)] * 3) for day, factor in enumerate((1.0, 3.0, 0.5, 2.0))])
    found = list(judged(base, head(0.02, 5)).values())
    said = unpaired.weak_evidence(times(base.takes), head(0.02, 5), how(base, 5), found)
    (told,) = (each.sentence for each in said if each.slug == "threshold-below-noise")
    assert told.endswith(
        "that not even 50 % can be judged. Measure the baseline at more times, or give `--base-ref` instead."
    )


def test_every_figure_is_a_metric_and_every_metric_a_figure() -> None:
    """A metric that is new in checks of pairs is one here as well."""
    assert {STEP_TIME, *unpaired.FIGURES} == {name for name in KINDS if not name.startswith(PHASE)}
    for name in KINDS:
        assert unpaired.assumed(name) > 0


def test_a_metric_that_disappears_is_a_finding() -> None:
    kept = {"host_memory": float(1 << 30), "first_step": 4.0, "epoch_turn": 0.2}
    found = judged(stored(), head(0.02, 5, figures=kept, loader=False))
    assert found["data_wait"].verdict == "gone"
    assert found["host_memory"].verdict == "unchanged"


def test_one_that_only_the_head_has_is_new() -> None:
    base = stored(takes=[take([draw(0.02, day, figures={})] * 3) for day in range(6)])
    found = judged(base, head(0.02, 5))
    assert found["host_memory"].verdict == "new"
    assert verdict.status(list(found.values())) == "passed"


def test_the_start_of_a_first_process_is_not_counted() -> None:
    first = unpaired.draw(side(0.02), moment(0), whole_epochs=False, first=True)
    second = unpaired.draw(side(0.02), moment(0), whole_epochs=False, first=False)
    assert FIRST_STEP not in first.figures
    assert second.figures[FIRST_STEP] == 4.0
    # Of one process alone nothing is known, and so nothing is gone.
    assert judged(stored(), [first])[FIRST_STEP].verdict == "not_measured"


def test_what_a_process_showed_is_kept() -> None:
    seen = side(0.02, wait=0.1, turn=1.0, phases={"forward": 0.01, "zero_grad": 0.0})
    kept = unpaired.draw(seen, moment(0), whole_epochs=False, first=False)
    # A second at each epoch of 100 steps.
    assert kept.steps == pytest.approx([0.03] * 3)
    assert kept.figures["data_wait"] == pytest.approx(0.1)
    assert kept.figures["phase_forward"] == 0.01
    assert kept.figures["epoch_turn"] == 1.0
    # Lead-in may be quicker than the steps after it.
    assert unpaired.draw(side(0.02, turn=-0.1), moment(0), whole_epochs=False, first=True).figures["epoch_turn"] == 0


def test_batches_of_another_size_are_compared_by_sample() -> None:
    draws = head(0.040, 5, samples=8.0)
    found = judged(stored(), draws)[STEP_TIME]
    assert found.verdict == "unchanged"
    said = unpaired.weak_evidence(times(stored().takes), draws, how(stored(), 5), [found])
    assert [each.slug for each in said] == ["loops-differ"]
    bare = [replace(each, has_loader=False) for each in draws]
    found = judged(stored(), bare)[STEP_TIME]
    assert found.verdict == "regression"


def test_phases_that_grew_are_told() -> None:
    def with_phases(step: float, forward: float, day: float) -> Draw:
        figures = {"phase_forward": forward, "phase_backward": 0.008, "phase_zero_grad": 0.0001}
        return draw(step, day, figures=figures)

    base = stored(takes=[take([with_phases(0.02, 0.010, day)] * 3) for day in range(6)])
    slow = [with_phases(0.03, 0.020, 9)] * 5
    found = judged(base, slow)
    assert found["phase_forward"].verdict == "regression"
    assert found["phase_backward"].verdict == "unchanged"
    assert "phase_zero_grad" not in found
    grew = verdict.growth(list(found.values()))
    assert grew is not None
    (culprit,) = unpaired.grown_phases(times(base.takes), slow, grew)
    assert (culprit.name, culprit.base, culprit.head) == ("forward", 0.010, 0.020)


def test_phases_of_larger_steps_are_compared_by_sample() -> None:
    def with_phase(step: float, forward: float, day: float, samples: float) -> Draw:
        return draw(step, day, samples=samples, figures={"phase_forward": forward})

    base = stored(takes=[take([with_phase(0.02, 0.010, day, 4.0)] * 3) for day in range(6)])
    twice = [with_phase(0.04, 0.020, 9, 8.0)] * 5
    found = judged(base, twice)["phase_forward"]
    assert found.verdict == "unchanged"
    assert found.head == pytest.approx(0.010)
    assert unpaired.grown_phases(times(base.takes), twice, 0.001) == []


def test_few_processes_claim_nothing() -> None:
    draws = head(0.04, 2)
    found = list(judged(stored(), draws).values())
    assert verdict.status(found) == "cannot_tell"
    said = unpaired.weak_evidence(times(stored().takes), draws, how(stored(), 2), found, 1)
    (few,) = (each for each in said if each.slug == "few-pairs")
    assert few.sentence.endswith("Give more time: `--budget 1m`.")


def test_shares_differ_by_points() -> None:
    found = judged(stored(), head(0.02, 5, figures={"data_wait": 0.4}))["data_wait"]
    assert found.verdict == "regression"
    assert found.change == pytest.approx(0.3)
    assert metrics.scaled(found.threshold, "share") == 0.05
