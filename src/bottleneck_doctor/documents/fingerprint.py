"""By what two machines are told apart: two descriptions in, what differs out. Pure.

*Keys* are what a machine is, and must agree. What may differ without harm is none: the last part of Python's version,
the build of the kernel, the host's name. *Calibration* is how fast it is just now, by a second or two of fixed work.
That varies with who else uses it, so only a difference beyond a wide tolerance makes another machine; several takes
widen what is taken for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated

from msgspec import Meta

from bottleneck_doctor.compare import MEMORY_TOLERANCE
from bottleneck_doctor.wording import words

Count = Annotated[int, Meta(ge=1, le=1 << 53)]
Figure = Annotated[float, Meta(gt=0, le=1e18)]

COMPUTE_TOLERANCE = 1.25
"""How many times slower or faster fixed work may be before it is another machine's: clocks follow load and heat."""
BANDWIDTH_TOLERANCE = 2.0
"""The same of moving memory. It is shared by all who use the machine: 10 to 15 GB/s were seen on one within an hour."""

LONGEST = 200
"""Characters of a value that are shown."""


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


_NAMES = {
    "system": "operating system",
    "cpu": "processor",
    "usable_cpus": "cores that may be used",
    "memory_bytes": "memory",
    "devices": "devices",
    "driver": "driver of the devices",
    "python": "Python",
    "torch": "torch",
    "variables": "variables",
    "python_seconds": "speed of Python",
    "compute_seconds": "speed of one core",
    "memory_bytes_per_second": "speed of memory",
    "device_compute_seconds": "speed of the device",
    "device_bytes_per_second": "speed of the device's memory",
    "transfer_bytes_per_second": "speed of copies to the device",
}  # fmt: skip


def differences(base: Fingerprint, head: Fingerprint) -> list[Difference]:
    """The keys that differ, in the order in which they matter."""
    found = []
    for each in fields(Fingerprint):
        before, after = getattr(base, each.name), getattr(head, each.name)
        if each.name == "variables":
            found += _variables(before, after)
        elif each.name == "memory_bytes":
            if abs(before - after) > MEMORY_TOLERANCE * max(before, after):
                found.append(_difference(each.name, words.bytes_text(before), words.bytes_text(after)))
        elif before != after:
            found.append(_difference(each.name, _text(before), _text(after)))
    return found


def drifted(takes: Sequence[Calibration], now: Calibration) -> list[Difference]:
    """What is faster or slower now than in any of some takes, by more than its tolerance.

    What one side could not measure is no difference: the keys say whether there is a device.
    """
    found = []
    for each in fields(Calibration):
        known = [value for take in takes if (value := getattr(take, each.name)) is not None]
        value = getattr(now, each.name)
        if not known or value is None:
            continue
        is_rate = each.name.endswith("_per_second")
        tolerance = BANDWIDTH_TOLERANCE if is_rate else COMPUTE_TOLERANCE
        if min(known) / tolerance <= value <= max(known) * tolerance:
            continue
        text: Callable[[float], str] = _rate if is_rate else words.duration_text
        low, high = text(min(known)), text(max(known))
        found.append(_difference(each.name, low if low == high else f"{low} to {high}", text(value)))
    return found


def _variables(base: dict[str, str], head: dict[str, str]) -> list[Difference]:
    names = sorted(base.keys() | head.keys())
    return [
        _difference(name, base.get(name, "not set"), head.get(name, "not set"))
        for name in names
        if base.get(name) != head.get(name)
    ]


def _difference(name: str, base: str, head: str) -> Difference:
    # The baseline is a file that anybody may have written, and this is shown on terminals.
    key, base, head = (words.clipped(words.visible(text), LONGEST) for text in (_NAMES.get(name, name), base, head))
    return Difference(key=key, base=base, head=head)


def _text(value: object) -> str:
    return (", ".join(value) if isinstance(value, list) else str(value)) or "none"


def _rate(value: float) -> str:
    return f"{words.bytes_text(value)}/s"
