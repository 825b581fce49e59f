"""Golden results are recordings: nothing in them tells the machine that recorded them, and the script takes it out."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from typing import Any

import pytest
from tests.reports import GOLDEN, RECORDED_NAMES, recorded

from bottleneck_doctor.documents.report import Result, to_json

RECORD = runpy.run_path(str(GOLDEN / "record.py"))
scrubbed: Callable[..., Result] = RECORD["scrubbed"]
MACHINE = "/mnt/disk7/someone/bottleneck-doctor"


def altered(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The recorded demo as another machine would have written it."""
    text = to_json(recorded("pets")).decode()
    text = text.replace("/home/ada/bottleneck-doctor", MACHINE).replace("/home/ada/venv", f"{MACHINE}/.venv")
    text = text.replace('"/usr/lib/python3', '"/mnt/disk7/someone/.pyenv/versions/3.11.7/lib/python3')
    document = json.loads(text)
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize("name", RECORDED_NAMES)
def test_a_recording_is_what_the_script_keeps_of_it(name: str) -> None:
    result = recorded(name)
    assert RECORD["thinned"](scrubbed(to_json(result))) == result
    assert RECORD["RECORDINGS"][name].shows(result)
    assert (GOLDEN / f"{name}.json").stat().st_size < 250_000


def test_every_recording_is_there_and_no_other_result() -> None:
    assert sorted(RECORD["RECORDINGS"]) == sorted(RECORDED_NAMES)
    assert {path.stem for path in GOLDEN.glob("*.json")} == {*RECORDED_NAMES, "report-format-1"}


def test_what_tells_the_machine_is_taken_out() -> None:
    def change(document: dict[str, Any]) -> None:
        document["created"] = "2026-11-22T23:59:14+00:00"
        document["environment"] |= {
            "fingerprint": "873c2ee92099167d",
            "platform": "Linux-6.18.44-acme-v7-x86_64-with-glibc2.36",
        }
        command = document["method"]["command"]
        command[command.index("-o") + 1] = "/mnt/disk7/out"
        document["method"]["protection"]["covered"] += ["/mnt", "/scratch"]
        document["ranks"] = [{"rank": 3, "local_rank": 1, "host": "node-17.example.org"}]
        for window in document["windows"]:
            window["started"] += 12_097.25
            window["ended"] += 12_097.25

    result = scrubbed(altered(change), ["node-17.example.org"])
    text = to_json(result).decode()
    for told in ("disk7", "someone", "acme", "873c2ee", "23:59", "node-17", "/scratch", "/mnt"):
        assert told not in text
    assert result.method.command == recorded("pets").method.command
    assert result.windows == recorded("pets").windows, "counted from the first one"
    assert result.findings == recorded("pets").findings


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ("It lies in /mnt/disk8/data.", "/mnt/disk8/data"),
        ("see /secret", "/secret"),
        ("as node-17 says", "node-17"),
    ],
)
def test_what_cannot_be_taken_out_is_refused(told: str, left: str) -> None:
    def change(document: dict[str, Any]) -> None:
        document["verdict"]["sentence"] = told

    with pytest.raises(ValueError, match=f"this is left of the machine: {re.escape(left)}"):
        scrubbed(altered(change), ["node-17"])


def test_a_report_of_another_program_or_of_another_kind_is_not_kept() -> None:
    with pytest.raises(ValueError, match=r"not of benchmarks/planted/heavy_transform\.py"):
        RECORD["keep"]("nothing-faster", to_json(recorded("pets")))
    with pytest.raises(ValueError, match="does not show what no-baseline is for"):
        RECORD["keep"](
            "no-baseline", altered(lambda document: document["entrypoint"].update(argv=["sleep_in_transform.py"]))
        )
