"""Raw files of py-spy in; the report's call trees and tables of functions out, for main process and workers apart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bottleneck_doctor.documents.report import CallNode, HotFunction, SamplingProfile
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.profiling import speedscope
from bottleneck_doctor.profiling.hot import ROLES, Roles, assign_roles, hot_functions
from bottleneck_doctor.profiling.origin import Origin, in_package
from bottleneck_doctor.profiling.raw import RawProfile, read
from bottleneck_doctor.profiling.tree import LEAST_SHARE, MOST_NODES, Freezer
from bottleneck_doctor.wording.words import count_text, share_text

MOST_FUNCTIONS = 60
"""Rows of each role that `report.json` holds; the raw file has all."""

WAITING = "workers_idle"
"""Key of `SamplingProfile.samples`: those of workers that waited for an order, left out of their tree and table."""


@dataclass(frozen=True)
class PySpyRecording:
    """Raw files that were read, with the role of each process. Both the commands and the examination use this."""

    profile: RawProfile
    roles: Roles
    own: list[bool]

    def functions(
        self, *, library: str | None = None, merge: bool = True, most: int | None = None
    ) -> list[HotFunction]:
        """The functions that were running, with their caller in the user's own code, or in the package `library`.

        Raises `DoctorError` `unknown-library` if no frame belongs to that package.
        """
        tagged = self.own
        if library is not None:
            tagged = [in_package(frame.path, library) for frame in self.profile.frames]
            if not any(tagged):
                raise DoctorError(
                    "unknown-library",
                    f"The recording has no function of {library}.",
                    "Give the name under which the package is imported, such as torch, torchvision.transforms or PIL.",
                )
        return hot_functions(self.profile, self.roles, tagged, merge=merge, most=most)

    def samples(self) -> dict[str, int]:
        """Samples by role; under `WAITING` those of workers that had nothing to load."""
        totals = self.profile.tree.totals()
        counts = {role: sum(totals[root] for root in self.roles.roots(role)) for role in ROLES}
        samples: dict[str, int] = {role: count for role, count in counts.items() if count}
        if self.profile.waiting_samples:
            samples[WAITING] = self.profile.waiting_samples
        return samples

    def notes(self) -> list[str]:
        """Sentences about what was skipped or left out."""
        profile, samples = self.profile, self.samples()
        notes = []
        if profile.malformed:
            lines = count_text(profile.malformed, "line")
            were = "that holds no stack was" if profile.malformed == 1 else "that hold no stack were"
            notes.append(f"{lines} {were} skipped (first: {profile.first_malformed}).")
        if profile.waiting_samples:
            busy = samples.get("workers", 0)
            share = share_text(profile.waiting_samples / (busy + profile.waiting_samples))
            notes.append(f"Workers had nothing to load in {share} of their samples. Shares are of the other samples.")
        totals = profile.tree.totals()
        others = sum(totals[process.root] for process in self.roles.others if process.root is not None)
        if others:
            notes.append(f"{count_text(others, 'sample')} from processes that neither train nor load were left out.")
        return notes

    def trees(self, *, least_share: float = LEAST_SHARE, most: int = MOST_NODES) -> dict[str, CallNode]:
        """A call tree for each role that has samples, of at most this many calls, the largest."""
        freezer = Freezer(self.profile.tree, self.profile.frames, self.own)
        trees = {
            role: freezer.freeze(self.roles.roots(role), role, least_share=least_share, most=most) for role in ROLES
        }
        return {role: tree for role, tree in trees.items() if tree.count}


def open_recording(
    files: Sequence[Path], *, main_pids: Collection[int] = (), own_roots: Iterable[str | PathLike[str]] = ()
) -> PySpyRecording:
    """Read raw files, merged as one. Raises the `DoctorError`s of `raw.read`."""
    profile = read(files)
    origin = Origin(own_roots)
    by_path = {path: origin.is_own(path) for path in {frame.path for frame in profile.frames}}
    own = [by_path[frame.path] for frame in profile.frames]
    return PySpyRecording(profile, assign_roles(profile, own, main_pids), own)


def sampling_profile(
    files: Sequence[Path],
    *,
    rate: int,
    seconds: float,
    main_pids: Collection[int] = (),
    own_roots: Iterable[str | PathLike[str]] = (),
    speedscope_file: Path | None = None,
) -> SamplingProfile:
    """What py-spy saw, for the report. `seconds`: how long it sampled; `main_pids`: the processes that train.

    The result's `files` are the names of the raw files and of `speedscope_file`, which is written if it is given.
    Raises the `DoctorError`s of `raw.read`, and `raw-empty` if no sample is of a main process or a worker.
    """
    recording = open_recording(files, main_pids=main_pids, own_roots=own_roots)
    trees = recording.trees()
    if not trees:
        raise DoctorError(
            "raw-empty",
            "No sample was taken while the training as written ran.",
            "Give more time with --budget, or a higher --rate.",
        )
    names = [path.name for path in files]
    if speedscope_file is not None:
        speedscope.write(recording.profile, recording.roles, speedscope_file, rate=rate)
        names.append(speedscope_file.name)
    return SamplingProfile(
        rate=rate,
        seconds=seconds,
        samples=recording.samples(),
        functions=recording.functions(most=MOST_FUNCTIONS),
        trees=trees,
        files=names,
    )
