"""What a step is: which events the training loop shows, which loader trains, and the period of the work.

Events come in by hooks that stay for the life of the process and cost a few hundred nanoseconds each. `Steps` keeps
what was seen and, once it is enough, says what the loop looks like by the ladder: optimizer step, `GradScaler.step`,
backward, batches.
"""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from collections import deque
from types import FrameType
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .messages import Site
from .originals import get_frame, now

Signature = Tuple[Any, ...]
"""What happened between one batch and the next: optimizer steps by optimizer, scaler steps, backwards."""

MINIMUM_STEPS = 6
"""Fewer steps than this say nothing about a period."""
PATIENCE_BATCHES = 40
PATIENCE_SECONDS = 15.0
"""How long a loop may go on without an optimizer step before a lower rung of the ladder is taken."""

_LIBRARY_MARKS = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))
_STDLIB_FOLDER = os.path.dirname(os.path.abspath(os.__file__))


def find_period(signatures: Sequence[Signature], *, longest: int = 64) -> Optional[int]:
    """The smallest p after which the sequence repeats, seen at least three times over at its end; None without one.

    The first entries may be unlike the rest (warm-up): only the last 3·p (at least `MINIMUM_STEPS`) are looked at.
    """
    count = len(signatures)
    for period in range(1, min(longest, count // 3) + 1):
        span = max(3 * period, MINIMUM_STEPS)
        if count < span:
            return None
        tail = signatures[count - span :]
        if all(tail[i] == tail[i - period] for i in range(period, span)):
            return period
    return None


def is_users_file(name: str) -> bool:
    """Whether a file, as code objects name it, is the user's own: not ours, nor torch's or another library's."""
    return not (
        name.startswith(_OWN_FOLDER)
        or name.startswith("<")
        or any(mark in name for mark in _LIBRARY_MARKS)
        or name.startswith(_STDLIB_FOLDER)
    )


def user_site(depth: int = 1) -> Optional[Site]:
    """The innermost line of the user's own code on the stack: not ours, nor torch's or another library's."""
    frame: Optional[FrameType] = get_frame(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users_file(name):
            return Site(os.path.abspath(name), frame.f_lineno)
        frame = frame.f_back
    return None


def likeness(loader: Any) -> Optional[Tuple[Any, ...]]:
    """What a loader and the one made in its place for the next epoch share; None where nobody saw it being made."""
    site = loader.__dict__.get("_doctor_site")
    if site is None:
        return None
    try:
        length = len(loader._index_sampler)
    except (TypeError, NotImplementedError, AttributeError):
        length = None
    kinds = (type(loader), type(loader.dataset), type(loader.sampler))
    return (site, *kinds, loader.batch_size, loader.drop_last, length)


class LoaderRecord:
    """What one loader did: batches, waits, and how often an optimizer step followed."""

    def __init__(self, loader: Any) -> None:
        self.loader = weakref.ref(loader)
        self.likeness = likeness(loader)
        self.made_anew = False
        self.batches = 0
        self.credited = 0
        self.wait_total = 0.0
        self.samples: List[float] = []
        self.epoch_lengths: List[int] = []
        self.in_epoch = 0
        self.requests: Deque[Tuple[float, float, Signature]] = deque(maxlen=512)

    def epoch_ended(self) -> None:
        """Note how many batches the epoch had, however it ended."""
        if self.in_epoch:
            self.epoch_lengths.append(self.in_epoch)
        self.in_epoch = 0


class Watch:
    """Told where an optimizer's step begins and ends, while a window wants to know."""

    def optimizer_begins(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """May return other `(args, kwargs)` for the step; None leaves them."""

    def optimizer_ended(self) -> None:
        """The step is done, before anybody else is told of it."""


class Steps:
    """Counts events and finds the loop. `on_optimizer_step` and `on_backward` are told of each such event."""

    def __init__(self) -> None:
        self.optimizer_steps = 0
        self.optimizer_ended_at = 0.0
        self.scaler_steps = 0
        self.backwards = 0
        self.batches = 0
        self.on_optimizer_step: Optional[Callable[[Any], None]] = None
        self.before_optimizer_step: Optional[Callable[[Any], None]] = None
        self.on_backward: Optional[Callable[[], None]] = None
        self.watch: Optional[Watch] = None
        self.backward_site: Optional[Site] = None
        self.gradient_for_backward: Optional[Callable[[Any], Any]] = None
        self.records: Dict[int, LoaderRecord] = {}
        self.optimizers: List[Any] = []
        self.user_scaler = False
        self._optimizer_order: Dict[int, int] = {}
        self._since_request: Dict[int, List[Any]] = {}
        self._lately: List[int] = []
        self.bare_steps: Deque[Tuple[float, Signature]] = deque(maxlen=512)
        self._steps_without_batch = 0
        self.started: Optional[float] = None
        """When the first batch was asked for, or the first step made without one."""
        self._called: List[Tuple[Any, Optional[Site], str]] = []
        """Modules that were called, held weakly: what the user lets go before training begins is gone."""
        self._called_seen: Dict[int, Any] = {}
        self._observing = False
        self._forward_hook: Any = None
        self._compiled_hooks: List[Any] = []
        self.roots: List[Any] = []
        self.forward_site: Optional[Site] = None
        self.autocast_seen = ""

    # -- hooks -------------------------------------------------------------------------------------------------------

    def install(self) -> None:
        """Hook optimizers, scalers, backward and, until the loop is found, module calls."""
        register_optimizer_step_pre_hook(self._optimizer_begins)
        register_optimizer_step_post_hook(self._optimizer_ended)
        self._patch_backward()
        self._patch_scaler()
        self._observing = True
        self._forward_hook = torch.nn.modules.module.register_module_forward_pre_hook(self._module_called)
        self._keep_hook_unseen()
        self._patch_compile()

    def _patch_compile(self) -> None:
        original = torch.nn.Module.compile

        @functools.wraps(original)
        def compile_(module: Any, *args: Any, **kwargs: Any) -> Any:
            self._drop_forward_hook()
            return original(module, *args, **kwargs)

        torch.nn.Module.compile = compile_  # type: ignore[method-assign, assignment]

    def _drop_forward_hook(self) -> None:
        """Take the hook on all modules off. A compiled graph is guarded by such hooks, and compiled again without."""
        hook, self._forward_hook = self._forward_hook, None
        if hook is not None:
            hook.remove()

    def _keep_hook_unseen(self) -> None:
        """A compiled model warns of every hook on all modules: of this one the user must not hear, as it is not theirs.

        The question is asked for nothing but that warning.
        """
        modules = torch.nn.modules.module
        original = getattr(modules, "_has_any_global_hook", None)
        if original is None:
            return

        @functools.wraps(original)
        def has_any() -> bool:
            hook = self._forward_hook
            own = None if hook is None else modules._global_forward_pre_hooks.pop(hook.id, None)
            try:
                return bool(original())
            finally:
                if own is not None:
                    modules._global_forward_pre_hooks[hook.id] = own

        modules._has_any_global_hook = has_any

    def forget(self) -> None:
        """Begin anew, in a process that was forked from the one that saw all this. Hooks stay."""
        fresh = vars(Steps())
        for name in ("on_optimizer_step", "_observing", "_forward_hook", "_compiled_hooks"):
            del fresh[name]
        self.__dict__.update(fresh)

    def _optimizer_begins(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        changed = self.watch.optimizer_begins(args, kwargs) if self.watch is not None else None
        if self.before_optimizer_step is not None:
            self.before_optimizer_step(optimizer)
        return changed

    def _optimizer_ended(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.optimizer_steps += 1
        self.optimizer_ended_at = now()
        if self.watch is not None:
            self.watch.optimizer_ended()
        if self._observing:
            self._observe_optimizer(optimizer)
        if self.on_optimizer_step is not None:
            self.on_optimizer_step(optimizer)

    def _patch_backward(self) -> None:
        original = torch.autograd.backward

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            self.backwards += 1
            if self._observing:
                self.backward_site = user_site(2) or self.backward_site
                self._credit("backward", 1)
            if self.on_backward is not None:
                self.on_backward()
            if self.gradient_for_backward is not None:
                args, kwargs = self._with_gradient(args, kwargs)
            return original(*args, **kwargs)

        torch.autograd.backward = backward

    def _with_gradient(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        assert self.gradient_for_backward is not None
        tensors = args[0] if args else kwargs.get("tensors")
        given = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
        if given is None and isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
            gradient = self.gradient_for_backward(tensors)
            if len(args) > 1:
                return (args[0], gradient, *args[2:]), kwargs
            return args, {**kwargs, "grad_tensors": gradient}
        return args, kwargs

    def _patch_scaler(self) -> None:
        scaler = torch.amp.GradScaler
        original = scaler.step

        @functools.wraps(original)
        def step(scaler_self: Any, *args: Any, **kwargs: Any) -> Any:
            self.scaler_steps += 1
            if self._observing and scaler_self.is_enabled():
                self.user_scaler = True
                self._credit("scaler", 1)
            return original(scaler_self, *args, **kwargs)

        scaler.step = step  # type: ignore[method-assign, assignment]  # patched in place, as frameworks expect

    # -- observation, until the loop is found ------------------------------------------------------------------------

    def stop_observing(self) -> None:
        """Take the costlier hooks away; counting goes on."""
        self._observing = False
        self._drop_forward_hook()
        for hook in self._compiled_hooks:
            hook.remove()
        self._compiled_hooks.clear()
        self._called.clear()
        self._called_seen.clear()

    def batch_delivered(self, loader: Any, requested: float, delivered: float, samples: float) -> None:
        """A loader handed out a batch that was asked for at `requested` (seconds)."""
        self.batches += 1
        self.started = requested if self.started is None else self.started
        self._steps_without_batch = 0
        key = id(loader)
        record = self.records.get(key)
        if record is None or record.loader() is not loader:
            record = self.records[key] = self._predecessor(loader, key) or LoaderRecord(loader)
        record.batches += 1
        record.wait_total += delivered - requested
        record.samples.append(samples)
        del record.samples[:-64]
        events = tuple(self._since_request.pop(key, ()))
        record.requests.append((requested, delivered - requested, events))
        self._lately.append(key)

    def _predecessor(self, loader: Any, key: int) -> Optional[LoaderRecord]:
        """The record of a loader that is gone and that this one was made in place of, as some do for every epoch."""
        alike = likeness(loader)
        for old, record in self.records.items():
            if alike is not None and record.likeness == alike and record.loader() is None:
                del self.records[old]
                record.loader = weakref.ref(loader)
                record.made_anew = True
                self._since_request[key] = self._since_request.pop(old, [])
                self._lately = [key if each == old else each for each in self._lately]
                return record
        return None

    def _credit(self, kind: str, identity: Any) -> None:
        for key in self.records:
            self._since_request.setdefault(key, []).append((kind, identity))

    def _observe_optimizer(self, optimizer: Any) -> None:
        order = self._optimizer_order.setdefault(id(optimizer), len(self._optimizer_order))
        if order == len(self.optimizers):
            self.optimizers.append(optimizer)
        self.started = now() if self.started is None else self.started
        self._credit("optimizer", order)
        for key in set(self._lately):
            self.records[key].credited += 1
        self._lately.clear()
        self._steps_without_batch += 1
        self.bare_steps.append((now(), (order,)))
        if self.optimizer_steps <= MINIMUM_STEPS:
            self._find_roots()

    def _module_called(self, module: Any, args: Any) -> None:
        if torch.compiler.is_compiling():
            return  # What is being traced must not become a part of the user's graph.
        if self._forward_hook is not None and type(module).__name__ == "OptimizedModule":
            self._drop_forward_hook()
            # A function, which a copy of the model shares; of a method its object would be copied along.
            hook = module.register_forward_pre_hook(lambda called, given: self._module_called(called, given))
            self._compiled_hooks.append(hook)
        seen = self._called_seen.get(id(module))
        if (seen is not None and seen() is module) or len(self._called) > 4096:
            return
        if not torch.is_grad_enabled():
            return  # An evaluation, perhaps before training begins: where that calls its model is no part of a step.
        self._called_seen[id(module)] = reference = weakref.ref(module)
        self._called.append((reference, user_site(3), _autocast_of(module)))

    def _find_roots(self) -> None:
        """Of the modules called since the last step, the outermost that hold the optimizers' parameters."""
        held = {id(p) for o in self.optimizers for group in o.param_groups for p in group["params"]}
        called = [(reference(), site, autocast) for reference, site, autocast in self._called]
        owners = [
            entry for entry in called if entry[0] is not None and any(id(p) in held for p in entry[0].parameters())
        ]
        inside = {id(child) for entry in owners for child in entry[0].modules() if child is not entry[0]}
        for module, site, _ in owners:
            if id(module) not in inside and all(module is not root for root in self.roots):
                self.roots.append(module)
                self.forward_site = self.forward_site or site
        self.autocast_seen = next((entry[2] for entry in owners if entry[2]), self.autocast_seen)
        self._called.clear()
        self._called_seen.clear()

    # -- the ladder --------------------------------------------------------------------------------------------------

    def look(self) -> Optional["Loop"]:
        """The loop, as soon as enough was seen; None until then."""
        if self.started is None:
            return None
        record = self._training_record()
        if record is not None and record.credited:
            return self._loader_loop(record, "optimizer step", "optimizer")
        if self._steps_without_batch >= 2 * MINIMUM_STEPS:
            return self._bare_loop()
        patient = now() - self.started > PATIENCE_SECONDS
        if record is not None and (record.batches >= PATIENCE_BATCHES or (patient and record.batches >= 12)):
            for rung, event in (("gradient scaler", "scaler"), ("backward", "backward"), ("batches", "")):
                loop = self._loader_loop(record, rung, event)
                if loop is not None:
                    return loop
        return None

    def _training_record(self) -> Optional[LoaderRecord]:
        live = [record for record in self.records.values() if record.loader() is not None]
        if not live:
            return None
        return max(live, key=lambda record: (record.credited, record.batches, record.wait_total))

    def _loader_loop(self, record: LoaderRecord, rung: str, event: str) -> Optional["Loop"]:
        # The first entry's signature belongs to what came before the first batch.
        signatures = [entry[2] for entry in record.requests][1:]
        if len(signatures) < MINIMUM_STEPS:
            return None
        period = find_period(signatures)
        if period is None and len(signatures) < 3 * 64:
            return None
        tail = signatures[-(period or 1) :]
        if event and not any(kind == event for entry in tail for kind, _ in entry) and period is not None:
            return None
        return Loop(rung, period or 1, period is not None, record)

    def _bare_loop(self) -> Optional["Loop"]:
        signatures = [entry[1] for entry in self.bare_steps]
        period = find_period(signatures)
        if period is None and len(signatures) < 3 * 64:
            return None
        return Loop("optimizer step", period or 1, period is not None, None)


class Loop:
    """The training loop as found: the rung, the period in batches (or steps where no loader feeds it), the loader."""

    def __init__(self, rung: str, period: int, periodic: bool, record: Optional[LoaderRecord]) -> None:
        self.rung = rung
        self.period = period
        self.periodic = periodic
        self.record = record


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


_MOST_PARTS = 16
"""Parts of a batch that are looked at: it is asked for every batch, and a list may hold thousands."""


def batch_samples(batch: Any, batch_size: Optional[int] = None, depth: int = 0) -> float:
    """Samples in a batch, counted from its first tensor's first dimension; 1 where there is none.

    Where another part of the batch has `batch_size` rows, and the first has not (boxes before their pictures, time
    before batch), that is believed. A list inside the batch that is `batch_size` long, of tensors that are not, holds
    one tensor a sample (detection).
    """
    if isinstance(batch, torch.Tensor):
        return float(batch.shape[0]) if batch.dim() else 1.0
    graphs = getattr(batch, "num_graphs", None)
    if isinstance(graphs, int):
        return float(graphs)
    if depth < 4:
        values: Any = None
        if isinstance(batch, dict) or hasattr(batch, "values"):
            values = list(batch.values()) if callable(getattr(batch, "values", None)) else None
        elif isinstance(batch, (list, tuple)):
            values = batch
        if depth and isinstance(batch, (list, tuple)) and len(batch) == batch_size and _one_a_sample(batch):
            return float(len(batch))
        parts = (value for value in values or () if isinstance(value, (torch.Tensor, dict, list, tuple)))
        found = [
            batch_samples(part, batch_size, depth + 1)
            for part in itertools.islice(parts, _MOST_PARTS if depth < 2 else 1)
        ]
        if found:
            return float(batch_size) if batch_size in found else found[0]
        if values and all(isinstance(value, (int, float, str, bytes)) for value in values):
            return float(len(values))
    return 1.0


def _one_a_sample(values: Sequence[Any]) -> bool:
    return all(isinstance(value, torch.Tensor) for value in values) and any(
        value.dim() == 0 or value.shape[0] != len(values) for value in values
    )


__all__ = ["LoaderRecord", "Loop", "Steps", "Watch", "batch_samples", "find_period", "is_users_file", "user_site"]
