"""Workers: speed against number of workers, and what it comes to in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from bottleneck_doctor.render import curves, ranking, words
from bottleneck_doctor.result import Result


@dataclass(frozen=True)
class Curve:
    """The worker curve in both widths, and what it comes to in a sentence."""

    wide: Markup
    narrow: Markup
    sentence: str
    has_levels: bool


def curve(result: Result) -> Curve | None:
    """None where no number of workers was measured."""
    workers = result.workers
    if workers is None:
        return None
    best, knee = ranking.best_workers(workers), ranking.knee(workers)
    points = []
    for point in workers.curve:
        speed = point.samples_per_second
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
            )
        )
    if not points or best is None:
        return None
    now = next((p.samples_per_second for p in workers.curve if p.is_baseline), None)
    if now is None and result.baseline is not None:
        now = result.baseline.samples_per_second
    levels = []
    if now is not None:
        levels = [
            curves.Level(words.ceiling_text(name), now * ceiling.estimate)
            for name, ceiling in result.ceilings.items()
            # A ceiling far above the curve would press it flat; the sentence under the bar still names it.
            if math.isfinite(ceiling.estimate)
            and 0 < now * ceiling.estimate <= 2.5 * max(point.high or point.speed for point in points)
        ]
    sentence = f"{words.count_text(best.num_workers, 'worker')} measured best: "
    sentence += f"{words.amount_text(best.samples_per_second)} samples a second"
    if best.is_baseline:
        sentence += ", which is what you have."
    else:
        sentence += f", {words.speedup_text(best.speedup, result.method.confidence)}."
    if knee is not None and knee is not best and knee.num_workers < best.num_workers:
        sentence += f" {words.count_text(knee.num_workers, 'worker')} already reach 95 % of that."
    wide, narrow = (curves.worker_curve(points, levels, workers.usable_cpus, narrow=narrow) for narrow in (False, True))
    return Curve(wide, narrow, sentence, bool(levels))
