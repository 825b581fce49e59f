"""A machine that is made up: a clock that nobody waits for, and sessions that train in it.

`Examined(machine)` runs a whole examination on it, with everything that is ours: only processes, py-spy and time are
not there. What happened is kept in order (`happened`), with what it took.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.unit.test_race import FOUND

from bottleneck_doctor.documents.labels import REPLAY, key_of
from bottleneck_doctor.documents.report import Result
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.examine.examination import Outcome, Request, examine
from bottleneck_doctor.examine.processes import Outside
from bottleneck_doctor.explain.explainer import Wishes
from bottleneck_doctor.runtime.messages import Ended, Found, Grant, Hello, WindowDone
from bottleneck_doctor.session.ranks import Company
from bottleneck_doctor.session.session import Command, Exited
from bottleneck_doctor.session.start import Start

NAMES = {REPLAY: "replay"}
FOUND_AFTER = 8
"""Steps in which a guest finds the loop."""
STACK = 'process {pid}:"python train.py";thread (12): "MainThread";<module> ({file}:12);__getitem__ ({file}:7) 80\n'


@dataclass(kw_only=True)
class Machine:
    """One that trains at `step` seconds a step, `wait` of it for data. All figures are seconds of its own clock.

    `start`: from the start of a process to its first step. `epoch`: batches of one. `speeds`: how many times as fast a
    setting is, by key. `steps`: how many a process makes before it ends, and `code` with what exit code. `late`: how
    many times as long steps take once the loop is found. `stopping`: what it takes to end a process. `under`: the modes
    in which a process crashes.
    """

    step: float = 0.01
    start: float = 2.0
    wait: float = 0.7
    workers: int = 0
    epoch: int = 100_000
    speeds: Mapping[str, float] = field(default_factory=dict)
    steps: int | None = None
    code: int = 0
    late: float = 1.0
    stopping: float = 0.2
    under: tuple[str, ...] = ()
    interrupted_at: float | None = None
    now: float = 0.0
    happened: list[Happened] = field(default_factory=list)
    said: list[tuple[str, float, float | None]] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        """The clock goes on. Raises `KeyboardInterrupt` where somebody presses Ctrl-C meanwhile."""
        until = self.now + seconds
        if self.interrupted_at is not None and self.now <= self.interrupted_at <= until:
            self.now, self.interrupted_at = self.interrupted_at, None
            raise KeyboardInterrupt
        self.now = until

    def outside(self) -> Outside:
        """All that an examination meets outside of itself."""

        def session(command: Command, number: int, **_: Any) -> Any:
            return MadeUpSession(self, number)

        def sampler(pid: int, folder: Path, **_: Any) -> Any:
            return MadeUpSampler(self, pid, folder)

        def watch(pid: int) -> Any:
            return SimpleNamespace(start=lambda: None, stop=lambda: None, recording=None)

        return Outside(start_session=session, sampler=sampler, watch=watch, now=lambda: self.now, sleep=self.sleep)

    def step_seconds(self, grant: Grant) -> float:
        """What a step takes in a window."""
        if grant.mode == "loader_only":
            return self.step * self.late * self.wait
        speed = self.speeds.get(key_of(grant.setting), 1.0)
        if grant.setting.get("replay"):
            speed = 1.0 / (1.0 - self.wait)
        return self.step * self.late / speed * (1.02 if grant.mode == "phases" else 1.0)


@dataclass(frozen=True)
class Happened:
    """One window: in which process, what it was, and when."""

    session: int
    name: str
    began: float
    ended: float
    steps: int


class MadeUpSampler:
    """A py-spy that sees one stack. It takes half a second to start."""

    def __init__(self, machine: Machine, pid: int, folder: Path) -> None:
        self.seconds = 5.0
        self._machine = machine
        self._pid = pid
        self._path = folder / "py-spy.raw"

    def start(self) -> None:
        self._machine.sleep(0.5)

    def stop(self) -> Path:
        self._path.write_text(STACK.format(pid=self._pid, file=Path.cwd() / "train.py"))
        return self._path

    def abandon(self) -> None:
        """Nothing was begun."""


class MadeUpSession:
    """One process: found after its start and a few steps, then as many windows as are granted before it ends."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.number = number
        self.started = 0.0
        self.hello: Hello | None = None
        self.farewell: Ended | None = None
        self.seen = None
        self.ranks: list[Hello] = []
        self.company = Company()
        self.load = SimpleNamespace(mean=lambda: None)
        self._machine = machine
        self._made = 0
        self._next: tuple[float, Any] | None = None
        """The moment of the next event, and what it is."""
        self._granted: Happened | None = None

    def start(self) -> None:
        machine = self._machine
        self.started = machine.now
        seen = FOUND_AFTER * machine.step
        if machine.steps is not None and machine.steps < FOUND_AFTER:
            self._ends(machine.now + machine.start + machine.steps * machine.step)
            return
        self._made = FOUND_AFTER
        self._next = (machine.now + machine.start + seen, self._found())

    def _found(self) -> Found:
        machine = self._machine
        return replace(
            FOUND,
            step_seconds=[machine.step] * (FOUND_AFTER - 1),
            wait_seconds=[machine.step * machine.wait] * FOUND_AFTER,
            num_workers=machine.workers,
            prefetch_factor=2 if machine.workers else None,
            epoch_batches=machine.epoch,
            setup_seconds=machine.start,
        )

    def _ends(self, at: float) -> None:
        words = "Traceback\nValueError: of its own" if self._machine.code else ""
        self.farewell = Ended(batches=self._made, optimizer_steps=self._made, backwards=self._made, served=False)
        self._next = (at, Exited(self._machine.code, words))

    def grant(self, grant: Grant) -> None:
        machine = self._machine
        step = machine.step_seconds(grant)
        unit, most, lead_in = grant.unit, grant.steps, grant.lead_in
        if grant.epochs:
            unit, most = machine.epoch, grant.epochs * machine.epoch
            lead_in = grant.lead_in * machine.epoch + machine.epoch // 2  # The rest of the epoch that it stands in.
        late = (done for done in range(unit, most, unit) if 0 < grant.most_seconds < done * step)
        steps = next(late, most)
        whole = lead_in + steps
        name = NAMES.get(key_of(grant.setting), key_of(grant.setting)) if grant.mode == "timed" else grant.mode
        self._granted = Happened(self.number, name, machine.now, machine.now + whole * step, steps)
        if grant.mode in machine.under:
            self._next = (machine.now + step, Exited(1, "RuntimeError: under a hook"))
            return
        if machine.steps is not None and self._made + whole > machine.steps:
            self._ends(machine.now + (machine.steps - self._made) * step)
            self._made = machine.steps
            return
        self._made += whole
        self._next = (machine.now + whole * step, self._done(grant, lead_in, steps, step))

    def _done(self, grant: Grant, lead_in: int, steps: int, step: float) -> WindowDone:
        machine = self._machine
        wait = 0.0 if grant.setting.get("replay") else machine.wait * step
        return WindowDone(
            window=grant.window,
            status="ok",
            steps=steps,
            samples=4.0 * steps,
            seconds=steps * step,
            lead_in_steps=lead_in,
            lead_in_seconds=lead_in * step,
            whole_epochs=steps // machine.epoch if grant.epochs else 0,
            wait_seconds=steps * wait,
            started=machine.now,
            ended=machine.now + (lead_in + steps) * step,
            detail=_told(grant.mode, steps, step, wait),
        )

    def event(self, timeout: float) -> Any:
        machine = self._machine
        if self._next is None or self._next[0] > machine.now + timeout:
            machine.sleep(timeout)
            return None
        at, event = self._next
        self._next = None
        machine.sleep(max(0.0, at - machine.now))
        if isinstance(event, Found):
            self.hello = Hello(token="", pid=os.getpid(), python="3.12", torch="2.9")
        if isinstance(event, WindowDone) and self._granted is not None:
            machine.happened.append(self._granted)
        return event

    def is_away(self) -> bool:
        return False

    def stop(self) -> None:
        self._machine.now += self._machine.stopping


def _told(mode: str, steps: int, step: float, wait: float) -> dict[str, Any]:
    """The detail of a window that explains."""
    if mode != "phases":
        return {"steps": 0}
    busy = step - wait
    shares = {"data_wait": wait, "forward": 0.4 * busy, "backward": 0.4 * busy, "optimizer": 0.2 * busy}
    shares |= dict.fromkeys(("host_to_device", "zero_grad", "between", "communication"), 0.0)
    return {
        "phases": {name: steps * seconds for name, seconds in shares.items()},
        "seconds": steps * step,
        "step_seconds": [step] * steps,
        "wait_seconds": [wait] * steps,
        "ready": 0,
        "synchronising": [],
        "garbage": {"collections": 0, "seconds": 0.0},
        "loading": None,
        "loading_missing": "nobody looked",
        "timeline": None,
        "epoch_pause": {"seen": 0, "evaluation": 0, "saving": 0, "rest": 0, "first_batch": 0, "first_batches": 0},
    }


class Noting:
    """A progress that notes what it is told, with the machine's clock."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def stage(self, text: str) -> None:
        self._machine.said.append((text, self._machine.now, None))

    def update(self, text: str, spent: float, budget: float | None) -> None:
        self._machine.said.append((text, spent, budget))

    def note(self, text: str) -> None: ...

    def close(self) -> None: ...


class Examined:
    """An examination of a training on `machine`, whole. `error` where there is no report, or one that lacks figures."""

    def __init__(self, machine: Machine, *, budget: float | None = None, explain: bool = True, **asked: Any) -> None:
        self.machine = machine
        self.outcome: Outcome | None = None
        self.error: DoctorError | None = None
        with tempfile.TemporaryDirectory() as folder:
            request = Request(
                start=Start(script=Path("train.py"), in_place=True),
                output=Path(folder),
                budget=budget,
                seed=1,
                wishes=Wishes(folder=Path(folder)) if explain else None,
                **asked,
            )
            try:
                self.outcome = examine(request, Noting(machine), machine.outside())
                self.error = self.outcome.error
            except DoctorError as error:
                self.error = error

    @property
    def result(self) -> Result:
        assert self.outcome is not None, self.error
        return self.outcome.result

    @property
    def names(self) -> list[str]:
        """What happened, in order, over all processes."""
        return [each.name for each in self.machine.happened]

    @property
    def totals(self) -> set[float]:
        """Totals of which it was said how much was gone."""
        return {total for _, _, total in self.machine.said if total is not None}

    def expects(self, *names: str) -> Examined:
        """That it began with these windows."""
        assert self.names[: len(names)] == list(names), self.names
        return self
