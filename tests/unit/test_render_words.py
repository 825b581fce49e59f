"""The words that every output shares."""

from __future__ import annotations

import math

import pytest

from bottleneck_doctor.documents.report import Setting, Speedup
from bottleneck_doctor.knobs import allocator
from bottleneck_doctor.wording import words


def speedup(estimate: float, low: float, high: float, sessions: int = 3) -> Speedup:
    return Speedup(estimate=estimate, low=low, high=high, pairs=8, sessions=sessions)


def test_setting_reads_as_it_would_be_written_in_a_call() -> None:
    assert (
        words.setting_text({"num_workers": 4, "persistent_workers": True}) == "num_workers=4, persistent_workers=True"
    )
    assert words.setting_text({"precision": "high"}) == 'precision="high"'
    assert words.setting_text({}) == "as written"


def test_sentences_have_a_short_name_for_several_variables() -> None:
    both: Setting = {**allocator.kept({}), "num_workers": 2}
    assert words.setting_code(both) == "`num_workers=2` and `MALLOC_…=…`"
    whole = " ".join(f"{name}={value}" for name, value in allocator.KEEPING.items())
    assert words.setting_code(both, whole=True) == f"`num_workers=2` and `{whole}`"
    # One variable, and names that begin unlike, are as short as they can be.
    assert words.setting_text({"single_threaded": "opencv"}) == "OPENCV_FOR_THREADS_NUM=1"
    two = "OPENBLAS_NUM_THREADS=1 OPENCV_FOR_THREADS_NUM=1"
    assert words.setting_text({"single_threaded": "openblas+opencv"}) == two


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (speedup(3.4, 3.2, 3.6), "3.4× (95 % 3.2–3.6, 8 pairs)"),
        (speedup(1.036, 1.021, 1.052), "1.04× (95 % 1.02–1.05, 8 pairs)"),
        (speedup(2.5, 2.48, 2.52), "2.50× (95 % 2.48–2.52, 8 pairs)"),
        (speedup(14.2, 12.1, 16.3), "14× (95 % 12–16, 8 pairs)"),
    ],
)
def test_speedup_is_written_with_the_digits_that_its_interval_bears(value: Speedup, text: str) -> None:
    assert words.speedup_text(value) == text


@pytest.mark.parametrize(
    "value",
    [
        speedup(3.3, 0.0, 1e9, sessions=1),
        speedup(3.3, 0.04, 5.0, sessions=2),
        speedup(3.3, 2.0, math.inf),
        speedup(math.nan, 1.0, 2.0),
        speedup(2.0, 3.0, 1.0),
    ],
)
def test_an_endless_interval_is_not_an_interval(value: Speedup) -> None:
    assert not words.has_interval(value)
    assert "no interval yet" in words.speedup_text(value)
    assert "nan" not in words.speedup_text(value)
    assert "inf" not in words.speedup_text(value)
    assert words.lower_end(value) == 0


def test_a_wide_interval_of_enough_sessions_is_shown() -> None:
    assert words.interval_text(speedup(5.0, 0.01, 30.0, sessions=3)) == "0.0–30.0"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (12e-6, "12 µs"),
        (0.0042, "4.2 ms"),
        (0.0775, "78 ms"),
        (2.667, "2.7 s"),
        (59.96, "1 min"),
        (200, "3 min 20 s"),
        (3900, "1 h 05 min"),
        (math.nan, "–"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration_text(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.73, "73 %"), (0.015, "1.5 %"), (0.02, "2 %"), (0, "0 %"), (1, "100 %"), (math.inf, "–")]
)
def test_shares(share: float, text: str) -> None:
    assert words.share_text(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.00"), (0.0123, "0.012"), (0.375, "0.38"), (12.0, "12.0"), (412.7, "413"), (12400, "12\u202f400")],
)
def test_amounts_have_three_figures(value: float, text: str) -> None:
    assert words.amount_text(value) == text


@pytest.mark.parametrize(("count", "text"), [(512, "512 B"), (32 * 1024**3, "32 GiB"), (1_420_000_000, "1.3 GiB")])
def test_bytes(count: int, text: str) -> None:
    assert words.bytes_text(count) == text


def test_dates_read_the_same_everywhere() -> None:
    assert words.date_text("2026-11-20T10:31:00Z") == "20 November 2026, 10:31 UTC"
    assert words.date_text("yesterday") == "yesterday"


def test_backticks_become_code_and_an_unpaired_one_stays() -> None:
    assert words.code_parts("a `b` c") == [(False, "a "), (True, "b"), (False, " c")]
    assert words.code_parts("a `b` c ` d") == [(False, "a "), (True, "b"), (False, " c ` d")]


def test_hidden_characters_become_visible() -> None:
    assert words.visible("\u001b[31m\u202ea\u0000\ud800") == "�[31m�a��"
    assert words.visible("a\r\n\tb") == "a\n\tb"


def test_what_is_copied_is_code_and_patch() -> None:
    diff = "@@ -1 +1 @@\n-f(1)\n+f(2)\n"
    assert words.added_lines(diff) == "f(2)"
    assert words.patch_text("train.py", diff) == "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-f(1)\n+f(2)\n"
    assert words.patch_text("my code/ü.py", diff).startswith(
        '--- "a/my code/\\303\\274.py"\t\n+++ "b/my code/\\303\\274.py"\t\n@@'
    )
    # A line that is kept and blank.
    assert words.patch_text("x", "@@ -1,2 +1,2 @@\n-a\n+b\n \n").endswith("+b\n \n")


def test_what_a_noise_floor_leaves_out() -> None:
    assert words.below_text(0.12) == " below 12 %"
    assert words.below_text(2.18) == " below 3.2×", "and not `nothing below 218 % is claimed`"


def test_a_text_is_split_where_sentences_end_outside_of_code() -> None:
    first = "Training waits 9.3 % of the time. "
    second = "`a. b` and `num_workers=2` make training 2.3× faster (95 % 2.1–2.6, 3 pairs). "
    assert words.sentences(f"{first}{second}This changes rounding.") == [
        first.strip(),
        second.strip(),
        "This changes rounding.",
    ]
    assert words.sentences(f"{first}`a. b` does.") == [first.strip(), "`a. b` does."]
    assert words.sentences("") == []
