"""Which modules a training loop calls, seen by a hook on all modules until the loop is found."""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from ..process.originals import now
from ..process.user_code import Line, sites_of, user_lines
from ..wire.messages import Site

_MOST_CALLED = 4096

Called = Tuple[Any, List[Line], str, Dict[str, Any], bool]
"""A module that was called, from which lines of the user's, from the innermost out, the type that autocast was on for,
what `observe` saw, and whether it was given a tensor that needs a gradient."""


class Callers:
    """Modules called with gradients enabled since `clear`. `roots`: the outermost of those that train, as far as known.
    `forward_sites`, `autocast` and `own` are of the one that a step called first, where it did. That is the last step
    of which this is known: before training, somebody may have tried a model out, or built it, elsewhere."""

    def __init__(self) -> None:
        self.roots: List[Any] = []
        self.forward_sites: List[Site] = []
        """The user's lines that call it, from the innermost out."""
        self.autocast = ""
        self.own: Optional[Dict[str, Any]] = None
        """What `observe` saw there; None where no root was seen to be called."""
        self.observe: Callable[[], Dict[str, Any]] = dict
        """Looks at what the user has set where a model computes. Must not raise."""
        self.inputs: Optional[Callable[[Any], None]] = None
        """Told what each module is given that is called with gradients on. May raise: then it is told no more."""
        self.in_backward = False
        """True during a backward pass: modules are then called to compute again, and not where the user wrote it."""
        self._without_gradients: Dict[int, float] = {}
        """When each module was first called with gradients off, by its id."""
        self._calls: Dict[int, int] = {}
        """How often each module was called, by its id, as long as there is a hook on all modules."""
        self._called: Dict[int, Called] = {}
        """Modules that were called, by their ids, held weakly: what the user lets go before training begins is gone."""
        self._seen: Dict[int, Any] = {}
        self._first: Any = None
        """The module that `forward_sites` and `own` are of."""
        self._pictures: Dict[int, bool] = {}
        """Whether what modules were given first was a tensor of four dimensions when they were seen last, by their
        ids."""
        self._tells_of_before = False
        """Whether what is known also comes from before the first optimizer step, and from nothing later."""
        self._hook: Any = None
        self._compiled_hooks: List[Any] = []

    def install(self) -> None:
        self._hook = torch.nn.modules.module.register_module_forward_pre_hook(self._module_called)
        self._keep_hook_unseen()
        self._patch_compile()

    def stop(self) -> None:
        """Take the hooks off, and forget what was called."""
        self._drop_hook()
        for hook in self._compiled_hooks:
            hook.remove()
        self._compiled_hooks.clear()
        self.clear()

    def clear(self) -> None:
        self._called.clear()
        self._seen.clear()

    def look_again(self) -> None:
        """Where modules are called from now on counts, as far as they are called again."""
        self._seen.clear()

    def forget(self) -> None:
        """Start over, in a forked process. Hooks stay."""
        fresh = vars(Callers())
        for name in ("_hook", "_compiled_hooks", "observe"):
            del fresh[name]
        self.__dict__.update(fresh)

    def _patch_compile(self) -> None:
        original = torch.nn.Module.compile

        @functools.wraps(original)
        def compile_(module: Any, *args: Any, **kwargs: Any) -> Any:
            self._drop_hook()
            return original(module, *args, **kwargs)

        torch.nn.Module.compile = compile_  # type: ignore[method-assign, assignment]

    def _drop_hook(self) -> None:
        """Take the hook on all modules off. A compiled graph is guarded by such hooks, and compiled again without."""
        hook, self._hook = self._hook, None
        if hook is not None:
            hook.remove()

    def _keep_hook_unseen(self) -> None:
        """Hide the hook when torch looks for hooks on all modules to warn about: the user did not set this one.

        torch asks this only for that warning.
        """
        modules = torch.nn.modules.module
        original = getattr(modules, "_has_any_global_hook", None)
        if original is None:
            return

        @functools.wraps(original)
        def has_any() -> bool:
            hook = self._hook
            own = None if hook is None else modules._global_forward_pre_hooks.pop(hook.id, None)
            try:
                return bool(original())
            finally:
                if own is not None:
                    modules._global_forward_pre_hooks[hook.id] = own

        modules._has_any_global_hook = has_any

    def _module_called(self, module: Any, args: Any) -> None:
        if torch.compiler.is_compiling():
            return  # What is being traced must not become a part of the user's graph.
        if self._hook is not None and type(module).__name__ == "OptimizedModule":
            self._drop_hook()
            # A function, which a copy of the model shares; of a method its object would be copied along.
            hook = module.register_forward_pre_hook(lambda called, given: self._module_called(called, given))
            self._compiled_hooks.append(hook)
        if self._hook is not None and (id(module) in self._calls or len(self._calls) < _MOST_CALLED):
            self._calls[id(module)] = self._calls.get(id(module), 0) + 1
        if not torch.is_grad_enabled():
            # An evaluation, or a rollout: where that calls its model is no part of a step.
            if len(self._without_gradients) < _MOST_CALLED:
                self._without_gradients.setdefault(id(module), now())
            return
        if self.inputs is not None:
            self._tell_inputs(args)
        seen = self._seen.get(id(module))
        if (seen is not None and seen() is module) or len(self._called) > _MOST_CALLED:
            return
        self._seen[id(module)] = reference = weakref.ref(module)
        lines = [] if self.in_backward else user_lines(3)
        self._called.pop(id(module), None)
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        learns = any(each.requires_grad for each in tensors)
        if args:
            self._pictures[id(module)] = isinstance(args[0], torch.Tensor) and args[0].dim() == 4
        self._called[id(module)] = (reference, lines, _autocast_of(module), self.observe(), learns)

    def take_pictures(self) -> Optional[bool]:
        """Whether the root that a step calls first is given a tensor of four dimensions before all else; None where it
        was not seen to be given anything without a name."""
        first = next(iter(self.roots), None) if self._first is None else self._first
        return self._pictures.get(id(first))

    def _tell_inputs(self, args: Any) -> None:
        told, self.inputs = self.inputs, None
        with contextlib.suppress(Exception):
            if told is not None:
                told(args)
                self.inputs = told

    def stood_still(self, seconds: float) -> None:
        """This process was held for so long, just now: as if all that was seen before had happened later."""
        if seconds:
            self._without_gradients = {key: at + seconds for key, at in self._without_gradients.items()}

    def first_without_gradients(self) -> Optional[float]:
        """When a root was first called with gradients off; None where that never happened."""
        return min((at for at in (self._without_gradients.get(id(root)) for root in self.roots) if at), default=None)

    def calls(self) -> int:
        """How often the roots were called, with gradients or without. It stands still where something is compiled."""
        return sum(self._calls.get(id(root), 0) for root in self.roots)

    def find(self, optimizers: Sequence[Any], *, within: bool = False) -> None:
        """Add the outermost of the modules called since the last time that hold parameters of the optimizers. If there
        are none, what is optimized may be given to a model, as a picture that is to take on a style. `within`: since
        the last time, no step of the training has begun, as between the two optimizers of a GAN."""
        if self._tells_of_before:
            # Before the first step, a model may have been tried out under an autocast that training has not.
            self.autocast, self._tells_of_before = "", False
        elif not self.roots:
            self._tells_of_before = True
        held = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
        alive = self._alive()
        owners = [entry for entry in alive if any(id(p) in held for p in entry[0].parameters())]
        if not owners and not self.roots:
            owners = [entry for entry in _outermost(alive) if entry[4]]
        self._add(owners, within=within)

    def find_without_optimizer(self) -> None:
        """Add the outermost of the modules called since the last time that hold parameters to train."""
        self._add([entry for entry in self._alive() if any(p.requires_grad for p in entry[0].parameters())])

    def _alive(self) -> List[Called]:
        called = [(reference(), *seen) for reference, *seen in self._called.values()]
        return [entry for entry in called if entry[0] is not None]

    def _add(self, owners: List[Called], *, within: bool = False) -> None:
        outermost = _outermost(owners)
        self.roots += [entry[0] for entry in outermost if all(entry[0] is not root for root in self.roots)]
        if outermost and not (within and self.forward_sites):
            self._first, lines, _, own, _ = outermost[0]
            self.forward_sites, self.own = sites_of(lines) or self.forward_sites, own
        self.autocast = next((entry[2] for entry in owners if entry[2]), self.autocast)
        self.clear()


def _outermost(called: List[Called]) -> List[Called]:
    """Those that have parameters, and are part of no other one."""
    owners = [entry for entry in called if next(iter(entry[0].parameters()), None) is not None]
    inside = {id(child) for entry in owners for child in entry[0].modules() if child is not entry[0]}
    return [entry for entry in owners if id(entry[0]) not in inside]


def _autocast_of(module: Any) -> str:
    """The type to which autocast casts where this module computes; "" where it is off, or unknown there."""
    kind = _device_type(module)
    try:
        if kind and torch.is_autocast_enabled(kind):
            return str(torch.get_autocast_dtype(kind)).replace("torch.", "")
    except RuntimeError:  # As on the `meta` device, where shapes are tried out.
        pass
    return ""


def _device_type(module: Any) -> str:
    for parameter in module.parameters():  # A compiled model, like many others, has none but its children's.
        return str(parameter.device.type)
    return ""
