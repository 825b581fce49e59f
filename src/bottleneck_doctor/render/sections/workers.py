"""Workers: speed against number of workers, and what it comes to in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from bottleneck_doctor.documents.report import Result, WorkerPoint, Workers
from bottleneck_doctor.render import curves
from bottleneck_doctor.wording import ranking, rates, words


@dataclass(frozen=True)
class Row:
    """One number of workers with its speed. `doubt`: why it is not certain, "" where it is."""

    point: WorkerPoint
    speed: float
    doubt: str


@dataclass(frozen=True)
class Curve:
    """The worker curve in both widths, what it comes to in a sentence, and its figures."""

    wide: Markup
    narrow: Markup
    sentence: str
    has_levels: bool
    rows: list[Row]

    @property
    def has_doubts(self) -> bool:
        return any(row.doubt for row in self.rows)


def curve(result: Result) -> Curve | None:
    """None where no number of workers was measured."""
    workers = result.workers
    if workers is None:
        return None
    rate = rates.rate(result.baseline)
    best, knee = ranking.best_workers(workers), ranking.knee(workers)
    rows = [Row(point, rate.of(point.samples_per_second), _doubt(point)) for point in workers.curve]
    points = []
    for row in rows:
        point, speed = row.point, row.speed
        if not math.isfinite(speed):
            continue
        bars = words.has_interval(point.speedup) and point.speedup.estimate > 0 and not point.is_baseline
        points.append(
            curves.CurvePoint(
                workers=point.num_workers,
                speed=speed,
                low=speed * point.speedup.low / point.speedup.estimate if bars else None,
                high=speed * point.speedup.high / point.speedup.estimate if bars else None,
                is_baseline=point.is_baseline,
                label="best" if point is best else "enough" if point is knee else "",
                sure=not row.doubt,
            )
        )
    if not points or best is None:
        return None
    now = next((p.samples_per_second for p in workers.curve if p.is_baseline), None)
    if now is None and result.baseline is not None:
        now = result.baseline.samples_per_second
    levels = []
    if now is not None:
        highest = max(point.high or point.speed for point in points)
        levels = [
            curves.Level(words.ceiling_text(name), rate.of(now) * ceiling.estimate)
            for name, ceiling in ranking.ceilings(result).items()
            # A ceiling far above the curve would press it flat; the sentence under the bar still names it.
            if 0 < rate.of(now) * ceiling.estimate <= 2.5 * highest
        ]
    wide, narrow = (
        curves.worker_curve(points, levels, workers.usable_cpus, narrow=narrow, unit=rate.long)
        for narrow in (False, True)
    )
    return Curve(wide, narrow, _sentence(result, workers, best, knee, rate), bool(levels), rows)


def _doubt(point: WorkerPoint) -> str:
    """Why a figure is none to rely on yet: processes differ."""
    if point.is_baseline or point.speedup.sessions >= ranking.SURE_SESSIONS:
        return ""
    return f"not certain: {words.count_text(point.speedup.sessions, 'process')} only"


def _sentence(result: Result, workers: Workers, best: WorkerPoint, knee: WorkerPoint | None, rate: rates.Rate) -> str:
    confidence = result.method.confidence
    speed = f"{words.amount_text(rate.of(best.samples_per_second))} {rate.long}"
    count = words.count_text(best.num_workers, "worker")
    known = [each for each in workers.curve if math.isfinite(each.speedup.estimate)]
    top = max([best, *known], key=lambda each: each.speedup.estimate)
    were = "was" if top.num_workers == 1 else "were"
    measured = (
        f"{words.count_text(top.num_workers, 'worker')} {were} measured at "
        f"{words.speedup_text(top.speedup, confidence)}"
    )
    if best.is_baseline:
        if top is best:
            return f"Your own number of workers was measured fastest: {count}, {speed}."
        return (
            f"No other number of workers is known to be faster than yours ({count}, {speed}). {measured}{_after(top)}."
        )
    # What is ranked by the lower end is not always what measured most.
    was, is_ = ("was", "is") if best.num_workers == 1 else ("were", "are")
    praise = f"{was} measured fastest" if top is best else f"{is_} the safest choice"
    said = f"{count} {praise}: {speed}, {words.speedup_text(best.speedup, confidence)}{_after(best)}."
    if top is not best and _doubt(top):
        said += f" {measured}{_after(top)}."
    if knee is not None and knee is not best and knee.num_workers < best.num_workers:
        reach = "reaches" if knee.num_workers == 1 else "reach"
        said += f" {words.count_text(knee.num_workers, 'worker')} already {reach} 95 % of that or more{_after(knee)}."
    return said


def _after(point: WorkerPoint) -> str:
    doubt = _doubt(point)
    return f" ({doubt})" if doubt else ""
