"""A machine that is made up: a clock that nobody waits for, and sessions that train in it.

`Examined(machine)` runs a whole examination on it, with everything that is ours: only processes, py-spy and time are
not there. What happened is kept in order (`happened`), with what it took. `made_up_check` does the same for a check.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.unit.made_up_queue import Fed, Queue, fed
from tests.unit.test_selection import FOUND

from bottleneck_doctor.documents.labels import REPLAY, key_of
from bottleneck_doctor.documents.report import Result, Warning
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.examine.examination import ExaminationOutcome, ExaminationRequest, examine
from bottleneck_doctor.explain.explainer import ExplainOptions
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.schedule import DEFAULT_PREFETCH
from bottleneck_doctor.runtime.serve.steady_run import LEAST_LEAD_IN
from bottleneck_doctor.runtime.wire.expected import Expected
from bottleneck_doctor.runtime.wire.messages import Ended, Found, Grant, Hello, Site, WindowDone
from bottleneck_doctor.session.ranks import RankGroup
from bottleneck_doctor.session.session import Command, Exited
from bottleneck_doctor.session.start import Start

NAMES = {REPLAY: "replay"}
FOUND_AFTER = 8
"""Steps in which a guest finds the loop."""
FOUND_AGAIN_AFTER = 4
"""The same of one that knows which loop to expect."""
FIRST_PID = 5_000_000
"""More than Linux gives to any process."""
SAMPLED = {"__getitem__": 80}
"""Samples of each function that the script's own line 12 calls, as py-spy saw them."""


@dataclass(kw_only=True)
class Training:
    """One that trains at `step` seconds a step, `wait` of it for data. All figures are seconds of the machine's clock.

    `load`: what a batch takes to be made; where it is given, `step` is what computing takes, and what steps wait for
    follows from a queue that fills and empties. `loader`: whether one feeds the loop.
    `start`: from the start of a process to its first step. `epoch`: batches of one. `pause`: what lies between two of
    them, in windows of whole epochs. `speeds`: how many times as fast a
    setting is, by key. `steps`: how many a process makes before it ends, and `code` with what exit code. `late`: how
    many times as long steps take once the loop is found. `cold`: how many times as long the very first step takes; half
    of what it is too long is gone after `warming` steps. `under`: the modes in which a process crashes.
    `unstartable`: it can't be started at all. `memory`: bytes that a process holds, whenever it is looked at.
    `sampled`: what py-spy sees; `hidden`: it sees nothing. `slow`: how many times as long steps take in the windows
    with these numbers, counted over all processes from 1. `hangs_from`: the number of the first window in which no
    step is made. `others`: threads of other programs that want a CPU at a moment; steps take longer by as much as they
    would on `cpus` CPUs that all of them share.
    `device`: where the model computes. `collecting`: how long Python's garbage collector runs after each epoch, as long
    as nothing is frozen.
    `luck`: by how much what a setting is worth differs between processes, and `noise`: what a step takes
    between windows; both as standard deviations of logs, and the same in every run.
    """

    step: float = 0.01
    start: float = 2.0
    wait: float = 0.7
    load: float | None = None
    loader: bool = True
    workers: int = 0
    epoch: int = 100_000
    pause: float = 0.0
    speeds: Mapping[str, float] = field(default_factory=dict)
    steps: int | None = None
    says: bool = False
    """Whether the program says how many those are."""
    code: int = 0
    late: float = 1.0
    cold: float = 1.0
    warming: float = 20.0
    under: tuple[str, ...] = ()
    unstartable: bool = False
    memory: int = 1 << 30
    sampled: Mapping[str, int] = field(default_factory=lambda: SAMPLED)
    hidden: bool = False
    slow: Mapping[int, float] = field(default_factory=dict)
    hangs_from: int | None = None
    others: Callable[[float], float] = field(default=lambda now: 0.0)
    cpus: float = 2.0
    optimizer: float = 0.2
    """Part of what is computed in a step that the optimizer takes."""
    device: str = "cpu"
    drawn_by: str = "BatchSampler of RandomSampler"
    rung: str = "optimizer step"
    optimizer_steps: int = 0
    """Those that each window sees, though the loop was found by another rung."""
    collecting: float = 0.0
    able: tuple[str, ...] = ()
    """Knobs that can be applied to this loop, of those that can't be to each."""
    luck: float = 0.0
    noise: float = 0.0
    loss: Callable[[int, int], float] | None = None
    """The loss of a step, by the numbers of the process and of the step; None: no backward pass is seen."""
    raised: Mapping[str, float] = field(default_factory=dict)
    """How many times as high it is under a setting, by key."""

    def coldness(self, made: int) -> float:
        """How many times as long the next step takes, for it comes so early."""
        return 1.0 + (self.cold - 1.0) * float(0.5 ** (made / self.warming))

    def found_step(self, made: int) -> float:
        """What one of the steps takes in which the loop is found."""
        load = self.load or 0.0
        return self.coldness(made) * max(self.step + (0.0 if self.workers else load), load / max(1, self.workers))

    def paused(self, grant: Grant, steps: int) -> float:
        """What lies between the epochs of a window takes in all."""
        pause = self.pause * (grant.lead_in + steps // self.epoch) if grant.epochs else 0.0
        return pause + self.collected(grant, steps)

    def collected(self, grant: Grant, steps: int) -> float:
        """What the collector takes between the epochs of a window in all."""
        return 0.0 if "gc_freeze" in grant.setting else self.collecting * (steps // self.epoch)

    def queue(self, grant: Grant) -> Queue:
        """The loader's queue in a window, as it begins."""
        assert self.load is not None
        workers = 0 if grant.setting.get("replay") else int(grant.setting.get("num_workers", self.workers))
        prefetch = int(grant.setting.get("prefetch_factor", DEFAULT_PREFETCH))
        return Queue(0.0 if grant.setting.get("replay") else self.load, workers, prefetch)

    def step_seconds(self, grant: Grant, made: int) -> float:
        """What a step takes in a window that begins after so many, beside what it waits for a queue."""
        step = self.step * self.late * self.coldness(made)
        if grant.mode == "loader_only":
            return step * self.wait if self.load is None else self.load / max(1, self.workers)
        speed = self.speeds.get(key_of(grant.setting), 1.0)
        if grant.setting.get("replay") and self.load is None:
            speed = 1.0 / (1.0 - self.wait)
        return step / speed * (1.02 if grant.mode == "phases" else 1.0)


@dataclass(kw_only=True)
class Machine(Training):
    """One on which the same is trained in every process. `stopping`: what it takes to end a process. `free`: bytes that
    further processes may have."""

    stopping: float = 0.2
    free: int = 1 << 40
    kernel: float = 0.0
    """Part of the time in which the kernel works for whoever trains."""
    started_with: Mapping[str, Training] = field(default_factory=dict)
    """What is trained in processes that have a variable set, by its name."""
    granted: int = 0
    interrupted_at: float | None = None
    now: float = 0.0
    happened: list[Happened] = field(default_factory=list)
    said: list[tuple[str, float, float | None]] = field(default_factory=list)
    noted: list[tuple[str, float]] = field(default_factory=list)
    """What stays on the screen, and when it was said."""
    sessions: list[MadeUpSession] = field(default_factory=list)
    tried: list[frozenset[str] | None] = field(default_factory=list)
    """Which knobs the windows of each process may have, as it was told."""
    order: list[tuple[str, MadeUpSession]] = field(default_factory=list)
    """What happened, and to which process: windows, and what lies around them."""

    def trained_by(self, command: Command) -> tuple[str, Training]:
        """Who is started by a command: what it is called, and what it trains."""
        return next(
            ((name, each) for name, each in self.started_with.items() if name in command.environment), ("", self)
        )

    def sleep(self, seconds: float) -> None:
        """The clock goes on. Raises `KeyboardInterrupt` where somebody presses Ctrl-C meanwhile."""
        until = self.now + seconds
        if self.interrupted_at is not None and self.now <= self.interrupted_at <= until:
            self.now, self.interrupted_at = self.interrupted_at, None
            raise KeyboardInterrupt
        self.now = until

    def outside(self) -> Outside:
        """All that an examination meets outside of itself."""
        return Outside(**self.given(), peak_bytes=lambda pids: sum(self.by_pid(pid).training.memory for pid in pids))

    def given(self) -> dict[str, Any]:
        """The parts of it by name."""

        def session(
            command: Command,
            number: int,
            *,
            expected: Expected | None = None,
            tried: Mapping[str, Any] | None = None,
            **_: Any,
        ) -> Any:
            self.tried.append(None if tried is None else frozenset(tried))
            self.sessions.append(MadeUpSession(self, command, number, expected))
            return self.sessions[-1]

        def sampler(pid: int, folder: Path, *, name: str = "py-spy", **_: Any) -> Any:
            return MadeUpSampler(self.by_pid(pid), folder / f"{name}.raw")

        def run_queue() -> Any:
            return MadeUpRunQueue(self)

        def watch(pid: int) -> Any:
            return SimpleNamespace(start=lambda: None, stop=lambda: None, recording=None)

        return {
            "start_session": session,
            "sampler": sampler,
            "watch": watch,
            "run_queue": run_queue,
            "now": lambda: self.now,
            "sleep": self.sleep,
            "stacks": lambda pid: [],
            "kernel_seconds": lambda pid: self.kernel * self.now,
            "free_bytes": lambda: self.free,
        }

    def called(self, name: str, grant: Grant) -> str:
        """What a window is called in the order of things. `name`: by its setting and its mode."""
        return name

    def expects_all_ended(self) -> None:
        """That no process stands, and none was ended twice."""
        assert [each.stopped for each in self.sessions] == [1] * len(self.sessions)

    def by_pid(self, pid: int) -> MadeUpSession:
        """The process of that id."""
        return next(each for each in self.sessions if each.pid == pid)


@dataclass(frozen=True)
class Happened:
    """One window: in which process, what it was, and when."""

    session: int
    name: str
    began: float
    ended: float
    steps: int


class MadeUpRunQueue:
    """What all threads of a machine want of its CPUs: one that trains, and others as they were when a time began."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._began = machine.now

    def __enter__(self) -> MadeUpRunQueue:
        return self

    def __exit__(self, *error: object) -> None: ...

    def mean(self, stretches: Iterable[Sequence[float]] | None = None) -> float:
        if stretches is None:
            return self._machine.others(self._began)
        return 1.0 + self._machine.others(next(iter(stretches))[0])


class MadeUpSampler:
    """A py-spy that sees what the training has under it. It takes half a second to start."""

    def __init__(self, session: MadeUpSession, path: Path) -> None:
        self.seconds = 5.0
        self._session = session
        self._path = path

    def start(self) -> None:
        self._session.machine.sleep(0.5)

    def stop(self) -> Path | Warning:
        if self._session.training.hidden:
            return Warning(slug="sampling-failed", sentence="py-spy may not look.")
        file = self._session.command.cwd / "train.py"
        thread = f'process {self._session.pid}:"python train.py";thread (12): "MainThread";<module> ({file}:12)'
        seen = self._session.training.sampled.items()
        self._path.write_text("".join(f"{thread};{name} ({file}:7) {count}\n" for name, count in seen))
        return self._path

    def abandon(self) -> None:
        """Nothing was begun."""


class MadeUpSession:
    """One process: found after its start and a few steps, then as many windows as are granted before it ends."""

    def __init__(self, machine: Machine, command: Command, number: int, expected: Expected | None = None) -> None:
        self.number = number
        self.found_after = FOUND_AFTER if expected is None else FOUND_AGAIN_AFTER
        self.machine = machine
        self.command = command
        self.who, self.training = machine.trained_by(command)
        self.pid = FIRST_PID + number
        self.started = 0.0
        self.hello: Hello | None = None
        self.farewell: Ended | None = None
        self.seen = None
        self.ranks: list[Hello] = []
        self.rank_group = RankGroup()
        self.load = SimpleNamespace(mean=lambda: None)
        self.grants: list[Grant] = []
        self.stopped = 0
        """How many times it was told to end."""
        self._made = self._before = 0
        self._ahead = 0
        """Batches that workers had made when they ended, beyond those that it has trained on."""
        self.begun: list[int] = []
        """The batch, counted from the start of the training, with which the timed part of each window began."""
        self._next: tuple[float, Any] | None = None
        """The moment of the next event, and what it is."""
        self._granted: Happened | None = None
        self._step = 0.0
        """Seconds that a step takes in the window that was granted last; 0 where none is made."""

    @property
    def trains(self) -> bool:
        """Whether it runs a window."""
        return self._granted is not None

    def note(self, what: str) -> None:
        """Keep what happened to it."""
        self.machine.order.append((what, self))

    def start(self) -> None:
        machine, training = self.machine, self.training
        self.note("start")
        self.started = machine.now
        if training.unstartable:
            raise OSError(12, "Cannot allocate memory")
        if training.steps is not None and training.steps < self.found_after:
            self._ends(machine.now + training.start + training.steps * training.step)
            return
        self._made = self.found_after
        self._ahead = 2 * training.workers if training.loader else 0
        seen = sum(training.found_step(made) for made in range(self.found_after))
        self._next = (machine.now + training.start + seen, self._found())

    def _found(self) -> Found:
        training = self.training
        return replace(
            FOUND,
            step_seconds=[training.found_step(made) for made in range(1, self.found_after)],
            wait_seconds=[training.step * training.wait] * self.found_after,
            seen_alone=training.loader,
            loader_site=Site("train.py", 9) if training.loader else None,
            num_workers=training.workers,
            prefetch_factor=2 if training.workers else None,
            epoch_batches=training.epoch if training.loader else None,
            drawn_by=training.drawn_by,
            rung=training.rung,
            has_loader=training.loader,
            device=training.device,
            setup_seconds=training.start,
            position=self.found_after,
            run_steps=training.steps if training.says else None,
            obstacles=dict.fromkeys(training.able, ""),
            # None of it comes before the loop is found.
            facts={"gc_freeze": {"share": 0.001, "collections": 1, "on": True, "frozen": False}},
        )

    def _ends(self, at: float) -> None:
        words = "Traceback\nValueError: of its own" if self.training.code else ""
        self.farewell = Ended(batches=self._made, optimizer_steps=self._made, backwards=self._made, served=False)
        self._next = (at, Exited(self.training.code, words))

    def grant(self, grant: Grant) -> None:
        machine, training = self.machine, self.training
        self.grants.append(grant)
        self._before = self._made - self.found_after
        assert not any(each.trains for each in machine.sessions), "two train at a time"
        machine.granted += 1
        step = training.step_seconds(grant, self._made) * training.slow.get(machine.granted, 1.0) * self._chance(grant)
        step *= 1.0 + training.others(machine.now) / training.cpus
        unit, most, lead_in = grant.unit, grant.steps, grant.skipped + grant.lead_in
        if grant.most_lead_in_seconds:
            workers = int(grant.setting.get("num_workers", training.workers))
            lead_in = min(lead_in, max(LEAST_LEAD_IN, workers, 2 + int(grant.most_lead_in_seconds / step)))
        if grant.epochs:
            unit, most = training.epoch, grant.epochs * training.epoch
            lead_in = grant.lead_in * training.epoch + training.epoch // 2  # The rest of the epoch that it stands in.
        late = (done for done in range(unit, most, unit) if 0 < grant.most_seconds < done * step)
        steps = next(late, most)
        whole = lead_in + steps
        seconds = whole * step + training.paused(grant, steps)
        done = self._done(grant, lead_in, steps, step)
        if training.load is not None and training.loader and grant.mode != "loader_only":
            window = fed(training.queue(grant), step, lead_in, steps)
            steps, whole, seconds = window.steps, lead_in + window.steps, window.lead_in_seconds + window.seconds
            done = self._done_by_queue(grant, lead_in, window)
        name = NAMES.get(key_of(grant.setting), key_of(grant.setting)) if grant.mode == "timed" else grant.mode
        self._granted = Happened(self.number, name, machine.now, machine.now + seconds, steps)
        self._step = seconds / whole
        if training.hangs_from is not None and machine.granted >= training.hangs_from:
            self._step = 0.0
            return
        if grant.mode in training.under:
            self._next = (machine.now + step, Exited(1, "RuntimeError: under a hook"))
            return
        if training.steps is not None and self._made + whole > training.steps:
            at = machine.now + (training.steps - self._made) * step
            self._made = training.steps
            self._ends(at)
            return
        self.begun.append(self._made + self._ahead + lead_in)
        self._made += whole
        self._ahead += 2 * int(grant.setting.get("num_workers", training.workers)) if training.loader else 0
        self._next = (machine.now + seconds, replace(done, position=self._made, ahead=self._ahead))

    def _done_by_queue(self, grant: Grant, lead_in: int, window: Fed) -> WindowDone:
        training, step = self.training, window.seconds / window.steps
        wait = window.wait_seconds / window.steps
        return replace(
            self._done(grant, lead_in, window.steps, step),
            lead_in_seconds=window.lead_in_seconds,
            wait_seconds=window.wait_seconds,
            queue_change=window.change,
            ended=self.machine.now + window.lead_in_seconds + window.seconds,
            detail=_told(grant.mode, window.steps, step, wait, training.optimizer, training.load),
        )

    def _chance(self, grant: Grant) -> float:
        """How many times as long a step takes by chance."""
        training, machine = self.training, self.machine
        window = random.Random(f"window {machine.granted}").gauss(0, training.noise)
        process = random.Random(f"process {self.number}, {key_of(grant.setting)}").gauss(0, training.luck)
        return math.exp(window + (process if grant.setting else 0.0))

    def _done(self, grant: Grant, lead_in: int, steps: int, step: float) -> WindowDone:
        machine, training = self.machine, self.training
        wait = 0.0 if grant.setting.get("replay") else training.wait * step
        others = training.others(machine.now)
        return WindowDone(
            window=grant.window,
            status="ok",
            steps=steps,
            samples=4.0 * steps,
            seconds=steps * step,
            lead_in_steps=lead_in,
            lead_in_seconds=lead_in * step,
            whole_epochs=steps // training.epoch if grant.epochs else 0,
            turns=steps // training.epoch,
            turns_collecting=training.collected(grant, steps),
            wait_seconds=steps * wait,
            optimizer_steps=training.optimizer_steps,
            started=machine.now,
            ended=machine.now + (lead_in + steps) * step + training.paused(grant, steps),
            detail=_told(grant.mode, steps, step, wait, training.optimizer),
            around={
                "seconds": steps * step,
                "capacity": training.cpus * steps * step,
                # A fair share of the CPUs, beside a thread of ours for each.
                "busy": steps * step * (1.0 + training.cpus * others / (training.cpus + others)),
                "own": steps * step,
                "queued": 0.0,
            },
            stretches=[[machine.now, machine.now + steps * step]],
            losses=self._losses(grant, lead_in + steps) if grant.losses else [],
            peak_bytes=training.memory,
            workers_bytes=0,
        )

    def _losses(self, grant: Grant, steps: int) -> list[list[float]]:
        training, raised = self.training, self.training.raised.get(key_of(grant.setting), 1.0)
        if training.loss is None:
            return []
        return [[made, raised * training.loss(self.number, made)] for made in range(self._made, self._made + steps)]

    def event(self, timeout: float) -> Any:
        machine = self.machine
        if self._next is None or self._next[0] > machine.now + timeout:
            machine.sleep(timeout)
            return None
        at, event = self._next
        machine.sleep(max(0.0, at - machine.now))
        self._next = None
        if isinstance(event, Found):
            self.hello = Hello(token="", pid=self.pid, python="3.12", torch="2.9")
            self.note("loop")
        if isinstance(event, Exited):
            self.note("gone")
        if isinstance(event, WindowDone) and self._granted is not None:
            machine.happened.append(self._granted)
            self.note(machine.called(self._granted.name, self.grants[-1]))
        if isinstance(event, (Exited, WindowDone)):
            self._granted = None
        return event

    def is_away(self) -> bool:
        return False

    def has_last_step(self) -> bool:
        return False

    def progress(self) -> dict[int, int]:
        now = 0
        if self._granted is not None and self._step:
            now = int((self.machine.now - self._granted.began) / self._step)
        return {0: self._before + now if self._granted is not None else self._made - self.found_after}

    def tail(self) -> str:
        return "Epoch 1\n"

    def stop(self) -> None:
        self.stopped += 1
        self._granted = None
        self.note("end")
        self.machine.now += self.machine.stopping


def _told(
    mode: str, steps: int, step: float, wait: float, optimizer: float, load: float | None = None
) -> dict[str, Any]:
    """The detail of a window that explains."""
    if mode == "lines":
        return {"steps": 0, "functions": []}
    if mode != "phases":
        return {"steps": 0, "seconds": 0.0, "device": False, "operators": [], "waiting": ""}
    busy = step - wait
    passes = (1 - optimizer) * busy
    shares = {"data_wait": wait, "forward": passes / 2, "backward": passes / 2, "optimizer": optimizer * busy}
    shares |= dict.fromkeys(("host_to_device", "zero_grad", "between", "communication"), 0.0)
    return {
        "phases": {name: steps * seconds for name, seconds in shares.items()},
        "seconds": steps * step,
        "step_seconds": [step] * steps,
        "wait_seconds": [wait] * steps,
        "ready": 0,
        "synchronising": [],
        "garbage": {"collections": 0, "seconds": 0.0},
        "exchanges": None,
        "evaluations": {"times": 0, "seconds": 0.0, "passes": 0, "with_graph": 0},
        "frozen": [],
        "loading": None if load is None else _loaded(steps, load),
        "loading_missing": "nobody looked" if load is None else "",
        "timeline": None,
    }


def _loaded(batches: int, load: float) -> dict[str, Any]:
    """How batches were made, `load` seconds each."""
    return {
        "num_workers": 0,
        "fetch_seconds": [load] * batches,
        "collate_seconds": 0.0,
        "samples": 4.0 * batches,
        "bytes": 0.0,
        "hand_over_seconds": [],
        "delivered": batches,
        "out_of_order": 0,
        "span": 1.0,
        "workers": [],
        "files": None,
        "fetch_site": None,
        "collate_site": None,
        "transforms": [],
    }


class Noting:
    """A progress that notes what it is told, with the machine's clock."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def stage(self, text: str) -> None:
        self._machine.said.append((text, self._machine.now, None))

    def update(self, text: str, spent: float, budget: float | None) -> None:
        self._machine.said.append((text, spent, budget))

    def note(self, text: str) -> None:
        self._machine.noted.append((text, self._machine.now))

    def close(self) -> None: ...


class Examined:
    """An examination of a training on `machine`, whole. `error` where there is no report, or one that lacks figures."""

    def __init__(
        self, machine: Machine, *, budget: float | None = None, explain: bool = True, seed: int = 1, **asked: Any
    ) -> None:
        self.machine = machine
        self.outcome: ExaminationOutcome | None = None
        self.error: DoctorError | None = None
        with tempfile.TemporaryDirectory() as folder:
            request = ExaminationRequest(
                start=Start(script=Path("train.py"), in_place=True),
                output=Path(folder),
                budget=budget,
                seed=seed,
                explain=ExplainOptions(folder=Path(folder)) if explain else None,
                **asked,
            )
            try:
                self.outcome = examine(request, Noting(machine), machine.outside())
                self.error = self.outcome.error
            except DoctorError as error:
                self.error = error
        machine.expects_all_ended()

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
