"""`--steady`: the variables that take the allocator's luck out of a process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from bottleneck_doctor.knobs import allocator

STEADY = allocator.KEEPING
"""Keep glibc from giving large buffers back to the kernel at every step, which is most of the luck by which identical
processes differ on a CPU (mallopt(3)). Both sides get them, so what is compared is the code."""


def variables(own: Mapping[str, str], *, steady: bool) -> dict[str, str]:
    """What is set for processes whose command sets `own` itself: the user's own values come first."""
    return {name: value for name, value in STEADY.items() if steady and name not in os.environ and name not in own}
