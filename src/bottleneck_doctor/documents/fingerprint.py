"""By what two machines are told apart: their description, and how fast they are just now.

*Keys* are what a machine is, and must agree. What may differ without harm is none: the last part of Python's version,
the build of the kernel, the host's name. *Calibration* is how fast it is just now, by a second or two of fixed work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=1, le=1 << 53)]
Figure = Annotated[float, Meta(gt=0, le=1e18)]


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """The keys. `system`: with the kernel's first two numbers. `driver`: of the devices, "" without any.

    `variables`: those that change speed, as they are set around the training.
    """

    system: str
    cpu: str
    usable_cpus: Count
    memory_bytes: Count
    devices: list[str] = field(default_factory=list)
    driver: str = ""
    python: str
    torch: str
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What fixed work took, the best of several times. Seconds, and bytes a second; None where there is no such thing.

    `python_seconds`: a loop of the interpreter's. `compute_seconds`: a product of matrices on one core.
    `device_*`: the same on the first device, `transfer`: from the host's memory to it.
    """

    python_seconds: Figure
    compute_seconds: Figure | None = None
    memory_bytes_per_second: Figure | None = None
    device_compute_seconds: Figure | None = None
    device_bytes_per_second: Figure | None = None
    transfer_bytes_per_second: Figure | None = None


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A key in which two machines differ, and its value on both."""

    key: str
    base: str
    head: str
