"""What `phases` windows found, merged into the result: by exact figures, without a process."""

from __future__ import annotations

import copy
import functools
import itertools
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset

from bottleneck_doctor.documents.report import EvaluationLoader, Exchanges, FrozenPart, Interruption, Site
from bottleneck_doctor.measure import phases
from bottleneck_doctor.runtime.modes import stopwatch
from bottleneck_doctor.runtime.modes.files import OpenCount, file_system
from bottleneck_doctor.runtime.modes.loading import bytes_of
from bottleneck_doctor.runtime.modes.sites import fetch_site, function_site
from bottleneck_doctor.runtime.modes.stopwatch import (
    BACKWARD,
    BETWEEN,
    DATA_WAIT,
    FORWARD,
    HOST_TO_DEVICE,
    OPTIMIZER,
    PHASES,
    Stopwatch,
)
from bottleneck_doctor.runtime.modes.transforms import Chains
from bottleneck_doctor.runtime.process.patches import Patches


def detail(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "phases": {**dict.fromkeys(PHASES, 0.0), "data_wait": 1.0, "forward": 2.0, "between": 1.0},
        "seconds": 4.0,
        "step_seconds": [1.0, 1.0, 1.0, 1.0],
        "wait_seconds": [0.0, 0.0, 0.0, 1.0],
        "ready": 3,
        "synchronising": [
            {"name": ".item()", "file": "/a/train.py", "line": 7, "library": "", "count": 4, "seconds": 0.2}
        ],
        "garbage": {"collections": 2, "seconds": 0.4},
        "exchanges": None,
        "evaluations": {"times": 0, "seconds": 0.0, "passes": 0, "with_graph": 0},
        "frozen": [],
        "loading": {
            "num_workers": 2,
            "fetch_seconds": [0.5, 1.5],
            "collate_seconds": 0.5,
            "samples": 8,
            "bytes": 800,
            "hand_over_seconds": [0.01],
            "delivered": 4,
            "out_of_order": 1,
            "span": 4.0,
            "workers": [
                {"worker": 0, "batches": 1, "fetch_seconds": 0.5, "collate_seconds": 0.25, "busy_seconds": 1.0},
                {"worker": 1, "batches": 1, "fetch_seconds": 1.5, "collate_seconds": 0.25, "busy_seconds": 4.0},
            ],
            "transforms": [
                {"name": "Decode", "site": {"file": "/a/data.py", "line": 3}, "seconds": 1.0},
                {"name": "Normalize", "site": None, "seconds": 0.5},
            ],
            "files": {"opened": 8, "sized": 4, "bytes": 400, "file_system": "ext4", "remote": False},
            "fetch_site": {"file": "/a/data.py", "line": 20},
            "collate_site": None,
        },
        "loading_missing": "",
        "timeline": {
            "seconds": 4.0,
            "events": [
                ["main", "data_wait", 0.0, 1.0, 0],
                ["main", "forward", 1.0, 1.0, 0],
                ["main", "forward", 2.0, 1.0, 0],
                ["main", "between", 3.0, 0.0001, 0],
                ["worker 0", "fetch", 0.0, 0.5, 1],
            ],
        },
    }
    return {**found, **changes}


def pauses(**changes: Any) -> dict[str, Any]:
    """What a process tells with each window of all pauses so far."""
    found: dict[str, Any] = {
        "epoch_pause": {
            "seen": 2,
            "evaluation": 2.0,
            "of_training": 1.5,
            "waiting": [
                {"seconds": 0.5, "workers": 2, "file": "", "line": 0},
                {"seconds": 1.0, "workers": 0, "file": "/a/train.py", "line": 7},
            ],
            "saving": 1.0,
            "rest": 3.0,
            "in_mode": 1.5,
            "first_batch": 0.5,
            "first_batches": 1,
            "collecting": [
                {"seconds": 0.25, "file": "", "line": 0},
                {"seconds": 0.75, "file": "/a/train.py", "line": 9},
            ],
            "passes": 4,
            "with_graph": 3,
        },
        "interruptions": {
            "seen": 3,
            "by_mode": 3,
            "batches": 20,
            "seconds": [1.0, 4.0, 2.0],
            "passes": 4,
            "with_graph": 4,
        },
    }
    return {**found, **changes}


# -- merging ---------------------------------------------------------------------------------------------------------


def test_evaluations_in_the_midst_of_epochs_are_counted_over_all_processes() -> None:
    looked: dict[str, Any] = {"passes": 2, "with_graph": 1}
    again = pauses(interruptions={"seen": 2, "by_mode": 1, "batches": 10, "seconds": [3.0, 3.0], **looked})
    once = pauses(interruptions={"seen": 1, "by_mode": 0, "batches": 0, "seconds": [50.0], **looked})
    found = phases.interruption([pauses(), again, once, {}])
    assert found == Interruption(seen=5, seconds=3.0, every=10.0, passes=6, with_graph=5)
    none = pauses(interruptions={"seen": 0, "by_mode": 0, "batches": 0, "seconds": [], "passes": 0, "with_graph": 0})
    assert phases.interruption([once, none]) is None
    pause = phases.epoch_pause([pauses(), pauses()])
    assert pause is not None
    assert (pause.passes, pause.with_graph) == (8, 6)


def test_shares_of_several_windows_are_of_their_summed_time() -> None:
    short = detail(phases={**dict.fromkeys(PHASES, 0.0), "data_wait": 1.0})
    shares = phases.phases([detail(), short])
    assert shares is not None
    assert (shares.data_wait, shares.forward, shares.between, shares.optimizer) == (0.4, 0.4, 0.2, 0.0)
    assert phases.phases([]) is None
    assert phases.phases([{}]) is None


def test_step_times() -> None:
    steps = [0.1] * 99 + [0.9]
    found = phases.step_times([detail(step_seconds=steps)], 12.5)
    assert found is not None
    assert (found.steps, found.outliers, found.first_step_seconds) == (100, 1, 12.5)
    assert found.mean_ms == pytest.approx(108)
    assert [found.p50_ms, found.p95_ms, found.jitter] == pytest.approx([100, 100, 1])
    assert (found.wait_mean_ms, found.ready_share) == (250, 0.75)
    assert found.wait_p95_ms == pytest.approx(850)
    bare = phases.step_times([detail(wait_seconds=[], ready=0)], None)
    assert bare is not None
    assert (bare.wait_mean_ms, bare.ready_share, bare.outliers) == (0, 1, 0)
    assert phases.step_times([{}], None) is None


def test_quantile_is_numpys() -> None:
    numpy = pytest.importorskip("numpy")
    values = [5.0, 1.0, 4.0, 2.5]
    for share in (0.0, 0.1, 0.5, 0.95, 1.0):
        assert phases.quantile(values, share) == pytest.approx(numpy.quantile(values, share))


def test_loading_sums_before_it_divides() -> None:
    other = detail()
    other["loading"] = {**other["loading"], "fetch_seconds": [1.0, 1.0], "hand_over_seconds": [0.03, 0.05]}
    made = phases.loading([detail(), other, detail(loading=None, loading_missing="spawn")], {"num_workers": 2})
    assert made is not None
    assert (made.setting, made.num_workers, made.batches) == ({"num_workers": 2}, 2, 4)
    assert (made.samples_per_batch, made.bytes_per_batch) == (4, 400)
    assert (made.fetch_ms, made.collate_ms) == (1000, 250)
    assert made.hand_over_ms == pytest.approx(30)
    assert made.out_of_order_share == 0.25
    assert [(each.name, each.ms_per_sample, each.share_of_fetch) for each in made.transforms] == [
        ("Decode", 125, 0.5),
        ("Normalize", 62.5, 0.25),
    ]
    assert [(each.file, each.line) for each in made.transforms] == [("/a/data.py", 3), ("", 0)]
    assert [(each.worker, each.batches, each.fetch_seconds, each.idle_share) for each in made.workers] == [
        (0, 2, 0.5, 0.75),
        (1, 2, 1.5, 0.0),
    ]
    assert made.files is not None
    assert (made.files.per_batch, made.files.mean_bytes, made.files.file_system) == (4, 100, "ext4")
    assert (made.fetch_site, made.collate_site) == (Site(file="/a/data.py", line=20), None)


def test_loading_that_nobody_saw_says_why() -> None:
    unseen = detail(loading=None, loading_missing="workers that are started by spawn could not be looked into")
    assert phases.loading([unseen], {}) is None
    assert phases.loading_missing([unseen]) == "workers that are started by spawn could not be looked into"
    assert phases.loading_missing([unseen, detail()]) == ""
    assert phases.loading_missing([]) == "no window ran"


def test_timeline_joins_what_touches_and_drops_what_no_one_could_see() -> None:
    drawn = phases.timeline([detail(timeline=None), detail()], {})
    assert drawn is not None
    assert [(event.lane, event.kind, event.start, event.seconds) for event in drawn.events] == [
        ("main", "data_wait", 0.0, 1.0),
        ("main", "forward", 1.0, 2.0),
        ("worker 0", "fetch", 0.0, 0.5),
    ]
    assert phases.timeline([detail(timeline=None)], {}) is None


def test_epoch_pause() -> None:
    pause = phases.epoch_pause([pauses()])
    assert pause is not None
    assert (pause.seen, pause.evaluation, pause.saving, pause.rest, pause.first_batch) == (2, 1.0, 0.5, 1.5, 0.5)
    assert pause.seconds == 3.5
    assert pause.of_training == 0.75, "which is a part of the evaluation"
    assert pause.waiting == 0.75
    assert pause.waited_for == EvaluationLoader(workers=0, site=Site(file="/a/train.py", line=7))
    assert (pause.collecting, pause.collected_at) == (0.5, Site(file="/a/train.py", line=9))
    nobody = pauses(epoch_pause={**pauses()["epoch_pause"], "waiting": []})
    both = phases.epoch_pause([pauses(), nobody])
    assert both is not None
    assert both.waiting == 0.375
    alone = phases.epoch_pause([nobody])
    assert alone is not None
    assert (alone.waiting, alone.waited_for) == (0.0, None)
    assert pause.first_batches_seen == 1
    untimed = pauses(epoch_pause={**pauses()["epoch_pause"], "first_batch": 0.0, "first_batches": 0})
    with_overhead = phases.epoch_pause([untimed], epoch_overhead=0.25)
    assert with_overhead is not None
    assert (with_overhead.first_batch, with_overhead.first_batches_seen) == (0.25, 0)
    assert phases.epoch_pause([pauses(epoch_pause={"seen": 0})]) is None


def test_synchronising_calls_and_garbage() -> None:
    dear = {"name": "print", "file": "/a/train.py", "line": 9, "library": "rich", "count": 1, "seconds": 0.8}
    first, second = phases.synchronising([detail(), detail(synchronising=[dear])])
    assert (first.name, first.per_step, first.ms_per_step) == ("print", 0.125, 100)
    assert (second.name, second.line, second.per_step, second.ms_per_step) == (".item()", 7, 0.5, 25)
    collected = phases.garbage([detail(), detail()])
    assert collected is not None
    assert (collected.collections, collected.ms_per_step, collected.share) == (4, 100, 0.1)
    assert phases.garbage([{}]) is None


def test_frozen_parts_add_up_by_the_line_that_leads_to_them() -> None:
    def seen(line: int, batch: bool = False, **seconds: float) -> dict[str, Any]:
        parts = [{"name": name, "seconds": each} for name, each in seconds.items()]
        whole = {"seconds": sum(seconds.values()), "parts": parts}
        return {"file": "/a/train.py", "line": line, **whole, "batch": batch, "random": False}

    told = [
        detail(frozen=[seen(9, stem=0.5, body=1.0)]),
        detail(frozen=[seen(9, batch=True, stem=0.5), seen(5, loss=0.4)]),
    ]
    site = Site(file="/a/train.py", line=9)
    assert phases.frozen([*told, detail(), detail()]) == [
        FrozenPart(site=site, names=["stem", "body"], share=2.0 / 16, batch=True, random=False),
        FrozenPart(site=replace(site, line=5), names=["loss"], share=0.4 / 16, batch=False, random=False),
    ]
    assert phases.frozen([detail()]) == []


def test_exchanges_of_gradients_add_up() -> None:
    told = {"passes": 7, "exchanged": 6, "updates": 2}
    assert phases.exchanges([detail(exchanges=told), detail(exchanges=told), detail()]) == Exchanges(
        passes=14, exchanged=12, updates=4
    )
    assert phases.exchanges([detail()]) is None
    assert phases.synchronising([{}]) == []


# -- the stopwatch ---------------------------------------------------------------------------------------------------


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a second after the last."""
    counter = itertools.count()
    monkeypatch.setattr(stopwatch, "now", lambda: float(next(counter)))


@pytest.mark.usefixtures("ticks")
def test_nested_phases_are_counted_once() -> None:
    clock = Stopwatch(lambda: None)
    clock.start()  # 0
    waiting = clock.begin(DATA_WAIT)  # 1 between
    clock.end(waiting)  # 1 waiting
    step = clock.begin(OPTIMIZER)  # 1 between
    closure = clock.begin(BETWEEN)  # 1 optimizer
    forward = clock.begin(FORWARD)  # 1 between
    clock.end(forward)  # 1 forward
    backward = clock.begin(BACKWARD)  # 1 between
    clock.end(backward)  # 1 backward
    clock.end(closure)  # 1 between
    clock.end(step)  # 1 optimizer
    clock.step_ended()  # 1 between
    clock.stop()  # 1 between
    assert {name: seconds for name, seconds in clock.seconds.items() if seconds} == {
        BETWEEN: 7,
        DATA_WAIT: 1,
        OPTIMIZER: 2,
        FORWARD: 1,
        BACKWARD: 1,
    }
    assert clock.segments == [(0.0, 12.0)]
    assert sum(clock.seconds.values()) == 12
    assert clock.step_seconds == [11]


@pytest.mark.usefixtures("ticks")
def test_end_that_an_exception_swallowed_spoils_one_step_only() -> None:
    clock = Stopwatch(lambda: None)
    clock.start()
    clock.begin(OPTIMIZER)
    clock.step_ended()
    before = clock.seconds[OPTIMIZER]
    clock.end(clock.begin(FORWARD))
    clock.step_ended()
    assert clock.seconds[OPTIMIZER] == before
    clock.stop()
    assert clock.begin(FORWARD) == -1


@pytest.mark.usefixtures("ticks")
def test_time_after_an_interruption_counts_for_nothing() -> None:
    clock = Stopwatch(lambda: None)
    clock.start()  # 0
    clock.stop(0.5)
    clock.end_phase(FORWARD)
    clock.stop()
    assert clock.seconds[BETWEEN] == 0.5
    clock.start()  # 1
    clock.moved(HOST_TO_DEVICE, 1.25)
    assert (clock.seconds[HOST_TO_DEVICE], clock.seconds[BETWEEN]) == (0.75, 0.75)


@pytest.mark.usefixtures("ticks")
def test_step_that_an_interruption_ends_lasts_until_then() -> None:
    clock = Stopwatch(lambda: None)
    clock.start()  # 0
    clock.end(clock.begin(FORWARD))  # 1 between, 1 forward
    # Whatever the guest did since, such as putting its hooks on for the evaluation.
    clock.step_ended(2.25)
    clock.stop(2.25)
    assert clock.step_seconds == [2.25]
    assert sum(clock.seconds.values()) == 2.25
    assert clock.segments == [(0.0, 2.25)]


# -- looking at the user's objects -----------------------------------------------------------------------------------


class Double:
    factor = 2

    def __call__(self, value: float) -> float:
        return self.factor * value


def add_one(value: float) -> float:
    return value + 1


class Compose:
    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, value: float) -> float:
        for transform in self.transforms:
            value = transform(value)
        return value


class ModuleChain(torch.nn.Module):
    def __init__(self, *children: torch.nn.Module) -> None:
        super().__init__()
        self.transforms = torch.nn.ModuleList(children)

    def forward(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class Numbers(Dataset[float]):
    def __init__(self, transform: Any) -> None:
        self.options = {"transform": transform}

    def __getitem__(self, index: int) -> float:
        return float(self.options["transform"](float(index)))


everywhere = Compose([add_one])


class UsesGlobal(Dataset[float]):
    def __getitem__(self, index: int) -> float:
        return everywhere(float(index))


def test_chain_is_timed_in_place_and_put_back() -> None:
    double = Double()
    elements = [double, add_one]
    chain = Compose(elements)
    dataset: ConcatDataset[float] = ConcatDataset([Subset(Numbers(chain), [3])])
    chains = Chains()
    chains.time(dataset)
    assert dataset[0] == 7
    assert len(chains.seconds()) == 2
    assert all(seconds > 0 for seconds in chains.seconds())
    first = chain.transforms[0]
    assert isinstance(first, Double)
    assert (first.factor, repr(first)) == (2, repr(double))
    first.factor = 5
    assert double.factor == 5
    assert type(pickle.loads(pickle.dumps(first))) is Double
    assert copy.copy(first)(2) == 10
    described = chains.described()
    assert [each["name"] for each in described] == ["Double", "add_one"]
    assert [each["site"]["file"] for each in described] == [__file__, __file__]
    lines = Path(__file__).read_text().splitlines()
    assert lines[described[0]["site"]["line"] - 1] == "    def __call__(self, value: float) -> float:"
    chains.revert()
    assert chain.transforms is elements


def test_chains_of_modules_and_of_globals_are_found() -> None:
    modules = ModuleChain(torch.nn.Identity(), torch.nn.ReLU())
    chains = Chains()
    chains.time(UsesGlobal(), Numbers(functools.partial(modules)))
    try:
        assert [each["name"] for each in chains.described()] == ["add_one", "Identity", "ReLU"]
        modules(torch.ones(1))
        assert UsesGlobal()[1] == 2
        assert all(seconds > 0 for seconds in chains.seconds())
    finally:
        chains.revert()
    assert isinstance(modules.transforms, torch.nn.ModuleList)
    assert everywhere.transforms == [add_one]


def test_torchvision_chains_are_found() -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    v1 = pytest.importorskip("torchvision.transforms")
    chains = Chains()
    both = (v2.Compose([v2.Identity(), v2.Lambda(add_one)]), v1.Compose([v1.Lambda(add_one)]))
    chains.time(Numbers(both[0]), Numbers(both[1]))
    assert [each["name"] for each in chains.described()] == ["Identity", "Lambda(add_one)", "Lambda(add_one)"]
    assert both[1](1) == 2
    assert float(both[0](torch.ones(1))) == 2
    chains.revert()
    assert type(both[0].transforms[0]) is v2.Identity


def test_sites_are_the_users_own() -> None:
    site = fetch_site(ConcatDataset([Subset(Numbers(None), [0])]))
    assert site is not None
    assert site.file == __file__
    assert "def __getitem__" in Path(__file__).read_text().splitlines()[site.line - 1]
    assert fetch_site(torch.utils.data.TensorDataset(torch.ones(2))) is None
    assert function_site(functools.partial(add_one)) is not None
    assert function_site(Double()) is not None
    assert function_site(torch.utils.data.default_collate) is None
    assert function_site(print) is None


def test_patches_leave_what_others_put_over_them() -> None:
    class Owner:
        def one(self) -> int:
            return 1

        def two(self) -> int:
            return 2

    class Child(Owner):
        pass

    patches = Patches()
    original = vars(Owner)["one"]
    for owner, name in ((Owner, "one"), (Owner, "two"), (Child, "one"), (Owner, "three")):
        patches.put(owner, name, lambda function: lambda self: 10 * function(self))
    assert (Owner().one(), Child().one(), Owner().one.__name__) == (10, 100, "one")
    Owner.two = theirs = lambda self: 3  # type: ignore[method-assign]
    patches.take_off()
    assert vars(Owner)["one"] is original
    assert "one" not in vars(Child)
    assert vars(Owner)["two"] is theirs


def test_files_are_counted_between_begin_and_end(tmp_path: Path) -> None:
    path = tmp_path / "sample"
    path.write_bytes(bytes(100))
    count = OpenCount()
    before = (open, os.open)
    count.begin()
    with open(path, "rb"), open(tmp_path / "log", "w"), pytest.raises(FileNotFoundError):
        open(tmp_path / "none")  # noqa: SIM115
    path.read_bytes()
    os.close(os.open(path, os.O_RDONLY))
    os.close(os.open(tmp_path, flags=os.O_RDONLY))
    count.end()
    path.read_bytes()
    assert (count.opened, count.sized, count.size, count.example) == (3, 3, 300, str(path))
    assert (open, os.open) == before


def test_file_system_is_that_of_the_longest_mount() -> None:
    mounts = (
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "40 22 0:35 / /data rw shared:1 - nfs4 server:/data rw\n"
        "41 40 0:36 / /data/my\\040fast rw - xfs /dev/sdb rw\n"
        "42 22 0:37 / /cloud rw - fuse.gcsfuse gcs rw\n"
        "broken\n"
    )
    assert file_system("/home/a", mounts) == ("ext4", False)
    assert file_system("/data/a/b.jpg", mounts) == ("nfs4", True)
    assert file_system("/data/my fast/b.jpg", mounts) == ("xfs", False)
    assert file_system("/database/b.jpg", mounts) == ("ext4", False)
    assert file_system("/cloud/b", mounts) == ("fuse.gcsfuse", True)
    assert file_system("/home/a", "") == ("", False)


def test_bytes_of_a_batch() -> None:
    row = torch.zeros(4)
    assert bytes_of({"a": [row, row], "b": ("text", 3, None)}) == 32
    assert bytes_of([1, 2, 3]) == 0
    graph = type("Graph", (), {})()
    graph.x = row
    assert bytes_of(graph) == 16
    assert bytes_of(None) == 0
