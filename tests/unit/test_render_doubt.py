"""Where nothing can be claimed: the order of what is open, its words, and the next step, on page and terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports import invented, recorded
from tests.unit.test_render_sections import section, words_of

from bottleneck_doctor.documents.report import FixOutcome, Result, Speedup, from_json, to_json
from bottleneck_doctor.render import html, terminal
from bottleneck_doctor.wording import doubt, durations, ranking


def undecided() -> Result:
    return invented("undecided")


def plain(result: Result) -> str:
    return terminal.render(result, report_path="report.html", width=160, color=False)


# -- words -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chance", "said"),
    [
        (0.9999, "Likely (over 99 %)"), (0.97, "Likely (97 %)"), (0.8, "Likely (80 %)"), (0.6, "May help (60 %)"),
        (0.2, "May help (20 %)"), (0.08, "Unlikely (8 %)"), (0.0001, "Unlikely (under 1 %)"),
    ],
)  # fmt: skip
def test_a_chance_has_a_word_and_is_never_certain(chance: float, said: str) -> None:
    fix = replace(undecided().fixes[0], chance=chance)
    assert doubt.chance_text(fix) == said


@given(one=st.floats(0, 1), other=st.floats(0, 1))
def test_a_better_chance_has_no_weaker_word(one: float, other: float) -> None:
    order = ["Unlikely", "May help", "Likely"]
    low, high = sorted((one, other))
    assert order.index(doubt.band(low)) <= order.index(doubt.band(high))


def test_one_process_is_said_with_the_figure() -> None:
    def looked(estimate: float, sessions: int, at_least: float | None = None) -> str:
        figure = Speedup(estimate=estimate, low=0.0, high=1e4, pairs=2, sessions=sessions)
        return doubt.looked_text(replace(undecided().fixes[0], speedup=figure, at_least=at_least))

    assert looked(1.85, 1) == "looked 1.85× in 1 process"
    assert looked(2.31, 1, 1.499) == "looked 2.3× in 1 process, so at least 1.4×"
    assert looked(1.3, 1, 1.079) == "looked 1.30× in 1 process, so at least 1.07×"
    assert looked(1.4, 2) == "looked 1.40× in 2 processes"
    assert looked(1.54, 3) == "about 1.54× in 3 processes"


@pytest.mark.parametrize(
    ("seconds", "typed", "spoken"),
    [
        (60, "1m", "1 minute"), (90, "90s", "90 seconds"), (300, "5m", "5 minutes"), (3600, "1h", "1 hour"),
        (4800, "80m", "1 hour 20 minutes"), (2.5, "2.5s", "2 seconds"),
    ],
)  # fmt: skip
def test_lengths_of_time_are_typed_without_loss(seconds: float, typed: str, spoken: str) -> None:
    assert durations.typed_duration(seconds) == typed
    assert durations.parse_duration(typed) == seconds
    assert durations.spoken_duration(seconds) == spoken


@given(seconds=st.floats(1, 50_000))
def test_rounding_up_gives_no_less_and_not_much_more(seconds: float) -> None:
    rounded = durations.round_up(seconds)
    assert seconds <= rounded <= seconds + max(60, 0.5 * seconds)
    assert rounded % 60 == 0


# -- the order ---------------------------------------------------------------------------------------------------------


def open_fix(name: str, chance: float | None, estimate: float | None) -> FixOutcome:
    figure = None if estimate is None else Speedup(estimate=estimate, low=0.0, high=1e4, pairs=2, sessions=1)
    return replace(undecided().fixes[0], id=name, chance=chance, speedup=figure)


def test_the_best_chance_comes_first_and_of_equal_ones_the_larger_gain() -> None:
    fixes = [
        open_fix("unmeasured", None, None), open_fix("hardly", 0.05, 1.0), open_fix("small", 0.96, 1.3),
        open_fix("maybe", 0.6, 4.0), open_fix("large", 0.97, 1.9),
    ]  # fmt: skip
    assert [fix.id for fix in ranking.by_chance(fixes)] == ["large", "small", "maybe", "hardly", "unmeasured"]


def test_nothing_is_listed_as_likely_where_something_is_known() -> None:
    assert ranking.open_fixes(undecided())
    result = invented("pets")
    fixes = [replace(fix, chance=0.9) if fix.status == "cannot_tell" else fix for fix in result.fixes]
    assert ranking.open_fixes(replace(result, fixes=fixes)) == []


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_ranks_what_is_open_and_marks_it_as_not_sure() -> None:
    text = html.render(undecided())
    fixes = section(text, "fixes")
    cards = [words_of(card) for card in re.findall(r"<article.*?</article>", fixes, re.DOTALL)]
    assert len(cards) == 2
    assert "Likely 97 %" in cards[0]
    assert "num_workers=4 : looked 1.85× in 1 process, not yet sure." in cards[0]
    assert "Why not sure: it was measured in only 1 process" in cards[0]
    assert "To make sure: about 5 minutes, with --only workers ." in cards[0]
    assert "May help 41 %" in cards[1]
    assert "about 1.12× in 3 processes" in cards[1]
    assert re.findall(r"<summary><h3>([^<]+?) <", fixes) == [
        "Unlikely to help", "Not measured yet", "Not applicable", "Failed",
    ]  # fmt: skip
    assert "Unlikely (1 %)" in words_of(fixes)
    assert "1.85× faster" not in words_of(text)


def test_the_page_gives_the_command_to_copy() -> None:
    text = html.render(undecided())
    first = words_of(text[: text.index('id="fixes"')])
    assert "Run this to make sure about 20 minutes" in first
    assert "doctor run --budget 20m --only channels-last --only workers train.py -- config.json" in first
    settled = replace(undecided(), verdict=replace(undecided().verdict, settle=None))
    assert "Run this to make sure" not in html.render(settled)


def test_reports_of_older_releases_have_no_chances_and_read_as_before() -> None:
    old = recorded("nothing-faster")
    assert all(fix.chance is None and fix.settle is None for fix in old.fixes)
    fixes = words_of(section(html.render(old), "fixes"))
    assert "Cannot tell" in fixes
    assert "best chance first" not in fixes
    assert from_json(to_json(undecided()), source="it") == undecided()


# -- the terminal ------------------------------------------------------------------------------------------------------


def test_the_terminal_ranks_what_is_open_and_ends_with_the_command() -> None:
    text = plain(undecided())
    listed = text[text.index("Not yet sure, best chance first:") :].splitlines()
    assert re.fullmatch(r"  Likely \(97 %\) +train.py:42  num_workers=4 +looked 1.85× in 1 process", listed[1])
    assert listed[2].startswith("  May help (41 %)")
    assert "Other fixes: 2 cannot tell, 1 not applicable, 1 failed." in text
    assert text.rstrip().endswith(
        "Next:   make sure, in about 20 minutes: doctor run --budget 20m --only channels-last --only workers train.py "
        "-- config.json"
    )


def test_nobody_is_sent_on_for_what_hardly_helps() -> None:
    result = undecided()
    hardly = [replace(fix, chance=0.05) for fix in result.fixes if fix.status == "cannot_tell" and fix.speedup]
    text = plain(replace(result, fixes=hardly, verdict=replace(result.verdict, settle=None)))
    assert "Next:   measure again after your next change" in text
    assert "best chance first" not in text


def test_where_noise_hides_everything_the_next_step_is_quiet() -> None:
    result = undecided()
    assert result.noise is not None
    noisy = replace(
        result, verdict=replace(result.verdict, settle=None), noise=replace(result.noise, floor=0.4), warnings=[]
    )
    assert "Next:   when the machine is quiet, measure again: doctor run" in plain(noisy)
    busy = replace(noisy, warnings=[replace(result.warnings[0], slug="other-load")])
    assert "Next:   stop the other programs on this machine, then measure again: doctor run" in plain(busy)
