"""Reports side by side: ratios with known answers, what differs, and the command as a user meets it."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from statistics import variance

import pytest
from scipy.stats import ttest_ind

from bottleneck_doctor.cli import main
from bottleneck_doctor.compare import Named, compare
from bottleneck_doctor.documents.report import Result, WholeRun, Window, from_json, to_json
from bottleneck_doctor.render import comparison
from bottleneck_doctor.statistics import speedups

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def pets() -> Result:
    return from_json((GOLDEN / "pets.json").read_bytes(), source="pets.json")


def at_speed(result: Result, *step_seconds: float) -> Result:
    """The result with one window of the training as written for each process, 16 samples a step."""
    windows = [
        Window(
            session=number, rank=0, block=1, setting={}, mode="timed", steps=10, samples=160.0, seconds=10 * seconds,
            lead_in_steps=2, lead_in_seconds=0.1, wait_seconds=0.0, turn_seconds=None, whole_epochs=0, queue_change=0,
            ready_share=None, effect={}, started=0.0, label="baseline",
        )
        for number, seconds in enumerate(step_seconds, 1)
    ]  # fmt: skip
    assert result.baseline is not None
    step = math.exp(sum(map(math.log, step_seconds)) / len(step_seconds))
    baseline = replace(result.baseline, step_ms=1000 * step, samples_per_second=16 / step)
    return replace(result, windows=windows, baseline=baseline)


def test_a_speed_is_compared_over_processes(pets: Result) -> None:
    slow = Named("slow", at_speed(pets, 0.10, 0.102, 0.098))
    fast = Named("fast", at_speed(pets, 0.05, 0.051, 0.049))
    found = compare([slow, fast])
    ratio = found.rows[0].ratios[0]
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.estimate == pytest.approx(2.0, rel=1e-3)
    assert 1.9 < ratio.low < 2.0 < ratio.high < 2.1
    assert found.sentences == ("fast is 2.00× faster than slow (95 % 1.91–2.09 as fast).",)
    (back,) = compare([fast, slow]).sentences
    assert back.startswith("slow is 2.00× slower than fast (95 % 0.4")
    (alike,) = compare([slow, Named("again", at_speed(pets, 0.101, 0.099, 0.1))]).sentences
    assert alike.startswith("No difference between again and slow was seen: 1.00×")


def test_without_samples_on_one_side_steps_are_compared(pets: Result) -> None:
    """A loop that lost its loader takes as many steps a second: its steps are no samples."""
    fed = at_speed(pets, 0.1, 0.101, 0.099)
    bare = replace(fed, windows=[replace(each, samples=float(each.steps)) for each in fed.windows])
    assert fed.baseline is not None
    bare = replace(bare, baseline=replace(fed.baseline, batch_size=None, samples_per_second=10.0))
    row = compare([Named("fed", fed), Named("bare", bare)]).rows[0]
    assert row.title == "Steps a second"
    assert row.values[0] == row.values[1] == fed.baseline.steps_per_second
    assert row.ratios[0] is not None
    assert row.ratios[0].estimate == pytest.approx(1.0)


def test_one_process_gives_no_interval(pets: Result) -> None:
    found = compare([Named("a", at_speed(pets, 0.1)), Named("b", at_speed(pets, 0.05, 0.05))])
    ratio = found.rows[0].ratios[0]
    assert ratio is not None
    assert (ratio.low, ratio.high) == (None, None)
    assert "may be chance" in found.sentences[0]


def test_a_report_without_a_baseline_is_said_to_have_none(pets: Result) -> None:
    empty = from_json((GOLDEN / "no-baseline.json").read_bytes(), source="no-baseline.json")
    found = compare([Named("a", pets), Named("b", empty)])
    assert "can't be compared" in found.sentences[0]
    assert comparison.text(found, width=None, color=False)
    assert "<script" not in comparison.html(found)


def test_what_differs_is_named(pets: Result) -> None:
    memory = pets.environment.memory_bytes * 2
    other = replace(
        pets,
        environment=replace(pets.environment, torch="9.9", memory_bytes=memory, variables={"OMP_NUM_THREADS": "3"}),
        entrypoint=replace(pets.entrypoint, argv=["train.py", "--batch", "\x1b[31m"]),
    )
    found = compare([Named("a", pets), Named("b", other)])
    assert {"torch", "memory", "OMP_NUM_THREADS"} <= {each.key for each in found.environment}
    assert [each.key for each in found.training] == ["command"]
    assert "\x1b" not in comparison.text(found, width=100, color=False), "no escape of theirs reaches the terminal"
    same = compare([Named("a", pets), Named("b", pets)])
    assert (same.environment, same.training) == ((), ())


def test_differences_agree_with_scipy() -> None:
    generator = random.Random(3)
    for _ in range(50):
        one = [generator.gauss(0.1, 0.05) for _ in range(generator.randint(2, 6))]
        two = [generator.gauss(0.0, 0.2) for _ in range(generator.randint(2, 6))]
        found = speedups.difference(one, two)
        assert found is not None
        expected = ttest_ind(one, two, equal_var=False).confidence_interval(0.95)
        assert found[0] == pytest.approx((expected.low + expected.high) / 2)
        if min(variance(one) / len(one), variance(two) / len(two)) > speedups.MINIMUM_STANDARD_ERROR**2:
            assert found[1] == pytest.approx((expected.high - expected.low) / 2)
    assert speedups.difference([1.0], [1.0, 2.0]) is None


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pets: Result) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, seconds in (("old", 0.1), ("new", 0.05)):
        (tmp_path / name).mkdir()
        document = to_json(at_speed(pets, seconds, 1.01 * seconds, 0.99 * seconds))
        (tmp_path / name / "report.json").write_bytes(document)
    return tmp_path


def test_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old", "new/report.json", "--html", "both.html"]) == 0
    out = capsys.readouterr().out
    assert "2.00× faster than" in out
    assert "Samples a second" in out
    page = (folder / "both.html").read_text()
    assert "2.00× faster than" in page
    assert "Waiting for data" in page
    assert main(["compare", "old", "new", "old", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["names"] == ["1. old", "2. new", "3. old"]
    assert len(document["sentences"]) == 2
    assert [len(row["values"]) for row in document["rows"]] == [3] * len(document["rows"])


def test_other_documents_of_ours_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "base.json").write_text('{"kind": "bottleneck-doctor baseline", "format": 9}')
    (folder / "check.json").write_bytes((GOLDEN / "checks" / "passed.json").read_bytes())
    assert main(["compare", "old", "base.json"]) == 2
    assert "it is what `doctor baseline` wrote" in capsys.readouterr().err
    assert main(["compare", "old", "check.json"]) == 2
    assert "it is what `doctor check` wrote" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["old"], "usage"),
        (["old", "nowhere.json"], "report-missing"),
        (["old", "other.json"], "report-unreadable"),
        (["old", "new", "--html", "old/report.json/x.html"], "output-unwritable"),
    ],
)
def test_bad_input(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], slug: str) -> None:
    (folder / "other.json").write_text("[]")
    assert main(["compare", *arguments]) == 2
    assert f"[{slug}]" in capsys.readouterr().err


def test_the_whole_run_and_its_memory_have_rows(pets: Result) -> None:
    run = WholeRun(epochs=20, steps=2000, start=5.0, training=100.0, between=15.0, may_end_sooner=False)
    assert pets.utilization is not None
    held = [
        replace(
            use, processes=[replace(each, pss_bytes=1e9, rss_bytes=9e9) for each in use.processes if each.processes]
        )
        for use in pets.utilization.windows
    ]
    known = replace(pets, whole_run=run, utilization=replace(pets.utilization, windows=held))
    slower = replace(known, whole_run=replace(run, training=220.0))
    rows = {row.title: row for row in compare([Named("one", known), Named("other", slower)]).rows}
    whole = rows["The whole run"]
    assert whole.values == (120.0, 240.0)
    assert whole.ratios[0] is not None
    assert whole.ratios[0].estimate == 2.0
    # What processes share is counted once.
    most = max(len(use.processes) for use in held)
    assert rows["Peak memory, main process and workers"].values == (most * 1e9, most * 1e9)
    unknown = replace(pets, whole_run=None)
    assert "The whole run" not in {row.title for row in compare([Named("one", unknown), Named("two", unknown)]).rows}
