"""Figures of a device from traces whose answers are known by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bottleneck_doctor.documents.report import DeviceProfile
from bottleneck_doctor.profiling.device import (
    HOST_WORK,
    LAUNCHING,
    SYNCHRONISING,
    WAITING_FOR_DATA,
    device_profile,
    merged,
    read_trace,
    uses_tensor_cores,
    without,
)

WAITING = "waiting for the next batch"
Event = dict[str, Any]


def event(kind: str, name: str, start: float, duration: float, **args: Any) -> Event:
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, "args": args}


def kernel(
    start: float,
    duration: float,
    name: str = "elementwise",
    *,
    blocks: float | None = None,
    occupancy: float | None = None,
    device: int = 0,
    **args: Any,
) -> Event:
    known = {"blocks per SM": blocks, "est. achieved occupancy %": occupancy}
    told = {key: value for key, value in known.items() if value is not None}
    if "external" in args:
        told["External id"] = args.pop("external")
    return event("kernel", name, start, duration, device=device, **told, **args)


def copy(start: float, duration: float, name: str = "Memcpy HtoD (Pinned -> Device)") -> Event:
    return event("gpu_memcpy", name, start, duration, device=0)


def step(number: int, start: float, duration: float) -> Event:
    return event("user_annotation", f"ProfilerStep#{number}", start, duration)


def wait(start: float, duration: float) -> Event:
    return event("user_annotation", WAITING, start, duration)


def write(path: Path, events: list[Event]) -> Path:
    noise = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "s", "id": 4, "pid": 1, "tid": 1, "ts": 3, "cat": "ac2g", "name": "ac2g"},
        event("Trace", "PyTorch Profiler (0)", 0, 99999, **{"Op count": 3}),
        event("gpu_user_annotation", "ProfilerStep#0", 0, 5, **{"External id": 1}),
    ]
    text = json.dumps({"schemaVersion": 1, "traceEvents": [*noise, *events], "traceName": "x"})
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def profiled(folder: Path, events: list[Event], steps: int = 1, **detail: Any) -> DeviceProfile:
    path = write(folder / "trace.json.gz", events)
    known = {"steps": steps, "seconds": 9.0, "device": True, "operators": [], "waiting": WAITING, **detail}
    return device_profile(known, path, [path.name])


def test_busy_copying_and_idle(tmp_path: Path) -> None:
    """Two steps of 1 ms: 2 × 300 µs of kernels, of which 100 overlap on two streams; 200 µs of copies."""
    events = [
        step(0, 1000, 1000),
        step(1, 2000, 1000),
        copy(1000, 100, "Memcpy HtoD (Pageable -> Device)"),
        kernel(1200, 200, "a"),
        kernel(1300, 200, "b"),
        copy(2000, 100),
        kernel(2100, 300, "a"),
        kernel(500, 100, "before"),
    ]
    profile = profiled(tmp_path, events, steps=2)
    assert profile.seconds == pytest.approx(0.002)
    assert profile.utilization == pytest.approx(600 / 2000)
    assert profile.memcpy_share == pytest.approx(200 / 2000)
    assert profile.idle_share == pytest.approx(1200 / 2000)
    assert profile.pageable_copies == 1
    assert profile.kernels_per_step == pytest.approx(1.5)
    assert profile.kernel_mean_us == pytest.approx(700 / 3)
    assert [(each.name, each.calls, each.device_ms) for each in profile.kernels] == [("a", 2, 0.5), ("b", 1, 0.2)]
    assert [each.share for each in profile.kernels] == [pytest.approx(5 / 7), pytest.approx(2 / 7)]
    assert profile.files == ["trace.json.gz"]


def test_what_the_last_step_queued_belongs_to_it(tmp_path: Path) -> None:
    profile = profiled(tmp_path, [step(0, 0, 100), kernel(50, 350)])
    assert profile.seconds == pytest.approx(400e-6)
    assert profile.utilization == pytest.approx(350 / 400)


def test_a_step_that_was_broken_off_does_not_count(tmp_path: Path) -> None:
    """But a kernel does that was queued before it and runs within it."""
    events = [
        step(0, 0, 100),
        kernel(10, 50),
        event("cuda_runtime", "cudaLaunchKernel", 90, 5, correlation=7),
        step(1, 100, 900),
        kernel(150, 50, "late", correlation=7),
        event("cuda_runtime", "cudaLaunchKernel", 300, 5, correlation=8),
        kernel(500, 100, "evaluation", correlation=8),
    ]
    profile = profiled(tmp_path, events, steps=1)
    assert profile.seconds == pytest.approx(200e-6)
    assert {each.name for each in profile.kernels} == {"elementwise", "late"}


def test_multiprocessors_and_occupancy(tmp_path: Path) -> None:
    """Half the SMs for 200 µs and more than all for 100 µs, of 1000; concurrent kernels add up."""
    events = [
        step(0, 0, 1000),
        kernel(0, 200, blocks=0.5, occupancy=20),
        kernel(300, 100, blocks=8.0, occupancy=80),
        kernel(600, 100, blocks=0.4),
        kernel(600, 100, blocks=0.3),
        kernel(800, 100),
    ]
    profile = profiled(tmp_path, events)
    assert profile.sm_efficiency == pytest.approx((0.5 * 200 + 1.0 * 100 + 0.7 * 100) / 1000)
    assert profile.occupancy == pytest.approx((200 * 0.2 + 100 * 0.8) / 300)
    silent = profiled(tmp_path, [step(0, 0, 1000), kernel(0, 10)])
    assert (silent.sm_efficiency, silent.occupancy) == (None, None)


def test_tensor_cores_used_and_usable(tmp_path: Path) -> None:
    operators = ["aten::mm", "aten::add", "aten::cudnn_convolution", "aten::bmm", "aten::convolution_backward"]
    events = [
        step(0, 0, 1000),
        *(event("cpu_op", name, 0, 5, **{"External id": at}) for at, name in enumerate(operators, 1)),
        kernel(0, 100, "ampere_sgemm_128x64_nn", external=1),
        kernel(100, 200, "void at::native::vectorized_elementwise_kernel<4, float>", external=2),
        kernel(300, 300, "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc", external=3),
        kernel(600, 50, "ampere_dgemm_64x64_nn", external=4),
        kernel(650, 350, "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", external=5),
    ]
    profile = profiled(tmp_path, events)
    assert profile.tensor_core_share == pytest.approx(650 / 1000)
    assert profile.tensor_core_eligible_share == pytest.approx(750 / 1000)


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_interior_nhwc2nchw_tn_v1", True),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", True),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn", True),
        ("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_32x6_nn_align4>(T1::Params)", True),
        ("void cutlass::Kernel<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_128x2_nn_align8>", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off", True),
        ("void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm90<cute::SM90_64x128x16_GMMA", True),
        ("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64", True),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNN", True),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>", True),
        ("ampere_sgemm_32x128_tn", False),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(T1::Params)", False),
        ("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast>", False),
        ("void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>", False),
    ],
)
def test_kernels_are_known_by_their_names(name: str, uses: bool) -> None:
    assert uses_tensor_cores(name) is uses


# -- why a device is idle --------------------------------------------------------------------------------------------


def test_idle_while_the_host_waits_for_its_batch(tmp_path: Path) -> None:
    events = [step(0, 0, 2000), wait(0, 1800), kernel(1850, 150)]
    profile = profiled(tmp_path, events)
    assert profile.idle_cause == WAITING_FOR_DATA


def test_idle_between_short_kernels(tmp_path: Path) -> None:
    kernels = [kernel(at, 5) for at in range(0, 2000, 40)]
    profile = profiled(tmp_path, [step(0, 0, 2000), wait(0, 30), *kernels])
    assert profile.idle_cause == LAUNCHING
    assert profile.idle_share == pytest.approx(35 / 40)


def test_idle_after_the_host_waited_for_the_device(tmp_path: Path) -> None:
    """`.item()` every 400 µs: the call returns as soon as the kernel is over; then nothing is queued."""
    events = [step(0, 0, 2000)]
    for at in range(0, 2000, 400):
        events += [kernel(at, 150), event("cuda_runtime", "cudaStreamSynchronize", at + 10, 145)]
    profile = profiled(tmp_path, events)
    assert profile.idle_cause == SYNCHRONISING


def test_idle_while_the_host_does_something_else(tmp_path: Path) -> None:
    profile = profiled(tmp_path, [step(0, 0, 50000), kernel(0, 5000), kernel(45000, 5000)])
    assert profile.idle_cause == HOST_WORK


def test_a_long_gap_full_of_operators_is_launching(tmp_path: Path) -> None:
    operators = [event("cpu_op", "aten::reshape", at, 50) for at in range(5000, 45000, 100)]
    profile = profiled(tmp_path, [step(0, 0, 50000), kernel(0, 5000), kernel(45000, 5000), *operators])
    assert profile.idle_cause == LAUNCHING


def test_a_busy_device_has_no_cause(tmp_path: Path) -> None:
    profile = profiled(tmp_path, [step(0, 0, 1000), kernel(0, 970)])
    assert profile.idle_share == pytest.approx(0.03)
    assert profile.idle_cause == ""


# -- without a device, or without a trace ----------------------------------------------------------------------------

OPERATORS = [["aten::mm", 12, 3000.0, 0.0], ["aten::add", 24, 1000.0, 0.0]]


def test_operators_alone_on_a_cpu(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.json", [step(0, 0, 1000)])
    profile = device_profile({"steps": 6, "seconds": 0.5, "device": False, "operators": OPERATORS}, path, [])
    assert (profile.steps, profile.seconds) == (6, 0.5)
    assert [(each.name, each.calls, each.cpu_ms, each.share) for each in profile.operators] == [
        ("aten::mm", 12, 3.0, 0.75),
        ("aten::add", 24, 1.0, 0.25),
    ]
    figures = (profile.utilization, profile.sm_efficiency, profile.tensor_core_share, profile.idle_share)
    assert figures == (None, None, None, None)
    assert profile.kernels == []


@pytest.mark.parametrize("data", [None, b"", b"{", b"[1, 2]", b"\x1f\x8bcut", gzip.compress(b"{}" * 99, mtime=0)[:20]])
def test_a_trace_that_is_no_trace_leaves_the_operators(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "trace.json.gz"
    if data is not None:
        path.write_bytes(data)
    profile = device_profile({"steps": 6, "seconds": 0.5, "device": True, "operators": OPERATORS}, path, [])
    assert len(profile.operators) == 2
    assert profile.utilization is None


def test_nothing_was_traced() -> None:
    profile = device_profile({}, None, [])
    assert (profile.steps, profile.operators) == (0, [])


def test_numbers_that_are_not_json_are_read(tmp_path: Path) -> None:
    """Kineto writes the bandwidth of a copy that took no time as infinite."""
    path = tmp_path / "trace.json"
    text = json.dumps({"traceEvents": [step(0, 0, 100), kernel(0, 50, blocks=1.0)]})
    path.write_text(text.replace('"blocks per SM": 1.0', '"blocks per SM": Infinity'))
    assert len(read_trace(path)["kernel"]) == 1
    profile = device_profile({"steps": 1, "device": True}, path, [])
    assert (profile.utilization, profile.sm_efficiency) == (0.5, None)


def test_of_two_devices_the_busier_is_told(tmp_path: Path) -> None:
    events = [step(0, 0, 1000), kernel(0, 100, device=0), kernel(0, 600, device=1)]
    assert profiled(tmp_path, events).utilization == pytest.approx(0.6)


def test_ranges() -> None:
    assert merged([(5, 6), (0, 2), (1, 3), (1, 2)]) == [(0, 3), (5, 6)]
    assert without((0, 10), [(0, 3), (5, 6)]) == [(3, 5), (6, 10)]
    assert without((0, 10), []) == [(0, 10)]
    assert without((0, 10), [(0, 10)]) == []
