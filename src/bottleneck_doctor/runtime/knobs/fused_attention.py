"""`fused_attention`: attention that the user's code writes out as product, softmax and product is computed by torch's
one function for it (`_attention`). The effect is checked by the number of times that it was.

Only products that are written in functions which look like attention are put off, and only where nothing but a scale, a
mask, softmax and dropout comes before the second product.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.patches import Patches
from ..process.source_trees import SourceTrees, first_line, functions
from ..process.user_code import is_users_file
from ..process.uses import functions_in, functions_of, globals_of
from ..wire.equations import is_product
from . import GuestContext, Knob, Refused
from ._attention import PRODUCTS, Pending, Unfit
from ._modules import is_compiled

NAME = "fused_attention"
_TWICE = 2
"""Products in attention: queries with keys, and weights with values."""

ONE_FUNCTION = "scaled_dot_product_attention"
_SOFTMAX = re.compile(r"(?i)(?<!log_)(?<!log)softmax")
"""What programs call theirs, as a function or a module."""

Place = Tuple[str, int]
"""A file, as its code names it, and the line with which a function begins."""


class Written(NamedTuple):
    """A function that looks like attention. `line`: that of its softmax. `chooses`: it calls torch's function as well,
    where that can do it."""

    place: Place
    line: int
    chooses: bool


class FusedAttention(Knob):
    name = NAME

    def __init__(self) -> None:
        self._fused = 0
        self._places: Set[Place] = set()
        self._patches = Patches()

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        modules = [module for root in steps.roots for module in root.modules()]
        found = list(_written_out({type(each) for each in modules}))
        if not found:
            return None
        if any(map(is_compiled, modules)):
            return {"obstacle": "the model is compiled, and its products are not called one by one"}
        written = [each for each in found if not each.chooses]
        if not written:
            return {"obstacle": "already on: the program calls torch's own attention where that can be used"}
        steps.noted[NAME] = {each.place for each in written}
        return {"obstacle": "", "places": sorted({(os.path.abspath(each.place[0]), each.line) for each in written})}

    def apply(self, value: Any, context: GuestContext) -> None:
        if not value:
            return
        self._places = context.steps.noted.get(NAME) or set()
        if not self._places:
            raise Refused("no attention was found in the program's own functions")
        einsum = torch.einsum

        def instead(original: Callable[..., Any]) -> Callable[..., Any]:
            return self._einsum(original) if original is einsum else self._product(original)

        for owner, name in [*_imported({path for path, _ in self._places}), *_OWNERS]:
            self._patches.put(owner, name, instead)

    def revert(self, context: GuestContext) -> None:
        self._patches.take_off()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._fused > 0 if value else None

    # -- the products ------------------------------------------------------------------------------------------------

    def _product(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def product(one: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) == 1 and not kwargs:
                (other,) = args
                if isinstance(one, Pending):
                    return self._second(one, other, lambda: original(one, other))
                if _may_be_scores(one, other) and self._is_written_out(get_frame(1)):
                    return Pending.of(one, other.transpose(-2, -1), lambda: original(one, other))
            return original(one, *args, **kwargs)

        return product

    def _einsum(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def einsum(equation: Any, *operands: Any) -> Any:
            if len(operands) == _TWICE and isinstance(equation, str):
                one, other = operands
                if isinstance(one, Pending):
                    if is_product(equation, turned=False):
                        return self._second(one, other, lambda: original(equation, one, other))
                elif (
                    is_product(equation, turned=True)
                    and _may_be_scores(one, other, turned=True)
                    and self._is_written_out(get_frame(1))
                ):
                    return Pending.of(one, other, lambda: original(equation, one, other))
            return original(equation, *operands)

        return einsum

    def _second(self, weights: Pending, values: Any, written: Callable[[], Any]) -> Any:
        if weights.computed is None:
            try:
                made = weights.attended(values)
            except Unfit:
                return written()
            self._fused += 1
            return made
        return written()

    def _is_written_out(self, frame: Any) -> bool:
        code = frame.f_code
        return (code.co_filename, code.co_firstlineno) in self._places and not _transformed()


KNOB = FusedAttention

_OWNERS: Tuple[Tuple[Any, str], ...] = (
    (torch, "matmul"),
    (torch, "bmm"),
    (torch, "einsum"),
    (torch.Tensor, "matmul"),
    (torch.Tensor, "bmm"),
    (torch.Tensor, "__matmul__"),
)
"""What computes a product, by the names under which programs call it."""


def _imported(files: Set[str]) -> Iterator[Tuple[Any, str]]:
    """The same, of the modules of these files that took it out of torch by name (`from torch import einsum`)."""
    paths = {os.path.abspath(each) for each in files}
    originals = {id(getattr(owner, name)) for owner, name in _OWNERS if owner is torch}
    for module in list(sys.modules.values()):
        # Not by `getattr`: some modules import others once they are asked for anything.
        names = getattr(module, "__dict__", {})
        path = names.get("__file__")
        if isinstance(path, str) and os.path.abspath(path) in paths:
            for name, value in list(names.items()):
                if id(value) in originals:
                    yield module, name


def _transformed() -> bool:
    """Whether torch compiles, or transforms a function (`torch.func.vmap`): then tensors are not what they seem."""
    functorch = getattr(torch._C, "_functorch", None)
    return torch.compiler.is_compiling() or (functorch is not None and functorch.peek_interpreter_stack() is not None)


def _may_be_scores(one: Any, other: Any, *, turned: bool = False) -> bool:
    """Whether a product may be that of queries and keys. `turned`: the second one's rows are the keys."""
    plain = type(one) is torch.Tensor and type(other) is torch.Tensor and one.dim() == other.dim() >= 3
    if not plain or one.dtype != other.dtype or not one.is_floating_point() or one.device != other.device:
        return False
    inner: int = other.shape[-1 if turned else -2]
    return tuple(one.shape[:-2]) == tuple(other.shape[:-2]) and int(one.shape[-1]) == inner


# -- which functions ---------------------------------------------------------------------------------------------------


def _written_out(kinds: Set[type]) -> Iterator[Written]:
    """The functions that look like attention, in the files where the user's modules and what they call are defined, but
    for the methods of modules that the model does not have."""
    trees = SourceTrees()
    files: Dict[str, Dict[str, Any]] = {}
    for kind in kinds:
        for function in functions_of(kind):
            if is_users_file(function.__code__.co_filename):
                for each in (function, *(each for value in globals_of(function) for each in functions_in(value))):
                    files.setdefault(each.__code__.co_filename, each.__globals__)
    for file, names in files.items():
        tree = trees.tree(file)
        unused = set() if tree is None else set(_of_unused_modules(tree, names, kinds))
        for node in () if tree is None else functions(tree):
            if node in unused:
                continue
            calls = list(_calls(node))
            line = _softmax_between_products(node, calls)
            if line is not None:
                yield Written((file, first_line(node)), line, any(name == ONE_FUNCTION for _, name in calls))


def _of_unused_modules(tree: Any, names: Dict[str, Any], kinds: Set[type]) -> Iterator[Any]:
    """The methods of the modules of a file, whose globals are `names`, that no module of these kinds is."""
    for node in tree.body:
        made = names.get(node.name) if isinstance(node, ast.ClassDef) else None
        if isinstance(made, type) and _is_unused(made, kinds):
            yield from functions(node)


def _is_unused(made: type, kinds: Set[type]) -> bool:
    return issubclass(made, torch.nn.Module) and not any(issubclass(kind, made) for kind in kinds)


def _softmax_between_products(function: Any, calls: List[Tuple[ast.Call, str]]) -> Optional[int]:
    """The line of a function's softmax that a product follows, if it has two products and such a softmax."""
    products = [
        node.end_lineno or node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    ]
    products += [call.end_lineno or call.lineno for call, name in calls if name in PRODUCTS]
    softmaxes = [call.lineno for call, name in calls if name == "attend" or _SOFTMAX.search(name)]
    if len(products) < _TWICE or any(name == "apply" for _, name in calls):
        # A function of autograd's own would take what is not computed yet, and lose its gradient.
        return None
    return next((line for line in sorted(softmaxes) if any(each >= line for each in products)), None)


def _calls(function: Any) -> Iterator[Tuple[ast.Call, str]]:
    """The calls in a function, and the last name of what they call."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield node, node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
