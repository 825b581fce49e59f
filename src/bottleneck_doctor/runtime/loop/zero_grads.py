"""How the user's program clears gradients, seen until the loop is found: set to `None`, or filled with zeros."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Tuple

import torch

OWNERS: Tuple[Any, ...] = (torch.optim.Optimizer, torch.nn.Module)
"""Whose `zero_grad` is looked at. A class with its own calls one of theirs, or is none that is known."""


def fills(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bool:
    """Whether a call of `zero_grad` with these arguments, behind its owner, fills gradients with zeros."""
    return not (args[0] if args else kwargs.get("set_to_none", True))


def parameters_of(owner: Any) -> List[Any]:
    """Of an optimizer or a module."""
    if isinstance(owner, torch.nn.Module):
        return list(owner.parameters())
    return [parameter for group in owner.param_groups for parameter in group["params"]]


class ZeroGrads:
    """`called`: whether a call of torch's cleared gradients at all. `filled`: with zeros. `left`: some parameter got no
    gradient then before the optimizer's step. `in_buffers`: gradients lie in larger tensors."""

    def __init__(self) -> None:
        self.called = False
        self.filled = False
        self.left = False
        self.in_buffers = False
        self._put: List[Tuple[Any, Any, Any]] = []
        self._zeros: Dict[int, Tuple[Any, int]] = {}
        """Gradients that were filled with zeros, by the id of their parameter, and the number of their last change."""

    def install(self) -> None:
        for owner in OWNERS:
            original = vars(owner)["zero_grad"]
            looking = self._looking(original)
            self._put.append((owner, original, looking))
            owner.zero_grad = looking

    def stop(self) -> None:
        """Take the hooks off, and forget the gradients. What was seen stays."""
        while self._put:
            owner, original, looking = self._put.pop()
            if vars(owner).get("zero_grad") is looking:
                owner.zero_grad = original
        self._zeros.clear()

    def _looking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def zero_grad(owner: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(owner, *args, **kwargs)
            if self._put and not torch.compiler.is_compiling():
                try:
                    self._cleared(owner, fills(args, kwargs))
                except Exception:
                    pass  # An owner unlike any known: nothing is changed of what wasn't seen.
            return made

        return zero_grad

    def _cleared(self, owner: Any, filled: bool) -> None:
        self.called = True
        if not filled:
            return
        for parameter in parameters_of(owner):
            gradient = parameter.grad
            if gradient is not None:
                self.filled = True
                self.in_buffers = self.in_buffers or _is_part(gradient)
                self._zeros[id(parameter)] = gradient, gradient._version

    def step_begins(self, optimizer: Any) -> None:
        """An optimizer's step begins: what is all zeros still got no gradient."""
        if not self._zeros:
            return
        try:
            for parameter in parameters_of(optimizer):
                gradient, version = self._zeros.pop(id(parameter), (None, 0))
                if gradient is not None and parameter.grad is gradient and gradient._version == version:
                    self.left = True
        except Exception:
            self.left = True  # An optimizer unlike any known.

    def obstacle(self) -> str:
        """Why gradients can't be set to `None` in place of zeros, or need not; "" where they can."""
        if not self.called:
            return "the program does not clear gradients by `zero_grad`"
        if not self.filled:
            return "already on: gradients are set to `None`"
        if self.in_buffers:
            return "the gradients lie in a buffer that `None` would take them out of"
        if self.left:
            return "some parameter gets no gradient in a step: the optimizer moves it on by zeros, and not by `None`"
        return ""


def _is_part(tensor: Any) -> bool:
    return bool(
        tensor.layout is torch.strided and tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size()
    )


__all__ = ["OWNERS", "ZeroGrads", "fills", "parameters_of"]
