"""`--steady`: the variables that remove the random differences that the memory allocator makes between processes."""

from __future__ import annotations

import os
from collections.abc import Mapping

from bottleneck_doctor.knobs import allocator

STEADY = allocator.KEEPING
"""They keep glibc from giving large buffers back to the kernel at every step, which is most of the random difference
between identical processes on a CPU (mallopt(3)). Both sides get them, so only the code is compared."""


def variables(own: Mapping[str, str], *, steady: bool) -> dict[str, str]:
    """The variables to set for a command that sets `own` itself. The user's own values take precedence."""
    return {name: value for name, value in STEADY.items() if steady and name not in os.environ and name not in own}
