"""What an examination says of processes that it lost, and how its verdict begins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.diagnosable import window
from tests.unit.test_judge import FOUND

from bottleneck_doctor.diagnose import Diagnosis, Headline
from bottleneck_doctor.documents.report import Finding, SessionRecord
from bottleneck_doctor.examine.outcome import failed_later, leading_to, odd_loop

FAILED = SessionRecord(
    number=2, setup_seconds=3.0, seconds=20.0, ended="the script failed: RuntimeError: no primitive."
)


def test_a_script_is_not_blamed_for_what_was_switched_in_its_process() -> None:
    switched = [window(0, session=2), window(1, session=2, setting={"autocast": "bfloat16"})]
    assert failed_later([FAILED], switched).sentence == (
        "After some windows had been measured, the script failed: RuntimeError: no primitive. "
        "Doctor had switched settings in that process before, which may be the reason."
    )
    under = window(
        1, session=2, setting={"autocast": "bfloat16"}, status="failed", reason="RuntimeError: no primitive."
    )
    assert failed_later([FAILED], [window(0, session=2), under], "cpu").sentence == (
        'With `torch.autocast("cpu", dtype=torch.bfloat16)`, which doctor tried, the script failed: RuntimeError: no '
        "primitive. As written, it had trained before."
    )
    assert failed_later([FAILED], [window(0, session=1)]).sentence == (
        "Before a window of one process had ended, the script failed: RuntimeError: no primitive. Other processes "
        "trained on, so what doctor did to see where the time goes may be the reason."
    )
    untouched = [window(0, session=2), window(1, session=1, setting={"autocast": "bfloat16"})]
    assert failed_later([FAILED], untouched).sentence.endswith("the script failed: RuntimeError: no primitive.")


def test_a_script_that_fails_in_each_process_may_fail_without_doctor() -> None:
    first = replace(FAILED, number=1)
    assert failed_later([first, FAILED], [window(0, session=2), window(0, session=1)]).sentence == (
        "2 processes ended in the same way: the script failed: RuntimeError: no primitive. So it may fail there "
        "without doctor as well."
    )
    other = replace(first, ended="the script failed: OSError.")
    assert "same way" not in failed_later([other, FAILED], [window(0, session=2)]).sentence


def test_nothing_is_said_of_doctor_where_a_process_fails_before_its_first_steps() -> None:
    unfound = replace(FAILED, setup_seconds=0.0)
    assert failed_later([unfound], [window(0, session=1)]).sentence == (
        "Before its first steps in one process, the script failed: RuntimeError: no primitive. Other processes trained."
    )


WAITS = Headline("slow-transform", "waits for data 9.3 % of the time, most of it in `Blur`")


@pytest.mark.parametrize(
    ("fix", "of_data", "computing", "told"),
    [
        (
            "amp-bf16",
            True,
            0.88,
            "Training computes 88 % of the time, and waits for data 9.3 % of the time, most of it",
        ),
        ("workers", True, 0.88, "Training waits for data"),
        (None, True, 0.88, "Training waits for data"),
        ("amp-bf16", False, 0.88, "Training waits for data"),
        ("amp-bf16", True, 0.05, "Training waits for data"),
        ("amp-bf16", True, None, "Training waits for data"),
    ],
)
def test_a_fix_of_computing_follows_from_what_computing_takes(
    fix: str | None, of_data: bool, computing: float | None, told: str
) -> None:
    finding = Finding(
        id="slow-transform",
        title="",
        sentence="",
        evidence={},
        fixes=[],
        weight=0.093,
        share=0.09,
        site=None,
        advice="",
    )
    named = frozenset({"slow-transform"} if of_data else ())
    found_out = Diagnosis([finding], [], of_data=named, computing=computing)
    assert leading_to(fix, WAITS, found_out).opening.startswith(told)


def test_backward_passes_behind_an_optimizer_s_step_may_be_no_training() -> None:
    (warning,) = odd_loop(replace(FOUND, rung="backward", steps_before=1), steps_followed=False)
    assert warning.slug == "lower-rung"
    assert "after 1 optimizer step. So what was measured may be an evaluation" in warning.sentence
    (warning,) = odd_loop(replace(FOUND, rung="backward"), steps_followed=False)
    assert warning.sentence == "No optimizer step was seen; steps are counted by backward passes."
