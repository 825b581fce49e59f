"""`cudnn-benchmark`: let cuDNN time its algorithms, or stop it where it times them again and again."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import cudnn_benchmark
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.device.startswith("cuda"):
        return NotApplicable("the model computes on another device than a GPU with cuDNN")
    facts = found.facts.get(cudnn_benchmark.NAME)
    if facts is None:
        return NotApplicable("the layers of the model could not be seen")
    if not facts["convolutions"]:
        return NotApplicable("the model has no convolutions")
    return Offer(({cudnn_benchmark.NAME: not cudnn_benchmark.KNOB.own(found)},))


FIX = Fix(
    id="cudnn-benchmark",
    title="Let cuDNN pick its algorithms by timing them, or by rule",
    why=(
        "cuDNN has several algorithms for a convolution. With `benchmark` on, it times them for each shape that it "
        "meets and keeps the fastest. That pays if shapes stay the same. If they vary, it times algorithms again and "
        "again."
    ),
    source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    risk="numerics",
    how=(
        "Write `torch.backends.cudnn.benchmark = True` before training begins if shapes stay the same, and `False` if "
        "they vary. Lightning's `Trainer` takes `benchmark=`."
    ),
    target="compute",
    propose=propose,
    order=44,
    acts_on=("forward", "backward"),
)
