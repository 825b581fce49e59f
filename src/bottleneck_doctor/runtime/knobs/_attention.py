"""Attention that a program writes out as product, softmax and product, computed by torch's one function for it.

The first product is not computed at once. What stands for it notes what is done to it: a scale, a mask, softmax,
dropout. If the second product follows, torch's function gets all of it. If anything else is asked of it, what the
program wrote is computed to the letter, and the program goes on with that.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.nn import functional

SCALES = frozenset(("div", "true_divide", "divide", "__truediv__"))
MULTIPLIES = frozenset(("mul", "multiply", "__mul__", "__rmul__"))
ADDS = frozenset(("add", "__add__", "__radd__"))
PRODUCTS = frozenset(("matmul", "__matmul__", "bmm", "einsum"))
_IN_PLACE = {"__itruediv__": "__truediv__", "__imul__": "__mul__", "__iadd__": "__add__"}
_ASKED = frozenset(("size", "dim", "ndimension", "numel", "__len__", "is_floating_point", "__get__"))
"""What is known of a product before it is computed. `__get__` reads an attribute; which one is looked at."""
_ATTRIBUTES = frozenset(("shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "layout"))
MASKED = -1e3
"""What is filled with this or less counts for nothing after a softmax."""


class Unfit(Exception):
    """What is done is not a part of attention that torch's function knows."""


class Pending(torch.Tensor):
    """A product of queries and keys that was not computed yet, with all that is to be done to it.

    `written`: the calls that the program made, to be made again if it needs the values. `weighed`: softmax came.
    """

    queries: torch.Tensor
    keys: torch.Tensor
    scale: float
    mask: Optional[torch.Tensor]
    filled: Optional[float]
    """What the program filled its masked places with; None where it filled none."""
    weighed: bool
    dropout: float
    written: List[Tuple[Callable[..., Any], Tuple[Any, ...], Dict[str, Any]]]
    computed: Optional[torch.Tensor]

    @staticmethod
    def of(queries: torch.Tensor, keys: torch.Tensor, product: Callable[[], torch.Tensor]) -> Pending:
        """`keys`: as many rows as the product has columns. `product` computes it as written."""
        made = Pending._new(queries, keys)
        made.written = [(lambda _: product(), (), {})]
        return made

    @staticmethod
    def _new(queries: torch.Tensor, keys: torch.Tensor) -> Pending:
        made: Any = torch.Tensor._make_wrapper_subclass(
            Pending,
            (*queries.shape[:-1], keys.shape[-2]),
            dtype=queries.dtype,
            device=queries.device,
            requires_grad=torch.is_grad_enabled() and (queries.requires_grad or keys.requires_grad),
        )
        made.queries, made.keys, made.scale, made.mask, made.filled = queries, keys, 1.0, None, None
        made.weighed, made.dropout, made.computed = False, 0.0, None
        return made  # type: ignore[no-any-return]

    def values(self) -> torch.Tensor:
        """What the program wrote, computed as it wrote it."""
        if self.computed is None:
            value: Any = None
            for function, args, kwargs in self.written:
                value = function(value, *args, **kwargs)
            self.computed = value
        return self.computed

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _ASKED and (name != "__get__" or _attribute(func) in _ATTRIBUTES):
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        own = args[0] if args and isinstance(args[0], Pending) else None
        if own is not None and own.computed is None:
            try:
                return own.then(name, func, args[1:], kwargs)
            except Unfit:
                pass
        elif name in MULTIPLIES | ADDS:
            other = args[1] if len(args) > 1 else None
            if isinstance(other, Pending) and other.computed is None:
                try:  # A number or a tensor in front: the same, the other way round.
                    return other.then(name, lambda value, *more: func(more[0], value), (args[0],), kwargs)
                except Unfit:
                    pass
        return func(*_computed(args), **_computed(kwargs))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """For what comes by no function of Python's, gradients would end here: better no window than a false one."""
        raise NotImplementedError(f"{func} needs what the program's attention had not computed yet")

    # -- what may be done to it --------------------------------------------------------------------------------------

    def then(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Pending:
        """This, after one more call. Raises `Unfit`, with nothing changed, where that ends what can be put off."""
        in_place = name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))
        plain = _IN_PLACE.get(name, name[:-1] if in_place and name not in _IN_PLACE else name)
        made = self if in_place else self._copy()
        kept = dict(vars(made))
        try:
            made._take(plain, args, kwargs)
        except Unfit:
            vars(made).update(kept)
            raise
        made.written = [*self.written, (func, args, kwargs)]
        return made

    def _copy(self) -> Pending:
        made = Pending._new(self.queries, self.keys)
        made.scale, made.mask, made.filled = self.scale, self.mask, self.filled
        made.weighed, made.dropout = self.weighed, self.dropout
        return made

    def _take(self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        if name in SCALES | MULTIPLIES and len(args) == 1 and not kwargs:
            factor = _number(args[0])
            if self.weighed or not factor:
                raise Unfit
            factor = 1 / factor if name in SCALES else factor
            if self.mask is not None:
                # What was filled in is scaled, too, and may then hide less. So would be a mask that was added.
                if self.filled is None or factor < 0 or self.filled * factor > MASKED:
                    raise Unfit
                self.filled *= factor
            self.scale *= factor
        elif name == "masked_fill" and not self.weighed:
            given = {**dict(zip(("mask", "value"), args)), **kwargs}
            mask, value = given.get("mask"), _number(given.get("value"))
            if self.mask is not None or not isinstance(mask, torch.Tensor) or value > MASKED:
                raise Unfit
            self.mask, self.filled = mask.logical_not(), value
        elif name in ADDS and len(args) == 1 and not kwargs and not self.weighed:
            mask = args[0]
            if self.mask is not None or type(mask) is not torch.Tensor or mask.dtype != self.queries.dtype:
                raise Unfit
            self.mask = mask
        elif name == "softmax" and not self.weighed:
            given = {**dict(zip(("dim",), args)), **kwargs}
            dtype = given.get("dtype")
            if given.get("dim") not in (-1, self.queries.dim() - 1) or dtype not in (None, self.queries.dtype):
                raise Unfit
            self.weighed = True
        elif name == "dropout" and self.weighed and not self.dropout:
            given = {**dict(zip(("p", "training"), args)), **kwargs}
            self.dropout = float(given.get("p", 0.5)) if given.get("training", True) else 0.0
        elif not (name in ("to", "type") and args == (self.queries.dtype,) and not kwargs):
            raise Unfit

    def attended(self, values: Any) -> torch.Tensor:
        """The weights' product with values, by torch's function. Raises `Unfit` where it can't take them."""
        fits = type(values) is torch.Tensor and values.dtype == self.queries.dtype
        if not self.weighed or not fits or values.shape[:-2] != self.keys.shape[:-2]:
            raise Unfit
        if values.shape[-2] != self.keys.shape[-2]:
            raise Unfit
        return functional.scaled_dot_product_attention(
            self.queries, self.keys, values, attn_mask=self.mask, dropout_p=self.dropout, scale=self.scale
        )


def _attribute(func: Any) -> str:
    return str(getattr(getattr(func, "__self__", None), "__name__", ""))


def _number(value: Any) -> float:
    """A number, also one in a tensor that lies on the host. Raises `Unfit` for anything else."""
    if isinstance(value, torch.Tensor) and value.dim() == 0 and value.device.type == "cpu" and not value.requires_grad:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise Unfit
    return float(value)


def _computed(value: Any) -> Any:
    """A call's arguments, with what is pending computed."""
    if isinstance(value, Pending):
        return value.values()
    if type(value) in (list, tuple):
        return type(value)(_computed(each) for each in value)
    if type(value) is dict:
        return {name: _computed(each) for name, each in value.items()}
    return value
