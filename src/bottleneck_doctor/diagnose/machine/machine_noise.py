"""`machine-noise`: the machine itself is uneven or shared, which weakens every other figure."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement, clamp
from bottleneck_doctor.wording import words

NOISY = 0.05
"""At this noise floor (how far apart two measurements of the same may lie) or more, a gain of 5 % can't be told apart
from chance."""


def judge(evidence: Evidence) -> Statement | None:
    noise = evidence.noise
    if noise is None:
        return None
    stolen = _usage.mean(evidence, lambda use: use.steal_share) or 0.0
    throttled = _usage.mean(evidence, lambda use: use.throttled_share) or 0.0
    figures, told = {"noise_floor": noise.floor}, []
    if noise.floor >= NOISY:
        told.append(f"On this machine, a difference{words.below_text(noise.floor)} may be chance.")
    if stolen >= MATTERS:
        figures["steal_share"] = stolen
        told.append(f"Other virtual machines on the same host take {words.share_text(stolen)} of the processor time.")
    if throttled >= MATTERS:
        figures["throttled_share"] = throttled
        # How long it stood in such a period is not known.
        told.append(
            f"In {words.share_text(throttled)} of its periods, the CPU limit of the container (its control group) was "
            "used up, and the training had to wait for the next period."
        )
    if not told:
        return None
    return Statement(
        sentence=" ".join(told),
        figures=figures,
        # Noise itself costs no time. Processor time that others took does.
        weight=clamp(max((part for part in (stolen, throttled) if part >= MATTERS), default=0.0)),
        measured=False,
    )


RULE = Rule(
    id="machine-noise",
    title="The machine is noisy",
    topic="machine",
    depth=CAUSE,
    needs=("noise",),
    judge=judge,
    source="https://man7.org/linux/man-pages/man5/proc_stat.5.html",
    advice="Measure while nothing else runs, give the training cores of its own, or give the examination more time.",
    told=False,
)
