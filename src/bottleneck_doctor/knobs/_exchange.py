"""Arguments of what exchanges gradients between ranks, as a user writes them."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Argument

CALLS = ("DistributedDataParallel", "DDP", "DDPStrategy", "DistributedDataParallelKwargs")
"""What takes them: torch's class and its usual short name, Lightning's strategy, and accelerate's handler."""


def where_wrapped(said: str, do: str, *, given: tuple[tuple[str, object], ...] = (), takes_value: str = "") -> Argument:
    """The edit where the model is wrapped. `said`, `given` and `takes_value` as in `Argument`; `do`: what to do there
    if no such call is found."""
    otherwise = f"{do} where the model is wrapped in `DistributedDataParallel`, or tell the trainer that wraps it"
    return Argument(said=said, otherwise=otherwise, calls=CALLS, given=given, takes_value=takes_value)


def switched_on(name: str) -> Argument:
    """The edit that gives it the argument of this name, as True."""
    return where_wrapped(f"{name}=True", f"pass `{name}=True`", given=((name, True),))
