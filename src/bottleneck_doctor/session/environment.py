"""The machine and the libraries, as far as a report may name them: an allow-list, never the whole environment."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import psutil

from bottleneck_doctor.documents.report import Environment
from bottleneck_doctor.runtime.wire.messages import Found, Hello

TOLD_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "KMP_AFFINITY",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
    "PYTORCH_CUDA_ALLOC_CONF",
    "SLURM_CPUS_PER_TASK",
)
"""Variables that change speed and hold no secrets."""


def describe(hello: Hello | None, found: Found | None) -> Environment:
    """The environment: of the examined process as far as its guest reported it, otherwise of this machine."""
    cpu = cpu_name()
    total = os.cpu_count() or 1
    memory = psutil.virtual_memory().total
    devices = list(hello.devices) if hello else []
    python = hello.python if hello else platform.python_version()
    torch = hello.torch if hello else ""
    usable = found.usable_cpus if found else total
    key = "|".join([cpu, str(usable), str(memory >> 30), ",".join(devices), python, torch])
    return Environment(
        python=python,
        torch=torch,
        platform=platform.platform(),
        cpu=cpu,
        usable_cpus=usable,
        total_cpus=total,
        memory_bytes=memory,
        devices=devices,
        variables={name: os.environ[name] for name in TOLD_VARIABLES if name in os.environ},
        fingerprint=hashlib.sha256(key.encode()).hexdigest()[:16],
    )


def cpu_name() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
