"""Why a probe failed, and what helps: the setting, the end of the output, the signal and where it hung go in.

A rule recognises one kind of failure by its signs, and says what is known to help. If none applies, the error that the
process wrote is the reason, or else the last line of its output. Pure; `autopsy` asks the machine.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.knobs import num_workers
from bottleneck_doctor.runtime.wire.error_text import naming_line
from bottleneck_doctor.wording.words import site_text

MEBIBYTE = 1 << 20

_WORKER_DIED = re.compile(
    r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed by signal: ([^.]+)|exited unexpectedly)"
)
_EXIT_CODE = re.compile(r"\(exit code (-?\d+)")
"""The guest adds this if torch does not say how a worker ended."""
_GPU_MEMORY = re.compile(
    r"(CUDA|HIP|MPS backend|XPU) out of memory|CUDA error: out of memory|(CUBLAS|CUDNN)_\w*ALLOC_FAILED"
)
_MEMORY = re.compile(r"MemoryError|[Cc]an(no|')t allocate memory|bad_alloc|Unable to allocate [\d.]+ \w*B\b")
_SHARED_MEMORY = re.compile(
    r"out of shared memory|insufficient shared memory|signal: Bus error|(allocate shared memory|write to file).*/torch_"
)
_DISK = re.compile(r"No space left on device|Disk quota exceeded")
_PICKLE = re.compile(r"[Cc]an(no|')t pickle|cannot be pickled|cannot pickle|Can't get (local object|attribute)")
_HANDLES = re.compile(r"Too many open files|received 0 items of ancdata")
_FORKED_GPU = re.compile(r"Cannot re-initialize CUDA in forked subprocess|CUDA error: initialization error")
_DAEMON = re.compile(r"daemonic processes are not allowed to have children")
_WAITING = frozenset({"_try_get_data", "_get_data"})
"""Functions of torch's loader in which the main process waits for its workers."""
_CRASHES = frozenset({"SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE"})
_LINES_READ = 30
"""How many of the last lines of an output may hold the reason: some libraries write more after it."""


@dataclass(frozen=True)
class Frame:
    """One function on a stack. `own`: whether the user wrote it."""

    function: str
    file: str
    line: int
    own: bool


@dataclass(frozen=True)
class Stack:
    """The stack of a process that hung, innermost function first. `locked`: it waited for a lock, says the kernel."""

    frames: Sequence[Frame]
    worker: bool = False
    locked: bool = False


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What is known about a probe that failed.

    `words`: the reason that the guest gave, or the end of what the process wrote. `signal`: the name of the signal that
    ended the main process. `own_workers`: the user's number of workers, which counts if the setting names none.
    `shared_memory`: size of /dev/shm in bytes. `out_of_memory`: whether the kernel killed a process for lack of memory
    meanwhile.
    """

    setting: Setting
    words: str = ""
    signal: str = ""
    hung: bool = False
    own_workers: int = 0
    start_method: str = ""
    stacks: Sequence[Stack] = field(default=())
    shared_memory: int | None = None
    out_of_memory: bool = False
    open_handle: str = ""
    """The file that the dataset holds open, so that forked workers share it."""

    @property
    def workers(self) -> int:
        return num_workers.under(self.setting, self.own_workers)


@dataclass(frozen=True)
class Cause:
    """Why a probe failed, and what helps. `every_count`: any number of workers would fail in this way. `certain`: the
    setting itself is to blame; otherwise the script may have ended by itself. `known`: a rule says what it is;
    otherwise `sentence` is only the error that the script ended with."""

    sentence: str
    every_count: bool = False
    certain: bool = True
    known: bool = True


def cause(failure: Failure) -> Cause:
    """Why a probe failed, by the first rule that applies."""
    for rule in _RULES:
        known = rule(failure)
        if known is not None:
            return known
    words = error_in(failure.words) or "no reason given"
    if failure.open_handle and num_workers.asked(failure.setting) and failure.workers:
        words = (
            f"{words.rstrip('.')}; the dataset holds {failure.open_handle}, whose position forked workers share: open "
            "it in the first `__getitem__` instead"
        )
    return Cause(words, certain=False, known=False)


# -- rules, the most specific first -----------------------------------------------------------------------------------


def _hung(failure: Failure) -> Cause | None:
    if not failure.hung:
        return None
    own = own_frame([stack for stack in failure.stacks if stack.worker])
    main = own_frame([stack for stack in failure.stacks if not stack.worker])
    unseen = not failure.stacks and num_workers.asked(failure.setting) is not None
    if failure.workers and (own is not None or unseen or _waits_for_workers(failure.stacks)):
        where = f" in {_place(own)}" if own is not None else ""
        locked = any(stack.locked and stack.worker for stack in failure.stacks)
        return Cause(f"with workers the dataset hangs{where}: {_fork_advice(failure, locked)}", every_count=True)
    if main is not None:
        return Cause(f"it hung in {_place(main)}: the window took over ten times as long as expected")
    return Cause("it hung: the window took over ten times as long as expected")


def _waits_for_workers(stacks: Sequence[Stack]) -> bool:
    return any(
        frame.function.rpartition(".")[2] in _WAITING for stack in stacks if not stack.worker for frame in stack.frames
    )


def _fork_advice(failure: Failure, locked: bool) -> str:
    if failure.start_method not in ("", "fork"):
        return f"workers started by {failure.start_method} gave no batch; find out what they wait for"
    if locked:
        return (
            "a lock was held when the worker was forked, and is never released there; "
            'try `multiprocessing_context="forkserver"`'
        )
    return (
        "it waits for something that forked workers don't have, such as a thread of the main process, or for a lock "
        "that was held at the fork; "
        'try `multiprocessing_context="forkserver"`'
    )


def _shared_memory_too_small(failure: Failure) -> Cause | None:
    if not _seen(_SHARED_MEMORY, failure) and "SIGBUS" not in (failure.signal, _end_of_worker(failure)):
        return None
    size = f" ({failure.shared_memory / MEBIBYTE:.0f} MiB)" if failure.shared_memory is not None else ""
    return Cause(
        f"/dev/shm is too small{size} for {_workers(failure)}: batches pass through it on their way from the workers; "
        "enlarge it (`docker run --shm-size=8g`), or use fewer workers, a smaller `prefetch_factor` or smaller batches"
    )


def _gpu_memory(failure: Failure) -> Cause | None:
    if not _seen(_GPU_MEMORY, failure):
        return None
    return Cause(
        f"the GPU's memory was not enough: {_line_with(_GPU_MEMORY, failure)}; a smaller batch leaves room",
        certain=False,
    )


def _memory(failure: Failure) -> Cause | None:
    worker = _end_of_worker(failure)
    killed = "SIGKILL" in (failure.signal, worker)
    said = _line_with(_MEMORY, failure)
    if not said and not killed:
        return None
    who = "a worker" if worker == "SIGKILL" else "the process"
    if said:
        short = f"memory was not enough for {_workers(failure)} ({said})"
    elif failure.out_of_memory:
        short = f"memory was not enough for {_workers(failure)}: the kernel killed {who} for lack of it"
    else:
        short = f"{who} was killed by SIGKILL (out of memory?)"
    if not failure.workers:
        return Cause(short, certain=False)
    return Cause(
        f"{short}; each worker holds a copy of what it touches: fewer workers or a smaller `prefetch_factor` need less",
        certain=bool(said) or worker == "SIGKILL",
    )


def _disk_full(failure: Failure) -> Cause | None:
    if not _seen(_DISK, failure):
        return None
    return Cause(
        f"the disk is full: {_line_with(_DISK, failure)}; free some space where the script writes", certain=False
    )


def _too_many_files(failure: Failure) -> Cause | None:
    if not _seen(_HANDLES, failure):
        return None
    return Cause(
        f"too many files were open for {_workers(failure)}: raise `ulimit -n`, or set "
        '`torch.multiprocessing.set_sharing_strategy("file_system")`'
    )


def _gpu_after_fork(failure: Failure) -> Cause | None:
    if not _seen(_FORKED_GPU, failure) or not failure.workers:
        return None
    return Cause(
        "the dataset uses the GPU, which forked workers can't: make its tensors on the CPU and move batches in the "
        'loop, or try `multiprocessing_context="spawn"`',
        every_count=True,
    )


def _unpicklable(failure: Failure) -> Cause | None:
    if not _seen(_PICKLE, failure) or not failure.workers:
        return None
    return Cause(
        f"the dataset can't be sent to workers: {_line_with(_PICKLE, failure)}; all of it has to be picklable",
        every_count=True,
    )


def _own_processes(failure: Failure) -> Cause | None:
    if not _seen(_DAEMON, failure):
        return None
    return Cause(
        "the dataset starts processes of its own, which loader workers are not allowed to do", every_count=True
    )


def _worker_killed(failure: Failure) -> Cause | None:
    name = _end_of_worker(failure)
    if name is None:
        return None
    if not name:
        return Cause(
            "a worker ended without an error message: something in the dataset ends the process, such as `os._exit`"
        )
    if name in _CRASHES:
        return Cause(
            f"a worker crashed ({name}), perhaps in native code that does not work after a fork; "
            'try `multiprocessing_context="forkserver"`'
        )
    return Cause(f"a worker was killed by {name}")


def _end_of_worker(failure: Failure) -> str | None:
    """The signal that ended a worker; "" if it ended by itself, None if none ended."""
    died = _WORKER_DIED.search(failure.words)
    if died is None:
        return None
    if died[1] is not None:
        return next(
            (each.name for each in signal.Signals if signal.strsignal(each) == died[1].strip()), died[1].strip()
        )
    code = _EXIT_CODE.search(failure.words)
    return signal_name(int(code[1])) if code is not None else ""


def signal_name(code: int) -> str:
    """The signal that ended a process with this code; "" if none did."""
    if code >= 0:
        return ""
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"


def _killed(failure: Failure) -> Cause | None:
    return Cause(f"killed by {failure.signal}", certain=False) if failure.signal else None


_RULES: tuple[Callable[[Failure], Cause | None], ...] = (
    _hung,
    _too_many_files,
    _shared_memory_too_small,
    _gpu_memory,
    _gpu_after_fork,
    _memory,
    _disk_full,
    _unpicklable,
    _own_processes,
    _worker_killed,
    _killed,
)


# -- words ------------------------------------------------------------------------------------------------------------


def error_in(text: str) -> str:
    """The line of an output in which an exception gives its type and message; the last one where there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (naming_line(text) or (lines[-1] if lines else ""))[:300]


def _last_lines(failure: Failure) -> list[str]:
    return [line.strip() for line in failure.words.splitlines() if line.strip()][-_LINES_READ:]


def _seen(sign: re.Pattern[str], failure: Failure) -> bool:
    return any(sign.search(line) for line in _last_lines(failure))


def _line_with(sign: re.Pattern[str], failure: Failure) -> str:
    """The last line that matches `sign`, without a full stop; "" if none does."""
    line = next((line for line in reversed(_last_lines(failure)) if sign.search(line)), "")
    return line[:200].rstrip(". ")


def _workers(failure: Failure) -> str:
    if not failure.workers:
        return "this setting"
    return f"{failure.workers} worker{'s' if failure.workers > 1 else ''}"


def standing(stacks: Sequence[Stack]) -> str:
    """The sentence that says in which of the user's lines a hanging process stood; "" if that was not seen."""
    worker = own_frame([stack for stack in stacks if stack.worker])
    main = own_frame([stack for stack in stacks if not stack.worker])
    if worker is not None and (main is None or _waits_for_workers(stacks)):
        return f"A loader worker was in {_place(worker)}."
    return f"The script was in {_place(main)}." if main is not None else ""


def whereabouts(stacks: Sequence[Stack]) -> str:
    """The sentence that says what a script was at that did not come to train, by its outermost functions; "" if that
    was not seen."""
    own = [frame for stack in stacks if not stack.worker for frame in reversed(stack.frames) if frame.own]
    if not own:
        return ""
    outermost = site_text(os.path.basename(own[0].file), own[0].line)
    return f"It was in {_place(own[1])}, called at {outermost}." if len(own) > 1 else f"It was at {outermost}."


def own_frame(stacks: Sequence[Stack]) -> Frame | None:
    """The innermost of the user's own functions on any of these stacks."""
    return next((frame for stack in stacks for frame in stack.frames if frame.own), None)


def _place(frame: Frame) -> str:
    return f"`{frame.function}` ({site_text(os.path.basename(frame.file), frame.line)})"
