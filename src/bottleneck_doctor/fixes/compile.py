"""`compile`: the model compiled by torch, so that its operations run in fewer and larger kernels."""

from __future__ import annotations

from statistics import median

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import compiled
from bottleneck_doctor.runtime.wire.messages import Found

SHORT_STEP = 0.03
"""Seconds. If a step takes less, much of it may go into starting kernels, which a CUDA graph does at once. Ours."""


def propose(found: Found) -> Offer | NotApplicable:
    on_device = found.device.startswith("cuda")
    settings: tuple[Setting, ...] = ({compiled.NAME: True},)
    if on_device and found.step_seconds and median(found.step_seconds) < SHORT_STEP:
        settings += ({compiled.NAME: compiled.GRAPHS},)
    asked_for = "" if on_device else _ON_CPU
    return knob_obstacle(found, compiled.NAME) or Offer(settings, on_request=asked_for)


_ON_CPU = (
    "compiling for a CPU takes up to a minute or more in each process, so it is tried if `--only compile` asks for it"
)


FIX = Fix(
    id="compile",
    title="Compile the model",
    why=(
        "A model that runs operation by operation starts a kernel for each, and every one reads and writes its tensors "
        "in memory. `torch.compile` puts many of them into one kernel. Compiling takes a while in each process; on a "
        "CPU it takes so long that it is tried on request only."
    ),
    source="https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html",
    risk="numerics",
    how=(
        "Call `model.compile()` once, before the training loop; if kernels of a GPU are short, with "
        '`mode="reduce-overhead"`, which starts them by CUDA graphs. In transformers\' `TrainingArguments`, set '
        "`torch_compile=True`; in Lightning, call `trainer.fit(torch.compile(model))`."
    ),
    target="compute",
    propose=propose,
    order=60,
    acts_on=("forward", "between", "backward"),
)
