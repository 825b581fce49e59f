"""Windows inside a living loop: what each setting does, what is counted, and what is left out of the timing."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import torch
from tests.process.conftest import StartGuest
from tests.process.driver import LOOP, PRELUDE, Guest, Setting, notes, run_plain
from tests.quiet import lasting

from bottleneck_doctor.measure.windows import surroundings
from bottleneck_doctor.monitor import RunQueue
from bottleneck_doctor.runtime.knobs import cached_samples
from bottleneck_doctor.runtime.wire import messages

pytestmark = pytest.mark.process


def test_every_knob_takes_effect_in_one_process(guest: StartGuest) -> None:
    script = guest(LOOP)
    found = script.found()
    assert (found.rung, found.period, found.periodic, found.has_loader) == ("optimizer step", 1, True, True)
    assert (found.num_workers, found.batch_size, found.epoch_batches) == (0, 4, 16)
    settings: list[Setting] = [
        {},
        {"num_workers": 2},
        {"num_workers": 0},
        {"num_workers": 1, "prefetch_factor": 4},
        {"num_workers": 2, "persistent_workers": True},
        {"replay": True},
        {"autocast": "bfloat16"},
        {"autocast": "bfloat16", "num_workers": 1},
        {"intra_op_threads": 2, "num_workers": 1},
    ]
    for setting in settings:
        done = script.window(setting, lead_in=8, steps=8)
        assert (done.status, done.reason) == ("ok", ""), setting
        assert done.effect == dict.fromkeys(setting, True), setting
        assert done.steps >= 8
        assert done.samples == 4 * done.steps
        assert done.optimizer_steps >= done.steps
        assert done.seconds > 0
        assert done.ended > done.started


BY_WORKER = (
    PRELUDE
    + """
class ByWorker(Rows):
    def __getitem__(self, index):
        return torch.full((4,), 1.0), os.getpid()


loader = DataLoader(ByWorker(4 * int(sys.argv[1])), batch_size=4, shuffle=True, num_workers=2)
for epoch in range(100000):
    for batch in loader:
        train_on(batch)
        note("loaded", batch[1][0].item())
"""
)


def loaded_in(script: Guest, setting: Setting, **size: int) -> set[int]:
    """The processes that loaded the batches of a window, but for the first and the last, which may be a neighbour's."""
    before = len(script.notes("loaded"))
    done = script.window(setting, **{"lead_in": 4, "steps": 8, **size}, keeps_workers=True)
    assert (done.status, done.reason) == ("ok", "")
    return set(script.notes("loaded")[before + 1 : -1])


def test_workers_go_on_in_the_next_window_that_loads_in_the_same_way(guest: StartGuest) -> None:
    script = guest(BY_WORKER, "100000")
    script.found()
    first = loaded_in(script, {})
    assert len(first) == 2
    assert loaded_in(script, {}) == first
    assert loaded_in(script, {"autocast": "bfloat16"}) == first
    again = script.window({}, lead_in=4, steps=8, keeps_workers=True)
    assert again.epoch_overhead_seconds is None, "nothing was started"
    assert again.effect == {}
    one = loaded_in(script, {"num_workers": 1})
    assert len(one) == 1
    assert not one & first
    assert not any(map(psutil.pid_exists, first)), "they ended before the first window that loads otherwise"
    after = loaded_in(script, {})
    assert len(after) == 2
    assert not after & (first | one)
    phases = script.window({}, mode="phases", lead_in=4, steps=8)
    assert len(phases.detail["loading"]["workers"]) == 2
    apart = loaded_in(script, {})
    assert apart != after, "what times loading has workers of its own"
    assert script.window({}, lead_in=4, steps=8).epoch_overhead_seconds is not None, (
        "started anew unless that is asked for"
    )


def test_workers_end_with_the_epoch_as_the_user_s_do(guest: StartGuest) -> None:
    script = guest(BY_WORKER, "20")
    script.found()
    seen = [loaded_in(script, {}, steps=12) for _ in range(4)]
    loaded = script.notes("loaded")
    by_epoch = [set(loaded[start : start + 20]) for start in range(0, len(loaded), 20)]
    assert all(not one & other for one, other in pairwise(by_epoch)), (seen, by_epoch)


def test_a_worker_that_dies_between_two_windows_is_nobody_s_failure(guest: StartGuest) -> None:
    script = guest(BY_WORKER, "100000")
    script.found()
    first = loaded_in(script, {})
    for pid in first:
        psutil.Process(pid).kill()
    time.sleep(0.5)  # Until torch has noticed: in a window as written, it would be the user's failure.
    after = loaded_in(script, {})
    assert len(after) == 2
    assert not after & first


HEAVY = """
BLOCK = 64 << 20


class Heavy(Rows):
    holder = 0

    def __getitem__(self, index):
        # Each process that loads has a block of its own.
        if self.holder != os.getpid():
            self.holder, self.held = os.getpid(), bytearray(os.urandom(1 << 20) * (BLOCK >> 20))
        return super().__getitem__(index)


loader = DataLoader(Heavy(), batch_size=4)
for epoch in range(100000):
    for batch in loader:
        train_on(batch)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counters of /proc")
def test_every_window_tells_what_memory_is_held(guest: StartGuest) -> None:
    """A dataset of which each process that loads makes a block of 64 MiB for itself."""
    block = 64 << 20
    script = guest(PRELUDE + HEAVY)
    script.found()
    written = script.window({})
    assert written.workers_bytes == 0
    assert written.peak_bytes is not None
    assert written.peak_bytes > block
    one = script.window({"num_workers": 1}, lead_in=4, steps=4)
    three = script.window({"num_workers": 3}, lead_in=8, steps=4)
    assert one.workers_bytes is not None
    assert three.workers_bytes is not None
    assert block <= one.workers_bytes <= 4 * block
    assert three.workers_bytes == pytest.approx(3 * one.workers_bytes, rel=0.2)
    assert script.window({}).workers_bytes == 0
    # The workers of an epoch that is over have ended, so nobody can say.
    assert script.window({"num_workers": 2}, epochs=1).workers_bytes is None


@pytest.mark.skipif(sys.platform != "linux", reason="counters of /proc")
def test_every_window_tells_what_the_machine_did_however_short_it_is(guest: StartGuest) -> None:
    script = guest(LOOP)
    script.found()
    windows = [
        script.window({}, steps=3),
        script.window({"num_workers": 2}, lead_in=4, steps=4),
        script.window({}, mode="loader_only", steps=3),
        script.window({"num_workers": 1}, epochs=1),
    ]
    for done in windows:
        assert done.status == "ok"
        assert {"busy", "capacity", "own"} <= set(done.around)
        assert done.around["own"] > 0
        # One reading lies just before the timed part, the other just behind it.
        assert done.seconds <= done.around["seconds"] < done.seconds + 0.5
    # The last one's worker has ended, and with it what is known of its waiting.
    assert ["queued" in done.around for done in windows] == [True, True, True, False]


@pytest.mark.skipif(sys.platform != "linux", reason="counters of /proc")
def test_what_others_want_of_the_cpus_is_seen_while_a_window_lasts(guest: StartGuest) -> None:
    script = guest(LOOP.replace("Rows()", "Rows(4000, 0.005)"))
    script.found()
    with RunQueue() as queue:
        done = script.window({"num_workers": 2}, lead_in=4, steps=40)
    around = surroundings(done.around, queue.mean(done.stretches))
    assert around is not None
    assert around.others_wanted is not None
    assert around.own_queued is not None
    # All that ran or was ready to are we and others, and others got some of it.
    seen = queue.mean(done.stretches)
    assert seen is not None
    assert 0 <= around.others_wanted <= max(0.0, seen - (around.own_cpu or 0.0) - around.own_queued) + 0.01


def test_setting_that_cannot_work_costs_its_window_only(guest: StartGuest) -> None:
    script = guest(LOOP)
    script.found()
    unknown = script.window({"warp_drive": 9})
    assert unknown.status == "failed"
    assert "warp_drive" in unknown.reason
    assert script.window({}).status == "ok"
    assert script.session.hello is not None
    if not script.session.hello.devices:
        pinned = script.window({"pin_memory": True})
        assert pinned.status == "no_effect"
        assert "pin_memory" in pinned.reason
        assert script.window({}).status == "ok"


@pytest.mark.sleeping
def test_loader_only_takes_batches_and_trains_on_none(guest: StartGuest) -> None:
    script = guest(LOOP.replace("Rows()", "Rows(4000, 0.001)") + "        note('trained', 1)\n")
    script.found()
    before = len(script.notes("trained"))
    alone = script.window({}, mode="loader_only", steps=10)
    assert len(script.notes("trained")) == before
    assert (alone.status, alone.steps, alone.samples) == ("ok", 10, 40)
    two = script.window({"num_workers": 2}, mode="loader_only", lead_in=6, steps=40)
    assert two.effect == {"num_workers": True}
    assert two.seconds / two.samples < 0.8 * alone.seconds / alone.samples


@pytest.mark.sleeping
def test_a_window_that_takes_far_too_long_ends_where_it_is(guest: StartGuest) -> None:
    script = guest(LOOP.replace("Rows()", "Rows(4000, 0.005)"))
    script.found()
    cut = script.window(steps=600, most_seconds=0.3, unit=4)
    assert cut.status == "ok"
    assert 4 <= cut.steps < 60
    assert cut.steps % 4 == 0, "whole rounds of workers and whole periods, as ever"
    assert cut.samples == 4 * cut.steps
    assert cut.seconds > 0.3
    epochs = guest(LOOP.replace("Rows()", "Rows(40, 0.005)"))
    epochs.found()
    cut = epochs.window(lead_in=0, steps=0, epochs=50, most_seconds=0.3)
    assert (cut.status, cut.steps) == ("ok", 10 * cut.whole_epochs)
    assert 1 <= cut.whole_epochs < 10
    assert script.window().steps == 6, "the next one is as long as it is meant to be"


@pytest.mark.slow
def test_a_lead_in_that_takes_far_too_long_is_cut(guest: StartGuest) -> None:
    """And what is kept up with workers is told as well as behind the whole of it: 10 ms a row, so 20 ms a step."""
    script = guest(LOOP.replace("Rows()", "Rows(4000, 0.01)"))
    script.found()
    for cut in (True, False):
        most = 0.1 if cut else 0.0
        done = script.window({"num_workers": 2}, lead_in=30, steps=16, unit=2, most_lead_in_seconds=most)
        assert done.status == "ok"
        assert 3 <= done.lead_in_steps < 15 if cut else done.lead_in_steps == 30
        assert (done.epoch_overhead_seconds is None) == cut, "it did not see all of what starting workers costs"
        assert 0.018 < done.seconds / (done.steps + min(0, done.queue_change)) < 0.03
    few = script.window(lead_in=2, steps=6, most_lead_in_seconds=1e-6)
    assert few.lead_in_steps == 2


# -- numbers that the model sees -------------------------------------------------------------------------------------

AUTOCAST = (
    PRELUDE
    + """
watch = {}
model.register_forward_hook(lambda module, args, output: watch.update(dtype=str(output.dtype)))
optimizer.register_step_pre_hook(lambda *ignored: watch.update(gradient=float(model.weight.grad.abs().max())))
loader = DataLoader(Rows(480), batch_size=4)
for epoch in range(1):
    for batch in loader:
        optimizer.zero_grad()
        loss = 0.01 * model(batch[0]).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        note("steps", [watch["dtype"], loss.item(), watch["gradient"], str(loss.dtype)])
note("weights", model.weight.flatten().tolist() + model.bias.tolist())
"""
)


def test_autocast_computes_in_its_type_and_learns_the_same(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(AUTOCAST)
    script.found()
    for dtype in ("bfloat16", "float16"):
        done = script.window({"autocast": dtype}, steps=40)
        assert (done.status, done.effect) == ("ok", {"autocast": True})
        assert script.window({}).status == "ok"
    assert script.run_out().code == 0
    steps, weights = script.notes("steps"), script.notes("weights")[0]

    (tmp_path / "plain").mkdir()
    run_plain([str(tmp_path / "train.py")], tmp_path / "plain")
    plain_steps, plain_weights = notes(tmp_path / "plain" / "steps"), notes(tmp_path / "plain" / "weights")[0]

    kinds = [kind for kind, *_ in steps]
    counts = Counter(kinds)
    assert counts["torch.bfloat16"] == counts["torch.float16"] == 42
    assert set(kinds[:6]) == set(kinds[-8:]) == {"torch.float32"}
    assert all(math.isfinite(loss) for _, loss, *_ in steps)
    assert len(steps) == len(plain_steps) == 120
    # The optimizer sees gradients of the loss and not of a scaled one; the weights end where they end without us.
    for (_, _, gradient, _), (_, _, expected, _) in zip(steps, plain_steps, strict=True):
        assert gradient == pytest.approx(expected, rel=0.05, abs=1e-4)
    assert weights == pytest.approx(plain_weights, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("LSTM", "self.inner(x)"),
        pytest.param("GRU", "self.inner(x)", marks=pytest.mark.slow(together=True)),
        ("LSTM", "self.inner.forward(x)"),  # Past all hooks: nobody sees it.
    ],
)
def test_autocast_of_recurrent_layers_is_seen(name: str, called: str, guest: StartGuest) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        # Not every kind has kernels of the type on a CPU, in every release.
        works = getattr(torch.nn, name)(4, 4)(torch.ones(3, 4))[0].dtype is torch.bfloat16
    effect = {} if "forward" in called else {"autocast": works}
    script = guest(
        f"""
import torch
from torch.utils.data import DataLoader

class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.{name}(4, 4)

    def forward(self, x):
        return {called}[0].float().square().mean()

model = Reader()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    for batch in DataLoader(list(torch.ones(64, 3, 4)), batch_size=4):
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
"""
    )
    script.found()
    done = script.window({"autocast": "bfloat16"}, lead_in=2, steps=4)
    assert (done.status, done.effect) == ("no_effect" if False in effect.values() else "ok", effect)


def test_autocast_that_the_model_switches_off_is_told_to_have_no_effect(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
class Stubborn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, rows):
        with torch.autocast("cpu", enabled=False):
            return self.layer(rows)

model = Stubborn()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
while True:
    for batch in DataLoader(Rows(), batch_size=4):
        train_on(batch)
"""
    )
    script.found()
    done = script.window({"autocast": "bfloat16"})
    assert (done.status, done.effect) == ("no_effect", {"autocast": False})
    assert "autocast" in done.reason


# -- one stream of indices -------------------------------------------------------------------------------------------

RECORDING = (
    PRELUDE
    + """
class Recording(Rows):
    def __getitem__(self, index):
        note("indices", index)
        return super().__getitem__(index)

loader = DataLoader(Recording(6000), batch_size=4, shuffle=True)
for batch in loader:
    train_on(batch)
"""
)


def test_no_sample_is_asked_for_twice_in_one_epoch(guest: StartGuest) -> None:
    script = guest(RECORDING)
    script.found()
    for workers in (0, 2, 1, 0, 3, 2, 0):
        for _ in range(2):
            done = script.window({"num_workers": workers}, lead_in=3 * workers + 2, steps=12)
            assert done.status == "ok"
    assert script.window({"num_workers": 2, "persistent_workers": True}, lead_in=8, steps=12).status == "ok"
    assert script.window({}, mode="loader_only", steps=12).status == "ok"
    script.close()
    # Whether a sample is the same each time is asked of a few, when the loop is found.
    looked_at = {place * 7919 % 6000 for place in range(cached_samples.LOOKS[1])}
    counts = Counter(index for index in script.notes("indices") if index not in looked_at)
    assert len(counts) > 500
    assert counts.most_common(1)[0][1] == 1


COUNTED = (
    PRELUDE
    + """
loader = DataLoader(Rows(64), batch_size=4, num_workers=2)
for epoch in range(100000):
    batches = 0
    for batch in loader:
        train_on(batch)
        time.sleep(0.002)
        batches += 1
    note("epochs", batches)
"""
)


def test_the_users_epochs_keep_their_length_whatever_runs_inside(guest: StartGuest) -> None:
    script = guest(COUNTED)
    found = script.found()
    assert (found.num_workers, found.epoch_batches) == (2, 16)
    for setting in ({}, {"num_workers": 0}, {"num_workers": 1}, {"num_workers": 2, "persistent_workers": True}):
        assert script.window(setting, lead_in=6, steps=20).status == "ok"
        done = script.window(setting, lead_in=1, steps=0, epochs=2)
        assert (done.status, done.whole_epochs, done.steps, done.samples) == ("ok", 2, 32, 128)
        assert done.lead_in_steps == 16
    assert script.window({"replay": True}, lead_in=0, steps=0, epochs=2).steps == 32
    lengths = script.notes("epochs")
    assert len(lengths) >= 15
    assert set(lengths) == {16}


@pytest.mark.sleeping
def test_only_the_windows_own_workers_live(guest: StartGuest) -> None:
    script = guest(COUNTED)
    script.found()
    process = psutil.Process(script.session.pid)

    def most_children(setting: Setting, steps: int) -> int:
        script.grant(setting, lead_in=8, steps=steps)
        time.sleep(0.15)  # What the window before left to the kernel is gone.
        most = 0
        while (event := script.event(0.02)) is None:
            most = max(most, len(process.children(recursive=True)))
        assert isinstance(event, messages.WindowDone)
        return most

    assert most_children({"num_workers": 0}, 60) == 0
    assert most_children({"num_workers": 1}, 60) == 1
    assert most_children({}, 60) == 2
    assert most_children({"num_workers": 0}, 60) == 0


# -- what is not training --------------------------------------------------------------------------------------------

EVALUATING = (
    PRELUDE
    + """
evaluation = DataLoader(Rows(8, 0.05), batch_size=4)

def evaluate():
    with torch.no_grad():
        for rows, _ in evaluation:
            model(rows)
    note("evaluations", "loader")

loader = DataLoader(Rows(48), batch_size=4)
for epoch in range(100000):
    for number, batch in enumerate(loader):
        train_on(batch)
        if number == 5 and epoch % 3 == 0:
            evaluate()
    if epoch % 3 == 1:
        evaluate()
    if epoch % 3 == 2:
        time.sleep(0.4)
        note("evaluations", "pause")
"""
)
EVALUATION_SECONDS = 0.4


@pytest.mark.sleeping
def test_evaluation_is_not_timed(guest: StartGuest) -> None:
    """Evaluation within an epoch, after it, and a pause that no loader shows."""
    script = guest(EVALUATING)
    script.found()
    for setting in ({}, {"num_workers": 1}):
        before = len(script.notes("evaluations"))
        # Twelve batches an epoch, so that all kinds fall between the first and the last timed step.
        done = script.window(setting, lead_in=3, steps=30)
        assert done.status == "ok"
        assert len(script.notes("evaluations")) >= before + 3
        assert done.seconds < EVALUATION_SECONDS
        assert done.samples == 4 * done.steps
    before = len(script.notes("evaluations"))
    done = script.window({}, lead_in=0, steps=0, epochs=3)
    assert len(script.notes("evaluations")) >= before + 2
    assert (done.steps, done.whole_epochs) == (36, 3)
    assert done.seconds < EVALUATION_SECONDS


@pytest.mark.timed
def test_workers_outlive_an_evaluation(guest: StartGuest) -> None:
    """As the user's own would: starting them anew after each would take longer than what is measured."""
    script = guest(
        PRELUDE
        + """
def started(number):
    note("started", number)

evaluation = DataLoader(Rows(8, 0.01), batch_size=4)
loader = DataLoader(Rows(4000, 0.002), batch_size=4, worker_init_fn=started)
for number, batch in enumerate(loader):
    train_on(batch)
    if number % 20 == 0:
        with torch.no_grad():
            for rows, _ in evaluation:
                model(rows)
        note("evaluations", number)
"""
    )
    script.found()
    before = len(script.notes("evaluations"))
    done = script.window({"num_workers": 2}, lead_in=6, steps=40)
    assert (done.status, done.samples) == ("ok", 4 * done.steps)
    assert done.seconds / done.steps in lasting(0.004, rel=0.3, abs=0.003)
    assert len(script.notes("evaluations")) >= before + 2
    assert sorted(script.notes("started")) == [0, 1]


def test_worker_that_aborts_at_its_end_has_done_its_work(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
import multiprocessing.util

def started(number):
    multiprocessing.util.Finalize(None, os.abort, exitpriority=1)

loader = DataLoader(Rows(4000, 0.002), batch_size=4, worker_init_fn=started)
for batch in loader:
    train_on(batch)
"""
    )
    script.found()
    for setting in ({"num_workers": 2}, {}, {"num_workers": 1}):
        done = script.window(setting, lead_in=4, steps=20)
        assert (done.status, done.reason) == ("ok", "")


EVALUATING_TRAINED = (
    PRELUDE
    + """
class Stream(IterableDataset):
    def __iter__(self):
        for index in range(24):
            yield Rows()[index]

kind, options = sys.argv[1], json.loads(sys.argv[2])
loader = DataLoader(Stream() if kind == "stream" else Rows(24), batch_size=4, **options)

def accuracy():
    seen = 0
    with torch.no_grad():
        for rows, _ in loader:
            model(rows)
            time.sleep(0.05)
            seen += 1
    note("evaluated", seen)

for epoch in range(100000):
    for number, batch in enumerate(loader):
        train_on(batch)
        if number == 3 and epoch % 2 == 0 and not options.get("persistent_workers"):
            accuracy()
    accuracy()
"""
)


@pytest.mark.timed
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("stream", '{"num_workers": 1}', marks=pytest.mark.slow),
        pytest.param("stream", "{}", marks=pytest.mark.slow),
        pytest.param("rows", "{}", marks=pytest.mark.slow),
        pytest.param("rows", '{"num_workers": 1, "persistent_workers": true}', marks=pytest.mark.slow),
    ],
)
def test_evaluation_on_the_training_loader(guest: StartGuest, kind: str, options: str) -> None:
    """It sees all that there is, amid windows too, and is not timed."""
    script = guest(EVALUATING_TRAINED, kind, options)
    script.found()
    for setting in ({}, {"num_workers": 0}, {"num_workers": 1}, {}):
        before = len(script.notes("evaluated"))
        done = script.window(setting, lead_in=1, steps=14)
        assert (done.status, done.reason) == ("ok", "")
        assert len(script.notes("evaluated")) >= before + 2
        assert done.seconds < 0.3
    assert set(script.notes("evaluated")) == {6}


# -- loops of many shapes --------------------------------------------------------------------------------------------


def repeated(body: str) -> str:
    """The prelude and `body` in an endless loop of epochs."""
    indented = "\n".join("    " + line for line in body.strip().splitlines())
    return f"{PRELUDE}\nfor epoch in range(100000):\n{indented}\n"


def steady(script: Guest) -> messages.WindowDone:
    done = script.window({}, lead_in=4, steps=8)
    assert done.status == "ok"
    return done


def test_loader_made_anew_every_epoch(guest: StartGuest) -> None:
    script = guest(
        repeated("loader = DataLoader(Rows(48), batch_size=4, shuffle=True)\nfor batch in loader:\n    train_on(batch)")
    )
    script.found()
    for setting in ({}, {"num_workers": 2}, {"num_workers": 1, "prefetch_factor": 3}):
        done = script.window(setting, lead_in=7, steps=24)
        assert (done.status, done.samples) == ("ok", 4 * done.steps)
    done = script.window({"num_workers": 1}, lead_in=0, steps=0, epochs=3)
    assert (done.status, done.steps, done.whole_epochs) == ("ok", 36, 3)


MADE_BY_A_FUNCTION = """
def rows_of(count):
    class Numbers(torch.utils.data.Dataset):
        def __getitems__(self, indices):
            return torch.ones(len(indices), 4)

        def __len__(self):
            return count

    batches = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(range(count)), batch_size=4, drop_last=False)
    return DataLoader(Numbers(), batch_sampler=batches, collate_fn=lambda rows: rows)


class Epoch:
    def __init__(self, count):
        self.count, self.batches = count, None

    def __iter__(self):
        self.batches = iter(rows_of(self.count))
        for _ in range(self.count // 4):
            yield next(self.batches)
        self.batches = iter(rows_of(self.count))


training, held_out = Epoch(48), Epoch(16)
for epoch in range(100000):
    for rows in training:
        model(rows).mean().backward()
        with torch.no_grad():
            for each in model.parameters():
                each -= 0.01 * each.grad
                each.grad = None
    with torch.no_grad():
        for rows in held_out:
            model(rows)
"""


def test_a_function_makes_loader_and_dataset_class_anew_and_no_optimizer_of_torch_steps(guest: StartGuest) -> None:
    """As keras does, whose iterator also lives until the next one was made."""
    script = guest(PRELUDE + MADE_BY_A_FUNCTION)
    found = script.found()
    assert (found.rung, found.made_anew) == ("backward", True)
    for setting in ({}, {"num_workers": 2}):
        done = script.window(setting, lead_in=7, steps=30)
        assert (done.status, done.steps, done.samples) == ("ok", 30, 120)
    done = script.window({}, lead_in=0, steps=0, epochs=3)
    assert (done.status, done.steps, done.whole_epochs) == ("ok", 36, 3)


@pytest.mark.parametrize("batches", [4, pytest.param(16, marks=pytest.mark.slow(together=True))])
def test_accumulated_batches_are_one_period(guest: StartGuest, batches: int) -> None:
    script = guest(
        repeated(
            f"""
for number, batch in enumerate(DataLoader(Rows(1280), batch_size=4)):
    (model(batch[0]).mean() / {batches}).backward()
    if number % {batches} == {batches - 1}:
        optimizer.step()
        optimizer.zero_grad()
"""
        )
    )
    found = script.found()
    assert (found.period, found.periodic) == (batches, True)
    done = script.window({}, lead_in=batches, steps=2 * batches)
    assert (done.steps, done.samples) == (2 * batches, 8 * batches)
    assert done.optimizer_steps == 3


def test_two_optimizers_a_batch_are_one_step(guest: StartGuest) -> None:
    script = guest(
        repeated(
            """
critic = nn.Linear(4, 1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=1e-4)
for batch in DataLoader(Rows(1200), batch_size=4):
    critic_optimizer.zero_grad()
    critic(batch[0]).mean().backward()
    critic_optimizer.step()
    train_on(batch)
"""
        )
    )
    found = script.found()
    assert (found.rung, found.period, found.periodic) == ("optimizer step", 1, True)
    done = script.window({}, lead_in=2, steps=8)
    assert (done.steps, done.optimizer_steps) == (8, 2 * (done.steps + done.lead_in_steps))


def test_gradient_scaler_of_the_users(guest: StartGuest) -> None:
    script = guest(
        repeated(
            """
scaler = torch.amp.GradScaler("cpu")
for batch in DataLoader(Rows(192), batch_size=4):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(batch[0]).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
        )
    )
    found = script.found()
    assert found.grad_scaler
    assert found.autocast == "bfloat16"
    steady(script)


def test_hand_written_update_is_found_by_its_backward(guest: StartGuest) -> None:
    script = guest(
        repeated(
            """
for batch in DataLoader(Rows(192), batch_size=4):
    model(batch[0]).mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-4 * parameter.grad
            parameter.grad = None
"""
        )
    )
    found = script.found()
    assert (found.rung, found.period) == ("backward", 1)
    assert script.window({"num_workers": 1}, lead_in=5, steps=8).status == "ok"


def test_loop_without_a_loader_is_counted_by_its_optimizer(guest: StartGuest) -> None:
    script = guest(repeated("train_on(torch.ones(3, 4).unsqueeze(0))\ntime.sleep(0.002)"))
    found = script.found()
    assert (found.rung, found.has_loader, found.period) == ("optimizer step", False, 1)
    done = steady(script)
    assert done.steps == 8
    assert done.seconds <= done.around["seconds"] < done.seconds + 0.5
    assert script.window({"autocast": "bfloat16"}).effect == {"autocast": True}
    refused = script.window({"num_workers": 2})
    assert refused.status == "failed"
    assert "DataLoader" in refused.reason
    steady(script)


def test_iterable_dataset(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
class Stream(IterableDataset):
    def __iter__(self):
        for number in range(40):
            yield torch.ones(4), torch.tensor(float(number))

for epoch in range(100000):
    for batch in DataLoader(Stream(), batch_size=4):
        train_on(batch)
"""
    )
    found = script.found()
    assert found.iterable
    assert found.epoch_batches is None
    for setting in ({}, {"num_workers": 1}, {"num_workers": 2}):
        done = script.window(setting, lead_in=2, steps=12)
        assert (done.status, done.samples) == ("ok", 4 * done.steps)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_goes_on_in_the_next_window_that_loads_in_the_same_way(guest: StartGuest, workers: int) -> None:
    """If that is granted: a dataset that fills a buffer first may take longer to begin than a window does."""
    script = guest(
        PRELUDE
        + """
class Stream(IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        note("began", os.getpid())
        for number in range(0 if worker is None else worker.id, 100000, 1 if worker is None else worker.num_workers):
            yield torch.ones(4), torch.tensor(float(number))

for epoch in range(100000):
    for batch in DataLoader(Stream(), batch_size=4, num_workers=int(sys.argv[1])):
        train_on(batch)
        note("loaded", batch[1][0].item())
""",
        str(workers),
    )
    assert script.found().iterable

    def window(setting: Setting, *, goes_on: bool) -> tuple[int, float]:
        """How often the dataset began for this window, and the first sample of its last batch."""
        begun = len(script.notes("began"))
        done = script.window(setting, lead_in=4, steps=8, keeps_workers=True, keeps_iterables=goes_on)
        assert (done.status, done.reason) == ("ok", "")
        return len(script.notes("began")) - begun, script.notes("loaded")[-1]

    starts = max(1, workers)
    # A window asks for the first batch of the next one before that is granted.
    seen = [window({}, goes_on=False) for _ in range(3)]
    assert [each[0] for each in seen] == [starts] * 3
    assert max(last for _, last in seen) < 200, "each begins with its first samples"
    window({}, goes_on=True)
    seen = [window({}, goes_on=True), window({"autocast": "bfloat16"}, goes_on=True), window({}, goes_on=True)]
    assert [each[0] for each in seen] == [0] * 3
    assert seen[0][1] < seen[1][1] < seen[2][1], "it goes on where it left off"
    assert window({"num_workers": 1}, goes_on=True)[0] == 1
    assert window({}, goes_on=True)[0] == starts, "what loads otherwise came between"
    assert window({}, goes_on=False)[0] == starts


def test_loader_that_does_not_batch(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
class Batches(Rows):
    def __getitem__(self, index):
        rows, _ = super().__getitem__(index)
        return rows.repeat(5, 1), torch.zeros(5)

for epoch in range(100000):
    for batch in DataLoader(Batches(24), batch_size=None):
        train_on(batch)
"""
    )
    found = script.found()
    assert (found.batch_size, found.epoch_batches, found.samples_per_step) == (None, 24, 5.0)
    for setting in ({}, {"num_workers": 2}):
        done = script.window(setting, lead_in=6, steps=8)
        assert (done.status, done.samples) == ("ok", 5 * done.steps)


def test_pictures_that_a_class_of_the_program_s_holds_are_counted(guest: StartGuest) -> None:
    """As those of DETR, which pads them, and has a batch sampler of its own: boxes had been counted in their place."""
    script = guest(
        PRELUDE
        + """
from torch.utils.data import BatchSampler, RandomSampler

class Padded:
    def __init__(self, tensors):
        self.tensors, self.mask = tensors, tensors > 0

def collate(rows):
    boxes = [torch.zeros(int(number) % 5 + 6, 4) for _, number in rows]
    return Padded(torch.stack([row for row, _ in rows])), tuple({"boxes": each} for each in boxes)

rows = Rows()
batches = BatchSampler(RandomSampler(rows), 3, drop_last=True)
loader = DataLoader(rows, batch_sampler=batches, collate_fn=collate, num_workers=1)
for epoch in range(100000):
    for padded, boxes in loader:
        train_on([padded.tensors])
"""
    )
    assert script.found().samples_per_step == 3
    for _ in range(2):
        done = script.window({}, lead_in=2, steps=4, keeps_workers=True)
        assert (done.status, done.samples) == ("ok", 3 * done.steps)
        assert done.elements > 100


def test_ragged_batches_are_counted_one_by_one(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
class Buckets:
    def __iter__(self):
        for number in range(12):
            yield list(range(number % 3 + 1))

    def __len__(self):
        return 12

for epoch in range(100000):
    for batch in DataLoader(Rows(), batch_sampler=Buckets()):
        train_on(batch)
"""
    )
    script.found()
    done = script.window({}, lead_in=1, steps=0, epochs=2)
    assert (done.steps, done.samples) == (24, 48)
    done = script.window({"num_workers": 1}, lead_in=4, steps=3)
    assert done.samples == 2 * done.steps


def test_whole_epochs_of_six_batches(guest: StartGuest) -> None:
    text = repeated("for batch in loader: train_on(batch)")
    script = guest(text.replace("for epoch", "loader = DataLoader(Rows(24), batch_size=4)\nfor epoch", 1))
    assert script.found().epoch_batches == 6
    for epochs, persistent in ((1, False), (4, True), (4, False), (1, True)):
        setting: Setting = {"num_workers": 1, "persistent_workers": persistent}
        done = script.window(setting, lead_in=int(persistent), steps=0, epochs=epochs)
        assert (done.status, done.whole_epochs, done.steps) == ("ok", epochs, 6 * epochs)
        assert done.effect == {"num_workers": True, "persistent_workers": True}
        assert script.window({}, lead_in=0, steps=0, epochs=epochs).steps == 6 * epochs


SHORT = {
    "break": "for number, batch in enumerate(DataLoader(Rows(192), batch_size=4)):\n    train_on(batch)\n"
    "    if number == 4: break",
    "next of iter": "train_on(next(iter(loader)))",
    "ten batches": "for batch in DataLoader(Rows(40), batch_size=4): train_on(batch)",
}


EPOCHS = {"break": 5, "next of iter": 1, "ten batches": None}
"""Batches an epoch as seen by the time the loop is found; where that is within the first epoch, none."""


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param("break", marks=pytest.mark.slow(together=True)),
        pytest.param("next of iter", marks=pytest.mark.slow(together=True)),
        "ten batches",
    ],
)
def test_windows_longer_than_epochs_come_to_an_end(guest: StartGuest, shape: str) -> None:
    body = SHORT[shape]
    text = repeated(body)
    if "loader)" in body:
        text = text.replace("for epoch", "loader = DataLoader(Rows(192), batch_size=4, shuffle=True)\nfor epoch", 1)
    script = guest(text)
    found = script.found()
    assert found.epoch_batches_seen == EPOCHS[shape]
    for setting in ({}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}):
        script.grant(setting, lead_in=12, steps=8)
        event = script.event(20)
        assert isinstance(event, messages.WindowDone), f"{setting}: {event}"
        # Workers of a loader that is made anew for every epoch go with it, whatever is asked of them.
        for_nothing = "persistent_workers" in setting and "loader)" not in body
        assert event.status == ("no_effect" if for_nothing else "ok"), event.reason
        assert event.samples == 4 * event.steps


LEFT_EARLY = repeated(
    "for number, batch in enumerate(loader):\n    train_on(batch)\n    if number == 19: break"
).replace("for epoch", "loader = DataLoader(Rows(1600), batch_size=4, shuffle=True)\nfor epoch", 1)


def test_epochs_have_as_many_batches_as_the_loop_takes(guest: StartGuest) -> None:
    script = guest(LEFT_EARLY)
    found = script.found()
    assert (found.epoch_batches, found.epoch_batches_seen) == (400, None)
    assert script.window({}, lead_in=2, steps=4).epoch_batches is None
    assert script.window({}, lead_in=2, steps=40).epoch_batches == 20
    assert script.window({"num_workers": 1}, lead_in=0, steps=0, epochs=2).epoch_batches == 20


NO_LENGTH = repeated("for batch in loader: train_on(batch)").replace(
    "for epoch",
    """
class Stream(IterableDataset):
    def __iter__(self):
        for number in range(80):
            yield torch.ones(4), torch.tensor(float(number))


loader = DataLoader(Stream(), batch_size=4)
for epoch""",
    1,
)


def test_kept_batches_end_where_the_loop_was_seen_to_end(guest: StartGuest) -> None:
    """The loader does not know its length, so replayed epochs would go on for good."""
    script = guest(NO_LENGTH)
    assert script.found().epoch_batches is None
    early = script.window({"replay": True}, lead_in=0, steps=0, epochs=2)
    assert early.status == "failed"
    assert "how many batches an epoch has is not known" in early.reason
    assert script.window({}, lead_in=0, steps=0, epochs=3).epoch_batches == 20
    replayed = script.window({"replay": True}, lead_in=0, steps=0, epochs=2)
    assert (replayed.status, replayed.steps) == ("ok", 40)


def test_epochs_with_larger_batches_are_none_of_the_users(guest: StartGuest) -> None:
    text = repeated("for batch in loader: train_on(batch)")
    script = guest(text.replace("for epoch", "loader = DataLoader(Rows(160), batch_size=4)\nfor epoch", 1))
    script.found()
    assert script.window({}, lead_in=0, steps=0, epochs=2).epoch_batches == 40
    larger = script.window({"batch_size": 8}, lead_in=0, steps=0, epochs=2)
    assert (larger.status, larger.steps, larger.epoch_batches) == ("ok", 40, 40)


def test_generator_that_cycles_over_a_loader(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
def cycle(loader):
    while True:
        yield from loader

for batch in cycle(DataLoader(Rows(40), batch_size=4, shuffle=True, drop_last=True)):
    train_on(batch)
"""
    )
    script.found()
    for setting in ({}, {"num_workers": 2}):
        done = script.window(setting, lead_in=6, steps=20)
        assert (done.status, done.samples) == ("ok", 4 * done.steps)


def test_training_in_a_function_without_a_main_guard(guest: StartGuest) -> None:
    """Under fork no guard is needed: workers are copies, and train nothing."""
    script = guest(LOOP + "note('second', 1)\n")
    found = script.found()
    if found.start_method != "fork":
        assert found.workers_unsafe
        return
    assert found.workers_unsafe == ""
    assert script.window({"num_workers": 2}, lead_in=6).status == "ok"
    assert script.ended is None


@pytest.mark.sleeping
def test_the_wait_for_data_is_seen_in_the_timed_part(guest: StartGuest) -> None:
    script = guest(
        repeated("for batch in DataLoader(Rows(400, 0.002), batch_size=4):\n    train_on(batch)\n    time.sleep(0.002)")
    )
    script.found()
    alone = script.window({}, steps=20)
    assert 0.5 < alone.wait_seconds / alone.seconds <= 1
    replayed = script.window({"replay": True}, steps=20)
    assert replayed.wait_seconds < 0.2 * replayed.seconds
    assert replayed.seconds / replayed.steps < 0.7 * alone.seconds / alone.steps


# -- loops that are not as simple as they look ------------------------------------------------------------------------

ALIKE = (
    PRELUDE
    + """
class Stream(IterableDataset):
    def __init__(self, value):
        self.value = value

    def __iter__(self):
        for _ in range(48):
            yield torch.full((4,), self.value), torch.tensor(0.0)


def make(value):
    return DataLoader(Stream(value), batch_size=4)


training, evaluation = make(1.0), make(2.0)
for epoch in range(100000):
    for batch in training:
        train_on(batch)
        note("trained", batch[0][0, 0].item())
    for batch in evaluation:
        with torch.no_grad():
            model(batch[0])
        note("evaluated", batch[0][0, 0].item())
"""
)


def test_an_evaluation_whose_loader_is_made_by_the_same_line(guest: StartGuest) -> None:
    script = guest(ALIKE)
    script.found()
    for setting in ({}, {"num_workers": 1}, {}):
        done = script.window(setting, lead_in=3, steps=30)
        assert (done.status, done.samples) == ("ok", 4 * done.steps)
        assert done.optimizer_steps >= done.steps
    assert set(script.notes("trained")) == {1.0}
    assert set(script.notes("evaluated")) == {2.0}


def test_a_loop_that_takes_things_out_of_its_batches(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
class Named(Rows):
    def __getitem__(self, index):
        rows, label = super().__getitem__(index)
        return {"rows": rows, "inner": [{"label": label}]}


loader = DataLoader(Named(), batch_size=4)
for epoch in range(100000):
    for batch in loader:
        label = batch["inner"][0].pop("label")
        train_on((batch.pop("rows"), label))
"""
    )
    script.found()
    for setting in ({}, {"replay": True}, {"replay": True}, {}):
        done = script.window(setting, steps=30)
        assert (done.status, done.reason) == ("ok", "")


TWO_ITERATORS = {
    "pairs": "count = 0\nfor one, other in zip(loader, loader):\n    train_on(one)\n    count += 1\n",
    "a look": "for number, batch in enumerate(loader):\n    train_on(batch)\n    count = number + 1\n"
    "    if number % 7 == 3:\n        next(iter(loader))\n",
}


@pytest.mark.parametrize("kind", [pytest.param("pairs", marks=pytest.mark.slow(together=True)), "a look"])
def test_two_iterators_over_the_training_loader(guest: StartGuest, kind: str) -> None:
    """Each of them has an epoch of its own, which ends where it would end without us."""
    body = TWO_ITERATORS[kind] + 'note("counts", count)\n'
    script = guest(
        repeated(body).replace("for epoch", "loader = DataLoader(Rows(), batch_size=4)\nfor epoch", 1),
    )
    script.found()
    for setting in ({}, {"num_workers": 1}, {}):
        done = script.window(setting, lead_in=4, steps=80)
        assert (done.status, done.samples) == ("ok", 4 * done.steps)
    assert len(script.notes("counts")) > 4
    assert set(script.notes("counts")) == {16}, script.notes("counts")


@pytest.mark.slow
def test_an_epoch_whose_batches_are_counted_ends_with_its_last_step(guest: StartGuest) -> None:
    """Trainers that count don't ask for one batch too many: what they save then is not the epoch's."""
    body = "batches = iter(loader)\nfor _ in range(6):\n    train_on(next(batches))\ntime.sleep(0.3)\n"
    script = guest(repeated(body).replace("for epoch", "loader = DataLoader(Rows(24), batch_size=4)\nfor epoch", 1))
    script.found()
    done = script.window({}, lead_in=1, steps=0, epochs=3)
    assert (done.status, done.steps, done.whole_epochs) == ("ok", 18, 3)
    assert done.seconds < 0.3


AHEAD = """
def ahead(batches):
    last = None
    for batch in batches:
        if last is not None:
            yield last
        last = batch
    yield last


def slowly(batch):
    time.sleep(0.03)
    train_on(batch)


"""


@pytest.mark.sleeping
def test_an_epoch_that_is_fetched_ahead_holds_its_last_step(guest: StartGuest) -> None:
    body = "for batch in ahead(loader):\n    slowly(batch)\ntime.sleep(0.3)\n"
    text = repeated(body).replace("for epoch", f"{AHEAD}loader = DataLoader(Rows(24), batch_size=4)\nfor epoch", 1)
    script = guest(text)
    script.found()
    done = script.window({}, lead_in=1, steps=0, epochs=3)
    assert (done.status, done.steps, done.whole_epochs) == ("ok", 18, 3)
    assert 18 * 0.03 < done.seconds < 18 * 0.03 + 0.2


def test_short_epochs_that_are_fetched_ahead_are_found_in_the_third_of_them(guest: StartGuest) -> None:
    text = AHEAD.join((PRELUDE, "loader = DataLoader(Rows(20), batch_size=4)\n"))
    text += (
        "for epoch in range(8):\n    for batch in ahead(loader):\n        train_on(batch)\n    note('epochs', epoch)\n"
    )
    script = guest(text)
    found = script.found()
    assert (found.period, found.periodic) == (1, True)
    assert found.position <= 11
    done = script.window({}, lead_in=0, steps=0, epochs=2)
    assert (done.status, done.steps, done.samples) == ("ok", 10, 40.0)
    assert script.run_out().code == 0
    assert script.notes("epochs") == list(range(8))


def test_a_loader_made_anew_while_somebody_keeps_the_last(guest: StartGuest) -> None:
    body = "loader = DataLoader(Rows(48), batch_size=4)\nkept.append(loader)\nfor batch in loader: train_on(batch)\n"
    script = guest(repeated(body).replace("for epoch", "kept = []\nfor epoch", 1))
    script.found()
    for setting in ({}, {"num_workers": 1}):
        done = script.window(setting, lead_in=2, steps=6)
        assert (done.status, done.samples) == ("ok", 4 * done.steps)


EVALUATING_OFTEN = (
    PRELUDE
    + """
os.register_at_fork(before=lambda: time.sleep(0.2))
loader, other = DataLoader(Rows(4000), batch_size=4), DataLoader(Rows(8), batch_size=4)
evaluates = len(sys.argv) > 1
for epoch in range(100000):
    for number, batch in enumerate(loader):
        train_on(batch)
        if evaluates and number % 10 == 5:
            with torch.no_grad():
                for rows, _ in other:
                    time.sleep(0.1)
"""
)


@pytest.mark.sleeping
def test_what_starting_an_epoch_costs_holds_its_workers_start_and_no_evaluation(guest: StartGuest) -> None:
    script = guest(EVALUATING_OFTEN)
    script.found()
    done = script.window({"num_workers": 2}, lead_in=12, steps=12)
    assert done.epoch_overhead_seconds is not None
    assert done.epoch_overhead_seconds > 0.4, "two forks, each of which takes 0.2 s here"
    done = script.window({}, lead_in=12, steps=12)
    assert done.epoch_overhead_seconds is not None
    assert done.epoch_overhead_seconds < 0.1
    script = guest(EVALUATING_OFTEN, "evaluates")
    script.found()
    done = script.window({}, lead_in=12, steps=12)
    assert done.status == "ok"
    assert done.epoch_overhead_seconds is None, "the lead-in held an evaluation, so it does not tell"


WARMING_UP = (
    PRELUDE
    + """
slow = 0


def started():
    global slow
    slow = 3


os.register_at_fork(after_in_parent=started)
load, compute, start = map(float, sys.argv[1:])
loader = DataLoader(Rows(40000, load / 4), batch_size=4, worker_init_fn=lambda number: time.sleep(start))
for batch in loader:
    train_on(batch)
    time.sleep(compute + (0.7 if slow > 0 else 0.0))
    slow -= 1
"""
)


@pytest.mark.sleeping
@pytest.mark.parametrize(
    ("load", "compute", "start", "known"),
    [
        pytest.param(0.016, 0.03, 0.4, 0.416, id="computing", marks=pytest.mark.slow),
        # In a round of both workers the first batch takes 80 ms to come, where others take half as long.
        pytest.param(0.08, 0.01, 0.4, 0.42, id="loading", marks=pytest.mark.slow),
        pytest.param(0.016, 0.03, 0.0, 0.016, id="quick start"),
    ],
)
def test_slow_first_steps_are_no_part_of_what_starting_an_epoch_costs(
    guest: StartGuest, load: float, compute: float, start: float, known: float
) -> None:
    """Two seconds of computing in the lead-in, as by kernels that are picked or a neighbour."""
    script = guest(WARMING_UP, str(load), str(compute), str(start))
    script.found()
    overheads = []
    for _ in range(2):
        done = script.window({"num_workers": 2}, lead_in=6, steps=12)
        assert done.status == "ok"
        assert done.lead_in_seconds > 2.1
        assert done.epoch_overhead_seconds is not None
        overheads.append(done.epoch_overhead_seconds)
        alone = script.window({}, lead_in=2, steps=6)
        assert alone.epoch_overhead_seconds == pytest.approx(0.0, abs=0.1)
    assert known - 0.05 < min(overheads) < known + 0.2


@pytest.mark.sleeping
def test_training_shows_its_steps_and_that_it_stands_still(guest: StartGuest) -> None:
    """So that an evaluation is not taken for a hang, however long it takes."""
    script = guest(repeated("for batch in DataLoader(Rows(24), batch_size=4):\n    train_on(batch)\ntime.sleep(0.4)\n"))
    script.found()
    script.grant(steps=20)
    seen, steps = set(), [script.session.progress()]
    begun = time.monotonic()
    while script.session.event(0.02) is None:
        seen.add(script.session.is_away())
        steps.append(script.session.progress())
        assert time.monotonic() - begun < 30
    assert True in seen
    assert steps[-1][0] >= steps[0][0] + 20, "and it shows its steps"
    counts = [each[0] for each in steps]
    assert counts == sorted(counts)
    assert not script.session.is_away(), "it waits to be told what to do, in the middle of an epoch"


BOUNDED = """
for epoch in range(5):
    for batch in DataLoader(Rows(48), batch_size=4):
        train_on(batch)
    time.sleep(0.3)
"""
BOUNDED_BARE = """
for step in range(300):
    train_on((torch.ones(4, 4), torch.ones(4)))
"""


@pytest.mark.parametrize(
    ("training", "steps", "ends"),
    [
        pytest.param(BOUNDED, 60, True, id="loader"),
        pytest.param(BOUNDED_BARE, 300, True, id="no loader"),
        pytest.param(
            BOUNDED.replace("range(5)", "iter(range(5))"),
            60,
            False,
            id="not said",
            marks=pytest.mark.slow(together=True),
        ),
    ],
)
def test_the_last_step_that_the_program_says_it_makes_is_shown(
    guest: StartGuest, training: str, steps: int, ends: bool
) -> None:
    script = guest(f"{PRELUDE}\n{training}\ntime.sleep(3600)\n")
    left = script.found()
    assert left.run_ends == (steps if ends else None)
    script.window(steps=10)
    assert not script.session.has_last_step()
    script.grant(steps=100000)
    begun = time.monotonic()
    while not script.session.has_last_step() and time.monotonic() - begun < (20 if ends else 4):
        assert script.session.event(0.05) is None
    assert script.session.has_last_step() is ends
    assert script.session.progress()[0] >= steps - left.position


def test_what_trains_on_beyond_what_it_says_shows_no_last_step(guest: StartGuest) -> None:
    fit = "def fit():\n" + "\n".join("    " + line for line in BOUNDED_BARE.strip().splitlines())
    script = guest(f"{PRELUDE}\n{fit}\n\nfit()\ntime.sleep(0.5)\nfit()\ntime.sleep(3600)\n")
    left = script.found()
    assert left.run_ends == 300
    script.grant(steps=100000)
    begun, shown = time.monotonic(), set()
    while time.monotonic() - begun < 20 and script.session.progress()[0] < 500 - left.position:
        assert script.session.event(0.05) is None
        shown.add(script.session.has_last_step())
    assert shown == {False, True}
    assert not script.session.has_last_step()


def test_what_is_let_go_before_training_begins_is_gone(guest: StartGuest) -> None:
    """The hook that looks for the model keeps none alive, and bears modules on devices that compute nothing."""
    script = guest(
        PRELUDE
        + """
import gc, weakref

early = nn.Linear(4, 4)
early(torch.zeros(1, 4))
known = weakref.ref(early)
del early
gc.collect()
note("gone", known() is None)
with torch.device("meta"):
    nn.Linear(4, 4)(torch.zeros(1, 4))
"""
        + LOOP.removeprefix(PRELUDE)
    )
    assert script.found().has_root_module
    assert script.notes("gone") == [True]


SEVERAL = (
    PRELUDE
    + """
import multiprocessing


def train(epochs):
    loader = DataLoader(Rows(), batch_size=4)
    for epoch in range(epochs):
        for batch in loader:
            train_on(batch)
            time.sleep(0.005)


if __name__ == "__main__":
    if sys.argv[1] == "at once":
        each = [multiprocessing.Process(target=train, args=(100000,)) for _ in range(2)]
        for process in each:
            process.start()
        for process in each:
            process.join()
    for fold in range(50):
        process = multiprocessing.Process(target=train, args=(6,))
        process.start()
        process.join()
"""
)


def test_trainings_side_by_side_are_measured_as_the_first_of_them(guest: StartGuest) -> None:
    script = guest(SEVERAL, "at once")
    script.found()
    for _ in range(8):
        assert script.window(steps=50).status == "ok"


def test_trainings_one_after_another_end_with_the_first(guest: StartGuest) -> None:
    script = guest(SEVERAL, "in turn")
    script.found()
    script.grant(steps=10**6)
    assert script.exited().code == 0
