"""The line profile inside a living loop: nothing edited, the right lines counted, nothing left on."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, Guest

from bottleneck_doctor.documents.report import LineListing
from bottleneck_doctor.explain import details
from bottleneck_doctor.profiling.lines import line_profile
from bottleneck_doctor.runtime.wire import messages

pytestmark = pytest.mark.process

STEPS = 8
OWN = (
    PRELUDE
    + """
class Sharpen:
    def __call__(self, row):
        time.sleep(0.002)  # sharpen
        return row * 2


class Chain:
    def __init__(self, *elements):
        self.elements = elements

    def __call__(self, row):
        for element in self.elements:
            row = element(row)
        return row


class Pictures(Rows):
    def __init__(self, transform):
        super().__init__(4000)
        self.transform = transform

    def __getitem__(self, index):
        row, label = super().__getitem__(index)
        row = self.transform(row)  # transform
        return row, label


def collate(samples):
    time.sleep(0.003)  # collate
    return torch.utils.data.default_collate(samples)


def shade(loss):
    time.sleep(0.004)  # shade
    return loss


def evaluate():
    with torch.no_grad():
        for rows, _ in DataLoader(Rows(8), batch_size=4):
            time.sleep(0.05)


loader = DataLoader(Pictures(Chain(Sharpen())), batch_size=4, num_workers=WORKERS, collate_fn=collate)
"""
)
BODY = """\
for batch in loader:  # batch
    loss = train_on(batch)  # train
    shade(loss)
    tracing = sys.gettrace() is not None
    note("tracing", tracing)
"""
SHAPES = {
    "module": BODY,
    "function": "def train():\n" + textwrap.indent(BODY, "    ") + "\n\ntrain()\n",
    "generator": BODY.replace("in loader", "in endless(loader)"),
}
ENDLESS = "def endless(loader):\n    while True:\n        for each in loader:\n            yield each\n\n\n"


def lines(script: Guest, folder: Path, steps: int = STEPS, **more: Any) -> messages.WindowDone:
    """One window of the line profile; `shade` is named as the sampling profile would."""
    text = (folder / "train.py").read_text().splitlines()
    place = {
        "path": str(folder / "train.py"),
        "line": text.index("    time.sleep(0.004)  # shade") + 1,
        "name": "shade",
    }
    options = {"functions": [place], "output": str(folder / "doctor.lprof"), **more}
    script.session.grant(messages.Grant(1, {"num_workers": 0}, "lines", 2, steps, 0, options))
    event = script.event()
    assert isinstance(event, messages.WindowDone), (event, script.session.tail())
    if event.status == "ok":
        details.check(event.detail, details.LinesDetail)
    return event


def by_mark(listings: list[LineListing]) -> dict[str, tuple[str, int | None, float | None]]:
    """Function, hits and seconds of the lines that end in a comment."""
    return {
        line.text.partition("  # ")[2]: (listing.name, line.hits, line.seconds)
        for listing in listings
        for line in listing.lines
        if "  # " in line.text and line.hits
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_the_users_lines_are_counted_without_an_edit(guest: StartGuest, tmp_path: Path, shape: str) -> None:
    script = guest(OWN.replace("WORKERS", "2") + ENDLESS + SHAPES[shape])
    script.found()
    done = lines(script, tmp_path)
    assert (done.status, done.reason) == ("ok", "")
    profile = line_profile(done.detail, [])
    assert profile.steps == done.steps == STEPS
    marks = by_mark(profile.listings)
    assert {mark: hits for mark, (_, hits, _) in marks.items()} == {
        "batch": STEPS,
        "train": STEPS,
        "shade": STEPS,
        "collate": STEPS,
        "transform": 4 * STEPS,
        "sharpen": 4 * STEPS,
    }
    assert marks["batch"][0] == ("train" if shape == "function" else "<module>")
    least = {"sharpen": 0.002, "transform": 0.002, "shade": 0.004, "collate": 0.003, "batch": 0.011}
    for mark, seconds in least.items():
        _, hits, spent = marks[mark]
        assert hits is not None
        assert spent is not None
        assert spent >= seconds * hits
    batch, sharpen = marks["batch"][2], marks["sharpen"][2]
    assert batch is not None
    assert sharpen is not None
    assert batch >= sharpen
    assert profile.listings[0].name == marks["batch"][0]
    # All of it is off again, and the user's functions run as ever.
    before = len(script.notes("tracing"))
    assert script.window({}, steps=6).status == "ok"
    assert not any(script.notes("tracing")[before + 3 :])


def test_the_file_is_one_that_line_profiler_reads(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(OWN.replace("WORKERS", "0") + SHAPES["module"])
    script.found()
    done = lines(script, tmp_path)
    assert done.detail["output"] == str(tmp_path / "doctor.lprof")
    shown = subprocess.run(
        [sys.executable, "-m", "line_profiler", str(tmp_path / "doctor.lprof")],
        cwd="/",
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    rows = [line.split() for line in shown.stdout.splitlines() if line.endswith("# sharpen")]
    assert [row[1] for row in rows] == [str(4 * STEPS)]


@pytest.mark.slow
def test_evaluation_is_no_part_of_it(guest: StartGuest, tmp_path: Path) -> None:
    body = """\
for number, batch in enumerate(loader):
    train_on(batch)  # train
    if number % 5 == 4:
        evaluate()  # evaluate
"""
    script = guest(OWN.replace("WORKERS", "0") + body)
    script.found()
    done = lines(script, tmp_path, steps=14)
    marks = by_mark(line_profile(done.detail, []).listings)
    hits = marks["train"][1]
    assert hits is not None
    assert done.steps - 3 <= hits <= done.steps
    assert "evaluate" not in marks


def test_a_loop_without_loader(guest: StartGuest, tmp_path: Path) -> None:
    body = "while True:\n    shade(train_on(torch.ones(1, 3, 4)))  # step\n"
    script = guest(OWN.replace("WORKERS", "0") + body)
    script.found()
    text = (tmp_path / "train.py").read_text().splitlines()
    place = {"path": str(tmp_path / "train.py"), "line": text.index("def shade(loss):") + 1, "name": "shade"}
    script.session.grant(messages.Grant(1, {}, "lines", 2, STEPS, 0, {"functions": [place]}))
    done = script.event()
    assert isinstance(done, messages.WindowDone)
    assert done.status == "ok", done.reason
    marks = by_mark(line_profile(done.detail, []).listings)
    assert done.detail["output"] == ""
    assert (marks["step"][1], marks["shade"][1]) == (STEPS, STEPS)


def test_a_debugger_or_coverage_tool_is_left_alone(guest: StartGuest, tmp_path: Path) -> None:
    watched = "def watch(frame, event, arg):\n    return None\n\n\nsys.settrace(watch)\n"
    script = guest(OWN.replace("WORKERS", "0") + watched + SHAPES["module"])
    script.found()
    done = lines(script, tmp_path)
    assert done.status == "failed"
    assert done.reason.startswith("a debugger")
    assert script.window({}).status == "ok"
    assert set(script.notes("tracing")) == {True}


HIDDEN = """\
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "line_profiler" and FOLDER not in sys.path:
            raise ModuleNotFoundError("No module named 'line_profiler'", name="line_profiler")

FOLDER = None
sys.meta_path.insert(0, Hidden())
"""


@pytest.mark.slow
def test_line_profiler_from_elsewhere(guest: StartGuest, tmp_path: Path) -> None:
    """An environment without line_profiler: none is found but in the folder that the grant names."""
    spec = importlib.util.find_spec("line_profiler")
    assert spec is not None
    assert spec.origin is not None
    folder = tmp_path / "lent"
    folder.mkdir()
    (folder / "line_profiler").symlink_to(Path(spec.origin).parent)
    script = guest(
        HIDDEN.replace("None\nsys", f"{str(folder)!r}\nsys") + OWN.replace("WORKERS", "0") + SHAPES["module"]
    )
    script.found()
    refused = lines(script, tmp_path)
    assert refused.status == "failed"
    assert "line_profiler can't be imported" in refused.reason
    assert refused.reason.endswith("it is not installed there; install it with `python -m pip install line_profiler`")
    refused = lines(script, tmp_path, import_path=str(tmp_path / "nowhere"))
    assert refused.status == "failed"
    assert refused.reason.endswith("it is not installed there; install it with `python -m pip install line_profiler`")
    assert lines(script, tmp_path, import_path=str(folder)).status == "ok"
    assert json.dumps(str(folder)) not in json.dumps(script.session.tail())
