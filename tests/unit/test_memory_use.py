"""How much memory a setting needs, by windows whose needs are known."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.test_judge import BF16, WORKERS_2, Experiment, amp, judged, outcome, timed, workers

from bottleneck_doctor.documents.labels import BASELINE, key_of
from bottleneck_doctor.documents.report import PeakMemory, Setting, Window, WindowMemory
from bottleneck_doctor.examine.memory_use import MemoryUse
from bottleneck_doctor.wording import memory_words

GIB = float(1 << 30)
MIB = float(1 << 20)
BATCH: Setting = {"batch_size": 64}


def remembering(windows: list[Window], needs: Mapping[str, float], *, growth: float = 0.0) -> list[Window]:
    """The windows with their memory: the process needs 1 GiB as written and `needs` more under a setting, and keeps its
    peak. `growth`: bytes that the training as written keeps at each window. A worker takes 100 MiB."""
    peaks: dict[int, float] = {}
    grown: dict[int, float] = {}
    told = []
    for window in windows:
        grown[window.session] = grown.get(window.session, 0.0) + growth
        now = GIB + grown[window.session] + needs.get(window.label, 0.0)
        peak = peaks[window.session] = max(now, peaks.get(window.session, 0.0))
        count = int(window.setting.get("num_workers", 0))
        memory = WindowMemory(peak=int(peak), workers=int(count * 100 * MIB), device_peak=None)
        told.append(replace(window, memory=memory))
    return told


def shuffled(windows: list[Window], seed: int) -> list[Window]:
    """Windows in another order within each session, after two as written."""
    generator = random.Random(seed)
    made = []
    for session in sorted({window.session for window in windows}):
        own = [window for window in windows if window.session == session]
        written = [window for window in own if window.label == BASELINE][:2]
        rest = [window for window in own if all(window is not each for each in written)]
        generator.shuffle(rest)
        made += [*written, *rest]
    return made


@pytest.mark.parametrize("seed", range(5))
def test_needs_are_found_whatever_the_order(seed: int) -> None:
    windows = shuffled(Experiment(timed([(WORKERS_2, 1.2), (BF16, 2.0), (BATCH, 1.5)]), sessions=6).windows, seed)
    use = MemoryUse(remembering(windows, {key_of(BATCH): 0.5 * GIB, key_of(BF16): -0.3 * GIB}))
    (host,) = use.of(WORKERS_2)
    # The workers' own memory is exact; of the process that trains, a peak that others have raised may hide it.
    assert host == PeakMemory(where="host", written=GIB, changed=GIB + 200 * MIB)
    (host,) = use.of(BATCH)
    assert host == PeakMemory(where="host", written=GIB, changed=1.5 * GIB)
    # Less than as written can't be told from a peak: it is no more.
    assert use.of(BF16) == [PeakMemory(where="host", written=GIB, changed=GIB)]


def test_nothing_is_said_where_a_peak_hides_it() -> None:
    windows = Experiment(timed([(BATCH, 1.5), (BF16, 2.0)])).windows
    use = MemoryUse(remembering(windows, {key_of(BATCH): 0.5 * GIB, key_of(BF16): 0.4 * GIB}))
    assert use.of(BATCH) == [PeakMemory(where="host", written=GIB, changed=1.5 * GIB)]
    assert use.of(BF16) == []


def test_growth_of_the_training_itself_is_no_need_of_a_setting() -> None:
    windows = Experiment(timed([(BF16, 2.0), (BATCH, 1.5)]), blocks=4).windows
    use = MemoryUse(remembering(windows, {}, growth=2 * MIB))
    assert all(each.written == each.changed for setting in (BF16, BATCH) for each in use.of(setting))
    # The same where it grows by so much that every window raises the peak: what one setting seems to need in every
    # process is at most what the training grows by between a few windows.
    use = MemoryUse(remembering(shuffled(windows, 1), {}, growth=50 * MIB))
    assert all(each.changed - each.written <= 3 * 50 * MIB for each in use.of(BF16))


def test_one_process_tells_nothing() -> None:
    windows = Experiment(timed([(BATCH, 1.5)]), sessions=1).windows
    assert MemoryUse(remembering(windows, {key_of(BATCH): GIB})).of(BATCH) == []
    assert MemoryUse(windows).of(BATCH) == []


def test_workers_that_could_not_be_read_make_the_whole_unknown() -> None:
    windows = remembering(Experiment(timed([(WORKERS_2, 1.2)])).windows, {})
    silent = [
        replace(each, memory=replace(each.memory, workers=None)) if each.setting and each.memory else each
        for each in windows
    ]
    assert MemoryUse(silent).of(WORKERS_2) == []


def test_a_device_is_told_apart() -> None:
    windows = [
        replace(each, memory=WindowMemory(peak=int(GIB), workers=0, device_peak=int(each.started + 4) << 30))
        for each in Experiment(timed([(BATCH, 1.5)]), sessions=2, blocks=1).windows
    ]
    host, device = MemoryUse(windows).of(BATCH)
    assert (host.where, device.where) == ("host", "device")
    assert device.changed - device.written == pytest.approx(10 * GIB)


def test_the_judge_tells_it_of_fixes() -> None:
    judgement = judged(
        remembering(Experiment(timed([(WORKERS_2, 1.2), (BF16, 2.0)])).windows, {}), [workers(WORKERS_2), amp()]
    )
    assert outcome(judgement, "workers").peak_memory == [PeakMemory(where="host", written=GIB, changed=GIB + 200 * MIB)]
    assert outcome(judgement, "amp-bf16").peak_memory == [PeakMemory(where="host", written=GIB, changed=GIB)]


def test_words() -> None:
    same = PeakMemory(where="host", written=GIB, changed=GIB)
    more = PeakMemory(where="host", written=GIB, changed=1.5 * GIB)
    device = PeakMemory(where="device", written=4 * GIB, changed=6 * GIB)
    assert memory_words.needs(None) == ""
    assert memory_words.needs([same]) == "no more than as written (1 GiB)"
    assert memory_words.needs([more, device]) == "1.5 GiB, 1 GiB as written; on the device 6 GiB, 4 GiB as written"
    assert memory_words.much([same]) == ""
    assert memory_words.much([same, device]) == "It needs 2 GiB more memory on the device: 6 GiB, 4 GiB as written."
    assert memory_words.much([PeakMemory(where="host", written=40 * GIB, changed=42 * GIB)]) == ""
