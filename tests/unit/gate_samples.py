"""Made-up pairs of processes with exact figures."""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure.side_pairs import PairSample, SideSample

ROUNDS = 3


def window(block: int, step: float, *, samples: float = 4.0, wait: float = 0.0, turn: float | None = 0.0) -> Window:
    """A window of ten steps of `step` seconds; `wait`: part of the time."""
    return Window(
        session=1, rank=0, block=block, setting={}, mode="timed", steps=10, samples=10 * samples, seconds=10 * step,
        lead_in_steps=2, lead_in_seconds=2 * step, wait_seconds=10 * step * wait, turn_seconds=turn, whole_epochs=0,
        queue_change=0, ready_share=1.0, effect={}, started=0.0, label="baseline",
    )  # fmt: skip


def side(
    step: float,
    *,
    samples: float = 4.0,
    wait: float = 0.0,
    turn: float | None = 0.0,
    epoch: int | None = 100,
    loader: bool = True,
    first_step: float | None = 4.0,
    peak_bytes: int | None = 1 << 30,
    device_bytes: int | None = None,
    phases: Mapping[str, float] | None = None,
) -> SideSample:
    """One process whose windows all take the same."""
    windows = [window(number, step, samples=samples, wait=wait, turn=turn) for number in range(1, ROUNDS + 1)]
    return SideSample(
        windows=windows,
        has_loader=loader,
        epoch_batches=epoch,
        first_step=first_step,
        peak_bytes=peak_bytes,
        device_bytes=device_bytes,
        device_reserved_bytes=None if device_bytes is None else 2 * device_bytes,
        phases=phases,
    )


def pair(
    number: int,
    base: float,
    head: float,
    *,
    phases: tuple[Mapping[str, float] | None, Mapping[str, float] | None] = (None, None),
) -> PairSample:
    """A pair whose steps take so many seconds."""
    return PairSample(number=number, base=side(base, phases=phases[0]), head=side(head, phases=phases[1]))
