"""Shared by the knobs that make an optimizer step with other groups of parameters than those that the user sees.

A hook before a step of torch's may give the step another optimizer than its own. Here it gives a stand-in: an object
that shares all attributes with the user's optimizer except `param_groups`, which are made on request. So nothing of the
user's is changed that would have to be restored: schedulers, hooks and all code that reads the optimizer see their own
groups, and if a closure changes them, the step uses the new values.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch

from ..loop.steps import Steps
from . import GuestContext, Knob, _made_optimizers
from ._optimizers import obstacle

Groups = List[Dict[str, Any]]


class StandIn(Knob):
    def __init__(self) -> None:
        self._held: Optional[bool] = None
        """Whether every group that should be stepped in another way was; None before the first."""
        self._hooks: List[Any] = []
        self._kinds: Dict[type, type] = {}
        self._touched: List[Any] = []
        """The optimizers that it changes."""

    @classmethod
    def refusal(cls, optimizer: Any) -> str:
        """Why this optimizer is left alone; "" if it isn't."""
        raise NotImplementedError

    def prepare(self, optimizer: Any) -> None:
        """Called before the optimizer's first step in this way. May raise."""

    def step_begins(self, optimizer: Any) -> None:
        """A step of the optimizer begins. May raise; the step is then made as written."""

    def put_back(self, optimizer: Any) -> None:
        """Called after the optimizer's last step in this way, to undo `prepare`. May raise."""

    def groups(self, stand_in: Any, theirs: Groups) -> Groups:
        """The groups for the step, instead of `theirs`, which must stay unchanged. May raise."""
        raise NotImplementedError

    def gathered(self, stand_in: Any, group: Dict[str, Any], told: Any, lists: Tuple[Any, ...]) -> None:
        """torch has gathered what it needs of a group, in `lists`: parameters with a gradient, gradients, then the
        optimizer's state. `told`: whether sparse or complex ones are among them. From now on the step uses the values
        in `group`."""

    # -- the knob ----------------------------------------------------------------------------------------------------

    @classmethod
    def watch(cls, steps: Steps) -> None:
        _made_optimizers.watch(steps)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        seen = _made_optimizers.told(steps, cls.refusal)
        return None if cls.obstacle(steps) else seen

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        return obstacle(steps, cls.refusal)

    def apply(self, value: Any, context: GuestContext) -> None:
        reason = self.obstacle(context.steps)
        if reason:
            raise ValueError(reason)
        try:
            for optimizer in context.steps.optimizers:
                if not self.refusal(optimizer):
                    self._touched.append(optimizer)
                    self.prepare(optimizer)
                    # Behind the user's own hooks, which are told of the optimizer itself.
                    self._hooks.append(optimizer.register_step_pre_hook(self._before_step))
        except Exception:
            self.revert(context)
            raise

    def revert(self, context: GuestContext) -> None:
        while self._hooks:
            self._hooks.pop().remove()
        while self._touched:
            try:
                self.put_back(self._touched.pop())
            except Exception:
                pass  # What its state is kept in is of no meaning to the user's own step either.
        self._kinds.clear()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._held

    def note(self, held: bool) -> None:
        """Note whether a group was stepped in the way that the knob wants."""
        self._held = held and self._held is not False

    # -- a step ------------------------------------------------------------------------------------------------------

    def _before_step(self, optimizer: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        if torch.compiler.is_compiling() or not args:
            self.note(False)
            return None
        try:
            self.step_begins(optimizer)
            kind = self._kind(type(args[0]))
            stand_in = kind.__new__(kind)
            stand_in.__dict__ = vars(args[0])
        except Exception:
            self.note(False)
            return None
        return (stand_in, *args[1:]), kwargs

    def _kind(self, above: Any) -> Any:
        """The class of a stand-in for an object of class `above`, which may be the stand-in of another such knob."""
        made = self._kinds.get(above)
        if made is None:
            inner = vars(above).get("param_groups")

            def param_groups(stand_in: Any) -> Groups:
                theirs: Groups = vars(stand_in)["param_groups"] if inner is None else inner.__get__(stand_in, above)
                try:
                    return self.groups(stand_in, theirs)
                except Exception:
                    self.note(False)
                    return theirs

            def init_group(stand_in: Any, group: Dict[str, Any], *lists: Any, **named: Any) -> Any:
                told = above._init_group(stand_in, group, *lists, **named)
                # In the order of the arguments, which has always been that of the call.
                self.gathered(stand_in, group, told, (*lists, *named.values()))
                return told

            body = {"param_groups": property(param_groups), "_init_group": init_group}
            made = self._kinds[above] = type(above.__name__, (above,), body)
        return made
