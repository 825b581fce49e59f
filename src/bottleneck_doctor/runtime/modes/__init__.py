"""What a window does besides running steps, one file for each mode.

A plain `timed` window does nothing more. The other modes explain: they synchronise, hook or trace, so their windows are
slower and never count for a speedup. The result of a mode goes back as `WindowDone.detail`, a JSON object whose shape
the mode's own file describes.

The order of calls in a window: `apply` (before the window's feed is opened), then for every batch `fetching` and
`fetched`, with `resume` before the `fetching` of the first timed step and `suspend` after the last. A pause of the
user's loop (evaluation, end of an epoch) brings `suspend` and, once steps are timed again, `resume`. `step_ended` is
called when the user requests the next batch (or, in a loop without a loader, after an optimizer step; then there is no
fetching). At the end come `detail` and `revert`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Type

from ..knobs import GuestContext
from ..knobs import Refused as Refused  # Modes raise it too.


class Mode:
    """A plain timed window; the base of the others."""

    name = "timed"

    def __init__(self, options: Dict[str, Any], context: GuestContext, synchronise: Callable[[], None]) -> None:
        self.options = options
        self.context = context
        self.synchronise = synchronise

    def apply(self) -> None:
        """Install hooks. May raise; the window then fails with that reason."""

    def revert(self) -> None:
        """Remove every hook. Must not raise. Also called when the window fails."""

    def resume(self) -> None:
        """Steps count from now on."""

    def suspend(self) -> None:
        """Steps do not count for now."""

    def interrupted(self, at: float) -> None:
        """Nothing after `at` (seconds of `now`) belongs to a step: the loop evaluates, or its epoch is over. `suspend`
        follows, but only when the loop requests its next batch."""

    def fetching(self) -> None:
        """The loop waits for its next batch from now on."""

    def fetched(self, batch: Any) -> None:
        """The loop has its batch."""

    def step_ended(self) -> None:
        """A step is done; called in lead-in too."""

    def evaluates(self, on: bool) -> None:
        """The model comes into evaluation mode within a step, or trains again."""

    def left_out(self) -> None:
        """What was done since it came into that mode belongs to no step. `evaluates` follows."""

    def detail(self) -> Dict[str, Any]:
        """What was found, as JSON values."""
        return {}


def mode_for(name: str) -> Type[Mode]:
    """The mode of that name. Raises `KeyError` if this guest does not have it."""
    if name in ("timed", "loader_only", "sampled"):
        return Mode
    from . import lines, phases, trace

    kinds: Dict[str, Type[Mode]] = {kind.name: kind for kind in (phases.Phases, lines.Lines, trace.Trace)}
    return kinds[name]
