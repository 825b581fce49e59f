"""Made-up stored baselines with exact figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from bottleneck_doctor.documents.fingerprint import Calibration, Fingerprint
from bottleneck_doctor.documents.report import Entrypoint, Tool
from bottleneck_doctor.documents.stored_baseline import Draw, Stored, Take

FIRST = datetime(2026, 11, 14, 3, 17, tzinfo=timezone.utc)
NOISE = (0.002, -0.003, 0.001, -0.001, 0.003)

MACHINE = Fingerprint(
    system="Linux 6.8 x86_64, glibc 2.39",
    cpu="AMD Ryzen 7 7700X 8-Core Processor",
    usable_cpus=4,
    memory_bytes=32 << 30,
    python="CPython 3.12",
    torch="2.9.1+cpu",
    variables={"OMP_NUM_THREADS": "4"},
)
CALIBRATION = Calibration(python_seconds=0.030, compute_seconds=0.0026, memory_bytes_per_second=15e9)


def moment(days: float) -> str:
    return (FIRST + timedelta(days=days)).isoformat()


def draw(
    step: float,
    days: float = 0.0,
    *,
    samples: float = 4.0,
    loader: bool = True,
    whole: bool = False,
    figures: Mapping[str, float] | None = None,
) -> Draw:
    """One process whose windows all take the same."""
    usual = {"data_wait": 0.1, "host_memory": float(1 << 30), "first_step": 4.0, "epoch_turn": 0.2}
    return Draw(
        taken=moment(days),
        steps=[step] * 3,
        samples_per_step=samples,
        has_loader=loader,
        whole_epochs=whole,
        figures=dict(usual if figures is None else figures),
    )


def take(draws: Sequence[Draw], commit: str | None = "4fa76021c6f4") -> Take:
    return Take(taken=draws[0].taken, commit=commit, dirty=False, calibration=CALIBRATION, draws=list(draws))


def stored(times: int = 6, processes: int = 5, step: float = 0.020, **given: object) -> Stored:
    """A baseline of so many times, a day apart, that agree as nearly as `NOISE` does."""
    takes = [
        take([draw(step * (1 + NOISE[day % 5] + NOISE[(day + number) % 5]), day) for number in range(processes)])
        for day in range(times)
    ]
    made = Stored(
        tool=Tool(name="bottleneck-doctor", version="0.1.0"),
        entrypoint=Entrypoint(argv=["train.py"], cwd="/home/ada/pets"),
        machine=MACHINE,
        steady=True,
        takes=takes,
    )
    return replace(made, **given)  # type: ignore[arg-type]
