"""Whatever an examination gathered, it is judged, looked at and drawn. A bug there would lose all that was measured."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.test_judge import BF16, BY_ID, FOUND, PERSISTENT, WORKERS_1, WORKERS_2, WORKERS_4, Experiment

from bottleneck_doctor.documents.labels import BASELINE, LOADER_ONLY, REPLAY, key_of
from bottleneck_doctor.documents.report import Setting, Surroundings, Window, WindowLoss, WindowMemory
from bottleneck_doctor.examine import judge, looks
from bottleneck_doctor.examine.evidence import Candidate, JudgeEvidence
from bottleneck_doctor.knobs import allocator
from bottleneck_doctor.statistics.speedups import Observation

KEPT = allocator.kept({})
FUSED: Setting = {"fused_optimizer": True}
LAST: Setting = {"channels_last": True}
PARTS = [WORKERS_1, WORKERS_2, WORKERS_4, BF16, FUSED, LAST]
SPEEDS = [0.5, 0.9, 1.0, 1.02, 1.1, 1.3, 2.0, 30.0]


@st.composite
def gathered(draw: st.DrawFn) -> JudgeEvidence:
    """Windows of some fixes alone and on top of each other, in some processes; some windows failed, and what lay around
    them is known or not."""
    generator = random.Random(draw(st.integers(0, 10_000)))
    base = draw(st.sampled_from([{}, WORKERS_1, WORKERS_2]))
    candidates = [
        Candidate(BY_ID["workers"], settings=[WORKERS_1, WORKERS_2, WORKERS_4], sweep=True),
        Candidate(BY_ID["amp-bf16"], settings=[BF16]),
        Candidate(BY_ID["fused-optimizer"], settings=[FUSED]),
        Candidate(BY_ID["channels-last"], settings=[LAST], base=draw(st.sampled_from([{}, base]))),
        Candidate(BY_ID["persistent-workers"], settings=[PERSISTENT], with_workers=True, base=base),
        Candidate(BY_ID["allocator"], settings=[KEPT]),
    ]
    rungs: list[tuple[str, Setting]] = []
    whole: Setting = {}
    for number in draw(st.permutations(range(4)))[: draw(st.integers(0, 4))]:
        fix, part = candidates[number].fix.id, candidates[number].settings[-1]
        whole = {**whole, **part}
        rungs.append((fix, whole))
    tried = [*PARTS, {**base, **LAST}, {**base, **PERSISTENT}, *(rung for _, rung in rungs)]
    speeds = {key_of(each): (each, draw(st.sampled_from(SPEEDS))) for each in tried if draw(st.booleans())}
    ceilings: dict[str, tuple[Setting, float]] = {REPLAY: ({"replay": True}, 2.0), LOADER_ONLY: ({}, 1.5)}
    sessions = draw(st.integers(1, 5))
    windows = Experiment(
        {**speeds, **(ceilings if draw(st.booleans()) else {})},
        sessions=sessions,
        blocks=draw(st.integers(1, 2)),
        luck=draw(st.sampled_from([0.002, 0.05, 0.3])),
        only_in={key: generator.sample(range(1, sessions + 1), generator.randint(1, sessions)) for key in speeds},
    ).windows
    observations = [
        Observation(100_000 + pair, 1, key_of(KEPT), generator.gauss(0.05, 0.05), of_processes=True)
        for pair in range(draw(st.integers(0, 4)))
    ]
    keeps = draw(st.booleans())
    wild = {key for key in speeds if draw(st.booleans())}
    windows = [
        replace(each, seconds=each.seconds * math.exp(0.2 * (each.session - 3))) if each.label in wild else each
        for each in windows
    ]
    return JudgeEvidence(
        found=replace(FOUND, device=draw(st.sampled_from(["cpu", "cpu", "cpu", "cuda:0"]))),
        windows=[_around(each, generator, keeps=keeps) for each in windows],
        candidates=candidates,
        rungs=rungs,
        chosen_after=1,
        epoch_batches=draw(st.sampled_from([None, 12, 400])),
        best_workers=draw(st.sampled_from([{}, base])),
        beside=observations,
    )


def _around(window: Window, generator: random.Random, *, keeps: bool) -> Window:
    """The window with what the machine, the losses and the memory did meanwhile. `keeps`: under autocast, the process
    asks for no memory any more."""

    def one_of(*values: float | None) -> float | None:
        return generator.choice(values)

    around = Surroundings(
        cpus=one_of(None, 2.0),
        steal_share=one_of(None, 0.0, 0.2),
        others_wanted=one_of(None, 0.0, 2.0),
        faults=(0.0 if "autocast" in window.setting else 140_000.0) if keeps else one_of(None, 0.0, 140_000.0),
        kernel_cpu=(0.0 if "autocast" in window.setting else 0.3) if keeps else one_of(None, 0.0, 0.3),
    )
    loss = WindowLoss(steps=50, not_finite=generator.choice([0, 0, 0, 3]), mean=one_of(None, 2.0, 9.0), scatter=0.1)
    memory = WindowMemory(peak=generator.choice([None, 1 << 30, 1 << 33]), workers=generator.choice([None, 1 << 30]))
    failed = window.label != BASELINE and generator.random() < 0.05
    return replace(
        window,
        status="failed" if failed else "ok",
        reason="RuntimeError: out of memory" if failed else "",
        around=generator.choice([None, around, around]),
        loss=generator.choice([None, loss]),
        memory=generator.choice([None, memory]),
    )


@settings(max_examples=400, deadline=None)
@given(gathered(), st.sets(st.integers(0, 5)))
def test_all_that_can_be_gathered_is_judged_and_looked_at(evidence: JudgeEvidence, coming: set[int]) -> None:
    judged = judge.judge(evidence)
    assert judged.verdict.sentence
    assert {each.id for each in judged.fixes} == {each.fix.id for each in evidence.candidates}
    offered = looks.offered(judged)
    assert (offered is not None) == (judged.verdict.fix is not None or judged.verdict.together)
    if offered is not None:
        assert key_of(offered[0]) in {window.label for window in evidence.windows} or offered[0] == KEPT
    looks.Look(evidence).is_enough({key_of(PARTS[number]): PARTS[number] for number in coming})
