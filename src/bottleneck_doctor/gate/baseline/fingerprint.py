"""Compares two descriptions of machines: what differs comes out. Pure.

Keys must agree. Calibration varies with who else uses a machine, so only a difference beyond a wide tolerance means
another machine. Several stored calibrations widen the range that counts as the same machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

from bottleneck_doctor.compare import MEMORY_TOLERANCE
from bottleneck_doctor.documents.fingerprint import Calibration, Difference, Fingerprint
from bottleneck_doctor.wording import words

COMPUTE_TOLERANCE = 1.25
"""If fixed work is slower or faster by more than this factor, it is another machine. Clocks follow load and heat."""
BANDWIDTH_TOLERANCE = 2.0
"""The same factor for copies in memory. All programs share this speed: 10 to 15 GB/s were seen on one machine within an
hour."""

LONGEST = 200
"""At most this many characters of a value are shown."""

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
    """Speeds that are outside the range of the stored calibrations by more than their tolerance.

    A speed that one side could not measure is no difference, because the keys say whether there is a device.
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
    # Anybody may have written the baseline's file, and this text is shown on terminals.
    key, base, head = (words.clipped(words.visible(text), LONGEST) for text in (_NAMES.get(name, name), base, head))
    return Difference(key=key, base=base, head=head)


def _text(value: object) -> str:
    return (", ".join(value) if isinstance(value, list) else str(value)) or "none"


def _rate(value: float) -> str:
    return f"{words.bytes_text(value)}/s"
