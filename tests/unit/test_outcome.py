"""What an examination says of processes that it lost."""

from __future__ import annotations

from tests.unit.diagnosable import window

from bottleneck_doctor.documents.report import SessionRecord
from bottleneck_doctor.examine.outcome import failed_later

FAILED = SessionRecord(
    number=2, setup_seconds=3.0, seconds=20.0, ended="the script failed: RuntimeError: no primitive."
)


def test_a_script_is_not_blamed_for_what_was_switched_in_its_process() -> None:
    switched = [window(0, session=2), window(1, session=2, setting={"autocast": "bfloat16"})]
    assert failed_later(FAILED, switched).sentence == (
        "After some windows had been measured, the script failed: RuntimeError: no primitive. "
        "Doctor had switched settings in that process before, which may be the reason."
    )
    untouched = [window(0, session=2), window(1, session=1, setting={"autocast": "bfloat16"})]
    assert failed_later(FAILED, untouched).sentence.endswith("the script failed: RuntimeError: no primitive.")
