"""Parts of making a batch that are slow only because many threads compute them and wait for one another.

Workers compute with one thread each, so a window with workers shows how long the same work takes with one thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.documents.report import Loading, TransformCost

FAR_LESS = 3.0
"""If work takes this many times as long in the training process as in a worker, the work itself isn't slow. Ours: many
threads that share work worth sharing are faster than one, and not slower."""


@dataclass(frozen=True)
class Contended:
    """What takes far less in a worker. Milliseconds a batch, in the training process and in a worker."""

    transforms: tuple[TransformCost, ...]
    collate: bool
    milliseconds: float
    elsewhere: float

    def __bool__(self) -> bool:
        return self.collate or bool(self.transforms)


def contended(evidence: Evidence) -> Contended:
    """The parts of making a batch that take far less time in a worker, although the work is the same."""
    here = evidence.as_written
    there = next((each for each in evidence.loading if each.num_workers > 0), None)
    nothing = Contended((), False, 0.0, 0.0)
    if here is None or there is None or here.num_workers or evidence.found.threads < 2:
        return nothing
    elsewhere = {_key(each): each for each in there.transforms}
    slower = [
        (each, elsewhere[_key(each)])
        for each in here.transforms
        if _key(each) in elsewhere and each.ms_per_sample >= FAR_LESS * elsewhere[_key(each)].ms_per_sample
    ]
    collate = here.collate_ms >= FAR_LESS * there.collate_ms > 0
    return Contended(
        tuple(each for each, _ in slower),
        collate,
        _batch(here, [each for each, _ in slower]) + (here.collate_ms if collate else 0.0),
        _batch(there, [each for _, each in slower]) + (there.collate_ms if collate else 0.0),
    )


def _key(each: TransformCost) -> tuple[str, str, int]:
    return each.name, each.made_file, each.made_line


def _batch(loading: Loading, transforms: list[TransformCost]) -> float:
    return sum(each.ms_per_sample for each in transforms) * loading.samples_per_batch
