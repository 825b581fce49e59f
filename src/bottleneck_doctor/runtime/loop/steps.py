"""The events of the training loop: optimizer steps, backward passes, batches.

Events come from hooks that stay for the life of the process and cost a few hundred nanoseconds each. `Steps` records
them; once there are enough, `ladder` recognises the loop.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..process.originals import now
from ..process.user_code import user_site
from ..wire.messages import Site
from ..wire.seen import Counts
from .callers import Callers
from .closures import Closures
from .losses import Losses
from .period import MINIMUM_STEPS
from .records import Alone, LoaderRecord, likeness
from .zero_grads import ZeroGrads

TRIED_OUT = 2
"""Backward passes after which what calls the model is looked for again, where no optimizer steps: what was seen before
may have tried the model out, or built it."""


class Watch:
    """Told where an optimizer's step begins and ends, and what it calls, while a window wants to know."""

    def optimizer_begins(self) -> None:
        """The step begins."""

    def closure_begins(self) -> None:
        """The optimizer calls its closure."""

    def closure_ended(self) -> None:
        """That has returned."""

    def optimizer_ended(self) -> None:
        """The step is done, before anybody else is told of it."""


class Steps:
    """Counts events, and keeps those that show the loop. `on_optimizer_step`, `on_backward`, `on_backward_ended` and
    `on_closure_pass` are called for each."""

    def __init__(self) -> None:
        self.optimizer_steps = 0
        self.optimizer_ended_at = 0.0
        self.scaler_steps = 0
        self.backwards = 0
        self.own_backwards = 0
        """Those that are no part of another, nor of an optimizer's step."""
        self.batches = 0
        self.evaluated = 0
        """Batches that were taken with gradients off."""
        self.on_backward_ended: Optional[Callable[[], None]] = None
        self.on_closure_pass: Optional[Callable[[], None]] = None
        """A backward pass has ended that an optimizer's closure made."""
        self.on_optimizer_step: Optional[Callable[[Any], None]] = None
        self.before_optimizer_step: Optional[Callable[[Any], None]] = None
        self.on_backward: Optional[Callable[[], None]] = None
        self.watch: Optional[Watch] = None
        self.backward_site: Optional[Site] = None
        self.gradient_for_backward: Optional[Callable[[Any], Any]] = None
        self.records: Dict[int, LoaderRecord] = {}
        self.noted: Dict[str, Any] = {}
        """What knobs keep of what they watch until the loop is found, by name."""
        self.optimizers: List[Any] = []
        self.user_scaler = False
        self.by_calls = False
        """Whether windows count calls of the model."""
        self._optimizer_order: Dict[int, int] = {}
        self._since_request: Dict[int, List[Any]] = {}
        self._lately: List[int] = []
        self.bare_steps = Alone()
        """Optimizer steps since the last batch."""
        self.bare_backwards = Alone()
        """Backward passes since the last batch or optimizer step, those apart that are a part of either."""
        self.closures = Closures(lambda: self.watch)
        self.patience: Optional[Tuple[int, float]] = None
        """Where only backward passes are seen: how many of them, and how many seconds, the ladder waits for."""
        self.looks_from = 0
        """How many there were when it began to look."""
        self.backward_device = ""
        self._passes = 0
        """Backward passes that are under way: one may make others."""
        self._in_optimizer = False
        self.started: Optional[float] = None
        """When the first batch was asked for, or the first step made without one."""
        self.held: Tuple[float, float] = (0.0, 0.0)
        """For how many seconds this process was held until it might train, and when that ended."""
        self._observing = False
        self.zero_grads = ZeroGrads()
        self.losses = Losses()
        self.callers = Callers()
        self.roots = self.callers.roots
        self.tell: Optional[Callable[[], None]] = None
        """Told that something was seen, until the loop is found."""

    # -- hooks -------------------------------------------------------------------------------------------------------

    def install(self) -> None:
        """Hook optimizers, scalers, backward and, until the loop is found, module calls."""
        register_optimizer_step_pre_hook(self._optimizer_begins)
        register_optimizer_step_post_hook(self._optimizer_ended)
        self._patch_backward()
        self._patch_scaler()
        self._patch_grad()
        self._observing = True
        self.zero_grads.install()
        self.callers.install()

    def forget(self) -> None:
        """Start over, in a process that was forked from the one that saw all this. Hooks stay."""
        self.callers.forget()
        fresh = vars(Steps())
        kept = "on_optimizer_step", "on_backward_ended", "on_closure_pass", "_observing", "callers", "zero_grads"
        for name in kept:
            del fresh[name]
        self.__dict__.update({**fresh, "roots": self.callers.roots})

    def _optimizer_begins(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        self._in_optimizer = True
        if self._observing:
            self.zero_grads.step_begins(optimizer)
        changed = self.closures.step_begins(optimizer, args, kwargs)
        if self.watch is not None:
            self.watch.optimizer_begins()
        if self.before_optimizer_step is not None:
            self.before_optimizer_step(optimizer)
        return changed

    def _optimizer_ended(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._in_optimizer = False
        self.optimizer_steps += 1
        self.optimizer_ended_at = now()
        if self.watch is not None:
            self.watch.optimizer_ended()
        self.closures.step_ended()
        if self._observing:
            self._observe_optimizer(optimizer)
        if self.on_optimizer_step is not None:
            self.on_optimizer_step(optimizer)

    def _patch_backward(self) -> None:
        original = torch.autograd.backward

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            site = self._backward_begins(args[0] if args else kwargs.get("tensors"))
            if self._observing:
                self._credit("backward", 1)
            if self.gradient_for_backward is not None:
                args, kwargs = self._with_gradient(args, kwargs)
            return self._passed(original, args, kwargs, site)

        torch.autograd.backward = backward

    def _patch_grad(self) -> None:
        original = torch.autograd.grad

        @functools.wraps(original)
        def grad(*args: Any, **kwargs: Any) -> Any:
            # What is being traced must not depend on our counters; and a gradient that is a part of the loss, or of an
            # inner loop, is differentiated again, so no step ends with it.
            if torch.compiler.is_compiling() or (args[4] if len(args) > 4 else kwargs.get("create_graph")):
                return original(*args, **kwargs)
            return self._passed(original, args, kwargs, self._backward_begins(args[0] if args else None))

        torch.autograd.grad = grad

    def _backward_begins(self, tensors: Any) -> Optional[Site]:
        """Count it. Until the loop is found, also return the user's line that called it."""
        self.backwards += 1
        if self.losses.wanted and not self._passes and not self.user_scaler:
            passes = self.closures.passes if self.closures.are_steps else 0
            self.losses.note(passes or self.optimizer_steps or self.own_backwards, tensors)
        site = None
        if self._observing:
            site = user_site(3)
            self.backward_site = site or self.backward_site
            first = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
            self.backward_device = str(first.device) if isinstance(first, torch.Tensor) else self.backward_device
            if self.tell is not None:
                self.tell()
        if self.on_backward is not None:
            self.on_backward()
        return site

    def _passed(self, original: Any, args: Any, kwargs: Any, site: Optional[Site]) -> Any:
        """What `original` returns. Tells that a backward pass has ended, unless it is a part of another, as that of a
        checkpoint; and apart, that one has which is a part of an optimizer's step, as that of a closure."""
        self._passes += 1
        self.callers.in_backward = True
        try:
            made = original(*args, **kwargs)
        finally:
            self._passes -= 1
            self.callers.in_backward = self._passes > 0
        if not self._passes and not self._in_optimizer:
            self.own_backwards += 1
            if self._observing:
                self.bare_backwards.add(("backward", None if site is None else (site.file, site.line)))
                if self.own_backwards <= TRIED_OUT and not self.optimizer_steps:
                    self.callers.look_again()
            if self.on_backward_ended is not None:
                self.on_backward_ended()
        elif not self._passes:
            self.closures.passed(None if site is None else (site.file, site.line))
            if self.on_closure_pass is not None:
                self.on_closure_pass()
        return made

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

    def made(self, rung: str) -> int:
        """Steps so far of a loop that was found by this rung."""
        if rung == "closure":
            return self.closures.passes
        return self.own_backwards if rung == "backward" else self.optimizer_steps

    def counts(self) -> Counts:
        """What was seen so far."""
        return Counts(self.batches, self.evaluated, self.backwards, self.optimizer_steps)

    # -- observation, until the loop is found ------------------------------------------------------------------------

    def stop_observing(self) -> None:
        """Take the costlier hooks away; counting goes on."""
        self._observing = False
        self.tell = None
        self.closures.wrapping = False
        self.zero_grads.stop()
        self.callers.stop()

    def stood_still(self, seconds: float) -> None:
        """This process was held for so long, just now."""
        self.held = seconds, now()
        self.callers.stood_still(seconds)

    def batch_delivered(self, loader: Any, requested: float, delivered: float, samples: float) -> None:
        """A loader handed out a batch that was asked for at `requested` (seconds)."""
        self.batches += 1
        self.started = requested if self.started is None else self.started
        self._no_longer_alone(self.bare_steps, self.bare_backwards)
        self.closures.batch_delivered()
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
        if self.optimizer_steps <= MINIMUM_STEPS:
            self.callers.find(self.optimizers, within=order > 0)
        self.bare_steps.add((order,), self.callers.calls())
        self._no_longer_alone(self.bare_backwards)

    def _no_longer_alone(self, *rows: Alone) -> None:
        for row in rows:
            row.clear()
        self.patience, self.looks_from = None, 0
        if self.tell is not None:
            self.tell()
