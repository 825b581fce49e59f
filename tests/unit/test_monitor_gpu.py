"""Which GPUs a process may see, by its environment, and what becomes of a machine without any."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bottleneck_doctor.monitor.gpu import UNSURE, Board, Choice, Gpus, throttle_reasons, visible
from bottleneck_doctor.monitor.recording import Device

ALIKE = [Board(index, f"GPU-{index}a{index}", "H200") for index in range(4)]
UNLIKE = [Board(0, "GPU-0a0", "T4"), Board(1, "GPU-1a1", "H200")]


@pytest.mark.parametrize(
    ("listed", "devices"),
    [
        (None, (0, 1, 2, 3)),
        ("", ()),
        ("2", (2,)),
        ("3,1", (3, 1)),
        (" 3 , 1 ", (3, 1)),
        ("1,-1,2", (1,)),
        ("-1", ()),
        ("0,9,1", (0,)),
        ("1,1", ()),
        ("GPU-2", (2,)),
        ("GPU-3a3,GPU-0a0", (3, 0)),
        ("GPU-", ()),
        ("GPU-7", ()),
        ("MIG-5c0ffee,1", ("MIG-5c0ffee", 1)),
        ("none", ()),
    ],
)
def test_visible_devices(listed: str | None, devices: tuple[int | str, ...]) -> None:
    environment = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    assert visible(environment, ALIKE) == Choice(devices)


def test_order_of_unlike_boards_is_doubted() -> None:
    assert visible({}, UNLIKE).doubt == UNSURE
    assert visible({"CUDA_VISIBLE_DEVICES": "1"}, UNLIKE) == Choice((1,), UNSURE)
    assert visible({"CUDA_VISIBLE_DEVICES": "GPU-1"}, UNLIKE) == Choice((1,))
    assert visible({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, UNLIKE) == Choice((1,))


def test_throttle_reasons() -> None:
    assert throttle_reasons([]) == []
    assert throttle_reasons([float(0x1), float(0x2)]) == [], "idle, or a clock that somebody chose"
    assert throttle_reasons([float(0x4), float(0x80), float(0x4)]) == ["power cap", "power brake"]


class Failed(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


class Driver:
    """Answers as `pynvml` does on a machine with two GPUs, of which the second refuses what `refusal` says."""

    NVML_CLOCK_SM = 1
    NVML_PCIE_UTIL_TX_BYTES = 0
    NVML_PCIE_UTIL_RX_BYTES = 1

    def __init__(self, refusal: int) -> None:
        self.refusal = refusal
        self.asked = 0
        self.open = False

    def nvmlInit(self) -> None:
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return f"GPU-{handle}".encode()

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "H200"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(gpu=40 + handle, memory=7)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=10, total=100)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        if handle == 1:
            self.asked += 1
            raise Failed(self.refusal)
        return 350_000

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        return 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
        return 4

    def nvmlDeviceGetPcieThroughput(self, handle: int, counter: int) -> int:
        return 100 + 10 * handle + counter


def test_figures_and_a_gap_for_what_is_refused() -> None:
    driver = Driver(refusal=3)
    gpus = Gpus({}, driver)
    assert gpus.devices == (Device(0, "H200"), Device(1, "H200"))
    rows = [gpus.read() for _ in range(3)]
    assert rows[0]["gpu0.power_watts"] == 350
    assert (rows[0]["gpu1.utilization"], rows[0]["gpu1.memory_bytes"], rows[0]["gpu1.sm_clock_mhz"]) == (0.41, 10, 1980)
    assert rows[0] == rows[2]
    assert "gpu1.power_watts" not in rows[0]
    assert driver.asked == 1, "not supported will not change"
    assert list(gpus.missing) == ["GPU 1 does not tell its power (code 3)."]
    assert [gpus.read_pcie() for _ in range(5)] == [
        {"gpu0.pcie_tx_bytes": 102400},
        {"gpu0.pcie_rx_bytes": 103424},
        {"gpu1.pcie_tx_bytes": 112640},
        {"gpu1.pcie_rx_bytes": 113664},
        {"gpu0.pcie_tx_bytes": 102400},
    ]
    gpus.close()
    assert not driver.open


def test_a_passing_error_is_asked_again() -> None:
    driver = Driver(refusal=15)
    gpus = Gpus({"CUDA_VISIBLE_DEVICES": "1"}, driver)
    assert gpus.devices == (Device(0, "H200"),)
    for _ in range(3):
        assert gpus.read()["gpu0.utilization"] == 0.41
    assert driver.asked == 3
    gpus.close()


def test_no_driver() -> None:
    class Absent(Driver):
        def nvmlInit(self) -> None:
            raise Failed(12)

    gpus = Gpus({}, Absent(3))
    assert gpus.devices == ()
    assert gpus.read() == gpus.read_pcie() == {}
    assert list(gpus.missing) == ["GPUs: NVML does not answer (code 12)."]
    gpus.close()
