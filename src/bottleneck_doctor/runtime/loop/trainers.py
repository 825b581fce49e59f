"""How long the trainers of other libraries will go on: they know it, and keep it in their own attributes. And what
takes the arguments of one that a library makes."""

from __future__ import annotations

import re
from types import FrameType
from typing import Any, List, Optional, Tuple

from ..wire.messages import Taker
from .known_values import own_attributes
from .signatures import library_frames, named_rest, owner_of, parameters, taken_by

Length = Tuple[Optional[int], Optional[int], bool]
"""Epochs, batches, and whether a callback may end training sooner; None is unknown."""
_OF_TRAINER = re.compile(r"(pl_|lightning_)?trainer_(kwargs|args|params|config)")
"""What other libraries call arguments that they hand to Lightning's trainer: a dict of them, or all that they have no
names for."""
_LIGHTNING = ("lightning.", "pytorch_lightning.")


def of_trainer(frame: Optional[FrameType]) -> Optional[Tuple[Length, str]]:
    """What the trainer says that called `frame`, and whose it is; None where no known one did."""
    while frame is not None:
        if "self" in frame.f_code.co_varnames[:1]:
            owner = owner_of(frame)
            for kind in type(owner).__mro__:
                place = (kind.__module__, kind.__qualname__)
                if place == ("transformers.trainer", "Trainer"):
                    return _transformers(owner), "transformers"
                if place[1] == "_FitLoop" and place[0] in (
                    "lightning.pytorch.loops.fit_loop",
                    "pytorch_lightning.loops.fit_loop",
                ):
                    return _lightning(owner), "lightning"
        frame = frame.f_back
    return None


def lightning_takers(frame: Optional[FrameType]) -> List[Taker]:
    """What takes arguments of Lightning's trainer, which a library has called: the function that the user's line calls,
    and the classes of objects that lead to the trainer."""
    made: List[Taker] = []
    for number, each in enumerate(library_frames(frame)):
        owner = owner_of(each)
        if type(owner).__module__.startswith(_LIGHTNING):
            break
        if number == 0:
            made += _taker("", list(parameters(each.f_code)), [named_rest(each.f_code)])
        if owner is not None:
            taken = taken_by(type(owner))
            made += _taker(type(owner).__name__, list(taken.places), taken.rests)
    return list({each.made: each for each in made}.values())


def _taker(made: str, names: List[str], rests: List[str]) -> List[Taker]:
    if any(_OF_TRAINER.fullmatch(each) for each in rests):
        return [Taker(made, {"precision": "precision"})]
    holding = [name for name in names if _OF_TRAINER.fullmatch(name)]
    return [Taker(made, {"precision": "precision"}, within=holding[0])] if holding else []


def _transformers(trainer: Any) -> Length:
    """transformers counts optimizer steps, whatever was asked for."""
    most = _held(_held(trainer, "state"), "max_steps")
    accumulated = _held(_held(trainer, "args"), "gradient_accumulation_steps")
    if not _positive(most) or not _positive(accumulated):
        return None, None, False
    return None, most * accumulated, True


def _lightning(loop: Any) -> Length:
    """Lightning ends at the first of two limits: epochs, and optimizer steps. -1 is no limit."""
    epochs, a_turn = _held(loop, "max_epochs"), _held(loop, "max_batches")
    most = _held(_held(loop, "epoch_loop"), "max_steps")
    accumulated = _held(_held(loop, "trainer"), "accumulate_grad_batches")
    if not _positive(epochs) or not _positive(a_turn):
        epochs = None
    limits = [] if epochs is None else [epochs * a_turn]
    if _positive(most) and _positive(accumulated):
        limits.append(most * accumulated)
    if not limits:
        return None, None, False
    steps = min(limits)
    return (epochs if epochs is not None and steps == epochs * a_turn else None), steps, True


def _held(owner: Any, name: str) -> Any:
    """An attribute, read from the object's own dictionary."""
    return (own_attributes(owner) or {}).get(name)


def _positive(value: Any) -> bool:
    return type(value) is int and value > 0
