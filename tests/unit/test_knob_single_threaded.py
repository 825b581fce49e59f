"""Libraries with threads of their own: whether samples use them, and workers in which they have one thread."""

from __future__ import annotations

import copy
import hashlib
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from bottleneck_doctor.knobs import single_threaded as told
from bottleneck_doctor.runtime.knobs import _thread_pools, shape
from bottleneck_doctor.runtime.knobs.single_threaded import NAME, OneThread, SingleThreaded, look

HAS_THREADS = pytest.mark.skipif(
    "openblas" not in _thread_pools.threads(), reason="NumPy does not compute with several threads of OpenBLAS here"
)


def of_matrices(index: int) -> Any:
    matrix = numpy.random.default_rng(index).standard_normal((300, 300))
    return float((matrix @ matrix).sum())


def of_python(index: int) -> Any:
    return random.random() + sum(range(20_000))


def fails(index: int) -> Any:
    raise KeyError(index)


def threads_here(index: int) -> Any:
    """OpenBLAS's threads, and what of the environment a library reads that is loaded later."""
    count = _thread_pools.threads().get("openblas", 1)
    return count, int(os.environ.get("OPENBLAS_NUM_THREADS", "0"))


class Made(Dataset[Any]):
    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


def in_the_window(loader: Any, value: Any = "openblas") -> Any:
    """The loader as a window with the knob has it."""
    shadow = copy.copy(loader)
    shape(shadow, {NAME: value})
    return shadow


@HAS_THREADS
def test_samples_that_several_threads_prepare_are_seen() -> None:
    seen = look(DataLoader(Made(of_matrices), batch_size=2))
    assert (seen["obstacle"], seen["several"]) == ("", True)
    assert "openblas" in seen["libraries"]  # And what other tests have imported.
    # Right after them, while threads of OpenBLAS still spin.
    assert look(DataLoader(Made(of_python), batch_size=2))["several"] is False


def test_a_thread_that_computes_once_is_not_how_samples_are_prepared() -> None:
    once: list[threading.Thread] = []

    def computes_a_while() -> None:
        block = bytes(20_000_000)
        time.sleep(0.03)  # Nothing of it is seen before the first look.
        until = time.monotonic() + 0.15
        while time.monotonic() < until:
            hashlib.sha256(block)  # It holds no lock meanwhile.

    def beside_a_thread(index: int) -> Any:
        if not once:
            once.append(threading.Thread(target=computes_a_while))
            once[0].start()
        return sum(range(200_000))

    assert look(DataLoader(Made(beside_a_thread), batch_size=2))["several"] is False
    once[0].join()


def test_a_look_leaves_no_trace() -> None:
    random.seed(1)
    before, threads = random.getstate(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        look(DataLoader(Made(of_python), batch_size=2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert random.getstate() == before


def test_what_can_t_be_looked_at_is_told() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(())

    assert look(DataLoader(Stream()))["several"] is None
    seen = look(DataLoader(Made(fails), batch_size=2))
    assert seen == {"obstacle": "preparing a sample in the main process failed (KeyError)"}


@HAS_THREADS
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_compute_with_one_thread(method: str) -> None:
    loader = DataLoader(
        Made(threads_here), batch_size=8, num_workers=1, multiprocessing_context=method, worker_init_fn=_notes_worker
    )
    ((counts, variables),) = list(in_the_window(loader))
    assert counts.tolist() == variables.tolist() == [1] * 8
    assert _thread_pools.threads()["openblas"] > 1
    if method == "fork":
        ((written, _),) = list(loader)
        assert min(written.tolist()) > 1


def _notes_worker(worker: int) -> None:
    os.environ["DOCTOR_TEST_WORKER"] = str(worker)


def test_what_the_user_does_first_in_a_worker_is_done_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    monkeypatch.setattr(_thread_pools, "limit", done.append)
    loader = in_the_window(DataLoader(Made(of_python), num_workers=1, worker_init_fn=done.append), "openblas+opencv")
    loader.worker_init_fn(3)
    assert done == [3, ["openblas", "opencv"]]


def test_a_loader_without_workers_is_left_as_it_is() -> None:
    loader = DataLoader(Made(of_python), batch_size=2)
    assert in_the_window(loader).worker_init_fn is None


def test_the_effect_is_seen_in_the_feed() -> None:
    class Feed:
        def __init__(self, loader: Any) -> None:
            self.loader = loader

    loader = DataLoader(Made(of_python), num_workers=1)
    knob = SingleThreaded()
    assert knob.effect_on_loading("openblas", Feed(in_the_window(loader))) is True
    assert knob.effect_on_loading("openblas", Feed(loader)) is False
    assert knob.effect_on_loading("openblas", None) is None
    assert isinstance(in_the_window(loader).worker_init_fn, OneThread)


@pytest.mark.parametrize("library", ["openblas", "opencv"])
def test_a_program_that_starts_with_the_variable_has_one_thread(library: str) -> None:
    """What a window does to workers, the user does to the program with a variable."""
    assert dict(told.VARIABLES) == _thread_pools.VARIABLES
    module = {"openblas": "numpy", "opencv": "cv2"}[library]
    pytest.importorskip(module)
    code = (
        f"import {module}; from bottleneck_doctor.runtime.knobs import _thread_pools as pools; "
        f"print(pools.threads().get({library!r}, 1)); pools.limit([{library!r}]); print(pools.threads())"
    )

    def printed(variables: dict[str, str]) -> list[str]:
        environment = {**os.environ, **variables}
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        ).stdout.split("\n")[:2]

    assert printed(dict(told.variables(library)))[0] == "1"
    without = dict.fromkeys((told.VARIABLES[library], "OMP_NUM_THREADS"), "")
    count, limited = printed(without)
    assert library not in limited
    assert int(count) >= 1


WORKER = """
import os
import cv2
import numpy
from bottleneck_doctor.runtime.knobs import _thread_pools

picture = numpy.zeros((3000, 3000, 3), dtype=numpy.uint8)
cv2.setNumThreads(2)
cv2.GaussianBlur(picture, (31, 31), 0)
if os.fork() == 0:
    _thread_pools.limit(["opencv"])
    cv2.GaussianBlur(picture, (31, 31), 0)
    print(cv2.getNumThreads(), flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_worker_does_not_wait_for_threads_that_its_parent_has() -> None:
    """A window of a public program had taken three minutes of that."""
    pytest.importorskip("cv2")
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.returncode) == (["1", "0"], 0), done.stderr


def test_values_name_libraries() -> None:
    assert told.variables("openblas+opencv") == {"OPENBLAS_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1"}
    assert told.variables("of a later release") == {}
