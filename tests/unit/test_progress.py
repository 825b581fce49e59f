"""What the terminal shows while work goes on."""

from __future__ import annotations

import io
import time
from itertools import pairwise

import pytest

from bottleneck_doctor.system import progress as progress_module
from bottleneck_doctor.system.progress import LiveProgress, PlainProgress, SilentProgress, choose_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_carry_the_time_and_hold_updates_back() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = PlainProgress(stream, clock)
    progress.stage("finding the training loop")
    for second in range(25):
        clock.now = 100.0 + second
        progress.update(f"window {second}", spent=second, budget=90)
    progress.note("the machine is busy")
    assert stream.getvalue().split("\n") == [
        "[    0.0 s] finding the training loop",
        "[    8.0 s] window 8 (8 s of 1 min 30 s)",
        "[   16.0 s] window 16 (16 s of 1 min 30 s)",
        "[   24.0 s] window 24 (24 s of 1 min 30 s)",
        "[   24.0 s] the machine is busy",
        "",
    ]


def said_in(text: str) -> list[tuple[float, str]]:
    """Moments and words of plain lines."""
    return [(float(line[1:9]), line.partition("] ")[2]) for line in text.splitlines()]


def test_nobody_waits_ten_seconds_for_a_word() -> None:
    """Two minutes for one window, and half a minute more in which nobody calls: what is waited for, and how long."""
    stream, clock = io.StringIO(), Clock()
    progress = PlainProgress(stream, clock)
    progress.stage("Starting the script (process 1)")
    for _ in range(40):
        clock.now += 1.0
        progress.beat()
    progress.update("Process 1: measuring num_workers=2", spent=40, budget=90)
    for _ in range(120):
        clock.now += 1.0
        progress.beat()
    said = said_in(stream.getvalue())
    moments = [moment for moment, _ in said]
    assert max(later - earlier for earlier, later in pairwise(moments)) < 10
    assert 160 - moments[-1] < 10
    assert (48.0, "Process 1: measuring num_workers=2, 8 s (48 s of 1 min 30 s)") in said
    assert (24.0, "Starting the script (process 1), 24 s") in said
    assert (80.0, "Process 1: measuring num_workers=2, 40 s (1 min 20 s of 1 min 30 s)") in said
    # The total isn't passed, whatever goes wrong.
    assert all("of 1 min 30 s" in words for moment, words in said if moment > 40)
    assert "(1 min 30 s of 1 min 30 s)" in said[-1][1]


def test_a_thread_speaks_where_nobody_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(progress_module, "PLAIN_INTERVAL", 0.05)
    stream = io.StringIO()
    progress = choose_progress(quiet=False, verbose=False, stream=stream)
    progress.update("Process 1: waiting", 0.0, None)
    deadline = time.monotonic() + 5
    while stream.getvalue().count("Process 1: waiting") < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    progress.close()
    assert stream.getvalue().count("Process 1: waiting") >= 3
    assert " of " not in stream.getvalue(), "no total as long as there is none"


def test_plain_lines_outlive_their_reader() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    stream.close()
    progress.stage("goes nowhere")
    progress.close()
    progress.note("after the end")


def test_the_live_line_shows_texts_as_they_are_and_ends_clean() -> None:
    stream = Terminal()
    progress = LiveProgress(stream)
    progress.stage("probing [bold]")
    progress.update("num_workers=4", spent=3, budget=60)
    progress.note("noted [red]")
    progress.close()
    progress.close()
    assert "noted [red]" in stream.getvalue()
    assert "\x1b[?25h" in stream.getvalue().rpartition("\x1b[?25l")[2]  # the cursor is shown again


def test_the_stream_decides() -> None:
    assert isinstance(choose_progress(quiet=False, verbose=False, stream=Terminal()), LiveProgress)
    assert isinstance(choose_progress(quiet=False, verbose=True, stream=Terminal()), PlainProgress)
    assert isinstance(choose_progress(quiet=False, verbose=False, stream=io.StringIO()), PlainProgress)
    assert isinstance(choose_progress(quiet=True, verbose=False, stream=Terminal()), SilentProgress)
