"""The limits of this process and this loader: the usable CPUs, and whether workers may be added at all."""

from __future__ import annotations

import ast
import io
import os
import pickle
import sys
from multiprocessing import context
from multiprocessing.reduction import ForkingPickler
from multiprocessing.synchronize import SemLock
from typing import Any, Optional


def usable_cpus(ranks: int = 1, world: int = 1) -> int:
    """The smallest of affinity, cgroup quota and SLURM's share, divided among the `ranks` on this host; at least 1.

    Where SLURM itself started every rank of the `world`, as a task, its CPUs a task are this rank's already.
    """
    counts = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    quota = _cgroup_cpus()
    if quota is not None:
        counts.append(quota)
    value = os.environ.get("SLURM_CPUS_PER_TASK", "")
    if value.isdigit() and int(value) > 0:
        counts.append(int(value))
        tasks = os.environ.get("SLURM_STEP_NUM_TASKS") or os.environ.get("SLURM_NTASKS")
        if tasks == str(world):
            ranks = 1
    return max(1, min(counts) // max(1, ranks))


def _cgroup_cpus(root: str = "/sys/fs/cgroup", process: str = "/proc/self/cgroup") -> Optional[int]:
    """CPUs that the cgroup's quota allows, rounded up; None without a quota. Both cgroup versions."""
    try:
        with open(process, encoding="ascii") as handle:
            lines = [line.strip().split(":", 2) for line in handle]
    except OSError:
        return None
    best: Optional[int] = None
    for _, controllers, path in lines:
        unified = controllers == ""
        if not unified and "cpu" not in controllers.split(","):
            continue
        base = root if unified else os.path.join(root, controllers)
        parts = path.strip("/").split("/") if path.strip("/") else []
        for depth in range(len(parts), -1, -1):
            quota = _quota(os.path.join(base, *parts[:depth]), unified)
            if quota is not None:
                best = quota if best is None else min(best, quota)
    return best


def _quota(folder: str, unified: bool) -> Optional[int]:
    try:
        if unified:
            with open(os.path.join(folder, "cpu.max"), encoding="ascii") as handle:
                limit, period = handle.read().split()[:2]
        else:
            with open(os.path.join(folder, "cpu.cfs_quota_us"), encoding="ascii") as handle:
                limit = handle.read().strip()
            with open(os.path.join(folder, "cpu.cfs_period_us"), encoding="ascii") as handle:
                period = handle.read().strip()
    except (OSError, ValueError):
        return None
    if limit == "max" or int(limit) <= 0:
        return None
    return max(1, -(-int(limit) // int(period)))


def workers_unsafe(loader: Any, start_method: str, dataset: Any) -> str:
    """Why no workers with this `dataset` may be added to this loader; "" if they may.

    Fork copies the process and needs nothing. Spawn and forkserver run the main script again in every worker: without a
    main guard it would train again inside its own worker, and everything handed over must pickle.
    """
    if start_method == "fork" or loader.num_workers:
        return ""
    if not _main_is_guarded():
        return f"the script has no `if __name__ == '__main__':` guard, which workers started by {start_method} need"
    for name, value in (
        ("dataset", dataset),
        ("collate_fn", loader.collate_fn),
        ("worker_init_fn", loader.worker_init_fn),
    ):
        try:
            _hand_over(value)
        except Exception as error:
            return (
                f"the {name} cannot be pickled ({type(error).__name__}), which workers started by {start_method} need"
            )
    return ""


class _Nowhere(io.RawIOBase):
    """A stream that discards what is written."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


class _Trial(ForkingPickler):
    """Pickles as for a new process, but skips arrays, which can be pickled and are slow to copy."""

    def reducer_override(self, value: Any) -> Any:
        # Whoever describes the machine uses this file without torch.
        tensor = getattr(sys.modules.get("torch"), "Tensor", ())
        if isinstance(value, tensor) or type(value).__module__ == "numpy":
            return int, ()
        if isinstance(value, SemLock) and not _has_name(value):
            raise RuntimeError("a lock for forked processes only")
        return NotImplemented


def _has_name(lock: SemLock) -> bool:
    """Whether a process that is started anew can open this lock: one for forked processes has no name. Pythons before
    3.11.5 pickle it all the same, and the worker fails."""
    return sys.platform == "win32" or getattr(lock, "_semlock").name is not None  # noqa: B009  # typeshed has it not


class _NoProcess:
    """Stands for the process that would get the system's handles."""

    def duplicate_for_child(self, handle: int) -> int:
        return handle

    DupFd = duplicate_for_child


def _hand_over(value: Any) -> None:
    """Try whether this could be sent to a new process. Raises the error that prevents it."""
    before = context.get_spawning_popen()
    context.set_spawning_popen(_NoProcess())  # type: ignore[arg-type]  # All that is asked of one.
    try:
        _Trial(_Nowhere(), pickle.HIGHEST_PROTOCOL).dump(value)
    finally:
        context.set_spawning_popen(before)


def _main_is_guarded() -> bool:
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    # A new process can't import a notebook, whatever its cells ask.
    if path is None or path.endswith(".ipynb"):
        return False
    try:
        with open(path, "rb") as handle:
            tree = ast.parse(handle.read())
    except (OSError, SyntaxError, ValueError):
        return False
    return any(
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
        for node in tree.body
    )
