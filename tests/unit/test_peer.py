"""The benchmark beside the peer judges both tools alike; what it measures is for `benchmarks/peer.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.benchmark import load

peer = load("peer")
common = load("_common")


def test_edited_programs_differ_from_what_was_written_as_they_say() -> None:
    for edit in peer.EDITS:
        own = [line for line in edit.edited.split("\n") if line not in edit.written.split("\n")]
        assert own
        assert edit.changes == any(not line.startswith("#") for line in own)


@pytest.mark.parametrize(
    ("interval", "true", "inside"),
    [
        ((1.2, 1.1, 1.3), (1.25, 1.25, 1.25), True),
        ((1.2, 1.1, 1.3), (1.35, 1.35, 1.35), False),
        ((1.2, 1.1, 1.3), (1.35, 1.25, 1.45), True),  # The truth is not known so well.
    ],
)
def test_an_interval_holds_the_truth_as_far_as_that_is_known(
    interval: tuple[float, ...], true: tuple[float, ...], inside: bool
) -> None:
    assert peer.holds(interval, common.Ratio(*true)) is inside


def test_both_tools_get_a_row() -> None:
    def measured(*interval: float, verdict: str = "", failure: str = "") -> dict[str, Any]:
        return {"seconds": 60.0, "interval": list(interval) or None, "verdict": verdict, "failure": failure}

    nothing = peer.EDITS[0]
    tools = {
        "doctor try": [measured(1.0, 0.98, 1.02), measured(1.05, 1.02, 1.08, verdict="faster")],
        "peer": [measured(failure="it ended")],
    }
    ours, theirs = peer.lines({nothing.name: {"starts": {"written": [], "cured": []}, "tools": tools}})
    assert ours[1:] == ["1.000 (1.000–1.000)", "doctor try", "2 of 20", "0", "±2.4%", "1 of 2", "1", "0", "60"]
    assert theirs[2:] == ["peer", "1 of 20", "1", "-", "-", "0", "0", "60"]


def test_a_file_is_taken_up_only_by_what_began_it(tmp_path: Path) -> None:
    path, fresh = tmp_path / "kept.json", {"format": 2, "seed": 7, "rows": []}
    assert common.taken_up(path, fresh, ["seed"]) is fresh
    assert common.taken_up(None, fresh) is fresh
    path.write_text(json.dumps({"format": 2, "seed": 8, "rows": [1]}))
    assert common.taken_up(path, fresh)["rows"] == [1]
    with pytest.raises(SystemExit, match="begun with other options: seed 8, not 7"):
        common.taken_up(path, fresh, ["seed"])
    path.write_text(json.dumps({"format": 1}))
    with pytest.raises(SystemExit, match="another version"):
        common.taken_up(path, fresh)


def test_help() -> None:
    done = subprocess.run([sys.executable, peer.__file__, "--help"], capture_output=True, text=True, check=True)
    assert "--repetitions" in done.stdout
