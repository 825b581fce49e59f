"""How long backward passes only wait for other processes, measured by DistributedDataParallel itself on request.

It notes when its first all-reduce began, when the gradients were computed, and when the last all-reduce ended.
Communication adds to a step the time after the gradients were computed; the rest is hidden behind computing. The wait
for a slow rank is included, because an all-reduce ends for all ranks at once.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Tuple

from torch.nn.parallel import DistributedDataParallel

USUAL_RATE = 100
"""By default, DistributedDataParallel measures one in this many iterations."""
NANOSECOND = 1e-9


class Communication:
    """Communication of the models `roots`. Call `backward_ended` after every backward pass that counts; `seconds` is
    the sum."""

    def __init__(self, roots: Iterable[Any]) -> None:
        models = [model for root in roots for model in root.modules() if isinstance(model, DistributedDataParallel)]
        self._models: Dict[int, Any] = {id(model): model for model in models}
        self._last: Dict[int, Tuple[int, int]] = {}
        self._exposed: List[float] = []
        self._passes = 0

    def apply(self) -> None:
        """Have every iteration measured. Models without this function are left out: torch calls it a prototype."""
        for key, model in list(self._models.items()):
            try:
                model._set_ddp_runtime_logging_sample_rate(1)
                _times(model)
            except Exception:
                del self._models[key]

    def revert(self) -> None:
        for model in self._models.values():
            try:
                model._set_ddp_runtime_logging_sample_rate(USUAL_RATE)
            except Exception:
                pass

    def backward_ended(self) -> None:
        """Read the time of the previous pass, which is known once the next forward pass has begun."""
        self._passes += bool(self._models)
        for key, model in self._models.items():
            try:
                times = _times(model)
            except Exception:
                continue
            known = self._last.get(key)
            self._last[key] = times
            if known is not None and times != known:  # Passes that only accumulate leave the figures as they are.
                took, hidden = times
                self._exposed.append(max(0.0, took - hidden) * NANOSECOND)

    def exchanges(self) -> Optional[Dict[str, int]]:
        """Of how many `passes` it is known whether they exchanged gradients, and how many `exchanged` them; None where
        no model exchanges any."""
        return {"passes": self._passes - 1, "exchanged": len(self._exposed)} if self._passes > 1 else None

    def seconds(self) -> float:
        """Seconds of all passes: those that were read, and their mean for the one that was not."""
        if not self._exposed:
            return 0.0
        return sum(self._exposed) * self._passes / max(1, self._passes - 1)


def _times(model: Any) -> Tuple[int, int]:
    """Nanoseconds of the last iteration's communication, and of the part of it during which gradients were computed."""
    told = model._get_ddp_logging_data()
    return told["backward_comm_time"], told["backward_compute_comm_overlap_time"]
