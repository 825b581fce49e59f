"""How batches are made, measured where they are made: in the loader's workers, or in the main process if there are
none.

torch's fetchers are patched in place before the window's feed is opened, so that forked workers inherit the patch.
Spawned workers (and those of a fork server) inherit nothing, but the guest enters them as it enters every process, and
they look for a note from the process that started them. For each batch, the worker writes one line to a file of its own
before it hands the batch over, so no batch that arrived is missing.
"""

from __future__ import annotations

import functools
import inspect
import json
import multiprocessing
import os
import shutil
import tempfile
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import torch
from torch.utils.data import get_worker_info
from torch.utils.data._utils import fetch, worker

from ..loader.attributes import construction_site
from ..loop import pictures
from ..loop.batches import batch_samples
from ..loop.own_dataset import own_dataset
from ..loop.padding import Padding, padding_of
from ..process.originals import getpid, now, processor_time
from ..process.patches import Patches
from ..wire.channel import VARIABLE
from .files import OpenCount, used
from .made import made_sites
from .sites import as_json, fetch_site, function_name, function_site
from .transforms import Chains
from .waiting import delayed

Span = Tuple[float, float]
_NAMES = "transforms"
"""A file that tells workers that inherited nothing what to time, as found by the main process."""


class Made(NamedTuple):
    """One batch: who made it, when (seconds of `now`), and what is in it."""

    worker: int
    number: int
    """torch's own number of the batch; -1 in the main process."""
    began: float
    collate: float
    """When collating began."""
    ended: float
    samples: float
    bytes: int
    opened: int
    """Number of files opened, of which `sized` have `size` bytes together; `file` is one of them."""
    sized: int
    size: int
    file: str
    computed: float
    """Seconds of processor time that making it took, all threads of the process together."""
    delayed: Optional[float]
    """Seconds in which the process that made the batch was ready to run but had no core; None if unknown."""
    padding: Optional[Tuple[int, int, int]]
    """A `Padding`; None if the batch has no attention mask."""
    pictures: Optional[Tuple[Any, ...]]
    """`Pictures`; None if none was decoded."""


class LoadingRecorder:
    """Patches with `apply`, restores with `revert`. The main process calls `asked` and `arrived`."""

    def __init__(self) -> None:
        self._patches = Patches()
        self._chains = Chains()
        self._files = OpenCount()
        self._pictures = pictures.PictureCount()
        self._folder = ""
        self._main = getpid()
        self._thread = threading.get_ident()
        self._making = False
        self._places: Optional[List[Optional[int]]] = None
        self._number = -1
        self._line: Optional[int] = None
        self._own: List[Tuple[Made, List[float]]] = []
        self._workers: Set[int] = set()
        self._iterator: Any = None
        self._asked = 0.0
        self._arrivals: List[Tuple[int, float, float]] = []
        self.on_worker: Callable[[], None] = lambda: None
        """Called in a worker before it does anything: it does not need the main process's other hooks."""

    # -- on and off --------------------------------------------------------------------------------------------------

    def apply(self, loader: Any) -> None:
        self._folder = tempfile.mkdtemp(prefix="loading-", dir=_scratch())
        self._put_on(own_dataset(loader))
        with open(os.path.join(self._folder, _NAMES), "w", encoding="utf-8") as handle:
            json.dump(self._chains.names(), handle)
        self._patches.put(worker, "_worker_loop", self._numbering)
        _recording_here.append(self)
        _leave_note(self._folder)

    def _put_on(self, dataset: Any) -> None:
        self._chains.time(dataset)
        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            self._patches.put(kind, "fetch", self._recording)

    def apply_in_worker(self, folder: str, given: Dict[str, Any]) -> None:
        """Apply the patches in a worker that inherited nothing. `given`: the arguments of torch's loop, by name."""
        self._folder = folder
        self._main = 0
        # Newer releases hand the dataset over in a list, so that the caller holds no second reference to it.
        dataset = given["dataset"] if "dataset" in given else given["dataset_holder"][0]
        self._put_on(dataset)
        with open(os.path.join(folder, _NAMES), encoding="utf-8") as handle:
            self._places = _places(json.load(handle), self._chains.names())
        given["index_queue"] = _Listening(given["index_queue"], self)

    def revert(self) -> None:
        if self in _recording_here:
            _recording_here.remove(self)
            _leave_note("")
        self._patches.take_off()
        self._chains.revert()
        self._iterator = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    # -- where batches are made --------------------------------------------------------------------------------------

    def _numbering(self, original: Any) -> Any:
        def worker_loop(*args: Any, **kwargs: Any) -> Any:
            self.on_worker()
            kept = list(args)
            if len(kept) > 2:
                kept[2] = _Listening(kept[2], self)
            return original(*kept, **kwargs)

        return worker_loop

    def numbered(self, request: Any) -> None:
        """A worker takes up a request."""
        if isinstance(request, tuple):
            self._number = request[0]

    def _recording(self, original: Any) -> Any:
        def fetch_batch(fetcher: Any, wanted: Any) -> Any:
            if getpid() == self._main and not (self._making and threading.get_ident() == self._thread):
                return original(fetcher, wanted)
            return self._record(original, fetcher, wanted)

        return fetch_batch

    def _record(self, original: Any, fetcher: Any, wanted: Any) -> Any:
        collate = fetcher.collate_fn
        given = 0
        collating = 0.0
        fetched: Optional[List[float]] = None

        def timed_collate(data: Any) -> Any:
            nonlocal given, collating, fetched
            given = len(data) if fetcher.auto_collation and isinstance(data, (list, tuple)) else 0
            # What a collate function calls of them is no part of fetching.
            fetched = self._chains.all_seconds()
            collating = now()
            return collate(data)

        transforms = self._chains.all_seconds()
        fetcher.collate_fn = timed_collate
        self._files.begin()
        self._pictures.begin()
        delay, computed = delayed(), processor_time()
        began = now()
        try:
            batch = original(fetcher, wanted)
        finally:
            ended = now()
            computed, later = processor_time() - computed, delayed()
            self._pictures.end()
            self._files.end()
            fetcher.collate_fn = collate
        info = get_worker_info()
        size, files = bytes_of(batch), self._files
        made = Made(
            0 if info is None else info.id,
            self._number,
            began,
            collating or ended,
            ended,
            given or batch_samples(batch),
            size,
            files.opened,
            files.sized,
            files.size,
            files.example,
            computed,
            None if delay is None or later is None else later - delay,
            padding_of(batch),
            self._pictures.told(self._folder),
        )
        spent = [after - before for before, after in zip(transforms, fetched or self._chains.all_seconds())]
        if self._places is not None:
            spent = [0.0 if place is None else spent[place] for place in self._places]
        if info is None:
            self._own.append((made, spent))
        else:
            self._write(json.dumps([made, spent], separators=(",", ":")).encode() + b"\n")
        return batch

    def _write(self, line: bytes) -> None:
        try:
            if self._line is None:
                path = os.path.join(self._folder, str(getpid()))
                self._line = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(self._line, line)
        except OSError:  # The window is over, and its folder is gone.
            pass

    # -- in the main process -----------------------------------------------------------------------------------------

    def asked(self, feed: Any) -> None:
        self._making = True
        iterator = feed.iterator
        if iterator is not self._iterator:
            self._iterator = iterator
            self._workers.update(each.pid for each in getattr(iterator, "_workers", ()))
        self._asked = now()

    def arrived(self, *, counts: bool) -> Optional[int]:
        """The batch has arrived. Returns its number, if torch gives it one."""
        arrived = now()
        self._making = False
        number = getattr(self._iterator, "_rcvd_idx", None)
        if number is None or not getattr(self._iterator, "_in_order", True):
            return None
        if counts:
            self._arrivals.append((number - 1, self._asked, arrived))
        return int(number) - 1

    def stopped(self) -> None:
        """The loop is no longer waiting for a batch."""
        self._making = False

    def _all(self) -> List[Tuple[Made, List[float]]]:
        lines: List[Any] = list(self._own)
        for process in self._workers:
            try:
                with open(os.path.join(self._folder, str(process)), "rb") as handle:
                    lines += [json.loads(line) for line in handle if line.endswith(b"\n")]
            except OSError:
                continue
        found = [(Made(*made), spent) for made, spent in lines]
        return sorted(found, key=lambda each: each[0].ended)

    def detail(self, loader: Any, segments: List[Span], drawn: Optional[Span]) -> Dict[str, Any]:
        """`loading` (None if nothing is known; `loading_missing` says why) and each worker's part of the timeline,
        `lanes`."""
        every = self._all()
        if not every:
            return {"loading": None, "loading_missing": _why_nothing(loader)}
        timed = [each for each in every if any(begin <= each[0].began <= end for begin, end in segments)] or every
        batches = [made for made, _ in timed]
        handed = self._matched(every)
        found: Dict[str, Any] = {
            "num_workers": loader.num_workers,
            "fetch_seconds": [round(made.collate - made.began, 7) for made in batches],
            "collate_seconds": sum(made.ended - made.collate for made in batches),
            "computed_seconds": sum(made.computed for made in batches),
            "delayed_seconds": _known_sum([made.delayed for made in batches]),
            "samples": sum(made.samples for made in batches),
            "bytes": sum(made.bytes for made in batches),
            "padding": _added([made.padding for made in batches]),
            "hand_over_seconds": [
                # Of the way over, only what the main process waits for costs anything.
                round(arrived - max(asked, made.ended), 7)
                for made, asked, arrived in handed
            ],
            "delivered": len(handed),
            "out_of_order": _out_of_order([made.ended for made, _, _ in handed]),
            "span": sum(end - begin for begin, end in segments),
            "workers": self._activity(loader.num_workers, [made for made, _ in every], batches, segments),
            "files": used([(made.opened, made.sized, made.size, made.file) for made in batches]),
            **pictures.summary([pictures.Pictures(*made.pictures) for made in batches if made.pictures]),
            "collate_site": as_json(function_site(loader.collate_fn)),
            **self._by_name(loader, [spent for _, spent in timed]),
        }
        lanes = _lanes([made for made, _ in every], drawn) if drawn is not None and loader.num_workers else []
        return {"loading": found, "loading_missing": "", "lanes": lanes}

    def _by_name(self, loader: Any, spent: List[List[float]]) -> Dict[str, Any]:
        """What does the work: the transforms, the dataset's method and the collate function."""
        chains = self._chains
        sums = [sum(each[place] for each in spent if place < len(each)) for place in range(len(chains.names()))]
        made = made_sites(chains.groups, chains.datasets, getattr(construction_site(loader), "file", ""))
        name, module = function_name(loader.collate_fn)
        return {
            "transforms": [
                {**described, "seconds": seconds, "made": as_json(made.get(id(element)))}
                for described, seconds, element in zip(chains.described(), sums, chains.elements())
            ],
            "fetch_site": as_json(chains.busiest_method(sums) or fetch_site(own_dataset(loader))),
            "collate_name": name,
            "collate_module": module,
        }

    def _matched(self, every: List[Tuple[Made, List[float]]]) -> List[Tuple[Made, float, float]]:
        """Each timed arrival with its batch: the last batch of that number that was finished by then."""
        numbered: Dict[int, List[Made]] = {}
        for made, _ in every:
            numbered.setdefault(made.number, []).append(made)
        matched = []
        for number, asked, arrived in self._arrivals:
            candidates = [made for made in numbered.get(number, ()) if made.ended <= arrived]
            if candidates:
                matched.append((candidates[-1], asked, arrived))
        return matched

    @staticmethod
    def _activity(workers: int, every: List[Made], counted: List[Made], segments: List[Span]) -> List[Dict[str, Any]]:
        activity = []
        for number in range(workers):
            own = [made for made in counted if made.worker == number]
            busy = sum(
                max(0.0, min(made.ended, end) - max(made.began, begin))
                for made in every
                if made.worker == number
                for begin, end in segments
            )
            activity.append(
                {
                    "worker": number,
                    "batches": len(own),
                    "fetch_seconds": sum(made.collate - made.began for made in own),
                    "collate_seconds": sum(made.ended - made.collate for made in own),
                    "busy_seconds": busy,
                }
            )
        return activity


def _known_sum(values: List[Optional[float]]) -> Optional[float]:
    """The sum; None where one of them isn't known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


class _Listening:
    """A worker's queue of requests that reports which request was taken."""

    def __init__(self, queue: Any, recorder: LoadingRecorder) -> None:
        self._queue = queue
        self._recorder = recorder

    def get(self, *args: Any, **kwargs: Any) -> Any:
        request = self._queue.get(*args, **kwargs)
        self._recorder.numbered(request)
        return request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


_recording_here: List[LoadingRecorder] = []
"""Recorders that are on in this process; forked workers inherit them."""


def install() -> None:
    """Let workers that inherit nothing record as well. The guest enters them before torch's worker loop runs."""
    original = worker._worker_loop

    @functools.wraps(original)
    def worker_loop(*args: Any, **kwargs: Any) -> Any:
        try:
            folder = "" if _recording_here else _noted()
            if folder:
                bound = inspect.signature(original).bind(*args, **kwargs)
                LoadingRecorder().apply_in_worker(folder, bound.arguments)
                args, kwargs = bound.args, bound.kwargs
        except Exception:  # Then nothing is said about loading.
            pass
        return original(*args, **kwargs)

    worker._worker_loop = worker_loop


def _note(process: int) -> Optional[str]:
    scratch = _scratch()
    return None if scratch is None else os.path.join(scratch, f"recording-{process}")


def _leave_note(folder: str) -> None:
    """Tell workers that will be started where to record; "": they don't record."""
    path = _note(getpid())
    try:
        if path is not None and folder:
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(folder)
        elif path is not None:
            os.unlink(path)
    except OSError:
        pass


def _noted() -> str:
    """The folder in which the parent of this worker wants batches recorded; "" if it doesn't."""
    parent = multiprocessing.parent_process()
    path = None if parent is None else _note(parent.pid or 0)
    try:
        with open(path or "", encoding="utf-8") as handle:
            return handle.read()
    except OSError:
        return ""


def _places(wanted: List[str], own: List[str]) -> List[Optional[int]]:
    """The position of each of the main process's names among the worker's names; None if the worker has no such name.
    Of equal names, the first belongs to the first."""
    left = list(enumerate(own))
    places: List[Optional[int]] = []
    for name in wanted:
        found = next((each for each in left if each[1] == name), None)
        if found is not None:
            left.remove(found)
        places.append(None if found is None else found[0])
    return places


def _why_nothing(loader: Any) -> str:
    if loader.num_workers:
        context = loader.multiprocessing_context or multiprocessing
        # Asking for a method that is not set yet would set it.
        method = context.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
        if method != "fork":
            return f"workers that are started by {method} could not be looked into"
    return "no batch was made in this window"


def _scratch() -> Optional[str]:
    try:
        return json.loads(os.environ[VARIABLE]).get("scratch") or None
    except (KeyError, ValueError):
        return None


def _out_of_order(ended: List[float]) -> int:
    latest, count = 0.0, 0
    for moment in ended:
        count += moment < latest
        latest = max(latest, moment)
    return count


def _lanes(every: List[Made], drawn: Span) -> List[List[Any]]:
    begin, end = drawn
    lanes: List[List[Any]] = []
    for made in every:
        for kind, first, last in (("fetch", made.began, made.collate), ("collate", made.collate, made.ended)):
            first, last = max(first, begin), min(last, end)
            if last > first:
                lane = f"worker {made.worker}"
                lanes.append([lane, kind, round(first - begin, 7), round(last - first, 7), made.number])
    return lanes


def _added(paddings: List[Optional[Tuple[int, int, int]]]) -> Optional[Dict[str, int]]:
    known = [Padding(*each) for each in paddings if each]
    return Padding(*map(sum, zip(*known)))._asdict() if known else None


def bytes_of(batch: Any, depth: int = 0) -> int:
    """Bytes of a batch's tensors and arrays, nested up to four deep."""
    if isinstance(batch, torch.Tensor):
        return batch.numel() * batch.element_size()
    size = getattr(batch, "nbytes", None)
    if isinstance(size, int):
        return size
    if depth >= 4 or isinstance(batch, (str, bytes)):
        return 0
    values: Any = batch.values() if callable(getattr(batch, "values", None)) else batch
    if not isinstance(batch, (list, tuple)) and values is batch:
        # A graph or another object of a library's, whose tensors are attributes.
        values = list(getattr(batch, "__dict__", {}).values())
    elif isinstance(batch, (list, tuple)) and batch and isinstance(batch[0], (int, float, str, bytes)):
        return 0
    try:
        return sum(bytes_of(value, depth + 1) for value in values)
    except TypeError:
        return 0
