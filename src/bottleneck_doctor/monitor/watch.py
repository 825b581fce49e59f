"""The sampling thread: reads the counters of one session ten times a second and records them.

It knows no windows and judges nothing. Everything except the processes' own counters is read less often, each source at
a rate that keeps its cost within its share; all shares together are under 2 % of one core.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Protocol

from bottleneck_doctor.monitor.accounts import Accounts, Member
from bottleneck_doctor.monitor.gpu import Gpus
from bottleneck_doctor.monitor.machine import LinuxMachine
from bottleneck_doctor.monitor.pace import Pace
from bottleneck_doctor.monitor.psutil_backend import PsutilMachine, PsutilTree
from bottleneck_doctor.monitor.recording import Missing, Recorder, UsageRecording
from bottleneck_doctor.monitor.tree import LinuxTree, slurp

INTERVAL = 0.1
"""Seconds from one sample to the next."""
PSS_AGAIN = 5.0
"""Seconds after which a process' PSS is read again: the kernel walks all of its memory for it."""
ON_LINUX = sys.platform.startswith("linux")

now = time.perf_counter
"""The guest stamps its windows with the same clock, which all processes of a machine share."""


class Tree(Protocol):
    """The session's processes."""

    missing: Missing

    def read(self, now: float) -> Mapping[int, Member]: ...
    def switches(self) -> dict[str, tuple[int, int]]: ...
    def pss(self, now: float, again: float) -> dict[str, float]: ...
    def close(self) -> None: ...


class Machine(Protocol):
    """The machine that they run on."""

    missing: Missing

    def read(self, now: float) -> dict[str, float]: ...
    def clock(self, now: float) -> float | None: ...
    def close(self) -> None: ...


class UsageSampler:
    """One sample at a time, on the caller's thread. `sample` reads what is due, `recording` gives all of it."""

    def __init__(self, pid: int) -> None:
        environment = _environment(pid)
        self._began_cpu = time.thread_time()
        self._tree: Tree = LinuxTree(pid) if ON_LINUX else PsutilTree(pid)
        self._machine: Machine = LinuxMachine(pid) if ON_LINUX else PsutilMachine()
        self._accounts = Accounts()
        self.missing = Missing()
        # Shares of one core. Together 1.9 %.
        self.pace = Pace(INTERVAL, 0.008)
        self._switches_pace = Pace(1.0, 0.002)
        self._pss_pace = Pace(0.5, 0.002)
        self._machine_pace = Pace(0.5, 0.003)
        self._gpu_pace = Pace(0.2, 0.003)
        self._pcie_pace = Pace(1.0, 0.001)
        begun = now()
        self._last: dict[str, float] = {}
        self._recorder = Recorder(begun)
        self._before = begun
        self._accounts.tick(0.0, self._tree.read(begun))
        self._read_machine(begun)
        self._tree.switches()
        self._last["switches"] = begun
        # Last, because it takes long: what the session does meanwhile is in the next sample.
        self._gpus = Gpus(environment)

    def sample(self) -> bool:
        """Take one sample. False once the session's main process is gone."""
        at, cost = now(), time.thread_time()
        if at <= self._before:
            return True
        seen = self._tree.read(at)
        self._recorder.row(at, self._accounts.tick(at - self._before, seen))
        self._before = at
        cost = self._charge(self.pace, at, cost)
        if self._switches_pace.due(at):
            self._read_switches(at)
            cost = self._charge(self._switches_pace, at, cost)
        if self._pss_pace.due(at):
            for role, size in self._tree.pss(at, PSS_AGAIN).items():
                self._recorder.fill(f"{role}.pss_bytes", self._last.get("pss", at - 1e-9), size)
            self._last["pss"] = at
            cost = self._charge(self._pss_pace, at, cost)
        if self._machine_pace.due(at):
            self._read_machine(at)
            cost = self._charge(self._machine_pace, at, cost)
        if self._gpus.devices:
            self._read_gpus(at, cost)
        return any(member.role == "main" for member in seen.values())

    def _charge(self, pace: Pace, at: float, since: float) -> float:
        spent = time.thread_time()
        pace.spent(at, spent - since)
        return spent

    def _read_switches(self, at: float) -> None:
        since = self._last["switches"]
        for role, (voluntary, involuntary) in self._tree.switches().items():
            self._recorder.fill(f"{role}.voluntary_switches", since, voluntary / (at - since))
            self._recorder.fill(f"{role}.involuntary_switches", since, involuntary / (at - since))
        self._last["switches"] = at

    def _read_machine(self, at: float) -> None:
        since = self._last.get("machine", at)
        row = self._machine.read(at)
        clock = self._machine.clock(at)
        if clock is not None:
            self._last["clock"] = clock
        if "clock" in self._last:
            row["cpu_mhz"] = self._last["clock"]
        for name, value in row.items():
            self._recorder.fill(name, since, value)
        self._last["machine"] = at

    def _read_gpus(self, at: float, cost: float) -> None:
        if self._gpu_pace.due(at):
            for name, value in self._gpus.read().items():
                self._recorder.fill(name, self._last.get("gpu", at - 1e-9), value)
            self._last["gpu"] = at
            cost = self._charge(self._gpu_pace, at, cost)
        if self._pcie_pace.due(at):
            for name, value in self._gpus.read_pcie().items():
                # Each value is read again after as many calls, and stays until then.
                self._recorder.fill(name, self._last.get(name, at - 1e-9), value)
                self._last[name] = at
            self._charge(self._pcie_pace, at, cost)

    def recording(self) -> UsageRecording:
        missing = (*self._tree.missing, *self._machine.missing, *self._gpus.missing, *self.missing)
        return self._recorder.recording(self._gpus.devices, time.thread_time() - self._began_cpu, missing)

    def close(self) -> None:
        self._tree.close()
        self._machine.close()
        self._gpus.close()


class UsageWatch:
    """Watches the session whose main process is `pid`, from `start` to `stop`. Neither ever raises."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._told = threading.Event()
        self._thread: threading.Thread | None = None
        self._recording: UsageRecording | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take the last sample and end. Can be called twice, and after the session's end."""
        self._told.set()
        if self._thread is not None:
            self._thread.join(5.0)

    @property
    def recording(self) -> UsageRecording | None:
        """The recording; None while it is still watching, or if it could not begin."""
        return self._recording

    def _run(self) -> None:
        try:
            sampler = UsageSampler(self._pid)
        except Exception as error:
            at = now()
            self._recording = UsageRecording(at, [], {}, missing=(_failure(error),))
            return
        try:
            self._told.wait(INTERVAL)
            while sampler.sample() and not self._told.is_set():
                self._told.wait(sampler.pace.wait(now()))
        except Exception as error:
            # Training goes on and is measured without a monitor.
            sampler.missing.add(_failure(error))
        finally:
            self._recording = sampler.recording()
            sampler.close()


def _failure(error: Exception) -> str:
    return f"The monitor failed ({type(error).__name__}: {error}); what it had seen until then is kept."


def _environment(pid: int) -> Mapping[str, str]:
    """Variables that the process was started with."""
    try:
        block = slurp(f"/proc/{pid}/environ")
    except OSError:
        return os.environ
    pairs = (entry.partition(b"=") for entry in block.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
