"""What the user is told while windows are taken."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.test_selection import FOUND

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.examine import telling as told
from bottleneck_doctor.examine.telling import Telling
from bottleneck_doctor.examine.time_wanted import Wanted
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import Probe, probe
from bottleneck_doctor.system.progress import SilentProgress

AS_WRITTEN = probe(BASELINE, {})


def test_progress_names_what_is_measured_as_a_user_would_write_it() -> None:
    measured = Measurements(FOUND)
    bfloat = probe("autocast=bfloat16,intra_op_threads=1", {"autocast": "bfloat16", "intra_op_threads": 1})
    said: list[str] = []

    class Heard(SilentProgress):
        def update(self, text: str, spent: float, budget: float | None) -> None:
            said.append(text)

    telling = Telling(measured, Budget(100.0, strict=True), Heard())
    measured.windows += [replace(_window(AS_WRITTEN), started=0.0), _window(bfloat, seconds=0.5)]
    replay = probe(labels.REPLAY, {"replay": True})
    alone = probe(labels.key_of({}, "loader_only"), {}, mode="loader_only")
    for each in (AS_WRITTEN, bfloat, replay, alone):
        telling(1, each)
    assert [text.partition(": ")[2].partition(";")[0] for text in said] == [
        "measuring the training as written",
        'measuring torch.autocast("cpu", dtype=torch.bfloat16) and torch.set_num_threads(1)',
        "measuring the speed without loading (the same batches again)",
        "measuring loading alone",
    ]
    best = 'best so far: torch.autocast("cpu", dtype=torch.bfloat16) and torch.set_num_threads(1) (2.00×)'
    assert said[0].endswith(best)


def _window(each: Probe, seconds: float = 1.0) -> Window:
    return Window(
        session=1, rank=0, block=1, setting=each.as_setting(), mode="timed", steps=10, samples=40.0, seconds=seconds,
        lead_in_steps=1, lead_in_seconds=0.1, wait_seconds=0.0, turn_seconds=None, whole_epochs=0, queue_change=0,
        ready_share=None, effect={}, started=2.0, label=each.key,
    )  # fmt: skip


def test_a_step_takes_as_long_as_people_say_it() -> None:
    assert told.loop(FOUND, 11.87, ()).startswith("Found the training loop: CPU, 12 s a step")
    assert told.loop(FOUND, 0.0321, ()).startswith("Found the training loop: CPU, 32 ms a step")


def test_how_long_it_takes_is_said_with_the_reason() -> None:
    assert told.sure(97.4) == "Sure after 1 min 37 s: measuring more would change nothing"
    assert told.so_far({"num_workers": 2}, 1.804, "cpu") == "num_workers=2 looks 1.80× as fast so far. "
    end = "Ctrl-C ends the examination, with a report of what is known by then"
    assert told.longer(Wanted(3, 400.0, 200.0, 0.2), 2.7, 15.0, 550.0) == (
        f"A step takes 2.7 s and starting the script 15 s: about 9 minutes in all. {end}"
    )
    assert told.longer(Wanted(5, 400.0, 200.0, 0.01), 0.3, 15.0, 550.0) == (
        "A step takes 300 ms and starting the script 15 s, and a sure result needs 5 processes: about 9 minutes in "
        f"all. {end}"
    )
    assert told.longer(Wanted(6, 400.0, 200.0, 0.12), 0.3, 15.0, 550.0) == (
        "A step takes 300 ms and starting the script 15 s, and a sure result needs 6 processes because measurements of "
        f"the same training differ by 12 %: about 9 minutes in all. {end}"
    )
    assert told.longer(Wanted(6, 400.0, 200.0, 0.12, asked=True), 0.3, 15.0, 550.0) == (
        "A step takes 300 ms and starting the script 15 s, and you asked for 6 processes: about 9 minutes in all. "
        f"{end}"
    )
    assert told.too_long(7.0, 96.0, 1020.0) == (
        "A step takes 7.0 s and starting the script 1 min 36 s: a sure result would take about 17 minutes. For that, "
        "give --budget 17m"
    )
