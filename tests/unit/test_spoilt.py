"""Settings that spoil the training are told from luck, from a loss that rises by itself, and from what changes no
rounding."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.test_judge import BF16, WORKERS_2, Experiment, amp, judged, ladder, outcome, timed, workers

from bottleneck_doctor.documents.report import Setting, Window, WindowLoss
from bottleneck_doctor.examine.spoilt import Spoilt
from bottleneck_doctor.measure.schedule import probe
from bottleneck_doctor.measure.windows import kept
from bottleneck_doctor.runtime.wire.messages import WindowDone

BOTH: Setting = {**WORKERS_2, **BF16}


def loss(mean: float, *, scatter: float = 0.05, steps: int = 50, not_finite: int = 0) -> WindowLoss:
    return WindowLoss(steps=steps, not_finite=not_finite, mean=mean, scatter=scatter)


def with_losses(windows: list[Window], of: Callable[[Window], WindowLoss | None]) -> list[Window]:
    return [replace(window, loss=of(window)) for window in windows]


def experiment(sessions: int = 4) -> list[Window]:
    return Experiment(timed([(WORKERS_2, 1.5), (BF16, 2.0)]), sessions=sessions).windows


def under_bf16(spoilt: WindowLoss | None, well: WindowLoss | None) -> Callable[[Window], WindowLoss | None]:
    return lambda window: spoilt if "autocast" in window.setting else well


def test_a_setting_that_raises_the_loss_is_no_fix_however_fast() -> None:
    windows = with_losses(experiment(), under_bf16(loss(7.0), loss(0.7)))
    judgement = judged(windows, [workers(WORKERS_2), amp()])
    struck = outcome(judgement, "amp-bf16")
    assert struck.status == "failed"
    assert struck.reason == (
        "training was 2.00× as fast, but in 8 of its 8 windows the loss was 10.0× as high as in the windows beside them"
    )
    assert struck.change is None
    assert (judgement.verdict.fix, outcome(judgement, "workers").status) == ("workers", "faster")
    assert "autocast" not in judgement.verdict.sentence


def test_losses_that_are_no_numbers_are_seen_where_there_were_numbers_before() -> None:
    broken = WindowLoss(steps=50, not_finite=50, mean=None, scatter=None)
    windows = with_losses(experiment(), under_bf16(broken, loss(0.7)))
    struck = outcome(judged(windows, [workers(WORKERS_2), amp()]), "amp-bf16")
    assert struck.status == "failed"
    assert "in 8 of its 8 windows the loss was no number any more" in struck.reason
    # The training as written breaks by itself.
    windows = with_losses(experiment(), under_bf16(broken, loss(0.7, not_finite=1)))
    assert outcome(judged(windows, [workers(WORKERS_2), amp()]), "amp-bf16").status == "faster"


@pytest.mark.parametrize(
    ("spoilt", "well"),
    [
        (loss(0.75), loss(0.7)),
        (loss(7.0, scatter=30.0), loss(0.7, scatter=30.0)),
        (loss(0.07), loss(0.7)),
        (loss(7.0, steps=2), loss(0.7)),
        (loss(7.0), loss(-0.7)),
        (loss(7.0), loss(0.0)),
        (loss(7.0), None),
        (None, loss(0.7)),
    ],
)
def test_what_is_not_surely_much_higher_stands(spoilt: WindowLoss | None, well: WindowLoss | None) -> None:
    windows = with_losses(experiment(), under_bf16(spoilt, well))
    assert outcome(judged(windows, [workers(WORKERS_2), amp()]), "amp-bf16").status == "faster"


def test_one_window_is_no_evidence() -> None:
    windows = experiment()
    first = next(at for at, window in enumerate(windows) if "autocast" in window.setting)
    windows = [replace(window, loss=loss(9.0 if at == first else 0.7)) for at, window in enumerate(windows)]
    assert outcome(judged(windows, [workers(WORKERS_2), amp()]), "amp-bf16").status == "faster"


def test_a_loss_that_rises_by_itself_is_nobodys_fault() -> None:
    windows = [replace(window, loss=loss(0.1 * 2.0**at)) for at, window in enumerate(experiment())]
    assert outcome(judged(windows, [workers(WORKERS_2), amp()]), "amp-bf16").status == "faster"


def test_what_changes_no_rounding_is_not_held_against_its_losses() -> None:
    windows = with_losses(experiment(), lambda window: loss(7.0 if window.setting == WORKERS_2 else 0.7))
    assert outcome(judged(windows, [workers(WORKERS_2), amp()]), "workers").status == "faster"


def test_no_rung_holds_what_spoils_the_training() -> None:
    assert ladder(2.0, 2.6).verdict.together
    made = Experiment(timed([(WORKERS_2, 2.0), (BOTH, 2.6)])).windows
    rungs = [("workers", WORKERS_2), ("amp-bf16", BOTH)]
    windows = with_losses(made, under_bf16(loss(7.0), loss(0.7)))
    judgement = judged(windows, [workers(WORKERS_2), amp()], rungs=rungs)
    assert judgement.combination is None
    assert (judgement.verdict.fix, judgement.verdict.together) == ("workers", False)


def test_trainings_that_differ_by_chance_alone_are_not_said_to_be_spoilt() -> None:
    """Losses of exponential draws, which scatter as much as they are large, six steps a window."""
    generator = random.Random(3)

    def drawn(window: Window) -> WindowLoss:
        told = [[float(step), generator.expovariate(1.0)] for step in range(6)]
        made = kept(1, 1, probe("", {}), WindowDone(window=1, status="ok", losses=told)).loss
        assert made is not None
        return made

    struck = 0
    for _ in range(2000):
        struck += bool(Spoilt(with_losses(experiment(sessions=3), drawn), [amp()]).why(BF16))
    assert struck == 0


def test_losses_of_a_window_are_kept_as_what_they_are_on_average() -> None:
    told = [[1.0, 2.0], [2.0, 4.0], [3.0, math.nan], [4.0, 6.0]]
    made = kept(1, 1, probe("", {}), WindowDone(window=1, status="ok", losses=told)).loss
    assert made is not None
    assert (made.steps, made.not_finite, made.mean) == (4, 1, 4.0)
    assert made.scatter == pytest.approx(math.sqrt(2))
    assert kept(1, 1, probe("", {}), WindowDone(window=1, status="ok")).loss is None
    nothing = kept(1, 1, probe("", {}), WindowDone(window=1, status="ok", losses=[[1.0, math.inf]])).loss
    assert nothing == WindowLoss(steps=1, not_finite=1, mean=None, scatter=None)
