"""Serves windows at the step boundaries of a loop without a loader. What the program does now and then with its model
in evaluation mode belongs to no step."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from ..knobs import GuestContext, needs_loader
from ..loop.evaluation_mode import EvaluationMode
from ..loop.ladder import Loop
from ..loop.root_calls import RootCalls, RootInputs, measurable
from ..loop.steps import Steps
from ..process.originals import now
from ..wire.liveness import Liveness
from ..wire.messages import WindowDone
from .bare_run import BareRun
from .window import Ask, WindowFailed, synchroniser


class BareServer:
    """Serves a loop without a loader, after the optimizer's steps or, depending on its `rung`, after backward passes,
    or those that the optimizer's closure makes."""

    def __init__(self, steps: Steps, loop: Loop, ask: Ask, device: str, liveness: Liveness) -> None:
        self.rung = loop.rung
        self._liveness = liveness
        self._context = GuestContext(steps, device)
        self._synchronise = synchroniser(device)
        self._ask = ask
        self._run: Optional[BareRun] = None
        self._rung = loop.rung
        self._position = steps.made(loop.rung)
        self._steps = steps
        self._paused_at: Optional[float] = None
        """When the model was put into evaluation mode; None while it trains."""
        self._calls = RootCalls(steps.roots) if loop.by_calls else None
        # Where calls are what samples are elsewhere, each is given as much.
        self._inputs = RootInputs(steps.roots) if not loop.by_calls and measurable(steps.roots) else None
        self._evaluation = EvaluationMode(
            steps,
            self._evaluation_begins,
            self._evaluation_ended,
            self._evaluates,
            besides=self._evaluated_besides,
        )
        self._is_at_once = device == "cpu"
        """Whether what is asked for is computed at once. If not, what takes long may be what was put off before."""
        if loop.rung == "closure":
            closures = steps.closures
            closures.are_steps = True
            closures.on_step_begins, closures.on_step_ended = self._optimizer_begins, self._optimizer_ended
        elif loop.period == 1:  # Where other work comes in a rhythm, windows hold whole periods.
            self._evaluation.watch()
        self._failure = ""

    def step_ended(self) -> None:
        """A step of the user's loop is done."""
        self._liveness.step()
        self._liveness.reached(self._steps.made(self._rung))
        report: Optional[WindowDone] = None
        if self._paused_at is not None:
            self._trains_in_evaluation_mode()
        self._position += self._run is not None
        if self._run is not None:
            if not self._run.step_ended():
                return
            report = replace(self._run.done(), position=self._position, pauses=self._context.pauses_so_far())
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
                run = BareRun(grant, self._context, self._synchronise, self._calls, self._inputs)
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
                    self._run = BareRun(rest, self._context, self._synchronise, self._calls, self._inputs)
                    continue
                report = WindowDone(window=grant.window, status="failed", reason=str(failure), position=self._position)

    # -- between two steps of an optimizer that calls a closure ------------------------------------------------------

    def _optimizer_ended(self) -> None:
        self._liveness.away()
        self._synchronise()
        self._paused_at = now()
        self._context.interruptions.began(self._steps.backwards)
        if self._run is not None:
            self._run.pause(self._paused_at)

    def _optimizer_begins(self) -> None:
        began, self._paused_at = self._paused_at, None
        if began is None:
            return
        self._synchronise()
        seconds = now() - began
        self._context.interruptions.ended(seconds, self._position, self._steps.backwards, mid_epoch=True)
        if self._run is not None:
            self._run.resume(seconds)

    # -- evaluation mode -------------------------------------------------------------------------------------------

    def _evaluation_begins(self) -> None:
        self._liveness.away()
        self._synchronise()  # What is still computed is a step's.
        self._paused_at = now()
        self._context.interruptions.began(self._steps.backwards)
        if self._run is not None:
            self._run.pause(self._paused_at)
        self._context.evaluated_within.begin()

    def _evaluation_ended(self) -> None:
        self._context.evaluated_within.end()
        self._synchronise()
        began, self._paused_at = self._paused_at, None
        assert began is not None
        seconds = now() - began
        trained = self._context.interruptions.ended(
            seconds, self._position, self._steps.backwards, mid_epoch=True, by_mode=True
        )
        if self._run is not None:
            self._run.resume(0.0 if trained else seconds)

    def _evaluates(self, on: bool) -> None:
        if self._run is not None:
            self._run.mode.evaluates(on)

    def _evaluated_besides(self, seconds: float) -> None:
        """The model was in evaluation mode for so many within a step, in which it hardly is for any."""
        if not self._is_at_once:
            return
        interruptions, backwards = self._context.interruptions, self._steps.backwards
        interruptions.began(backwards)
        interruptions.ended(seconds, self._position, backwards, mid_epoch=True, by_mode=True)
        if self._run is not None:
            self._run.leave_out(seconds)

    def _trains_in_evaluation_mode(self) -> None:
        """A step has ended, so the model is in this mode for another reason, such as frozen statistics."""
        self._paused_at = None
        self._evaluation.give_up()
        self._context.evaluated_within.end()
        self._context.interruptions.forget()
        if self._run is not None:
            self._run.resume(0.0)

    def kill_workers(self) -> None:
        """No workers here."""
