"""What is said of a probe that failed, from what is known of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bottleneck_doctor.profiling.origin import Origin
from bottleneck_doctor.session import autopsy
from bottleneck_doctor.session.failure import Failure, Frame, Stack, cause, standing

TWO = {"num_workers": 2}


def failed(**known: object) -> Failure:
    return Failure(**{"setting": TWO, "start_method": "fork", **known})  # type: ignore[arg-type]


def stack(*frames: tuple[str, str, int, bool], **about: bool) -> Stack:
    return Stack([Frame(*frame) for frame in frames], **about)


IN_WORKER = stack(
    ("read", "/lib/zipfile.py", 9, False),
    ("__getitem__", "/home/me/data.py", 12, True),
    ("_worker_loop", "/site-packages/torch/worker.py", 300, False),
    worker=True,
    locked=True,
)
IN_MAIN = stack(
    ("_BaseDataLoaderIter._try_get_data", "/site-packages/torch/dataloader.py", 1, False),
    ("main", "/home/me/train.py", 30, True),
)


def test_hang_with_workers_names_the_line_and_what_helps() -> None:
    known = cause(failed(hung=True, stacks=[IN_MAIN, IN_WORKER]))
    assert known.sentence == (
        "with workers the dataset hangs in `__getitem__` (data.py:12): a lock was held when the worker was forked, and "
        'is never released there; try `multiprocessing_context="forkserver"`'
    )
    assert known.every_count
    assert known.certain


def test_hang_without_stacks_claims_no_lock() -> None:
    known = cause(failed(hung=True))
    assert known.sentence.startswith(
        "with workers the dataset hangs: it waits for something that forked workers don't have"
    )
    assert "forkserver" in known.sentence
    spawned = cause(failed(hung=True, start_method="spawn"))
    assert "fork" not in spawned.sentence


@pytest.mark.parametrize("setting", [{"autocast": "bfloat16"}, {"num_workers": 0}])
def test_hang_without_workers_is_where_the_loop_stands(setting: dict[str, object]) -> None:
    known = cause(failed(setting=setting, hung=True, stacks=[IN_MAIN]))
    assert known.sentence.startswith("it hung in `main` (train.py:30)")
    assert not known.every_count


def test_where_it_stands_is_the_innermost_line_of_the_users_own() -> None:
    at_work = stack(("relu", "/site-packages/torch/nn.py", 3, False), ("main", "/home/me/train.py", 31, True))
    assert standing([at_work]) == "The script was in `main` (train.py:31)."
    assert standing([IN_MAIN, IN_WORKER]) == "A loader worker was in `__getitem__` (data.py:12)."
    assert standing([at_work, IN_WORKER]) == "The script was in `main` (train.py:31)."
    assert standing([]) == ""


def test_hang_of_the_loop_while_workers_are_idle_is_the_loops() -> None:
    idle = stack(("_worker_loop", "/site-packages/torch/worker.py", 300, False), worker=True)
    busy = stack(("main", "/home/me/train.py", 30, True))
    assert "it hung in `main`" in cause(failed(hung=True, stacks=[busy, idle])).sentence
    assert "with workers the dataset hangs:" in cause(failed(hung=True, stacks=[IN_MAIN, idle])).sentence
    assert cause(failed(hung=True, setting={"autocast": "bfloat16"}, own_workers=2)).sentence.startswith("it hung:")


BUS = "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."  # noqa: E501
KILLED = "RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed. "
NO_SHM = "RuntimeError: unable to write to file </torch_71_3>: No space left on device (28)"
CUDA = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 15 GiB."
FORKED = "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, use 'spawn'"


@pytest.mark.parametrize(
    ("known", "said", "every_count", "certain"),
    [
        ({"words": BUS, "shared_memory": 64 << 20}, "/dev/shm is too small (64 MiB) for 2 workers", False, True),
        ({"words": NO_SHM}, "/dev/shm is too small for 2 workers", False, True),
        ({"signal": "SIGBUS", "setting": {"num_workers": 1}}, "/dev/shm is too small for 1 worker:", False, True),
        ({"words": KILLED, "out_of_memory": True}, "the kernel killed a worker for lack of it", False, True),
        ({"words": KILLED}, "a worker was killed by SIGKILL (out of memory?)", False, True),
        ({"signal": "SIGKILL"}, "the process was killed by SIGKILL (out of memory?)", False, False),
        ({"words": "MemoryError: Unable to allocate 3 GiB"}, "memory was not enough for 2 workers", False, True),
        (
            {"words": "OSError: [Errno 12] Cannot allocate memory", "setting": {"autocast": "bfloat16"}},
            "memory was not enough for this setting",
            False,
            False,
        ),
        ({"words": CUDA}, "the GPU's memory was not enough: torch.OutOfMemoryError: CUDA out of memory", False, False),
        ({"words": FORKED}, "the dataset uses the GPU, which forked workers can't", True, True),
        ({"words": "OSError: [Errno 28] No space left on device: 'cache'"}, "the disk is full", False, False),
        ({"words": "TypeError: cannot pickle '_thread.lock' object"}, "can't be sent to workers", True, True),
        ({"words": "OSError: [Errno 24] Too many open files"}, "`ulimit -n`", False, True),
        (
            {"words": "AssertionError: daemonic processes are not allowed to have children"},
            "starts processes of its own",
            True,
            True,
        ),
        (
            {"words": KILLED.replace("Killed", "Segmentation fault")},
            "a worker crashed (SIGSEGV)",
            False,
            True,
        ),
        ({"words": KILLED.replace("Killed", "Terminated")}, "a worker was killed by SIGTERM", False, True),
        (
            {"words": "RuntimeError: DataLoader worker (pid(s) 7, 8) exited unexpectedly"},
            "ended without an error message",
            False,
            True,
        ),
        (
            {"words": "RuntimeError: DataLoader worker (pid(s) 7, 8) exited unexpectedly (exit code -9, -9)"},
            "a worker was killed by SIGKILL",
            False,
            True,
        ),
        (
            {"words": "RuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly (exit code -7)"},
            "/dev/shm is too small",
            False,
            True,
        ),
        ({"signal": "SIGABRT"}, "killed by SIGABRT", False, False),
        ({"words": "ValueError: my own"}, "ValueError: my own", False, False),
        ({}, "no reason given", False, False),
    ],
)
def test_signs_are_known(known: dict[str, object], said: str, every_count: bool, certain: bool) -> None:
    told = cause(failed(**known))
    assert said in told.sentence
    assert (told.every_count, told.certain) == (every_count, certain)
    assert "\n" not in told.sentence
    assert not told.sentence.endswith(".")


def test_reason_is_found_above_what_libraries_say_last() -> None:
    said = f"Traceback (most recent call last):\n{BUS}\nresource_tracker: There appear to be 3 leaked objects\n"
    assert "/dev/shm is too small" in cause(failed(words=said)).sentence


def test_own_error_in_workers_is_told_with_the_handle_that_they_share() -> None:
    known = failed(words="ValueError: bad magic number", open_handle="`Archive.file`, an open BufferedReader")
    told = cause(known).sentence
    assert told.startswith("ValueError: bad magic number; the dataset holds `Archive.file`, an open BufferedReader")
    assert "`__getitem__`" in told
    assert cause(failed(setting={}, words="ValueError", open_handle="x")).sentence == "ValueError"


def test_stack_as_py_spy_writes_it(tmp_path: Path) -> None:
    def thread(number: int, *names: str) -> dict[str, object]:
        frames = [{"name": name, "filename": str(tmp_path / "data.py"), "line": 4} for name in names]
        return {"os_thread_id": number, "thread_name": "MainThread", "frames": frames}

    threads = [thread(9, "helper"), thread(7, "__getitem__", "_worker_loop", "main")]
    seen = autopsy.read(threads, 7, True, Origin())
    assert seen is not None
    assert (seen.frames[0].function, seen.frames[0].own, seen.worker, seen.locked) == ("__getitem__", True, True, True)
    assert len(seen.frames) == 2, "what it was forked from is not where it stands"
    assert autopsy.read([], 7, False, Origin()) is None
    assert autopsy.read([{"os_thread_id": 7, "frames": [{"name": "x"}]}], 7, False, Origin()) is None
