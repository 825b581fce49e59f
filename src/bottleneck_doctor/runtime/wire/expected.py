"""The loop that an earlier process of the same program had. A guest that is told of it finds it again in fewer steps.

It is a part of the invitation. Where a step takes seconds, the six or more steps that say what a loop repeats are half
a minute, and each process would take them again. In a loop without a loader, other work may come in a rhythm, and each
process would wait for as long as it takes to see that.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Sequence

from .messages import Found, Site

NAME = "expected"
"""Its key in the invitation."""
REPEATS = 2
"""How often the work of a period must be seen to be the one that was expected."""
BARE_STEPS = 12
"""Steps after which a loop without a loader is looked at."""
CLOSURE_PASSES = 6
"""The same of an optimizer's closure where another process had a loop of them."""


@dataclass(frozen=True)
class Expected:
    """`loader`: what `likeness` says of it; [] where none feeds the loop. `period`: in batches, as in `Found`.
    `by_calls`: as there."""

    rung: str
    period: int
    loader: List[Any]
    by_calls: bool = False

    @classmethod
    def of(cls, found: Found) -> Optional[Expected]:
        """What another process may expect. None where the loop's work does not repeat, something else may come before
        it, or there is neither a loader nor an optimizer to know it by."""
        if not found.has_loader:
            known = found.periodic and found.rung in ("optimizer step", "closure")
            return cls(found.rung, found.period, [], found.by_calls) if known else None
        if not (found.periodic and found.seen_alone) or found.loader_site is None:
            return None
        loader = likeness(
            found.loader_site, found.loader_type, found.dataset_type, found.batch_size, found.epoch_batches
        )
        return cls(found.rung, found.period, loader)

    @classmethod
    def read(cls, told: Any) -> Optional[Expected]:
        """From what the invitation holds under `NAME`; None where that is nothing."""
        return cls(told["rung"], told["period"], told["loader"], told["by_calls"]) if isinstance(told, dict) else None

    @property
    def least_steps(self) -> int:
        """Steps after which the loop is found."""
        if self.rung == "closure":
            return CLOSURE_PASSES
        return REPEATS * self.period + 1 if self.loader else BARE_STEPS

    def told(self) -> Dict[str, Any]:
        return asdict(self)

    def is_seen(self, rung: str, signatures: Sequence[Any]) -> bool:
        """Whether the last steps over a loader repeat as expected. `signatures`: what happened in each step, oldest
        first."""
        span = REPEATS * self.period
        tail = list(signatures[-span:])
        known = bool(self.loader) and rung == self.rung
        return known and len(tail) == span and tail[self.period :] == tail[: -self.period]

    def is_seen_bare(self, rung: str, period: int) -> bool:
        """Whether a loop without a loader, whose steps look alike after `period` of them, is the one expected."""
        return not self.loader and rung == self.rung and self.period % period == 0


def likeness(
    site: Optional[Site],
    loader_type: str,
    dataset_type: str,
    batch_size: Optional[int],
    epoch_batches: Optional[int],
) -> List[Any]:
    """By what a loader is known again in another process."""
    where = None if site is None else [site.file, site.line]
    return [where, loader_type, dataset_type, batch_size, epoch_batches]
