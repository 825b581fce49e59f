"""Runs a window under py-spy: a live session in; py-spy's raw file out, or the reason why there is none."""

from __future__ import annotations

import importlib.util
import math
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.schedule import Probe, probe
from bottleneck_doctor.profiling.pyspy import PySpySampler
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.session import Session

Told = TypeVar("Told")

AS_SAMPLED: Probe = probe("sampled:" + BASELINE, {}, mode="sampled")


def elsewhere(hello: messages.Hello) -> bool:
    """Whether this process runs on another host, so that its process id means nothing here."""
    return hello.host not in ("", socket.gethostname())


def not_sampled_elsewhere(hello: messages.Hello) -> Warning:
    """The warning that py-spy was not used because the process runs on another host."""
    sentence = f"py-spy can't look into rank {hello.rank}, which runs on another host ({hello.host})."
    return Warning(slug="sampling-elsewhere", sentence=sentence)


def sampled(
    sampler: PySpySampler, prober: Prober, session: Session, seconds: float, *, most_seconds: float = math.inf
) -> Path | Warning:
    """Run a window of the training as written under py-spy. Returns its raw file, or the warning why there is none.

    Raises what `Prober.explain` raises; then no file is left.
    """
    _, file = under(sampler, lambda: prober.explain(session, AS_SAMPLED, seconds, {}, most_seconds=most_seconds))
    return file


def under(sampler: PySpySampler, window: Callable[[], Told]) -> tuple[Told, Path | Warning]:
    """Run any window under py-spy. Returns what it returns, and py-spy's raw file, or the warning why there is none.

    Raises what the window raises; then no file is left.
    """
    try:
        sampler.start()
        told = window()
    except BaseException:
        # A user who interrupts should not have to wait for a file that nobody will read.
        sampler.abandon()
        raise
    return told, sampler.stop()


def folder_of(package: str) -> str:
    """The folder from which this interpreter imports a package; "" if there is none."""
    found = importlib.util.find_spec(package)
    places = found.submodule_search_locations if found is not None else None
    return str(Path(next(iter(places))).parent) if places else ""
