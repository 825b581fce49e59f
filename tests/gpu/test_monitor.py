"""NVML on a machine that has it: the figures of a GPU that works, and what asking for them costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from bottleneck_doctor.monitor import UsageWatch, utilization
from bottleneck_doctor.monitor.gpu import Gpus

pytestmark = pytest.mark.skipif(not Gpus(os.environ).devices, reason="NVML shows no device")

BUSY = """
import torch
matrix = torch.randn(8192, 8192, device="cuda")
print("on", flush=True)
while True:
    matrix @ matrix
    torch.cuda.synchronize()
"""


def test_a_busy_gpu() -> None:
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        watch = UsageWatch(process.pid)
        watch.start()
        time.sleep(10)
        watch.stop()
    finally:
        process.kill()
        process.communicate()
    found = utilization([watch], [])
    assert found is not None
    print(found.monitor_cpu, found.missing, {name: values[-1] for name, values in found.series.items()})
    assert (found.series["gpu0_utilization"][-2] or 0) > 0.5
    assert (found.series["gpu0_memory_bytes"][-2] or 0) > 8192 * 8192 * 4
    assert found.monitor_cpu < 0.03
