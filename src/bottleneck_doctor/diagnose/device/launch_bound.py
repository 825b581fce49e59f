"""`launch-bound`: the device stands still between many small kernels, which the host can't launch quickly enough."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._idle import launch_limited, stands_still
from bottleneck_doctor.diagnose._rule import CAUSE, Rule, Statement, Unjudged, several
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    profile, still = evidence.operators, stands_still(evidence)
    if profile is None or still is None or profile.kernel_mean_us is None or profile.kernels_per_step is None:
        return Unjudged("the profile has no kernels or does not say when the device was idle")
    if not launch_limited(evidence):
        return None
    return Statement(
        sentence=(
            f"A step launches {several(profile.kernels_per_step, 'kernel')} of "
            f"{profile.kernel_mean_us:.1f} µs on average, and launching one usually takes about as long. The device "
            f"is idle {words.share_text(still)} of the time although it does not wait for data."
        ),
        figures={
            "kernels_per_step": profile.kernels_per_step,
            "kernel_mean_us": profile.kernel_mean_us,
            "idle_share": still,
        },
        weight=still * evidence.in_steps,
        clause=f"leaves the device idle {words.share_text(still)} of the time between many small kernels",
    )


RULE = Rule(
    id="launch-bound",
    title="The device waits for kernel launches",
    topic="device",
    depth=CAUSE,
    needs=("device", "operators"),
    judge=judge,
    source="https://developer.nvidia.com/blog/cuda-graphs/",
    advice='Use larger batches, `torch.compile(model, mode="reduce-overhead")` or CUDA graphs, and fused optimizers.',
    fixes=("compile", "fused-optimizer", "distribution-checks"),
    contradicts=("compute-bound", "python-bound", "tensor-cores-idle"),
)
