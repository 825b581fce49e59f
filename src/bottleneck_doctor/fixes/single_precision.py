"""`single-precision`: the model in float32, where it is float64."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import single_precision
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, single_precision.NAME) or Offer(({single_precision.NAME: True},))


FIX = Fix(
    id="single-precision",
    title="Compute in float32 instead of float64",
    why=(
        "In single precision, a processor computes twice as many numbers at once and moves half as many bytes. Most "
        "GPUs compute float64 many times as slowly. NumPy's arrays are float64 where nobody says otherwise."
    ),
    source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions",
    risk="numerics",
    how=(
        "Leave out `.double()` and `torch.set_default_dtype(torch.float64)`, and make tensors of NumPy's arrays with "
        "`torch.from_numpy(array).float()`. In Lightning, leave out `precision='64-true'`. Some problems need float64: "
        "compare the results, not only the loss."
    ),
    target="compute",
    propose=propose,
    order=40,
    acts_on=("forward", "backward", "optimizer"),
)
