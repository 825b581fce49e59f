"""The device: how well it is used, operators and kernels, and the user's lines that make the host wait for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from bottleneck_doctor.documents.report import DeviceProfile, Operator, Result, SynchronisingCall
from bottleneck_doctor.render import bars
from bottleneck_doctor.render.sections import links
from bottleneck_doctor.render.sections.facts import Fact
from bottleneck_doctor.wording import ranking, words

MOST_OPERATORS = 20
MOST_CALLS = 20

Rows = list[tuple[Operator, Markup]]


@dataclass(frozen=True)
class Device:
    """`title` says whether there is a device at all: operators are traced on the CPU as well. `on_cpu`: no call waits
    for one."""

    title: str
    facts: list[Fact]
    profile: DeviceProfile | None
    operators: Rows
    kernels: Rows
    has_device: bool
    calls: list[tuple[SynchronisingCall, str]]
    on_cpu: bool


def device(result: Result) -> Device | None:
    """None where nothing was traced and no line makes the host wait."""
    profile = result.profiles.device if result.profiles else None
    calls = [
        (call, words.place_text(links.short(call.path, result.entrypoint.cwd), call.line))
        for call in result.synchronising[:MOST_CALLS]
    ]
    if profile is None and not calls:
        return None
    has_device = profile is not None and (bool(profile.kernels) or profile.utilization is not None)
    return Device(
        title="Device" if has_device else "Operators",
        facts=_facts(profile) if profile else [],
        profile=profile,
        operators=_rows(profile.operators if profile else []),
        kernels=_rows(profile.kernels if profile else []),
        has_device=has_device,
        calls=calls,
        on_cpu=ranking.on_cpu(result),
    )


def _rows(operators: list[Operator]) -> Rows:
    return [(each, bars.share_bar(each.share)) for each in operators[:MOST_OPERATORS]]


def _facts(profile: DeviceProfile) -> list[Fact]:
    """Shares of the traced time, each with what it means; those that the device does not tell are left out."""
    shares = [
        ("Busy", profile.utilization, "share of the time in which the device computes"),
        ("SM efficiency", profile.sm_efficiency, "estimated share of its multiprocessors that have work"),
        ("Occupancy", profile.occupancy, "estimated share of the threads that busy multiprocessors can hold"),
        ("Tensor Cores", profile.tensor_core_share, "share of kernel time in kernels that use them"),
        ("Could use Tensor Cores", profile.tensor_core_eligible_share, "share of kernel time in matrix work"),
        ("Copies", profile.memcpy_share, "share of the time in which memory is copied"),
        ("Idle", profile.idle_share, profile.idle_cause),
    ]
    facts = [
        Fact(name, words.share_text(share), meaning)
        for name, share, meaning in shares
        if share is not None and math.isfinite(share)
    ]
    if profile.kernels_per_step is not None:
        mean = profile.kernel_mean_us
        meaning = f"of {words.duration_text(mean / 1e6)} on average" if mean is not None else ""
        facts.append(Fact("Kernels a step", words.amount_text(profile.kernels_per_step), meaning))
    if profile.pageable_copies is not None:
        facts.append(
            Fact(
                "Copies from pageable memory",
                str(profile.pageable_copies),
                "these make the host wait; copies from pinned memory need not",
            )
        )
    return facts
