"""`trace`: a few steps under torch.profiler: operators, and kernels if there is a CUDA device.

Options: `chrome_trace`, a file for the trace in Chrome's format (gzipped if the name ends in `.gz`). Everything except
the table of operators is read from that file later, in another process.

Detail: `steps`; `seconds` that they took under the profiler; `device`, whether a device was traced; `operators`, a list
of `[name, calls, own microseconds on the CPU, own microseconds on the device]`; `waiting`, the name of the ranges in
which the loop waited for a batch; `chrome_trace`, the file written ("" if none was), and `trouble`, why not.
"""

from __future__ import annotations

import atexit
import gc
import warnings
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Dict, Iterator, List

import torch
from torch.autograd.profiler import record_function

from ..process.originals import now
from ..process.patches import Patches
from . import Mode, Refused

STEP = "ProfilerStep"
"""The name that torch's own schedule gives its steps, so that every trace viewer knows them."""
WAITING = "waiting for the next batch"
MOST_STEPS = 12
"""A window of whole epochs may have hundreds of steps, but a trace grows by megabytes a second, and a few steps
suffice."""
MOST_READING = 1.0
"""Seconds that reading the trace of the first step may take, if others are to be traced: an episode of hundreds of
calls has as many operators as hundreds of steps, and reading takes longer than training."""


class Trace(Mode):
    name = "trace"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._on_device = self.context.device.startswith("cuda") and torch.cuda.is_available()
        self._profiler: Any = None
        self._ranges: List[Any] = []
        self._patches = Patches()
        self._entered: List[Any] = []
        """Ranges that are open by now: the guest's own, torch's and the user's."""
        self._thread = 0
        self._began = 0.0
        self._last = 0.0
        self._steps = 0
        self._enough = False
        """Whether no more steps are traced."""
        self._kept: Dict[str, Any] = {"steps": 0, "seconds": 0.0, "operators": []}

    def apply(self) -> None:
        _refuse_running_profiler()
        _refuse_waiting_profiler()
        # The first start sets up the tracer, which takes seconds with a device: do it before steps count.
        with _quiet():
            first = self._new()
            first.start()
            torch.ones(1, device=self.context.device).add_(1)
            self.synchronise()
            first.stop()

    def resume(self) -> None:
        if self._enough:
            return
        _refuse_running_profiler()
        self.synchronise()
        # A process that ends while torch's profiler runs is killed by SIGSEGV.
        atexit.register(self.revert)
        self._thread, self._entered = get_ident(), []
        self._patches.put(record_function, "__enter__", self._entering)
        self._patches.put(record_function, "__exit__", self._leaving)
        with _quiet():
            self._profiler = self._new()
            self._profiler.start()
        self._steps = 0
        self._began = self._last = now()
        self._open_bare_step()

    def suspend(self) -> None:
        """Of several stretches of steps the longest is kept, because traces can't be joined. It is read and written at
        once: the next profiler of the process takes the times out of the kernels of this one."""
        profiler = self._stopped()
        if profiler is not None and self._steps > self._kept["steps"]:
            self._kept = self._read(profiler)

    def _stopped(self) -> Any:
        """The profiler that ran, if one did, now stopped."""
        profiler, self._profiler = self._profiler, None
        atexit.unregister(self.revert)
        self._patches.take_off()
        if profiler is not None:
            self._close_ranges()
            # A step may end within a range, as an optimizer's has one. torch would write the end of one that is still
            # open into memory that the profiler has given back when it stopped. To end it twice changes nothing.
            for each in reversed(self._entered):
                each.__exit__(None, None, None)
            with _quiet():
                profiler.stop()
        return profiler

    def _entering(self, original: Any) -> Any:
        def enter(entered: Any) -> Any:
            result = original(entered)
            if get_ident() == self._thread:
                self._entered.append(entered)
            return result

        return enter

    def _leaving(self, original: Any) -> Any:
        def leave(entered: Any, *error: Any) -> Any:
            self._entered = [each for each in self._entered if each is not entered]
            return original(entered, *error)

        return leave

    def interrupted(self, at: float) -> None:
        self.suspend()

    def revert(self) -> None:
        try:
            self._stopped()
        except Exception:  # It failed already, or the user stopped it; either way it is off.
            self._profiler = None

    def fetching(self) -> None:
        if self._profiler is not None:
            self._close_ranges()
            self._open(f"{STEP}#{self._steps}")
            self._open(WAITING)

    def fetched(self, batch: Any) -> None:
        if len(self._ranges) == 2:
            self._ranges.pop().__exit__(None, None, None)

    def step_ended(self) -> None:
        if self._profiler is None:
            return
        self._close_ranges()
        self._steps += 1
        self._last = now()
        if self._steps >= MOST_STEPS or not self._kept["steps"]:
            self.synchronise()
            began = now()
            self.suspend()
            self._enough = self._steps >= MOST_STEPS or now() - began > MOST_READING
            self.resume()
        else:
            self._open_bare_step()

    def detail(self) -> Dict[str, Any]:
        return {"device": self._on_device, "waiting": WAITING, **self._kept}

    def _read(self, profiler: Any) -> Dict[str, Any]:
        path, trouble = str(self.options.get("chrome_trace", "")), ""
        with _quiet():
            operators = _operators(profiler.key_averages())
            if path:
                try:
                    profiler.export_chrome_trace(path)
                except (OSError, RuntimeError) as error:
                    path, trouble = "", f"{type(error).__name__}: {error}"
        return {
            "steps": self._steps,
            "seconds": self._last - self._began,
            "operators": operators,
            "chrome_trace": path,
            "trouble": trouble,
        }

    def _new(self) -> Any:
        kinds = [torch.profiler.ProfilerActivity.CPU]
        if self._on_device:
            kinds.append(torch.profiler.ProfilerActivity.CUDA)
        return torch.profiler.profile(activities=kinds)

    def _open_bare_step(self) -> None:
        """In a loop that no loader feeds a step begins where the last one ends."""
        if self.context.feed is None:
            self._open(f"{STEP}#{self._steps}")

    def _open(self, name: str) -> None:
        entered: Any = record_function(name)
        entered.__enter__()
        self._ranges.append(entered)

    def _close_ranges(self) -> None:
        while self._ranges:
            self._ranges.pop().__exit__(None, None, None)


def _operators(averages: Any) -> List[List[Any]]:
    """The operators on the CPU, by name, without the guest's own ranges."""
    rows = []
    host = torch.autograd.DeviceType.CPU  # type: ignore[attr-defined]  # it is there, but not in the module's list
    for each in averages:
        if each.device_type != host or each.key.startswith(STEP) or each.key == WAITING:
            continue
        rows.append([each.key, int(each.count), float(each.self_cpu_time_total), float(each.self_device_time_total)])
    return sorted(rows, key=lambda row: -row[2])


def _refuse_running_profiler() -> None:
    """torch has one profiler in each process: a second one would empty the user's."""
    if torch._C._autograd._profiler_enabled():
        raise Refused("the script's own torch profiler is running")


def _refuse_waiting_profiler() -> None:
    """A profiler of the user's that is between two of its cycles would start inside the guest's, and fail there."""
    for each in gc.get_objects():
        if type(each) is torch.profiler.profile and each.record_steps:
            raise Refused("the script has a torch profiler of its own, with a schedule")


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the profiler's warnings: they are not about the user's script, which may turn warnings into errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
