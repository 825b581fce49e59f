"""No two findings ever contradict each other, whatever the evidence."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.diagnosable import (
    BLUR,
    COLLATE,
    DECODING,
    FLIP,
    FOUND,
    GETITEM,
    ITEM,
    LARGE,
    READING,
    REMOTE,
    SMALL,
    STEPS,
    TINY,
    TRAINING,
    curve,
    healthy,
    listings,
    loading,
    on_gpu,
    operators,
    profiled,
    use,
)

from bottleneck_doctor.diagnose import Evidence, _rule, diagnose
from bottleneck_doctor.documents.report import (
    GarbageCollection,
    Phases,
    Speedup,
    WorkerActivity,
)

WAIT = (
    *("input-bound", "slow-fetch", "slow-decode", "slow-transform", "slow-collate", "slow-hand-over"),
    *("too-few-workers", "workers-io-bound", "workers-cpu-bound", "many-small-files", "network-file-system"),
    *("cold-cache", "worker-imbalance", "out-of-order-batches"),
)
HOST = (
    *("python-bound", "launch-bound", "work-between-steps", "slow-optimizer", "garbage-collection"),
    *("transfer-bound", "synchronising-calls"),
)
CONTRADICTIONS = {
    frozenset(pair)
    for pair in (
        ("workers-io-bound", "workers-cpu-bound"),
        ("workers-io-bound", "oversubscribed-cores"),
        ("network-file-system", "workers-cpu-bound"),
        ("cold-cache", "workers-cpu-bound"),
        ("network-file-system", "cold-cache"),
        ("too-few-workers", "too-many-workers"),
        ("too-few-workers", "oversubscribed-cores"),
        ("launch-bound", "python-bound"),
        ("launch-bound", "tensor-cores-idle"),
        ("compute-bound", "oversubscribed-threads"),
        ("compute-bound", "unused-cores"),
        ("compute-bound", "returned-memory"),
        ("compute-bound", "memory-data-needs-no-workers"),
        ("compute-bound", "too-many-workers"),
        ("too-many-workers", "memory-data-needs-no-workers"),
        *(("compute-bound", other) for other in (*WAIT, *HOST)),
        *(("memory-data-needs-no-workers", other) for other in WAIT if other not in ("input-bound",)),
    )
}
shares_of = st.sampled_from([0.0, 0.02, 0.08, 0.2, 0.5, 0.9])


@st.composite
def any_evidence(draw: st.DrawFn) -> Evidence:
    """Evidence in all combinations, plausible together or not."""
    weights = [draw(shares_of) + 1e-6 for _ in range(7)]
    total = sum(weights)
    phases = Phases(*(), **dict(zip(Phases.__dataclass_fields__, (w / total for w in weights), strict=False)))
    count = draw(st.sampled_from([0, 1, 2, 4, 8]))
    milliseconds = st.sampled_from([0.0, 0.3, 5.0, 40.0, 300.0])
    fetch = draw(milliseconds)
    loop = loading(
        num_workers=count,
        fetch_ms=fetch,
        fetch_p95_ms=fetch * draw(st.sampled_from([1.0, 1.4, 3.0])),
        collate_ms=draw(milliseconds),
        hand_over_ms=draw(milliseconds) if count else None,
        bytes_per_batch=draw(st.sampled_from([1e3, 1e6, 1e8])),
        out_of_order_share=draw(shares_of),
        transforms=draw(st.sampled_from([[], BLUR, FLIP])),
        files=draw(st.sampled_from([None, SMALL, LARGE, REMOTE, replace(SMALL, remote=True)])),
        workers=[
            WorkerActivity(
                worker=each,
                batches=20,
                fetch_seconds=draw(milliseconds) / 1000,
                collate_seconds=0.0,
                idle_share=draw(shares_of),
            )
            for each in range(count)
        ],
    )
    speeds = {f"w{other}": draw(st.sampled_from([0.6, 0.99, 1.04, 1.3, 3.0])) for other in (0, 1, 2, 4, 8)}
    speeds.pop(f"w{count}")
    cores = st.sampled_from([None, 0.1, 1.0, 2.0, 3.9])
    rates = st.sampled_from([None, 10.0, 5000.0, 2e8])
    gpu = draw(st.booleans())
    evidence = healthy(
        phases=phases,
        loop=loop,
        found=replace(FOUND, threads=draw(st.sampled_from([1, 4, 32]))),
        workers=draw(st.sampled_from([None, curve(count, **speeds)])),
        utilization=use(
            main={"cpu_user": draw(cores), "read_bytes": draw(rates), "blocked_share": draw(shares_of)},
            workers={
                "cpu_user": draw(cores),
                "threads": draw(st.sampled_from([None, 4.0, 64.0])),
                "involuntary_switches": draw(rates),
                "read_bytes": draw(rates),
            }
            if count
            else None,
            count=max(1, count),
            cores_busy=draw(cores),
            cpu_pressure=draw(shares_of),
        ),
        ceilings=draw(
            st.sampled_from([{}, {"synthetic": Speedup(estimate=1.03, low=1.0, high=1.1, pairs=8, sessions=3)}])
        ),
        synchronising=[replace(ITEM, ms_per_step=draw(milliseconds), per_step=draw(st.sampled_from([1.0, 500.0])))],
        garbage=GarbageCollection(collections=3, ms_per_step=1.0, share=draw(shares_of)),
        steps=replace(STEPS, p50_ms=draw(st.sampled_from([5.0, 60.0, 99.0])), jitter=draw(st.sampled_from([1.1, 4.0]))),
    )
    lines = draw(st.sampled_from([None, listings(GETITEM, TRAINING), listings(READING), listings(DECODING, COLLATE)]))
    tables = operators(operators=draw(st.sampled_from([TINY, operators().operators])))
    evidence = profiled(evidence, lines=lines, device=tables)
    if gpu:
        evidence = on_gpu(
            evidence,
            operators=tables.operators,
            idle_share=draw(shares_of),
            kernel_mean_us=draw(st.sampled_from([3.0, 100.0])),
            tensor_core_share=draw(shares_of),
            sm_efficiency=draw(shares_of),
        )
    return evidence


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(any_evidence())
def test_no_two_findings_contradict_each_other(evidence: Evidence) -> None:
    made = diagnose(evidence)
    assert not [each for each in made.not_judged if "bug" in each.reason], made.not_judged
    ids = [each.id for each in made.findings]
    assert len(ids) == len(set(ids))
    # What little there is beside nearly all of the time contradicts nothing.
    large = {each.id for each in made.findings if each.weight >= _rule.LARGE}
    assert not set(ids) & {each.id for each in made.not_judged}
    together = {frozenset((one, other)) for one in ids for other in ids if one != other}
    assert not [
        pair for pair in together & CONTRADICTIONS if "compute-bound" not in pair or pair - {"compute-bound"} <= large
    ]
    # A finding is either there or general: never both the wait as such and what it comes from.
    assert "input-bound" not in ids or not any(
        each.weight >= made.findings[ids.index("input-bound")].weight for each in made.findings if each.id in WAIT[1:6]
    )
    assert all(0.0 <= each.weight <= 1.0 for each in made.findings)
    assert [each.weight for each in made.findings] == sorted((each.weight for each in made.findings), reverse=True)
