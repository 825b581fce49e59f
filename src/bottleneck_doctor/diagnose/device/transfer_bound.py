"""`transfer-bound`: copying batches to the device takes a good part of a step."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import line_with
from bottleneck_doctor.diagnose._rule import CAUSE, CUDA_GUIDE, LARGE, Rule, Statement, at
from bottleneck_doctor.diagnose.device._copies import TO_DEVICE
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    shares = evidence.shares
    if shares is None or shares.host_to_device < LARGE:
        return None
    figures = {"host_to_device_share": shares.host_to_device}
    details = []
    loading, step = evidence.as_written, evidence.step_ms
    if loading is not None and step is not None:
        rate = loading.bytes_per_batch * 1000 / (shares.host_to_device * step)
        figures |= {"bytes_per_batch": loading.bytes_per_batch, "bytes_per_second": rate}
        details.append(
            f" A batch of {words.bytes_text(loading.bytes_per_batch)} is copied at {words.bytes_text(rate)} a second."
        )
    pcie = _usage.device(evidence, lambda use: use.pcie_rx_bytes)
    if pcie is not None:
        figures["pcie_rx_bytes"] = pcie
        details.append(f" On average, the bus to the device carries {words.bytes_text(pcie)} a second.")
    site = line_with(evidence, TO_DEVICE)
    return Statement(
        sentence=(
            f"Copying batches to the device{at(site)} takes {words.share_text(shares.host_to_device)} of a step."
            f"{''.join(details)}"
        ),
        figures=figures,
        weight=shares.host_to_device * evidence.in_steps,
        clause=f"spends {words.share_text(shares.host_to_device)} of the time copying batches to the device{at(site)}",
        site=site,
    )


RULE = Rule(
    id="transfer-bound",
    title="Copying to the device is slow",
    topic="device",
    depth=CAUSE,
    needs=("device", "phases"),
    judge=judge,
    source=CUDA_GUIDE + "#data-transfer-between-host-and-device",
    advice="Copy less (uint8 pictures, normalised on the device) and copy the next batch while this one is computed.",
    fixes=("pinned-memory", "device-prefetch"),
    contradicts=("compute-bound",),
)
