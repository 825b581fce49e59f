"""The curve of the number of workers: which numbers may still be faster than those measured so far. Pure.

The curve is searched, not swept. Once one number leaves no waiting for batches, a larger one can save nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.examine.evidence import Candidate
from bottleneck_doctor.examine.ladder import pays
from bottleneck_doctor.knobs import num_workers
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.supply import HARDLY, WAITING


def speeds(candidates: Iterable[Candidate], measured: Measurements) -> dict[int, float]:
    """Rough speed by number of workers, as far as measured; that of the user's own number is 1."""
    known, own = measured.speeds(), measured.found.num_workers
    counts = {num_workers.alone(setting): setting for candidate in candidates for setting in candidate.settings}
    return {own: 1.0} | {
        count: known[labels.key_of(setting)]
        for count, setting in counts.items()
        if count is not None and labels.key_of(setting) in known
    }


def waits(measured: Measurements) -> dict[int, float]:
    """The part of the time that steps wait for batches, by number of workers: in windows that change nothing else."""
    shares, own = pairing.waiting(measured.windows), measured.found.num_workers
    settings = {window.label: window.setting for window in measured.windows if window.label in shares}
    counts = {key: own if key == BASELINE else num_workers.alone(setting) for key, setting in settings.items()}
    return {count: shares[key] for key, count in counts.items() if count is not None}


def pointless(counts: Sequence[int], measured: Measurements) -> frozenset[int]:
    """The numbers of workers that can't be faster than one of those measured.

    A larger number saves nothing where a smaller one leaves hardly any waiting. A smaller number than the user's makes
    steps wait longer where they wait already, unless workers take each other's CPUs. No workers at all may still be
    faster, because nothing has to be handed over then.
    """
    found, shares = measured.found, waits(measured)
    enough = min((count for count, share in shares.items() if count > 0 and share < HARDLY), default=None)
    out = {count for count in counts if enough is not None and count > enough}
    if shares.get(found.num_workers, 0.0) >= WAITING and found.num_workers < found.usable_cpus:
        out |= {count for count in counts if 0 < count < found.num_workers}
    return frozenset(out)


def drop_pointless(candidates: Iterable[Candidate], measured: Measurements) -> None:
    """Take the numbers of workers that are pointless, and not measured yet, out of the settings of candidates."""
    known = measured.sessions_by_key().keys()
    for candidate in candidates:
        if candidate.sweep:
            counts = [count for count in map(num_workers.alone, candidate.settings) if count is not None]
            out = {labels.key_of(num_workers.setting_of(count)) for count in pointless(counts, measured)} - known
            candidate.settings = [each for each in candidate.settings if labels.key_of(each) not in out]


def hidden(candidates: Iterable[Candidate], measured: Measurements, best: Setting) -> list[Candidate]:
    """The fixes of computing that can't show by themselves, but may show on top of the `best` number of workers.

    Workers make batches while the model computes. As long as steps wait for batches, a faster model only waits longer.
    """
    shares, own, count = waits(measured), measured.found.num_workers, num_workers.alone(best)
    if count is None or not own or not shares.get(own, 0.0) >= WAITING > shares.get(count, 1.0):
        return []
    known = measured.speeds()
    return [each for each in candidates if each.fix.target == "compute" and not pays(each, known)]
