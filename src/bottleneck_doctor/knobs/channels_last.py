"""`channels_last`: how pictures and weights of convolutions lie in memory. Kernels are picked again for the other
layout. A model that flattens by `view` refuses it: a process that ends there ends for that."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Callback, MemoryFormat
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "channels_last"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=MemoryFormat("channels_last"),
    options=("channels-last", "memory-format"),
    of_ultralytics=lambda value, found: Callback(
        "on_train_start", "trainer.model.to(memory_format=torch.channels_last)"
    ),
    needs_settling=True,
    may_crash=True,
)
