"""What the verdict names as the cause, as the sentence that opens it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bottleneck_doctor.diagnose._rule import MATTERS
from bottleneck_doctor.documents.report import Finding
from bottleneck_doctor.wording import words


@dataclass(frozen=True)
class Headline:
    """`clause` completes "Training …"; `opening` is that sentence; `finding` is the id that it speaks of."""

    finding: str
    clause: str

    @property
    def opening(self) -> str:
        return f"Training {self.clause}."

    def beside_computing(self, share: float) -> Headline:
        """The same, after what computing takes of the time: the verdict goes on with a fix that acts on that."""
        return replace(self, clause=f"computes {words.share_text(share)} of the time, and {self.clause}")


def headline(findings: Sequence[Finding], clauses: Mapping[str, str]) -> Headline | None:
    """The heaviest finding that accounts for enough time to be named; None if there is none."""
    for finding in findings:
        clause = clauses.get(finding.id)
        if clause and finding.weight >= MATTERS:
            return Headline(finding.id, clause)
    return None
