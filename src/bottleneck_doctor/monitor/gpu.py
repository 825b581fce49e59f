"""The GPUs that a session may use, by NVML: utilisation, memory, power, clock, why the clock is held down, PCIe.

A figure that can't be read (no driver, no permission, a MIG slice that has no such figure) is a gap with a note.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bottleneck_doctor.monitor.recording import Device, Missing

THROTTLE_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clock setting",
}
"""Bits of `nvmlDeviceGetCurrentClocksThrottleReasons` for reasons that slow the clock down. The reasons "idle" and
"set by an application" do not count."""


PASSING_ERRORS = (10, 15, 19, 999)
"""NVML_ERROR_TIMEOUT, _GPU_IS_LOST, _IN_USE, _UNKNOWN: a figure is asked for again. After any other error it is not."""

UNSURE = (
    "Which GPU is which: CUDA puts the fastest of these unlike GPUs first and NVML does not. "
    "CUDA_DEVICE_ORDER=PCI_BUS_ID makes them agree."
)


@dataclass(frozen=True)
class Board:
    """A GPU as NVML lists it, which is in the order of the PCI bus."""

    index: int
    uuid: str
    name: str


@dataclass(frozen=True)
class Choice:
    """The GPUs that a process may see, in its own order: indices of boards or UUIDs of slices (MIG). `doubt`: why this
    may be wrong; "" if it is sure."""

    devices: tuple[int | str, ...]
    doubt: str = ""


def visible(environment: Mapping[str, str], boards: Sequence[Board]) -> Choice:
    """The GPUs that CUDA shows a process with this environment (CUDA C++ Programming Guide, CUDA_VISIBLE_DEVICES)."""
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    in_order = environment.get("CUDA_DEVICE_ORDER", "") == "PCI_BUS_ID" or len({each.name for each in boards}) <= 1
    unsure = "" if in_order else UNSURE
    if listed is None:
        return Choice(tuple(each.index for each in boards), unsure)
    chosen: list[int | str] = []
    doubt = ""
    for word in (each.strip() for each in listed.split(",")):
        device: int | str | None = None
        if word.startswith("MIG-"):
            device = word
        elif word.startswith("GPU-"):
            matches = [each.index for each in boards if each.uuid.startswith(word)]
            device = matches[0] if len(matches) == 1 else None
        elif word.isdigit() and int(word) < len(boards):
            device = int(word)
            doubt = unsure
        if device is None:
            break  # CUDA shows the devices before the first unknown one, and none after it.
        if device in chosen:
            return Choice(())  # If one is listed twice, CUDA shows none.
        chosen.append(device)
    return Choice(tuple(chosen), doubt)


def throttle_reasons(masks: Sequence[float]) -> list[str]:
    """Names of all reasons whose bit is set in any of these masks."""
    together = 0
    for mask in masks:
        together |= int(mask)
    return [name for bit, name in THROTTLE_REASONS.items() if together & bit]


@dataclass
class _Gpu:
    device: Device
    handle: Any
    whole: Any
    """The board that a slice is part of: power and clocks are the board's."""
    refused: set[str] = field(default_factory=set)


class Gpus:
    """Opens NVML. `read` and `read_pcie` give columns; `close` gives NVML back."""

    def __init__(self, environment: Mapping[str, str], nvml: Any = None) -> None:
        """`nvml`: a module with the functions of `pynvml`; None: `pynvml` itself."""
        self.missing = Missing()
        self._gpus: list[_Gpu] = []
        self._opened = False
        self._pcie_turn = 0
        if nvml is None:
            try:
                nvml = importlib.import_module("pynvml")
            except ImportError:
                self.missing.add("GPUs: the package nvidia-ml-py is not installed.")
                return
        self._nvml = nvml
        try:
            nvml.nvmlInit()
            self._opened = True
            self._find(environment)
        except Exception as error:  # Bindings and driver of unlike releases fail in more ways than `NVMLError`.
            self.missing.add(f"GPUs: NVML does not answer ({error}).")

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(each.device for each in self._gpus)

    def close(self) -> None:
        if self._opened:
            self._opened = False
            with contextlib.suppress(Exception):
                self._nvml.nvmlShutdown()

    def _find(self, environment: Mapping[str, str]) -> None:
        nvml = self._nvml
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        boards = [
            Board(index, _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle)))
            for index, handle in enumerate(handles)
        ]
        choice = visible(environment, boards)
        if choice.doubt:
            self.missing.add(choice.doubt)
        for device in choice.devices:
            try:
                handle = handles[device] if isinstance(device, int) else nvml.nvmlDeviceGetHandleByUUID(device)
                whole = handle if isinstance(device, int) else nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
                name = _text(nvml.nvmlDeviceGetName(handle))
            except Exception as error:
                self.missing.add(f"GPU {device}: NVML does not know it ({error}).")
                continue
            self._gpus.append(_Gpu(Device(len(self._gpus), name), handle, whole))

    def read(self) -> dict[str, float]:
        """Everything but PCIe, of every GPU."""
        nvml = self._nvml
        row: dict[str, float] = {}
        for gpu in self._gpus:
            prefix = f"gpu{gpu.device.index}."
            use = self._ask(gpu, "utilisation", nvml.nvmlDeviceGetUtilizationRates, gpu.handle)
            if use is not None:
                row[prefix + "utilization"] = use.gpu / 100
            memory = self._ask(gpu, "memory", nvml.nvmlDeviceGetMemoryInfo, gpu.handle)
            if memory is not None:
                row[prefix + "memory_bytes"] = memory.used
                row[prefix + "memory_total_bytes"] = memory.total
            power = self._ask(gpu, "power", nvml.nvmlDeviceGetPowerUsage, gpu.whole)
            if power is not None:
                row[prefix + "power_watts"] = power / 1000
            clock = self._ask(gpu, "clock", nvml.nvmlDeviceGetClockInfo, gpu.whole, nvml.NVML_CLOCK_SM)
            if clock is not None:
                row[prefix + "sm_clock_mhz"] = clock
            held = self._ask(gpu, "throttle reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu.whole)
            if held is not None:
                row[prefix + "throttle_mask"] = held
        return row

    def read_pcie(self) -> dict[str, float]:
        """Read one direction of one GPU, in turn, because NVML watches the bus for 20 ms each time and blocks."""
        if not self._gpus:
            return {}
        nvml = self._nvml
        gpu = self._gpus[self._pcie_turn // 2 % len(self._gpus)]
        field_name, counter = (
            ("pcie_tx_bytes", nvml.NVML_PCIE_UTIL_TX_BYTES),
            ("pcie_rx_bytes", nvml.NVML_PCIE_UTIL_RX_BYTES),
        )[self._pcie_turn % 2]
        self._pcie_turn += 1
        kilobytes = self._ask(gpu, "PCIe traffic", nvml.nvmlDeviceGetPcieThroughput, gpu.whole, counter)
        return {} if kilobytes is None else {f"gpu{gpu.device.index}.{field_name}": kilobytes * 1024}

    def _ask(self, gpu: _Gpu, what: str, question: Callable[..., Any], *arguments: Any) -> Any:
        if what in gpu.refused:
            return None
        try:
            return question(*arguments)
        except Exception as error:
            if getattr(error, "value", None) not in PASSING_ERRORS:
                gpu.refused.add(what)
            self.missing.add(f"GPU {gpu.device.index} does not tell its {what} ({error}).")
            return None


def _text(value: Any) -> str:
    # Releases of NVML's bindings before 12 give bytes.
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
