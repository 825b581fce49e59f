"""`compute-bound`: the passes take nearly all of the time, and nothing else slows the training down."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import GENERAL, LARGE, Rule, Statement
from bottleneck_doctor.diagnose.compute._operators import forward_of_no_module, slowest_operation
from bottleneck_doctor.wording import words

PASSES = 0.7
"""Part of a step that forward, backward, optimizer and communication must take together. Ours: if they take less,
something else has a share worth looking for."""
AT_CEILING = 1.1
"""If replayed batches make training no faster than this, training is at its ceiling. Ours; on a CPU, replayed
batches also leave the cores to computing."""
MOST_OF_IT = 0.3
"""An operation that takes this part of the time or more is named. Ours: without it, training would be 1.4× as fast."""
WAITS = 1 - 1 / AT_CEILING
"""At this wait for data or more, training without it would be faster than that."""


def judge(evidence: Evidence) -> Statement | None:
    shares = evidence.shares
    if shares is None or (evidence.wait or 0.0) >= WAITS:
        return None
    forward = shares.forward + (forward_of_no_module(evidence) or 0.0)
    passes = forward + shares.backward + shares.optimizer + shares.zero_grad + shares.communication
    if passes < PASSES:
        return None
    figures = {"passes_share": passes, "forward_share": forward, "backward_share": shares.backward}
    ceiling = evidence.ceilings.get("synthetic")
    near = ""
    if ceiling is not None and ceiling.estimate > 0:
        if ceiling.estimate > AT_CEILING and ceiling.low > 1.0:
            if evidence.on_device:
                return None
            # No step waits, and yet training is faster without loading: both want the same cores.
            figures["ceiling"] = ceiling.estimate
            faster = words.ratio_text(ceiling.estimate)
            near = f" Loading shares the cores with it: {words.AT_ONCE}, training would be {faster} as fast."
        # A ceiling far above 1 whose interval includes 1 is noise, and decides nothing.
        if ceiling.estimate <= AT_CEILING:
            share = min(1.0, 1.0 / ceiling.estimate)
            figures["of_ceiling"] = share
            near = f" Training runs at {words.share_text(share)} of the speed that it would have {words.AT_ONCE}."
    parts = {"forward": forward, "backward": shares.backward, "optimizer": shares.optimizer + shares.zero_grad}
    limits, does = "Computing limits training.", "computes"
    if shares.communication > 0:
        parts["communication between processes"] = shares.communication
        figures["communication_share"] = shares.communication
    if shares.communication >= LARGE:
        limits, does = "Computing and communication limit training.", "computes and communicates"
    operation, share = slowest_operation(evidence) or ("", 0.0)
    if share >= MOST_OF_IT:
        figures["operation_share"] = share
        limits = f"One kind of operation, `{operation}`, takes {words.share_text(share)} of the time. {limits}"
    return Statement(
        sentence=(
            f"{words.listed(list(parts)).capitalize()} take {words.share_text(passes)} of the time "
            f"({words.listed([words.share_text(part) for part in parts.values()])}).{near} {limits}"
        ),
        figures=figures,
        weight=passes * evidence.in_steps,
        clause=f"{does} {words.share_text(passes)} of the time",
    )


RULE = Rule(
    id="compute-bound",
    title="Computing limits training",
    topic="rest",
    depth=GENERAL,
    residual=True,
    needs=("phases",),
    judge=judge,
    source="https://horace.io/brrr_intro.html",
    advice="Only less computing or a faster machine helps: lower precision, a compiled model (on a CPU, "
    "`--only compile` measures it), another memory layout, or another model.",
    fixes=(
        "amp-bf16",
        "amp-fp16",
        "float32-precision",
        "channels-last",
        "quick-dropout",
        "flush-denormal",
        "threads",
        "intra-op-threads",
        "cudnn-benchmark",
        "full-precision",
        "compile",
    ),
)
