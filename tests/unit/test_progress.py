"""What the terminal shows while work goes on."""

from __future__ import annotations

import io

from bottleneck_doctor.progress import LiveProgress, PlainProgress, SilentProgress, choose_progress


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
        "[   10.0 s] window 10 (10 s of 1 min 30 s)",
        "[   20.0 s] window 20 (20 s of 1 min 30 s)",
        "[   24.0 s] the machine is busy",
        "",
    ]


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
