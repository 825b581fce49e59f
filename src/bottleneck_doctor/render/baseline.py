"""A stored baseline on the terminal: what it holds, how small a change it shows, and what would make it better. A
`Stored` in, text out."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from statistics import fmean

from rich.text import Text

from bottleneck_doctor.documents import stored_baseline
from bottleneck_doctor.documents.check import STEP_TIME
from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.documents.stored_baseline import Stored
from bottleneck_doctor.gate.baseline import against, unpaired
from bottleneck_doctor.gate.limits import MetricLimit
from bottleneck_doctor.render.console import text_console
from bottleneck_doctor.wording import words

PLAIN_WIDTH = 120


def render(
    baseline: Stored,
    warnings: Sequence[Warning],
    *,
    file: str,
    check: Sequence[str],
    limits: Mapping[str, MetricLimit],
    width: int | None,
) -> str:
    """The text, ending in a newline. `check`: the command that uses it. `width`: columns of the terminal, None where
    there is none."""
    times = stored_baseline.times(baseline.takes)
    step = fmean(fmean(draw.steps) for draw in baseline.draws)
    lines = [
        f"{file} holds {unpaired.processes_text(len(baseline.draws))}, measured at "
        f"{words.count_text(len(times), 'time')}; a step takes {words.duration_text(step)}.",
        _visible(baseline, limits),
    ]
    rose = unpaired.trend(times)
    if rose is not None:
        way = "rose" if rose > 0 else "fell"
        lines.append(
            f"From the first time to the last, the step time {way} by {words.share_text(abs(rose))}. While it drifts, "
            "intervals of a check get wider with the age of the last time."
        )
    if len(times) < against.LOOKED_AT_TWICE:
        lines.append(
            "The speed of this machine varies from one time to another, and each stored time shows more of that. To "
            "detect smaller changes, run the same command again at other times, an hour apart or more."
        )
    if warnings:
        lines += ["", words.count_text(len(warnings), "warning") + ":"]
        lines += [f"  - {warning.sentence} [{warning.slug}]" for warning in warnings]
    lines += ["", f"Again:  {words.command_text(baseline.command)}", f"Check:  {words.command_text(check)}"]
    console = text_console(max(width or PLAIN_WIDTH, 60), color=False)
    for line in ["", *lines]:
        console.print(Text(words.visible(line)), soft_wrap=line.startswith(("Again:", "Check:")))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().split("\n"))


def _visible(baseline: Stored, limits: Mapping[str, MetricLimit]) -> str:
    least = unpaired.expected(stored_baseline.times(baseline.takes), limits)
    limit = words.share_text(limits[STEP_TIME].threshold)
    if least is None:
        return "A check against it could not detect any change: it holds too few processes."
    return f"With a limit of {limit}, a check against it can detect a step that takes {words.share_text(least)} longer."
