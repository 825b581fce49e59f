"""What making a batch consists of, and what limits the workers that make it. All rules use these two answers.

Only this file tells the parts of the wait apart, so rules can't count the same time twice, or blame both storage and
processor.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import (
    deepest_own,
    fetch_site,
    line_with,
    loading_stacks,
    share_of_lines,
    share_of_sites,
)
from bottleneck_doctor.diagnose._rule import MATTERS, clamp
from bottleneck_doctor.diagnose.data._contended import contended
from bottleneck_doctor.documents.report import Loading, Site, TransformCost

DECODERS = re.compile(
    r"PIL/ImageFile\.py|torchvision/io/|imageio/|skimage/io/|librosa/core/audio\.py|soundfile\.py|audioread/"
    r"|torchaudio/|torchcodec/|decord/|(^|/)av/|pydicom/|tifffile|nibabel/|simplejpeg|turbojpeg|nvimgcodec"
)
DECODER_FUNCTIONS = re.compile(r"jpe?g|png_|webp|ImagingJpegDecode|inflate|decode_(image|audio|video|jpeg|png)", re.I)
DECODING_LINES = re.compile(
    r"Image\.open\(|\.convert\(|\bimread\(|\bimdecode\(|read_image\(|decode_(jpeg|png|image|webp|video)\("
    r"|librosa\.load\(|torchaudio\.load\(|soundfile\.read\(|\bsf\.read\(|VideoReader\(|dcmread\(|nib\.load\("
)
READING_LINES = re.compile(
    r"\bopen\(|\.read\(|\.read_bytes\(|\.read_text\(|\.readinto\(|\bnp\.(load|fromfile|memmap)\(|torch\.load\("
    r"|\bimread\(|read_file\(|read_image\(|\bread_csv\(|\bread_parquet\(|h5py\.File\(|\bos\.(stat|listdir|scandir)\("
)
READING_FRAMES = re.compile(
    r"torchvision/datasets/folder\.py:(pil_loader|default_loader)|PIL/Image\.py:(open|_open_core)|torchvision/io/.*:read_file"
    r"|/pathlib\S*:(open|read_bytes|read_text)|numpy/lib/\S*:(load|fromfile|_read_bytes)|h5py/_hl/files\.py:"
)
"""Functions of libraries that open or read files, by path and name: a sample that ends in one waits for a file."""
NOT_OF_FILES = re.compile(
    r"urlopen|urllib|requests?\.|https?|socket|recv\(|session\.get|\.(execute|fetchone|fetchall)\(|sleep\("
)
"""Lines that look like reading but may wait for something else: a server, a database, a clock."""


@dataclass(frozen=True)
class Making:
    """What a batch costs at the place that the main process waits for. Parts are shares of the whole.

    Workers fetch and collate side by side, so these are divided among them. Handing over is not divided, and costs no
    more than the time that it leaves the workers idle: while they make the next batch, it holds nothing up. `decode`
    and `transforms` are the shares of those inside fetch; `own` is what is left of fetch.
    """

    milliseconds: float
    fetch: float
    collate: float
    hand_over: float
    decode: float | None
    transforms: float
    own: float


def making(evidence: Evidence) -> Making | None:
    """The parts of making a batch as written; None where it was not measured or costs nothing."""
    loading = evidence.as_written
    if loading is None:
        return None
    side_by_side = max(1, loading.num_workers)
    fetch, collate = loading.fetch_ms / side_by_side, loading.collate_ms / side_by_side
    hand_over = min(loading.hand_over_ms or 0.0, _idle_ms(evidence, fetch + collate))
    total = fetch + collate + hand_over
    if total <= 0:
        return None
    transforms = clamp(sum(each.share_of_fetch for each in loading.transforms))
    decode = decode_share(evidence)
    own = clamp(1.0 - transforms - (decode or 0.0))
    return Making(
        milliseconds=total,
        fetch=fetch / total,
        collate=collate / total,
        hand_over=hand_over / total,
        decode=None if decode is None else decode * fetch / total,
        transforms=transforms * fetch / total,
        own=own * fetch / total,
    )


def _idle_ms(evidence: Evidence, making_ms: float) -> float:
    """Milliseconds a batch in which no worker makes anything, where making one takes `making_ms` of theirs."""
    loading = evidence.as_written
    if loading is None or not loading.workers:
        return math.inf
    busy = busy_workers(evidence) / len(loading.workers)
    return making_ms * (1.0 - busy) / busy if busy > 0 else math.inf


AGREES = 0.1
"""If the training process makes its batches itself, making one has to take this part of the wait for it. Ours: if it
takes less, the two were measured at different times on a machine that something else used too."""


def waited_making(evidence: Evidence) -> Making | None:
    """As `making`; None unless training waits for data enough to matter, and making a batch accounts for the wait."""
    wait = evidence.wait or 0.0
    parts = making(evidence) if wait >= MATTERS else None
    if parts is None or evidence.as_written is None or evidence.as_written.num_workers or evidence.baseline is None:
        return parts
    return parts if parts.milliseconds >= AGREES * wait * evidence.baseline.step_ms else None


def costliest_transform(evidence: Evidence) -> TransformCost | None:
    """The transform that takes longest as written, without those that only contention makes slow."""
    loading, threads = evidence.as_written, contended(evidence).transforms
    slow = [each for each in loading.transforms if each not in threads] if loading is not None else []
    return max(slow, key=lambda each: each.share_of_fetch, default=None)


def decode_share(evidence: Evidence) -> float | None:
    """The part of fetching that decoders of pictures, sound or video take; None if nothing shows it. Pictures that were
    watched where they are decoded were timed there, with the copies that converting them makes: a line that decodes
    them may do more than that, such as their transforms."""
    loading, sampled = evidence.as_written, _sampled_decoding(evidence)
    watched = None if loading is None else loading.decoding
    seen = [each for each in (sampled, watched) if each]
    if seen:
        return max(seen)
    # Decoders written in C leave no frame: the listing is the only one to see them.
    listed = share_of_lines(evidence, loading.fetch_site, DECODING_LINES) if loading is not None else None
    return sampled if listed is None else listed


def _sampled_decoding(evidence: Evidence) -> float | None:
    """The same as sampled stacks show it; None without any. They come from another window than the listings, which time
    each line and are believed: they count for no more than the lines that led to the decoder took there."""
    sampled, lines = 0, set()
    total = 0
    for frames, count in loading_stacks(evidence):
        total += count
        if any(DECODERS.search(frame.path.replace("\\", "/")) for frame in frames) or DECODER_FUNCTIONS.search(
            frames[-1].name
        ):
            sampled += count
            own = deepest_own(frames)
            if own is not None:
                lines.add((own.path, own.line))
    if not total:
        return None
    bound = share_of_sites(evidence, lines) if lines else None
    return sampled / total if bound is None else min(sampled / total, bound)


def decode_site(evidence: Evidence) -> Site | None:
    """The user's line that decodes."""
    counts: dict[tuple[str, int], int] = {}
    for frames, count in loading_stacks(evidence):
        if any(DECODERS.search(frame.path) for frame in frames) or DECODER_FUNCTIONS.search(frames[-1].name):
            own = deepest_own(frames)
            if own is not None:
                counts[own.path, own.line] = counts.get((own.path, own.line), 0) + count
    if counts:
        path, line = max(counts, key=lambda key: counts[key])
        return Site(file=path, line=line)
    return line_with(evidence, DECODING_LINES) or fetch_site(evidence)


def reading_share(evidence: Evidence) -> float | None:
    """The part of fetching that opening and reading files takes; None if no profile shows it.

    Found by the lines of the user's dataset, or by the functions in which samples of a library's dataset ended.
    """
    loading = evidence.as_written
    if loading is not None and loading.fetch_site is None:
        found = loading_stacks(evidence)
        total = sum(count for _, count in found)
        read = sum(count for frames, count in found if READING_FRAMES.search(f"{frames[-1].path}:{frames[-1].name}"))
        return read / total if total else None
    return share_of_lines(evidence, loading.fetch_site, READING_LINES, NOT_OF_FILES) if loading is not None else None


IO_BOUND, CPU_BOUND = 0.5, 0.8
"""Cores that a worker keeps busy while it makes a batch. Below the first, it waits more than it computes; at the second
or more, it computes nearly all of the time. Ours; between the two, neither is said."""
BUSY = 0.5
"""Workers can only limit loading if they make batches for this part of the time. Ours."""
BLOCKED = 0.3
"""Loading in the main process is limited by the disk if this part of the wait for data is blocked on it."""


@dataclass(frozen=True)
class Limit:
    """What limits the making of batches, and the cores that each process that makes them keeps busy (None if
    unknown)."""

    kind: Literal["io", "cpu"]
    compute: float | None
    blocked: float | None


def limit(evidence: Evidence) -> Limit | None:
    """Storage or processor; None if it is neither, or not known."""
    loading = evidence.as_written
    if loading is None:
        return None
    if loading.num_workers == 0:
        return _limit_here(evidence, loading)
    compute = compute_while_busy(evidence)
    # Workers that are idle for most of the time limit nothing, whatever they did meanwhile (handing over, mostly).
    if compute is None or busy_workers(evidence) < BUSY * loading.num_workers:
        return None
    blocked = _usage.of(evidence, "workers", lambda use: use.blocked_share)
    if loading.delayed is not None:
        # Time in which a worker was ready but had no core is the processor's fault as well.
        wanted = compute + loading.delayed
        kind: Literal["io", "cpu"] | None = "cpu" if wanted >= CPU_BOUND else "io" if wanted < IO_BOUND else None
        return Limit(kind, compute, blocked) if kind is not None else None
    # With all cores taken, a worker that waits is waiting for a core, whatever its own share of it is.
    if compute >= CPU_BOUND or _usage.cores_full(evidence) is True:
        return Limit("cpu", compute, blocked)
    return Limit("io", compute, blocked) if compute < IO_BOUND else None


def _limit_here(evidence: Evidence, loading: Loading) -> Limit | None:
    """The same where the training process makes its batches itself."""
    blocked = _usage.of(evidence, "main", lambda use: use.blocked_share)
    if blocked is not None and blocked >= BLOCKED * (evidence.wait or 1):
        return Limit("io", loading.computing, blocked)
    if loading.computing is None:
        return None
    if loading.computing >= CPU_BOUND:
        return Limit("cpu", loading.computing, blocked)
    if loading.delayed is None and _usage.cores_full(evidence) is not False:
        return None  # If all cores were taken, it may have waited for one.
    waits = 1.0 - loading.computing - (loading.delayed or 0.0)
    return Limit("io", loading.computing, blocked) if waits > 1.0 - IO_BOUND else None


def compute_while_busy(evidence: Evidence) -> float | None:
    """Cores that one worker keeps busy while it makes a batch: as it said itself, or else as seen from outside."""
    loading = evidence.as_written
    if loading is not None and loading.computing is not None:
        return loading.computing
    busy = busy_workers(evidence)
    cores = _usage.of(evidence, "workers", _usage.cpu)
    return cores / busy if cores is not None and busy > 0 else None


def busy_workers(evidence: Evidence) -> float:
    """How many workers are at work at the same time, on average."""
    loading = evidence.as_written
    if loading is None:
        return 0.0
    if not loading.workers:
        return float(loading.num_workers)
    return sum(clamp(1.0 - worker.idle_share) for worker in loading.workers)
