"""What a project's configuration means for a check: a `Config` in, limits of metrics out; and limits that hold whatever
the base does, laid on a finished check. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bottleneck_doctor.config import Config
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate import verdict
from bottleneck_doctor.gate.document import Check, Metric, Unit
from bottleneck_doctor.gate.limits import KINDS, LEAST_THRESHOLD, Limit
from bottleneck_doctor.render import words

UNITS: Mapping[str, Unit] = {name: kind.unit for name, kind in KINDS.items()}
"""Of every metric that a project may speak of."""


def limits(config: Config) -> dict[str, Limit]:
    """The limits of all metrics: what the project says, else the defaults. A metric with an absolute limit is meant to
    hold it, so its level is `error` unless the project says otherwise.

    Raises `DoctorError` `threshold-too-small`.
    """
    made = {}
    for name, kind in KINDS.items():
        said = config.metrics.get(name)
        limit = kind.limit
        if said is not None:
            level = said.level or ("error" if said.most is not None else limit.level)
            threshold = limit.threshold if said.threshold is None else said.threshold
            limit = replace(limit, threshold=threshold, level=level)
        if limit.threshold < LEAST_THRESHOLD:
            raise DoctorError(
                "threshold-too-small",
                f"{config.source}: a threshold of {words.share_text(limit.threshold)} for {name} can't be judged: "
                "no training repeats to that.",
                f"Give {100 * LEAST_THRESHOLD:g}% or more; what can be seen on this machine is said after a check.",
            )
        made[name] = limit
    return made


def held(check: Check, config: Config) -> Check:
    """The check with metrics beyond their absolute limit (`most`) called worse, whatever the base needed."""
    beyond = {name: said.most for name, said in config.metrics.items() if said.most is not None}
    over = [each for each in check.metrics if each.head is not None and each.head > beyond.get(each.id, float("inf"))]
    if not over:
        return check
    changed = {each.id: _called_worse(each, beyond[each.id]) for each in over}
    failing = [each for each in changed.values() if verdict.fails(each)]
    said = [each.sentence for each in failing]
    # "Not slower" beside a failure would be read as the outcome.
    kept = [check.sentence] if check.status == "regressed" or not said else []
    return replace(
        check,
        metrics=[changed.get(each.id, each) for each in check.metrics],
        status="regressed" if failing else check.status,
        sentence=" ".join([*kept, *said]),
    )


def _called_worse(metric: Metric, most: float) -> Metric:
    assert metric.head is not None
    shown = words.share_text if metric.unit == "share" else words.bytes_text
    head, limit = shown(metric.head), shown(most)
    said = f"a little more than {limit}" if head == limit else f"{head}, more than {limit}"
    return replace(metric, verdict="regression", sentence=f"{metric.title}: {said}, which is the most allowed.")
