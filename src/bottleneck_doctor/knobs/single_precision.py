"""`single_precision`: whether a model that computes in float64 computes in float32. Kernels are picked for a type as it
is met first. A model that makes tensors in float64 for itself refuses it: a process that ends there ends for that."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "single_precision"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="torch.float32",
        otherwise=(
            "leave out what makes the model float64 (`.double()`, `torch.set_default_dtype(torch.float64)`), and make "
            "its input, and what its output is compared with, float32: `torch.from_numpy(array).float()`"
        ),
        calls=("set_default_dtype", "double"),
    ),
    options=("double", "dtype", "precision"),
    needs_settling=True,
    may_crash=True,
    shrinks=True,
)
