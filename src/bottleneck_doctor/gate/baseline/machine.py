"""Describes this machine: the interpreter that runs the training in; the machine's properties and present speed out.
This module starts the yardstick."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import psutil

from bottleneck_doctor.documents.fingerprint import Calibration, Difference, Fingerprint
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.baseline.fingerprint import differences, drifted
from bottleneck_doctor.session.environment import TOLD_VARIABLES, cpu_name

YARDSTICK = Path(__file__).with_name("yardstick.py")
LONGEST = 300.0
"""Seconds that the description may take: torch is slow to import from a network disk."""
TRIES = 3
SECONDS_BETWEEN_TRIES = 3.0
"""If only its speed says that the machine is another one, it is described again: by then, another program may have
ended."""

_COUNTED_OTHERWISE = ("CUDA_VISIBLE_DEVICES", "SLURM_CPUS_PER_TASK")
"""Variables that choose devices or cores. These are keys themselves, so the variables are left out."""


@dataclass(frozen=True)
class Machine:
    """A machine at one moment."""

    fingerprint: Fingerprint
    calibration: Calibration


@dataclass
class _Facts:
    system: str
    python: str
    usable_cpus: int
    torch: str
    devices: list[str]


@dataclass
class _Told:
    facts: _Facts
    calibration: Calibration


Describe = Callable[[str, Path, Mapping[str, str]], Machine]
"""As `describe`."""


def describe(python: str, cwd: Path, environment: Mapping[str, str]) -> Machine:
    """This machine as the interpreter `python` sees it in this environment. Raises `DoctorError` `machine-unknown`."""
    try:
        done = subprocess.run(
            [python, str(YARDSTICK)],
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
        # The user's sitecustomize may print something before.
        last = done.stdout.strip().splitlines()[-1:]
        told = msgspec.json.decode(last[0] if last else b"", type=_Told)
    except subprocess.TimeoutExpired as error:
        raise _unknown(f"it took more than {LONGEST:.0f} s", "") from error
    except OSError as error:
        raise _unknown(f"{python} can't be started ({error.strerror or error})", "") from error
    except msgspec.DecodeError as error:
        why = f"it ended with exit code {done.returncode}" if done.returncode else "its output can't be read"
        raise _unknown(why, done.stderr.decode(errors="replace")) from error
    names = [name for name in TOLD_VARIABLES if name not in _COUNTED_OTHERWISE]
    fingerprint = Fingerprint(
        system=told.facts.system,
        cpu=cpu_name(),
        usable_cpus=told.facts.usable_cpus,
        memory_bytes=psutil.virtual_memory().total,
        devices=told.facts.devices,
        driver=driver() if told.facts.devices else "",
        python=told.facts.python,
        torch=told.facts.torch,
        variables={name: environment[name] for name in names if name in environment},
    )
    return Machine(fingerprint, told.calibration)


def describe_until_alike(
    describe: Callable[[], Machine],
    base: Fingerprint,
    takes: Sequence[Calibration],
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Machine, list[Difference]]:
    """The machine, and its differences from the one that `base` and the calibrations `takes` describe."""
    machine = describe()
    differ = differences(base, machine.fingerprint)
    for _ in range(TRIES - 1):
        if differ or not drifted(takes, machine.calibration):
            break
        sleep(SECONDS_BETWEEN_TRIES)
        machine = replace(machine, calibration=describe().calibration)
    return machine, differ + drifted(takes, machine.calibration)


ELSEWHERE = (
    "Make a baseline here with `doctor baseline`, compare with --base-ref instead, or give --allow-different-machine, "
    "which marks the result."
)


def other_machine(file: str, found: Sequence[Difference], next_step: str = ELSEWHERE) -> DoctorError:
    """The error for a baseline in `file` that was made on another machine. `found`: at least one difference."""
    first = found[0]
    more = f"; {len(found) - 1} more differ" if len(found) > 1 else ""
    return DoctorError(
        "different-machine",
        f"{file} was made on another machine ({first.key}: {first.base} there, {first.head} here{more}).",
        next_step,
    )


def driver() -> str:
    """The version of NVIDIA's driver; "" if it is not known."""
    # If bindings and driver are of different releases, other errors than `NVMLError` occur.
    with contextlib.suppress(Exception):
        import pynvml

        pynvml.nvmlInit()
        try:
            version = pynvml.nvmlSystemGetDriverVersion()
            return version.decode() if isinstance(version, bytes) else str(version)
        finally:
            pynvml.nvmlShutdown()
    return ""


def _unknown(why: str, detail: str) -> DoctorError:
    return DoctorError(
        "machine-unknown",
        f"Doctor could not identify this machine, which a stored baseline needs: {why}.",
        "Check that the interpreter that runs your training can import torch. A check with --base-ref does not need "
        "this.",
        detail=detail,
    )
