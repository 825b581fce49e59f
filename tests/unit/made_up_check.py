"""Checks on a machine that is made up (`made_up_machine`): pairs of processes, or processes of the head alone.

`Checked(base=Training(...), head=Training(...))` runs a whole check in the working folder, whose last commit is the
head and the one before it the base; `Recorded` makes a stored baseline, and `Held` checks against one. Everything is
ours, and git is git: only processes, py-spy, the kernel's figures of memory and time are not there. What happened is
kept in order (`names`): `window base`, `end head`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.unit.made_up_machine import Machine, MadeUpSession, Noting, Training
from tests.unit.stored_samples import CALIBRATION, MACHINE, stored

from bottleneck_doctor.config import Config
from bottleneck_doctor.documents.check import Check
from bottleneck_doctor.documents.stored_baseline import Draw, Stored
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.baseline import recording, stored_check
from bottleneck_doctor.gate.baseline.machine import Machine as Described
from bottleneck_doctor.gate.baseline.single import Training as Started
from bottleneck_doctor.gate.check import CheckOutcome, check
from bottleneck_doctor.gate.limits import configured_for_edit
from bottleneck_doctor.gate.plan import WINDOW_SECONDS
from bottleneck_doctor.gate.request import CheckRequest, TryRequest
from bottleneck_doctor.gate.sides.edit import planned
from bottleneck_doctor.gate.tried import THRESHOLD
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.prober import TOO_LONG
from bottleneck_doctor.runtime.wire.messages import Grant
from bottleneck_doctor.session.session import Command
from bottleneck_doctor.session.start import Start

LOOKS = ("memory", "workers")
"""Of what is noted, what only looks at a process."""

Trainings = Training | Sequence[Training]
"""What one side trains: in every process, or in one after another, the last for all that follow."""


@dataclass(kw_only=True)
class PairMachine(Machine):
    """One on which two revisions are trained. The head's processes start in `home`."""

    sides: Mapping[str, Trainings]
    home: Path = field(default_factory=lambda: Path.cwd().resolve())

    def side_of(self, command: Command) -> str:
        """Whose process a command starts."""
        return "head" if command.cwd.resolve() == self.home else "base"

    def trained_by(self, command: Command) -> tuple[str, Training]:
        who = self.side_of(command)
        trainings = self.sides[who]
        if isinstance(trainings, Training):
            return who, trainings
        before = sum(session.who == who for session in self.sessions)
        return who, trainings[min(before, len(trainings) - 1)]

    def called(self, name: str, grant: Grant) -> str:
        if name != "baseline":
            return name
        # A guest is not told that it warms up: such windows are planned half as long.
        return "burn-in" if grant.most_seconds < 0.75 * TOO_LONG * WINDOW_SECONDS else "window"

    def outside(self) -> Outside:
        def peak_bytes(pids: Iterable[int]) -> int | None:
            seen = [self.by_pid(pid) for pid in pids]
            for session in seen:
                session.note("memory")
            return sum(session.training.memory for session in seen) or None

        def worker_watch(pids: Iterable[int]) -> Any:
            return _MadeUpWatch([self.by_pid(pid) for pid in pids])

        return Outside(**self.given(), peak_bytes=peak_bytes, worker_watch=worker_watch)


class _MadeUpWatch:
    """Looks at workers that have nothing for themselves."""

    def __init__(self, sessions: Iterable[MadeUpSession]) -> None:
        self.peak = 0
        self._sessions = list(sessions)

    def __enter__(self) -> _MadeUpWatch:
        for session in self._sessions:
            session.note("workers")
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was begun."""


class _Ran:
    """Something that ran on a machine. `error`: why nothing could be compared; `interrupted`: somebody pressed Ctrl-C.

    Whatever happened, every process that was started was ended, once.
    """

    def __init__(self, machine: PairMachine, run: Callable[[], Any]) -> None:
        self.machine = machine
        self.error: DoctorError | None = None
        self.interrupted = False
        self.came: Any = None
        try:
            self.came = run()
        except DoctorError as error:
            self.error = error
        except KeyboardInterrupt:
            self.interrupted = True
        machine.expects_all_ended()

    @property
    def names(self) -> list[str]:
        """What happened, in order, but for looks."""
        return self._of(self.machine.sessions)

    def with_looks(self) -> list[str]:
        """What happened, in order."""
        return [f"{what} {session.who}" for what, session in self.machine.order]

    def in_pair(self, number: int) -> list[str]:
        """What happened to both processes of a pair, in order, but for looks."""
        return self._of(self.machine.sessions[2 * number - 2 : 2 * number])

    def _of(self, some: Sequence[MadeUpSession]) -> list[str]:
        order = self.machine.order
        return [f"{what} {session.who}" for what, session in order if session in some and what not in LOOKS]

    def windows(self, number: int = 1) -> list[str]:
        """Whose windows a pair's were, in order, by round: `base head`."""
        seen = [name.split()[1] for name in self.in_pair(number) if name.startswith("window")]
        return [" ".join(seen[at : at + 2]) for at in range(0, len(seen), 2)]

    def expects(self, *names: str) -> None:
        """That it began with these."""
        assert self.names[: len(names)] == list(names), self.names


class Checked(_Ran):
    """A check of the working folder against the commit before."""

    def __init__(
        self,
        base: Trainings | None = None,
        head: Trainings | None = None,
        *,
        seed: int = 1,
        interrupted_at: float | None = None,
        **asked: Any,
    ) -> None:
        sides = {"base": base or Training(), "head": head or Training()}
        machine = PairMachine(sides=sides, interrupted_at=interrupted_at)
        request = CheckRequest(start=_start(), base_ref="HEAD~1", seed=seed, **asked)
        super().__init__(machine, lambda: check(request, Noting(machine), machine.outside()))

    @property
    def check(self) -> Check:
        assert isinstance(self.came, CheckOutcome), self.error
        return self.came.check

    @property
    def warnings(self) -> set[str]:
        return {warning.slug for warning in self.check.warnings}


@dataclass(kw_only=True)
class EditMachine(PairMachine):
    """One on which a program is trained as written and with an edit: in a copy, or with a variable of the edit's."""

    marks: tuple[str, ...] = ()

    def side_of(self, command: Command) -> str:
        edited = command.cwd.resolve() != self.home or any(name in command.environment for name in self.marks)
        return "head" if edited else "base"


class Tried(Checked):
    """An edit of `train.py` in the working folder that is tried: another text of it, or variables."""

    def __init__(
        self,
        base: Trainings | None = None,
        head: Trainings | None = None,
        *,
        text: bytes | None = None,
        seed: int = 1,
        interrupted_at: float | None = None,
        **asked: Any,
    ) -> None:
        variables = {} if text is not None else {"FAST": "1"}
        sides = {"base": base or Training(), "head": head or Training()}
        machine = EditMachine(sides=sides, interrupted_at=interrupted_at, marks=tuple(variables))
        script = None if text is None else ("new.py", text)
        edit = planned(_start(), Path.cwd(), script=script, variables=variables)
        request = TryRequest(
            start=_start(), edit=edit, seed=seed, **{"limits": configured_for_edit(Config(), None, THRESHOLD), **asked}
        )
        _Ran.__init__(self, machine, lambda: check(request, Noting(machine), machine.outside()))


class Held(Checked):
    """A check of the working folder against a stored baseline, of a step of 10 ms unless another one is given."""

    def __init__(
        self, head: Trainings, baseline: Stored | None = None, *, interrupted_at: float | None = None, **asked: Any
    ) -> None:
        machine = PairMachine(sides={"head": head}, interrupted_at=interrupted_at)
        request = stored_check.StoredCheckRequest(
            training=Started(start=_start()), baseline=baseline or stored(step=0.010), file="base.json", **asked
        )
        _Ran.__init__(
            self, machine, lambda: stored_check.check(request, Noting(machine), _described, outside=machine.outside())
        )


class Recorded(_Ran):
    """A stored baseline of the working folder."""

    def __init__(self, head: Trainings, *, interrupted_at: float | None = None, **asked: Any) -> None:
        machine = PairMachine(sides={"head": head}, interrupted_at=interrupted_at)
        request = recording.RecordingRequest(training=Started(start=_start()), file="base.json", **asked)
        super().__init__(
            machine, lambda: recording.record(request, Noting(machine), _described, outside=machine.outside())
        )

    @property
    def draws(self) -> list[Draw]:
        """Of the processes that it added."""
        assert isinstance(self.came, recording.RecordingOutcome), self.error
        return self.came.baseline.takes[-1].draws

    @property
    def warnings(self) -> set[str]:
        assert isinstance(self.came, recording.RecordingOutcome), self.error
        return {warning.slug for warning in self.came.warnings}


def _start() -> Start:
    return Start(script=Path("train.py"), in_place=True)


def _described(python: str, cwd: Path, environment: Mapping[str, str]) -> Described:
    """The machine that stored baselines are made on."""
    assert os.path.isabs(cwd)
    return Described(MACHINE, CALIBRATION)
