"""Serves windows at the step boundaries of a loop without a loader."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from ..knobs import GuestContext, needs_loader
from ..loop.steps import Steps
from ..wire.liveness import Liveness
from ..wire.messages import WindowDone
from .bare_run import BareRun
from .window import Ask, WindowFailed, synchroniser


class BareServer:
    """Serves a loop without a loader, after the optimizer's steps or, depending on its `rung`, after backward
    passes."""

    def __init__(self, steps: Steps, rung: str, ask: Ask, device: str, liveness: Liveness) -> None:
        self.rung = rung
        self._liveness = liveness
        self._context = GuestContext(steps, device)
        self._synchronise = synchroniser(device)
        self._ask = ask
        self._run: Optional[BareRun] = None
        self._position = steps.bare_position(rung)
        self._failure = ""

    def step_ended(self) -> None:
        """A step of the user's loop is done."""
        self._liveness.step()
        report: Optional[WindowDone] = None
        self._position += self._run is not None
        if self._run is not None:
            if not self._run.step_ended():
                return
            report = replace(self._run.done(), position=self._position)
            if self._failure:
                report = replace(report, status="failed", reason=self._failure, steps=0)
                self._failure = ""
            self._run.revert()
            self._run = None
        while self._run is None:
            grant = self._ask(report)
            try:
                if grant.mode == "loader_only" or grant.epochs or needs_loader(grant.setting):
                    raise WindowFailed("this loop takes no batches from a DataLoader")
                run = BareRun(grant, self._context, self._synchronise)
                try:
                    run.apply()
                except WindowFailed:
                    run.revert()  # What of the setting was applied before.
                    raise
                self._run = run
            except WindowFailed as failure:
                if grant.together and grant.mode != "loader_only" and not grant.epochs:
                    # The other ranks may run it, so its steps are run here too.
                    self._failure = str(failure)
                    rest = replace(grant, setting={}, mode="timed", options={})
                    self._run = BareRun(rest, self._context, self._synchronise)
                    continue
                report = WindowDone(window=grant.window, status="failed", reason=str(failure), position=self._position)

    def kill_workers(self) -> None:
        """No workers here."""
