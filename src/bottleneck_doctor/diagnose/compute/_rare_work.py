"""Work between the steps that only some of them have, so that these are longer than the rest."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import LARGE

MOST = 0.7
"""Work is rare if what the longer steps take beyond half of all is at least this part of it. Ours; of work that each
step has in the same way, it is nothing."""


def is_rare(evidence: Evidence) -> bool:
    """Whether work other than loading, passes and the optimizer takes much of the time, most of it in some steps."""
    steps, shares = evidence.steps, evidence.shares
    if steps is None or shares is None or steps.mean_ms <= 0 or not evidence.found.has_root_module:
        return False
    longer = (steps.mean_ms - steps.p50_ms) / steps.mean_ms
    return shares.between >= LARGE and MOST * shares.between <= longer <= shares.between / MOST
