"""`autocast`: forward pass and loss in bfloat16 or float16, as with `with torch.autocast(...)` around them.

Autocast is entered before a root module is called and left before `backward`, an optimizer step or the next batch: the
span that a user would put under the `with`. With float16, gradients are scaled around the user's own `backward` and
`step`. The effect is checked by the dtype of the outputs of layers inside the root modules. Inside a compiled model
nothing is checked, because a hook would make torch compile it again.
"""

from __future__ import annotations

import functools
from threading import get_ident
from typing import Any, Dict, List, Optional, Tuple

import torch

from ..loop.steps import Steps
from ..process.compiled import is_compiled_in_place
from ..process.hook import Hook
from ..process.patches import Patches
from . import GuestContext, Knob
from ._modules import is_compiled, mapped, patch_methods

_MOST_LAYERS = 64

_overdue: Dict[int, List[Any]] = {}
"""Contexts by the thread that entered them and has to leave them, because autocast's state belongs to a thread. If
batches are requested in another thread than the one that trains, a window may end there."""


class _CarriedOver:
    """What a loop carries from step to step, such as the state of a recurrent network, has autocast's type when a
    window ends. A user who writes autocast never leaves it. Here the first step after the window gets it in the model's
    own type, because otherwise the model could not compute."""

    def __init__(self, root: Any, carried: torch.dtype) -> None:
        self._carried = carried
        self._own = next((each.dtype for each in root.parameters() if each.is_floating_point()), carried)
        self._root = root
        self._handle: Any = None

    def watch(self) -> None:
        """Convert from the next call of the model on, until a call with gradients has ended."""
        if self._own is not self._carried:
            self._handle = self._root.register_forward_pre_hook(Hook(self._called), with_kwargs=True)

    def _called(self, module: Any, args: Any, kwargs: Any) -> Any:
        if torch.is_grad_enabled():
            self._handle.remove()
        return mapped(args, self._given), mapped(kwargs, self._given)

    def _given(self, value: torch.Tensor) -> torch.Tensor:
        return value.to(self._own) if value.dtype is self._carried else value


class Autocast(Knob):
    name = "autocast"

    def __init__(self) -> None:
        self._region: Any = None
        self._thread = 0
        """Where it was entered, and has to be left."""
        self._hooks: List[Any] = []
        self._patches = Patches()
        self._wrapped: List[Tuple[Any, Any]] = []
        self._checks: List[Any] = []
        self._seen: Optional[bool] = None
        """Whether a layer gave something of the type out; None where no layer of torch's was called by its hooks."""
        self._entered = False
        self._scaler: Any = None
        self._dtype = torch.bfloat16
        self._device = "cpu"
        self._loop_left = False

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        """`slow_bfloat16`: torch has no fast kernels for it here. It converts every operand, or computes without
        vectors, so that convolutions take many times as long."""
        fast = not device.startswith("cpu") or torch.ops.mkldnn._is_mkldnn_bf16_supported()
        return None if fast else {"slow_bfloat16": True}

    def apply(self, value: Any, context: GuestContext) -> None:
        self._dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}[value]
        self._device = context.device.split(":")[0]
        self._seen, self._entered = None, False
        for root in context.steps.roots:
            if is_compiled_in_place(root):
                self._wrap(root)
            else:
                self._hooks.append(root.register_forward_pre_hook(Hook(self._enter)))
            layers = [module for module in _uncompiled(root) if _is_matrix_layer(module)]
            self._checks += [layer.register_forward_hook(Hook(self._look)) for layer in layers[:_MOST_LAYERS]]
        # A method that is called in place of the model computes before it calls the first module, too.
        patch_methods(self._patches, context.steps, self._entering)
        context.steps.on_backward = self._leave
        context.steps.before_optimizer_step = self._before_optimizer_step
        if self._dtype is torch.float16:
            self._scaler = torch.amp.GradScaler(self._device)
            context.steps.gradient_for_backward = self._scale

    def before_step(self, context: GuestContext) -> None:
        self._leave()
        self._loop_left = False

    def loop_left(self, context: GuestContext) -> None:
        # A user's `with` stands around the training steps. An evaluation may need the model's own type, also one that
        # forgot to switch gradients off: NumPy, for one, has no bfloat16.
        self._leave()
        self._loop_left = True

    def timed_part_begins(self, context: GuestContext) -> None:
        self._remove(self._checks)

    def revert(self, context: GuestContext) -> None:
        self._leave()
        region, self._region = self._region, None
        if region is not None:
            _overdue.setdefault(self._thread, []).append(region)
        self._remove(self._hooks)
        self._patches.take_off()
        self._remove(self._checks)
        for root in context.steps.roots:
            if not is_compiled_in_place(root):
                _CarriedOver(root, self._dtype).watch()
        while self._wrapped:
            root, compiled = self._wrapped.pop()
            root._compiled_call_impl = compiled
        context.steps.on_backward = _leave_overdue if _overdue else None
        context.steps.before_optimizer_step = None
        context.steps.gradient_for_backward = None
        self._scaler = None

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        # A program may call the `forward` of its layers, past their hooks.
        return self._seen if self._entered else False

    def _enter(self, module: Any, args: Any) -> None:
        _leave_overdue()
        if self._region is None and torch.is_grad_enabled() and not self._loop_left:
            self._thread = get_ident()
            region: Any = torch.autocast(self._device, dtype=self._dtype)
            region.__enter__()
            self._region, self._entered = region, True

    def _entering(self, original: Any) -> Any:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._enter(None, args)
            return original(*args, **kwargs)

        return call

    def _wrap(self, root: Any) -> None:
        """A module that was compiled in place runs its hooks inside the graph, so autocast is entered before that."""
        compiled = root._compiled_call_impl

        def call(*args: Any, **kwargs: Any) -> Any:
            self._enter(root, args)
            return compiled(*args, **kwargs)

        root._compiled_call_impl = call
        self._wrapped.append((root, compiled))

    def _leave(self) -> None:
        if self._region is not None and self._thread == get_ident():
            region, self._region = self._region, None
            region.__exit__(None, None, None)

    def _look(self, module: Any, args: Any, output: Any) -> None:
        if isinstance(output, tuple) and output:
            output = output[0]  # A recurrent layer's state comes with it.
        if isinstance(output, torch.Tensor) and output.is_floating_point():
            if output.dtype is self._dtype:
                self._seen = True
            elif _is_of_torch(module):
                self._seen = bool(self._seen)

    def _scale(self, loss: torch.Tensor) -> torch.Tensor:
        return self._scaler.scale(torch.ones_like(loss, dtype=torch.float32)).to(loss.dtype)  # type: ignore[no-any-return]

    def _before_optimizer_step(self, optimizer: Any) -> None:
        self._leave()
        scaler = self._scaler
        if scaler is None or scaler._scale is None:
            return
        scaler.unscale_(optimizer)
        state = scaler._per_optimizer_states[id(optimizer)]
        if sum(found.item() for found in state["found_inf_per_device"].values()):
            # What GradScaler.step does on an overflow is to leave the step out; without gradients a step does nothing.
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None
        scaler.update()

    @staticmethod
    def _remove(hooks: List[Any]) -> None:
        for hook in hooks:
            hook.remove()
        hooks.clear()


KNOB = Autocast


def _leave_overdue() -> None:
    """Leave the contexts that this thread entered, if their window ended in another thread, which could not leave
    them."""
    while _overdue.get(get_ident()):
        _overdue[get_ident()].pop().__exit__(None, None, None)
    _overdue.pop(get_ident(), None)


def _uncompiled(root: Any) -> List[Any]:
    """The modules of `root` that are in no compiled graph."""
    compiled = {id(inner) for module in root.modules() if is_compiled(module) for inner in module.modules()}
    return [module for module in root.modules() if id(module) not in compiled]


def _is_of_torch(module: Any) -> bool:
    """Whether torch itself computes this layer. What other layers add to their product, as a bias of theirs, may be in
    the model's own type, and so what they give out."""
    return (getattr(type(module).forward, "__module__", "") or "").startswith("torch.")


def _is_matrix_layer(module: Any) -> bool:
    if isinstance(module, torch.jit.ScriptModule):
        return False  # It keeps its parameters elsewhere, and calls its layers without their hooks.
    if isinstance(module, torch.nn.RNNBase):
        return True
    weight = module._parameters.get("weight")
    return weight is not None and weight.dim() >= 2 and not isinstance(module, torch.nn.Embedding)
