"""Operators and kernels: the result of the guest's `trace` window and its trace file in, a `DeviceProfile` out.

The trace is in Chrome's format, as torch.profiler exports it: host operators, CUDA runtime calls, kernels and copies
with microseconds of one clock. Estimated SM efficiency, estimated achieved occupancy and the Tensor Core share follow
the TensorBoard plugin of pytorch/kineto (tb_plugin, since removed: gpu_metrics_parser.py, range_utils.py and
tensor_core.py), with the names of kernels that came after it.
"""

from __future__ import annotations

import bisect
import gzip
import json
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bottleneck_doctor.documents.report import DeviceProfile, Operator

WAITING_FOR_DATA = "the host waits for its next batch"
SYNCHRONISING = "the host waits for the device, then has nothing queued"
LAUNCHING = "the host can't launch kernels as fast as they run"
HOST_WORK = "the host does other work between steps or operators"
"""Why a device is idle: the values of `DeviceProfile.idle_cause`, besides "" if it is hardly idle."""

LEAST_IDLE = 0.05
SHORT_GAP_US = 500.0
"""A gap this short comes from launching: the host takes 5 to 100 µs for an eager operator or a backward node."""
OPERATORS_FILL = 0.3
"""A longer gap comes from launching too if operators fill this much of it; otherwise the host does something else."""
DRAINED_US = 20.0
"""A synchronising call returns this soon after the device has drained."""
MOST_ROWS = 60
LONGEST_NAME = 300

_TENSOR_CORE = re.compile(
    # The plugin's list (from PyProf) …
    "h884|s884|h1688|s1688|hmma|i8816|16816|dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1|"
    "direct_group|xmma_implicit_gemm|xmma_sparse_conv|xmma_warp_specialized_implicit_gemm|xmma_gemm|xmma_sparse_gemm|"
    "c1688|"
    # … and what cuBLAS, CUTLASS, cuDNN and the flash-attention kernels are called since Ampere.
    "tensorop|wmma|gmma|nvjet|tcgen05|utcmma|tensor16x8|s16816|xmma_fprop|xmma_dgrad|xmma_wgrad|flash_fwd|flash_bwd|"
    r"flash::|fmha_cutlass[FB]_b?f16|sdpa_sm\d+",
    re.IGNORECASE,
)
_NOT_TENSOR_CORE = re.compile("ffma|simt|f32f32_f32f32|dgemm|d884|f64", re.IGNORECASE)
"""Single and double precision kernels of the same families."""
_DOUBLE = re.compile(r"dgemm|d884|f64|double")
_MATRIX_OPERATORS = re.compile(
    r"^aten::(_?conv\w*|\w*convolution\w*|(add)?mm_?|\w*_mm|_addmm_activation|add(mv|r)|(add|b)addbmm|addbmm|baddbmm|bmm|"
    r"matmul|mv|linear|einsum|prelu|chain_matmul|linalg_multi_dot|_?scaled_dot_product\w*|_?flash_attention\w*|"
    r"_?efficient_attention\w*|\w*(lstm|gru|rnn)\w*)$|^(Cudnn)?Convolution\w*Backward|^(Addmm|Bmm|Mm|Mv|Addmv)Backward"
)
"""The plugin's list of operators that can run on Tensor Cores, with those that torch has added since."""

Range = tuple[float, float]


class _Args(msgspec.Struct):
    external: Any = msgspec.field(default=None, name="External id")
    correlation: Any = None
    device: Any = None
    blocks_per_sm: Any = msgspec.field(default=None, name="blocks per SM")
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: Any = ""
    ts: Any = 0.0
    dur: Any = 0.0
    args: _Args | None = None


class _Trace(msgspec.Struct):
    events: list[_Event] = msgspec.field(default_factory=list, name="traceEvents")


@dataclass(frozen=True)
class TraceSpan:
    """One event of the trace. Microseconds."""

    name: str
    start: float
    end: float
    args: _Args

    @property
    def duration(self) -> float:
        return self.end - self.start


class Row(NamedTuple):
    """One operator of the guest's table, with its self times in microseconds."""

    name: str
    calls: int
    cpu: float
    device: float


def device_profile(detail: dict[str, Any], trace_file: Path | None, files: Sequence[str]) -> DeviceProfile:
    """The profile from `detail` and the trace. Device figures are None if there is no device or no readable trace.

    `files`: files beside the report that other tools can read (Perfetto opens the trace).
    """
    rows = [Row(*row) for row in detail.get("operators", ())]
    steps = int(detail.get("steps", 0))
    seconds = float(detail.get("seconds", 0.0))
    profile = DeviceProfile(steps=steps, seconds=seconds, operators=_operators(rows), files=list(files))
    if not detail.get("device") or trace_file is None or steps == 0:
        return profile
    try:
        trace = read_trace(trace_file)
    except (OSError, ValueError, RecursionError):
        return profile
    return _with_device(profile, trace, steps, str(detail.get("waiting", "")))


def _operators(rows: Iterable[Row]) -> list[Operator]:
    rows = list(rows)
    whole = sum(row.cpu for row in rows)
    ordered = sorted(rows, key=lambda row: -row.cpu)[:MOST_ROWS]
    return [
        Operator(
            name=_short(row.name),
            calls=row.calls,
            cpu_ms=row.cpu / 1e3,
            device_ms=row.device / 1e3,
            share=row.cpu / whole if whole > 0 else 0.0,
        )
        for row in ordered
    ]


def read_trace(path: Path) -> dict[str, list[TraceSpan]]:
    """The events with a duration, by category, in order of time. Raises `ValueError` if the text is no trace."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, zlib.error) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    try:
        trace = msgspec.json.decode(data, type=_Trace)
    except (msgspec.DecodeError, msgspec.ValidationError):
        # Kineto writes NaN and Infinity, which are not JSON but which Python reads.
        trace = msgspec.convert(json.loads(data), _Trace)
    found: dict[str, list[TraceSpan]] = defaultdict(list)
    nothing = _Args()
    for event in trace.events:
        if event.ph == "X" and _number(event.ts) is not None and _number(event.dur) is not None:
            start, end = float(event.ts), float(event.ts) + float(event.dur)
            if math.isfinite(end):
                found[event.cat.lower()].append(TraceSpan(str(event.name), start, end, _known(event.args or nothing)))
    for spans in found.values():
        spans.sort(key=lambda span: span.start)
    return dict(found)


def _known(args: _Args) -> _Args:
    """`args` without its ids if one of them is a list or a dict, because ids are used as keys."""
    if any(isinstance(each, (list, dict)) for each in (args.external, args.correlation, args.device)):
        return _Args(blocks_per_sm=args.blocks_per_sm, occupancy=args.occupancy)
    return args


def _with_device(profile: DeviceProfile, trace: dict[str, list[TraceSpan]], steps: int, waiting: str) -> DeviceProfile:
    marks = [span for span in trace.get("user_annotation", []) if span.name.startswith("ProfilerStep#")]
    stretch, rest = marks[:steps], marks[steps:]
    if not stretch:
        return profile
    begin = stretch[0].start
    # Other ranges are of a step that the loop did not finish, perhaps because of an evaluation.
    limit = rest[0].start if rest else math.inf
    calls = [*trace.get("cuda_runtime", []), *trace.get("cuda_driver", [])]
    queued = {call.args.correlation: call.start for call in calls if call.args.correlation is not None}

    def of_the_steps(kind: str) -> Iterator[TraceSpan]:
        for span in trace.get(kind, []):
            if span.start >= begin and queued.get(span.args.correlation, span.start) < limit:
                yield span

    kernels, device = _of_busiest_device(of_the_steps("kernel"))
    if not kernels:
        return profile
    copies, fills = (
        [span for span in of_the_steps(kind) if span.args.device in (device, None)]
        for kind in ("gpu_memcpy", "gpu_memset")
    )
    # The device runs behind the host, so kernels that the last step queued belong to that step.
    end = max(stretch[-1].end, *(span.end for span in (*kernels, *copies, *fills)))
    wall = end - begin
    if wall <= 0:
        return profile
    kernel_time = sum(span.duration for span in kernels)
    idle = without((begin, end), merged(ranges([*kernels, *copies, *fills])))
    idle_share = total(idle) / wall
    operators = {span.args.external: span.name for span in trace.get("cpu_op", []) if span.args.external is not None}
    tensor, eligible = _tensor_core_time(kernels, operators)
    return replace(
        profile,
        seconds=wall / 1e6,
        kernels=_kernels(kernels, kernel_time),
        utilization=total(merged(ranges(kernels))) / wall,
        sm_efficiency=sm_efficiency(kernels, wall),
        occupancy=occupancy(kernels),
        tensor_core_share=tensor / kernel_time if kernel_time else None,
        tensor_core_eligible_share=eligible / kernel_time if kernel_time else None,
        memcpy_share=total(merged(ranges(copies))) / wall,
        pageable_copies=sum("Pageable" in span.name for span in copies),
        idle_share=idle_share,
        idle_cause=idle_cause(idle, trace, waiting) if idle_share >= LEAST_IDLE else "",
        kernels_per_step=len(kernels) / len(stretch),
        kernel_mean_us=kernel_time / len(kernels),
    )


def _of_busiest_device(kernels: Iterable[TraceSpan]) -> tuple[list[TraceSpan], Any]:
    by_device: dict[Any, list[TraceSpan]] = defaultdict(list)
    for span in kernels:
        by_device[span.args.device].append(span)
    if not by_device:
        return [], None
    device = max(by_device, key=lambda each: sum(span.duration for span in by_device[each]))
    return by_device[device], device


def _kernels(kernels: Iterable[TraceSpan], kernel_time: float) -> list[Operator]:
    calls: Counter[str] = Counter()
    times: dict[str, float] = defaultdict(float)
    for span in kernels:
        calls[span.name] += 1
        times[span.name] += span.duration
    return [
        Operator(
            name=_short(name),
            calls=calls[name],
            cpu_ms=0.0,
            device_ms=time / 1e3,
            share=time / kernel_time if kernel_time else 0.0,
        )
        for name, time in sorted(times.items(), key=lambda each: -each[1])[:MOST_ROWS]
    ]


def sm_efficiency(kernels: Iterable[TraceSpan], wall: float) -> float | None:
    """Estimated part of the multiprocessors that have a block, over the whole time: concurrent kernels' blocks per SM
    are added, and one block is enough to keep an SM."""
    edges: list[tuple[float, float]] = []
    for span in kernels:
        blocks = _number(span.args.blocks_per_sm)
        if blocks is not None and blocks > 0:
            edges += [(span.start, blocks), (span.end, -blocks)]
    if not edges:
        return None
    edges.sort()
    area, level, last = 0.0, 0.0, edges[0][0]
    for time, change in edges:
        area += min(level, 1.0) * (time - last)
        level, last = level + change, time
    return area / wall


def occupancy(kernels: Iterable[TraceSpan]) -> float | None:
    """Estimated achieved occupancy: the mean over kernels, weighed by how long each runs."""
    known = [(span.duration, _number(span.args.occupancy)) for span in kernels]
    weight = sum(duration for duration, percent in known if percent is not None and percent >= 0)
    if weight <= 0:
        return None
    return sum(duration * percent for duration, percent in known if percent is not None and percent >= 0) / weight / 100


def _tensor_core_time(kernels: Iterable[TraceSpan], operators: dict[Any, str]) -> tuple[float, float]:
    """Microseconds in kernels that use Tensor Cores, and in those that do or that run for an operator that could."""
    used = eligible = 0.0
    for span in kernels:
        uses = uses_tensor_cores(span.name)
        used += span.duration if uses else 0.0
        operator = operators.get(span.args.external, "")
        if uses or (_MATRIX_OPERATORS.match(operator) and not _DOUBLE.search(span.name)):
            eligible += span.duration
    return used, eligible


def uses_tensor_cores(kernel: str) -> bool:
    """By the kernel's name, as the plugin did: NVIDIA puts the instruction into it."""
    return bool(_TENSOR_CORE.search(kernel)) and not _NOT_TENSOR_CORE.search(kernel)


def idle_cause(idle: Sequence[Range], trace: dict[str, list[TraceSpan]], waiting: str) -> str:
    """What the host does for most of the time in which the device is idle."""
    calls = [*trace.get("cuda_runtime", []), *trace.get("cuda_driver", [])]
    waits = Cover(ranges(span for span in trace.get("user_annotation", []) if span.name == waiting))
    synchronising = sorted(span.end for span in calls if _synchronises(span.name))
    operators = Cover(ranges([*trace.get("cpu_op", []), *(span for span in calls if not _synchronises(span.name))]))
    causes: dict[str, float] = defaultdict(float)
    for start, end in idle:
        waited = waits.within(start, end)
        left = (end - start) - waited
        if _any_within(synchronising, start, min(start + DRAINED_US, end)):
            cause = SYNCHRONISING
        elif left <= SHORT_GAP_US or operators.within(start, end) >= OPERATORS_FILL * left:
            cause = LAUNCHING
        else:
            cause = HOST_WORK
        causes[WAITING_FOR_DATA] += waited
        causes[cause] += left
    return max(causes, key=lambda cause: causes[cause], default="")


def _synchronises(call: str) -> bool:
    return "Synchronize" in call or call in ("cudaMemcpy", "cuMemcpyDtoH", "hipMemcpy")


def _any_within(times: Sequence[float], start: float, end: float) -> bool:
    at = bisect.bisect_left(times, start)
    return at < len(times) and times[at] <= end


class Cover:
    """Merged ranges, which say how much of a stretch of time they fill."""

    def __init__(self, parts: Iterable[Range]) -> None:
        self._parts = merged(parts)
        self._ends = [end for _, end in self._parts]

    def within(self, start: float, end: float) -> float:
        filled = 0.0
        for at in range(bisect.bisect_right(self._ends, start), len(self._parts)):
            first, last = self._parts[at]
            if first >= end:
                break
            filled += min(last, end) - max(first, start)
        return filled


def ranges(spans: Iterable[TraceSpan]) -> list[Range]:
    return [(span.start, span.end) for span in spans]


def merged(parts: Iterable[Range]) -> list[Range]:
    """The union of ranges, in order."""
    union: list[Range] = []
    for start, end in sorted(parts):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((start, end))
    return union


def without(whole: Range, taken: Sequence[Range]) -> list[Range]:
    """The parts of `whole` that the merged ranges inside it do not cover."""
    edges = [whole[0], *(edge for part in taken for edge in part), whole[1]]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start]


def total(parts: Iterable[Range]) -> float:
    return sum(end - start for start, end in parts)


def _number(value: Any) -> float | None:
    known = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if known else None


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
