"""`oversubscribed-threads`: processes compute with so many threads that they hold one another up."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import line_that_sets_threads, threads_set_at
from bottleneck_doctor.diagnose._rule import (
    LARGE,
    PART,
    ROOT,
    Rule,
    Statement,
    Unjudged,
    at,
    clamp,
    milliseconds,
    of_workers,
    portion,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose._worth import measured_gain, surely_lost
from bottleneck_doctor.diagnose.data._contended import contended
from bottleneck_doctor.diagnose.data._loading import waited_making
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.knobs import intra_op_threads
from bottleneck_doctor.wording import words

TOO_MANY = 2.0
"""This many computing threads a usable core are too many. Ours; two on each core still overlap their waiting."""
SWITCHES = 100.0
"""How often a second threads are taken off each usable core before they are done. On a core with one computing thread
that hardly happens; on one with two it happens some hundred times, since the kernel's slice is about 3 ms
(`base_slice_ns`, https://docs.kernel.org/scheduler/sched-eevdf.html)."""
DELAYED = 0.3
"""Part of making batches for which a worker was ready to compute and had no core. Threads that give way to one another
by themselves, as those of OpenBLAS do, are hardly ever taken off a core, and wait for one all the same. Ours; workers
that compute with one thread each, as many as there are cores, hardly wait."""
OTHERS = 0.5
"""Cores that other programs keep busy from which on torch's threads wait for them: a burst of a second in two. Ours."""
SPINNING = (
    "On Linux, `GOMP_SPINCOUNT=10000` before the command makes threads that wait give up their core sooner. That costs "
    "little where nothing else runs."
)
"""GNU's OpenMP, which torch's packages for Linux bring, lets a thread spin some milliseconds for the others before it
sleeps (https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html), also if what it waits for has no core."""
ADVICE_BESIDE_OTHERS = (
    f"Train while nothing else runs, or call `torch.set_num_threads` with fewer as long as something does. {SPINNING}"
)
ADVICE_BESIDE_OWN = (
    "Call `torch.set_num_threads` with fewer threads in each of these processes, so that all of them together have no "
    "more threads than there are cores."
)
SERVICE_THREADS = 1
"""Each worker has a thread that passes finished batches on and computes nothing."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    return _of_training(evidence) or _beside_others(evidence) or _of_loading(evidence) or _of_workers(evidence)


def _of_training(evidence: Evidence) -> Statement | None:
    """torch computes with more threads than there are usable cores."""
    cores, threads, shares = _usage.usable_cpus(evidence), evidence.found.threads, evidence.shares
    if evidence.on_device or shares is None or threads <= cores:
        return None
    computing = shares.forward + shares.backward + shares.optimizer
    weight = computing * (1.0 - cores / threads)
    if weight < LARGE:
        return None
    site = threads_set_at(evidence)
    return Statement(
        sentence=(
            f"torch computes with {words.count_text(threads, 'thread')}{at(site)} on "
            f"{words.count_text(cores, 'usable core')}. Computing is {words.share_text(computing)} of a step, and "
            "every operation waits for its slowest thread."
        ),
        figures={"threads": float(threads), "usable_cpus": float(cores), "computing_share": computing},
        weight=weight * evidence.in_steps,
        measured=False,
        clause=f"computes with {words.count_text(threads, 'thread')} on {words.count_text(cores, 'core')}",
        site=site,
        advice="Leave `torch.set_num_threads` and `OMP_NUM_THREADS` at the number of usable cores, or below.",
        topic="host",
    )


def _beside_others(evidence: Evidence) -> Statement | None:
    """torch computes with as many threads as there are cores, but other programs keep some of them busy, or other
    processes of this one do, and with fewer threads training was measured to be faster."""
    cores, threads, shares = _usage.usable_cpus(evidence), evidence.found.threads, evidence.shares
    strange, own = _usage.others(evidence) or 0.0, _usage.siblings(evidence) or 0.0
    others, gain = strange + own, measured_gain(evidence, lambda setting: _fewer(setting, threads))
    if evidence.on_device or shares is None or others < OTHERS or threads + others <= cores:
        return None
    weight = surely_lost(gain)
    if weight < LARGE:
        return None
    computing = shares.forward + shares.backward + shares.optimizer
    of_cores = f"{words.count_text(threads, 'thread')} on {words.count_text(cores, 'core')}"
    whose, advice = "other programs", ADVICE_BESIDE_OTHERS
    if own > strange:
        whose, advice = "other processes of this program", ADVICE_BESIDE_OWN
    busy = f"of which {whose} keep {others:.1f} busy"
    return Statement(
        sentence=(
            f"torch computes with {of_cores}, {busy}. Computing is {words.share_text(computing)} of a step, and every "
            "operation waits for its slowest thread."
        ),
        figures={
            "threads": float(threads),
            "usable_cpus": float(cores),
            "others_cpu": others,
            "computing_share": computing,
        },
        weight=weight * evidence.in_steps,
        measured=False,
        clause=f"computes with {of_cores}, {busy}",
        advice=advice,
        topic="host",
    )


def _fewer(setting: Setting, threads: int) -> bool:
    asked = intra_op_threads.alone(setting)
    return asked is not None and asked < threads


def _of_loading(evidence: Evidence) -> Statement | None:
    """The training process makes its batches with threads that wait for one another."""
    parts, slow = waited_making(evidence), contended(evidence)
    if parts is None or not slow:
        return None
    lost = clamp((slow.milliseconds - slow.elsewhere) / parts.milliseconds)
    if lost < PART:
        return None
    wait, threads = evidence.wait or 0.0, words.count_text(evidence.found.threads, "thread")
    names = [f"`{each.name}`" for each in slow.transforms] + ["collating"] * slow.collate
    subject, it, take = words.listed(names), *(("it", "takes") if len(names) == 1 else ("they", "take"))
    return Statement(
        sentence=(
            f"{words.capitalised(subject)} {take} {milliseconds(slow.milliseconds)} a batch in the "
            f"training process, which computes with {threads}. In a worker, which computes with one, {it} {take} "
            f"{milliseconds(slow.elsewhere)}: the threads wait for one another. {training_waits(evidence)}"
        ),
        figures={
            "threads": float(evidence.found.threads),
            "ms_per_batch": slow.milliseconds,
            "ms_per_batch_in_worker": slow.elsewhere,
            "data_wait_share": wait,
        },
        weight=wait * lost * evidence.in_steps,
        clause=f"{waits(evidence)}, {portion(lost)} because {threads} wait for one another while they make batches",
        advice="Load in workers, which compute with one thread each, or call `torch.set_num_threads(1)`.",
    )


def _of_workers(evidence: Evidence) -> Statement | Unjudged | None:
    parts, loading = waited_making(evidence), evidence.as_written
    if parts is None or loading is None or loading.num_workers == 0:
        return None
    threads = _usage.of(evidence, "workers", lambda use: use.threads)
    delayed = clamp(loading.delayed or 0.0)
    switches = _usage.of(evidence, "workers", lambda use: use.involuntary_switches)
    processes = _usage.worker_processes(evidence)
    if threads is None or switches is None or not processes:
        return Unjudged("threads and context switches of the workers were not sampled")
    cores = _usage.usable_cpus(evidence)
    computing = threads - SERVICE_THREADS * processes
    if computing < 2 * processes or computing < TOO_MANY * cores:
        return None
    taken_off = switches >= SWITCHES * cores
    if not taken_off and delayed < DELAYED:
        return None
    held_up = f"While a batch is made, its worker is ready but has no core {words.share_text(delayed)} of the time."
    if taken_off:
        amount = words.amount_text(switches)
        held_up = f"The system takes these threads off a core {amount} times a second before they are done."
    wait = evidence.wait or 0.0
    site = line_that_sets_threads(evidence)
    each = computing / processes
    of_each = " each" if round(processes) > 1 else ""
    return Statement(
        sentence=(
            f"{of_workers(round(processes), 'computes', 'compute')} with {each:.0f} threads{of_each} on "
            f"{words.count_text(cores, 'usable core')}{at(site)}. {held_up} {training_waits(evidence)}"
        ),
        figures={
            "threads": computing,
            "threads_per_worker": each,
            "usable_cpus": float(cores),
            "involuntary_switches": switches,
            "delayed_share": delayed,
            "data_wait_share": wait,
        },
        weight=wait * clamp(1.0 - cores / computing) * clamp(parts.fetch + parts.collate) * evidence.in_steps,
        measured=False,
        clause=f"{waits(evidence)}: the workers use {computing:.0f} threads on {words.count_text(cores, 'core')}",
        site=site,
    )


RULE = Rule(
    id="oversubscribed-threads",
    title="Too many computing threads",
    topic="data",
    depth=ROOT,
    needs=("utilization",),
    judge=judge,
    source="https://pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",
    advice="Let every worker compute with one thread: set `OPENBLAS_NUM_THREADS=1` (NumPy, SciPy) before Python "
    "starts, and call `cv2.setNumThreads(0)` in `worker_init_fn`.",
    fixes=("worker-threads", "workers", "intra-op-threads", "threads", "no-workers"),
    contradicts=("compute-bound",),
)
