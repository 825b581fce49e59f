"""Stacks that py-spy samples in a window of a live process: the process and py-spy's raw file in, a profile out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bottleneck_doctor.documents.report import SamplingProfile, Warning
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.sampled import elsewhere
from bottleneck_doctor.measure.starter import Live
from bottleneck_doctor.profiling.pyspy import PySpySampler, usual_rate
from bottleneck_doctor.profiling.sampling import sampling_profile
from bottleneck_doctor.system.output import ARTIFACTS_NAME


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """What the user wants of the explanation. `folder`: where raw files are put meanwhile. `rate`: samples a second of
    each process; None: as many as slow them little."""

    folder: Path
    rate: int | None = None
    native: bool = False


class Stacks:
    """Makes samplers for live processes, and reads what they wrote. `make`: makes one for a process id."""

    def __init__(self, options: ExplainOptions, make: Callable[..., PySpySampler], measured: Measurements) -> None:
        self._options = options
        self._make = make
        self._measured = measured

    def sampler(self, live: Live) -> PySpySampler | None:
        """What samples the stacks of this process; None if it runs on another host, or did not show itself."""
        hello, options = live.session.hello, self._options
        if hello is None or elsewhere(hello):
            return None
        return self._make(hello.pid, options.folder, rate=self._rate(), native=options.native)

    def read(self, live: Live, sampler: PySpySampler, file: Path | Warning) -> SamplingProfile | Warning:
        """The profile of what was written, or the warning why there is none."""
        if isinstance(file, Warning):
            return file
        assert live.session.hello is not None
        try:
            profile = sampling_profile(
                [file],
                rate=self._rate(),
                seconds=sampler.seconds,
                main_pids=[live.session.hello.pid],
                own_roots=[Path.cwd()],
                speedscope_file=self._options.folder / "profile.speedscope.json",
            )
        except DoctorError as error:
            return Warning(slug=error.slug, sentence=f"{error.sentence} {error.next_step}")
        return replace(profile, files=[f"{ARTIFACTS_NAME}/{name}" for name in profile.files])

    def _rate(self) -> int:
        return self._options.rate or usual_rate(1 + self._measured.found.num_workers)
