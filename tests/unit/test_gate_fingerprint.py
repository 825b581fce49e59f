"""Which machine is which, and how it is described."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
from tests.unit.stored_samples import CALIBRATION, MACHINE

from bottleneck_doctor.documents.fingerprint import Calibration, Fingerprint
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.baseline import machine
from bottleneck_doctor.gate.baseline.fingerprint import _NAMES, differences, drifted
from bottleneck_doctor.gate.baseline.machine import Machine, describe_until_alike, other_machine


def test_the_same_machine_differs_in_nothing() -> None:
    assert differences(MACHINE, replace(MACHINE)) == []
    assert drifted([CALIBRATION], CALIBRATION) == []
    # Firmware takes a little more or less of it at every start.
    assert differences(MACHINE, replace(MACHINE, memory_bytes=MACHINE.memory_bytes - (64 << 20))) == []


@pytest.mark.parametrize(
    ("change", "key", "base", "head"),
    [
        ({"system": "Linux 6.11 x86_64"}, "operating system", MACHINE.system, "Linux 6.11 x86_64"),
        ({"cpu": "Xeon"}, "processor", MACHINE.cpu, "Xeon"),
        ({"usable_cpus": 8}, "cores that may be used", "4", "8"),
        ({"memory_bytes": 64 << 30}, "memory", "32 GiB", "64 GiB"),
        ({"devices": ["H200"], "driver": "550"}, "devices", "none", "H200"),
        ({"driver": "550"}, "driver of the devices", "none", "550"),
        ({"python": "CPython 3.13"}, "Python", "CPython 3.12", "CPython 3.13"),
        ({"torch": "2.9.1+cu126"}, "torch", "2.9.1+cpu", "2.9.1+cu126"),
        ({"variables": {}}, "OMP_NUM_THREADS", "4", "not set"),
    ],
)  # fmt: skip
def test_every_key_tells_machines_apart(change: dict[str, object], key: str, base: str, head: str) -> None:
    found = differences(MACHINE, replace(MACHINE, **change))  # type: ignore[arg-type]
    assert (found[0].key, found[0].base, found[0].head) == (key, base, head)


def test_nothing_that_drives_a_terminal_is_shown() -> None:
    attack = "\x1b[31m" + "x" * 5000
    found = differences(replace(MACHINE, cpu=attack, variables={attack: attack}), MACHINE)
    for each in found:
        assert all("\x1b" not in text and len(text) < 300 for text in (each.key, each.base, each.head))


def test_every_key_and_every_figure_has_a_name() -> None:
    assert {each.name for kind in (Fingerprint, Calibration) for each in fields(kind)} == set(_NAMES)


def test_speed_varies_within_wide_bounds() -> None:
    def now(**given: float) -> list[str]:
        return [each.key for each in drifted([CALIBRATION], replace(CALIBRATION, **given))]

    assert now(python_seconds=0.036, memory_bytes_per_second=10e9) == []
    assert now(python_seconds=0.040) == ["speed of Python"]
    assert now(compute_seconds=0.0015) == ["speed of one core"]
    assert now(memory_bytes_per_second=6e9) == ["speed of memory"]
    (found,) = drifted([CALIBRATION], replace(CALIBRATION, python_seconds=0.040))
    assert (found.base, found.head) == ("30 ms", "40 ms")


def test_takes_that_differ_widen_what_is_taken_for_the_same() -> None:
    takes = [CALIBRATION, replace(CALIBRATION, python_seconds=0.040)]
    assert drifted(takes, replace(CALIBRATION, python_seconds=0.049)) == []
    (found,) = drifted(takes, replace(CALIBRATION, python_seconds=0.060))
    assert found.base == "30 ms to 40 ms"


def test_what_one_side_cannot_measure_is_no_difference_of_speed() -> None:
    device = replace(CALIBRATION, device_compute_seconds=0.01)
    assert drifted([CALIBRATION], device) == drifted([device], CALIBRATION) == []


def test_a_machine_that_is_only_slow_just_now_is_looked_at_again() -> None:
    looks = [0.060, 0.031]
    slept: list[float] = []

    def describe() -> Machine:
        return Machine(MACHINE, replace(CALIBRATION, python_seconds=looks.pop(0)))

    found, differ = describe_until_alike(describe, MACHINE, [CALIBRATION], slept.append)
    assert (found.calibration.python_seconds, differ, len(slept)) == (0.031, [], 1)


def test_another_machine_is_not_looked_at_twice() -> None:
    looked = []

    def describe() -> Machine:
        looked.append(1)
        return Machine(replace(MACHINE, cpu="Xeon"), replace(CALIBRATION, python_seconds=0.06))

    _, differ = describe_until_alike(describe, MACHINE, [CALIBRATION], lambda _: None)
    assert [each.key for each in differ] == ["processor", "speed of Python"]
    assert len(looked) == 1
    refused = other_machine("base.json", differ)
    assert refused.slug == "different-machine"
    assert "processor: AMD Ryzen 7 7700X 8-Core Processor there, Xeon here; 1 more differ" in refused.sentence


def test_one_that_stays_slow_is_another() -> None:
    slow = Machine(MACHINE, replace(CALIBRATION, memory_bytes_per_second=1e9))
    _, differ = describe_until_alike(lambda: slow, MACHINE, [CALIBRATION], lambda _: None)
    assert [each.key for each in differ] == ["speed of memory"]


# -- looking -----------------------------------------------------------------------------------------------------------


def interpreter(folder: Path, text: str) -> str:
    """What stands in for an interpreter: it says what it likes."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


FACTS = {"system": "Linux", "python": "CPython 3.12", "usable_cpus": 2, "torch": "2.9.1", "devices": []}


def test_what_the_yardstick_says(tmp_path: Path) -> None:
    said = json.dumps({"facts": FACTS, "calibration": {"python_seconds": 0.03, "compute_seconds": None}})
    python = interpreter(tmp_path, f"echo 'welcome'; echo '{said}'")
    found = machine.describe(python, tmp_path, {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "3", "MY_TOKEN": "x"})
    assert found.fingerprint.torch == "2.9.1"
    assert found.fingerprint.driver == ""
    assert found.fingerprint.variables == {"OMP_NUM_THREADS": "3"}
    assert found.calibration == Calibration(python_seconds=0.03)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exit 3", "exit code 3"),
        ("echo", "can't be read"),
        ("echo '{\"facts\": {}}'", "can't be read"),
        (f"echo '{json.dumps({'facts': FACTS, 'calibration': {'python_seconds': -1}})}'", "can't be read"),
    ],
)
def test_one_that_cannot_be_described(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(DoctorError) as refused:
        machine.describe(interpreter(tmp_path, text), tmp_path, dict(os.environ))
    assert refused.value.slug == "machine-unknown"
    assert why in refused.value.sentence
    with pytest.raises(DoctorError):
        machine.describe(str(tmp_path / "nothing"), tmp_path, {})


def test_the_yardstick_imports_nothing_from_its_own_folder(tmp_path: Path) -> None:
    """The rooms of the gate have plain names, which torch might import as its own."""
    code = f"import runpy, sys; sys.path.insert(0, {str(machine.YARDSTICK.parent)!r}); runpy.run_path(" + (
        f"{str(machine.YARDSTICK)!r}, run_name='x')['main'](); print(sys.path)"
    )
    code = code.replace("sys.path.insert", "sys.modules['torch'] = None; sys.path.insert")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    said, path = done.stdout.splitlines()
    assert json.loads(said)["facts"]["torch"] == "none"
    assert json.loads(said)["calibration"]["python_seconds"] > 0
    assert str(machine.YARDSTICK.parent) not in path
