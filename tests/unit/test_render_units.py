"""Nothing false beside a figure: its unit, its ceiling, its doubt, and the words that a setting is said in."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.reports import DRAWN, drawn, recorded
from tests.reports import invented as load

from bottleneck_doctor.documents.report import (
    Baseline,
    Combination,
    LadderStep,
    Result,
    Setting,
    Speedup,
    Verdict,
    WorkerPoint,
    Workers,
)
from bottleneck_doctor.render import html, terminal
from bottleneck_doctor.wording import ranking, rates, words


@pytest.fixture
def pets() -> Result:
    return load("pets")


def worth(estimate: float, low: float, high: float, sessions: int = 4) -> Speedup:
    return Speedup(estimate=estimate, low=low, high=high, pairs=2 * sessions, sessions=sessions)


def baseline_of(result: Result) -> Baseline:
    assert result.baseline is not None
    return result.baseline


def plain(result: Result) -> str:
    return terminal.render(result, report_path=None, width=None, color=False)


def shown(result: Result) -> str:
    """What a reader sees of the page; its data for programs keeps the names of its fields."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", html.render(result), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)).replace("\u00a0", " ").replace("&#34;", '"')


def section(page: str, start: str, end: str) -> str:
    return page.partition(start)[2].partition(end)[0]


# -- units -------------------------------------------------------------------------------------------------------------


def test_a_loop_without_a_loader_takes_steps_and_no_samples(pets: Result) -> None:
    steps = replace(
        baseline_of(pets), batch_size=None, samples_per_second=28.1, steps_per_second=28.1, data_wait_share=None
    )
    bare = replace(pets, baseline=steps, loading=[], findings=[], windows=pets.windows[:9])
    assert "Now 28.1 steps/s" in plain(bare)
    assert "samples" not in plain(bare)
    page = shown(bare)
    assert "Now 28.1 steps/s" in page
    assert "now 28.1 steps a second" in page
    assert not re.search(r"samples(/s| a second)", page, re.IGNORECASE)
    assert "Now 12.0 samples/s" in plain(pets), "where a loader hands them out they are samples"


def test_windows_are_told_in_the_unit_of_the_report(pets: Result) -> None:
    window = replace(pets.windows[0], steps=6, samples=192.0, seconds=3.0)
    fed = rates.rate(baseline_of(pets))
    bare = rates.rate(replace(baseline_of(pets), batch_size=None, samples_per_second=64.0, steps_per_second=2.0))
    assert (fed.of_window(window), bare.of_window(window)) == (64.0, 2.0)
    assert (fed.of(64.0), bare.of(64.0)) == (64.0, 2.0)
    assert (fed.long, bare.short) == ("samples a second", "steps/s")


# -- ceilings and the headline -----------------------------------------------------------------------------------------


def test_no_report_shows_a_ceiling_below_what_it_shows_as_measured(pets: Result) -> None:
    """An older release may have written such a document: now 106, ceiling 98.6; best 3.4×, ceiling 2.6×."""
    low = {name: worth(0.93, 0.8, 1.1, 2) for name in ("synthetic", "loader_only", "loader_only_best_workers")}
    assert {each.estimate >= 1 for each in ranking.ceilings(replace(pets, ceilings=low)).values()} == {True}
    bounded = ranking.ceiling(replace(pets, ceilings={"synthetic": worth(2.6, 2.4, 2.8)}))
    assert bounded is not None
    assert bounded[1].estimate == 3.43, "no more than what changes loading alone"
    open_ = [fix for fix in pets.fixes if fix.status != "faster"]
    slow = replace(pets, fixes=open_, combination=None, workers=None)
    slow = replace(slow, baseline=replace(baseline_of(pets), samples_per_second=412.7))
    raised = replace(slow, ceilings={"synthetic": worth(0.93, 0.8, 1.1, 2)})
    assert "Now 413 samples/s; 413 if every batch were ready at once." in plain(raised)
    assert "ceiling of faster loading 413" in shown(raised)


def test_what_computes_faster_may_pass_free_data() -> None:
    text = plain(load("gpu"))
    assert "best measured 2531; 1479 if every batch were ready at once" in text


def test_bar_title_and_headline_speak_of_one_figure(pets: Result) -> None:
    """A combination that the verdict does not promise is no best, and nothing is best where nothing is faster."""
    promised = ranking.best_measured(pets)
    assert promised is not None
    assert promised.speedup.estimate == 3.43
    assert "<title>3.4× faster" in html.render(pets)
    assert pets.combination is not None
    together = replace(pets, verdict=replace(pets.verdict, together=True))
    best = ranking.best_measured(together)
    assert best is not None
    assert best.speedup == pets.combination.speedup
    assert best.name == "3 fixes together"
    rungs = [LadderStep(fix=fix, setting={"num_workers": 4}, speedup=worth(1.4, 0.9, 2.2, 2)) for fix in "ab"]
    unsure = Combination(setting={"num_workers": 4}, speedup=worth(1.4, 0.9, 2.2, 2), confirmed=None, ladder=rungs)
    open_ = replace(recorded("nothing-faster"), combination=unsure, verdict=Verdict(sentence="Cannot tell."))
    assert ranking.best_measured(open_) is None


# -- workers -----------------------------------------------------------------------------------------------------------


def curve(*points: tuple[int, Speedup]) -> Workers:
    own = worth(1, 1, 1)
    rows = [WorkerPoint(num_workers=0, samples_per_second=12, speedup=own, steady=own, is_baseline=True)]
    rows += [
        WorkerPoint(num_workers=count, samples_per_second=12 * each.estimate, speedup=each, steady=each)
        for count, each in points
    ]
    return Workers(curve=rows, usable_cpus=4)


def test_a_number_of_workers_from_few_processes_is_marked_as_not_certain(pets: Result) -> None:
    one = worth(1.19, 0.0, 1e4, 1)
    page = html.render(replace(pets, workers=curve((2, worth(1.1, 1.05, 1.15)), (4, one)), findings=[]))
    words_ = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "(not certain: 1 process only)" in words_, "in the sentence"
    assert "not certain: 1 process only" in section(words_, "The figures", "Machine"), "and in the table"
    assert "Points with a dashed edge were measured in one process only and are not certain." in words_
    assert page.count(' unsure"') == 2, "one point in each width"
    assert "not certain" not in shown(pets), "where all were measured in as many as a claim needs"


def test_no_number_is_said_to_be_best_while_a_wilder_one_measured_more(pets: Result) -> None:
    page = shown(replace(pets, workers=curve((2, worth(1.1, 1.05, 1.15)), (8, worth(3.0, 0.0, 1e4, 1))), findings=[]))
    assert "2 workers are the safest choice: 13.2 samples a second" in page
    assert "8 workers were measured at 3.0× (no interval yet, 2 pairs) (not certain: 1 process only)" in page
    open_ = shown(replace(pets, workers=curve((4, worth(1.5, 0.8, 2.8))), findings=[]))
    assert "No other number of workers is known to be faster than yours (0 workers, 12.0 samples a second)" in open_
    assert "4 workers were measured at 1.50×" in open_
    one = shown(replace(pets, workers=curve((1, worth(1.96, 1.9, 2.0)), (4, worth(2.0, 1.95, 2.1))), findings=[]))
    assert "1 worker already reaches 95 % of that or more" in one


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"intra_op_threads": 1}, "`torch.set_num_threads(1)`"),
        ({"channels_last": True}, "`model.to(memory_format=torch.channels_last)`"),
        ({"float32_precision": "high"}, '`torch.set_float32_matmul_precision("high")`'),
        ({"cudnn_allow_tf32": True}, "`torch.backends.cudnn.allow_tf32 = True`"),
        ({"autocast": "bfloat16"}, '`torch.autocast("cuda", dtype=torch.bfloat16)`'),
        (
            {"num_workers": 4, "intra_op_threads": 1, "persistent_workers": True},
            "`num_workers=4, persistent_workers=True` and `torch.set_num_threads(1)`",
        ),
        (
            {"num_workers": 4, "autocast": "float16", "intra_op_threads": 2},
            '`num_workers=4`, `torch.autocast("cuda", dtype=torch.float16)` and `torch.set_num_threads(2)`',
        ),
        ({}, "as written"),
    ],
)
def test_a_setting_is_said_as_a_user_writes_it(setting: Setting, text: str) -> None:
    assert words.setting_code(setting, "cuda:0") == text
    assert words.setting_text(setting, "cuda:0") == text.replace("`", "")


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "hostile"])
def test_no_word_of_ours_stands_in_a_report(name: str) -> None:
    result = drawn(name)
    fixes = [
        replace(fix, setting={**fix.setting, "intra_op_threads": 1}, change=None)
        if fix.id in ("workers", "amp-bf16")
        else fix
        for fix in result.fixes
    ]
    result = replace(result, fixes=fixes)
    for text in (shown(result), plain(result)):
        assert "intra_op_threads" not in text
        assert "autocast=" not in text
    assert ("torch.set_num_threads(1)" in shown(result)) == bool(result.fixes)


@pytest.mark.parametrize(
    ("count", "noun", "text"), [(1, "thread", "1 thread"), (2, "batch", "2 batches"), (3, "process", "3 processes")]
)
def test_plurals(count: int, noun: str, text: str) -> None:
    assert words.count_text(count, noun) == text


def test_windows_are_named_without_our_keys(pets: Result) -> None:
    window = pets.windows[0]
    assert words.window_code(replace(window, label="replay=True", setting={"replay": True})) == "the same batches again"
    assert words.window_code(replace(window, label="burn-in", setting={})) == "as written, warming up"
    assert words.window_code(replace(window, label="loader_only:", setting={})) == "as written"
