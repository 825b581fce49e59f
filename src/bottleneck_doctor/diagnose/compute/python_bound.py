"""`python-bound`: the passes are made of Python code and of operations too small to be more than overhead."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._idle import launch_limited, stands_still
from bottleneck_doctor.diagnose._places import hottest_of, refined_below_the_loop
from bottleneck_doctor.diagnose._rule import PART, PLACE, Rule, Statement, at, place
from bottleneck_doctor.diagnose.compute._operators import outside_operators
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    shares, profile = evidence.shares, evidence.operators
    if shares is None or profile is None or launch_limited(evidence):
        return None
    passes = shares.forward + shares.backward + shares.optimizer + shares.zero_grad
    share = passes * outside_operators(profile, passes)
    if evidence.on_device:
        # A host that is busy while the device computes costs nothing. What counts is whether the device is idle.
        still = stands_still(evidence)
        if still is None:
            return None
        share = min(share, still)
    if share < PART:
        return None
    kind = "forward" if shares.forward >= shares.optimizer else "optimizer"
    hot = hottest_of(evidence, kind)
    site = refined_below_the_loop(evidence, hot.site) if hot is not None and hot.share >= PART else None
    where = ""
    if site is not None and hot is not None and hot.share > 0.5:
        where = f" Most of the {'forward pass' if kind == 'forward' else 'optimizer'} runs at {place(site)}."
    cores = _usage.of(evidence, "main", _usage.cpu)
    figures = {"python_share": share, "passes_share": passes}
    used = ""
    if cores is not None:
        figures["main_cores"] = cores
        used = f" The training process keeps {cores:.1f} cores busy."
    return Statement(
        sentence=(
            f"{words.share_text(share)} of a step is Python code and operations of under 10 µs, which take longer to "
            f"call than to compute.{used}{where}"
        ),
        figures=figures,
        weight=share * evidence.in_steps,
        clause=f"spends {words.share_text(share)} of the time in Python and in calls of tiny operations{at(site)}",
        site=site,
    )


RULE = Rule(
    id="python-bound",
    title="Python code takes the time",
    topic="host",
    depth=PLACE,
    needs=("phases", "operators"),
    judge=judge,
    source="https://horace.io/brrr_intro.html",
    advice="Use a few operations on large tensors instead of loops, use larger batches, or compile the model.",
    fixes=("distribution-checks",),
    contradicts=("compute-bound", "launch-bound"),
)
