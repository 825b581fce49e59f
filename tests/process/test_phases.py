"""The guest's `phases` windows against loops made of known sleeps: shares, loading, and no hook left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE
from tests.quiet import LOOSE, POINTS, lasting

from bottleneck_doctor.documents.report import PaddingUse
from bottleneck_doctor.measure import phases
from bottleneck_doctor.runtime.wire import messages

pytestmark = pytest.mark.process


SLEEPS = (
    PRELUDE
    + """
import builtins, gc, io
from torch.utils.data._utils import fetch, worker

workers, sample_seconds, collate_seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])


class Slow:
    def __call__(self, sample):
        time.sleep(0.8 * sample_seconds)
        return sample


def quick(sample):
    time.sleep(0.2 * sample_seconds)
    return sample


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, sample):
        for transform in self.transforms:
            sample = transform(sample)
        return sample


class Pictures(Dataset):
    def __init__(self):
        self.transform = Compose([quick, Slow()])

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        with open("sample.bin", "rb") as handle:
            handle.read()
        return self.transform(torch.full((4,), float(index % 7)))


def gather(samples):
    time.sleep(collate_seconds)
    return torch.stack(samples)


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        return value

    @staticmethod
    def backward(context, gradient):
        time.sleep(0.02)
        return gradient


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, rows):
        time.sleep(0.03)
        return Backward.apply(self.layer(rows))


class Loss(nn.Module):
    def forward(self, output):
        time.sleep(0.01)
        return output.mean()


class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        time.sleep(0.015)
        return super().step(closure)

    def zero_grad(self, set_to_none=True):
        time.sleep(0.01)
        super().zero_grad(set_to_none)


def hooks():
    chain = dataset.transform.transforms
    return [
        nn.Module.__call__, nn.Module.zero_grad, torch.optim.Optimizer.zero_grad, Optimizer.zero_grad,
        torch.autograd.backward, torch.autograd.grad, torch.amp.GradScaler.step, torch.amp.GradScaler.update,
        vars(torch.Tensor).get("item"), vars(torch.Tensor).get("__bool__"), vars(torch.Tensor).get("__format__"),
        fetch._MapDatasetFetcher.fetch, fetch._IterableDatasetFetcher.fetch, worker._worker_loop,
        builtins.open, io.open, os.open, type(chain[0]), type(chain[1]), len(gc.callbacks),
    ]


with open("sample.bin", "wb") as handle:
    handle.write(bytes(300))
dataset = Pictures()
model, loss_of = Model(), Loss()
optimizer = Optimizer(model.parameters(), lr=1e-4)
before = hooks()
while True:
    for batch in DataLoader(dataset, batch_size=4, num_workers=workers, collate_fn=gather):
        optimizer.zero_grad()
        loss = loss_of(model(batch))
        loss.backward()
        optimizer.step()
        time.sleep(0.05)
        note("hooks", sum(one is not other and one != other for one, other in zip(before, hooks())))
"""
)
STEP = {"forward": 0.04, "backward": 0.02, "optimizer": 0.015, "zero_grad": 0.01, "between": 0.05}
"""Seconds that a step of SLEEPS takes once it has its batch, by phase."""


def line_of(text: str, line: str) -> int:
    return 1 + text.splitlines().index(line)


def left_behind(scratch: Path) -> list[str]:
    return [path.name for path in scratch.rglob("loading-*")]


def close_to_window(done: messages.WindowDone) -> None:
    """The phases sum to the wall time of the window, within half a percent."""
    assert sum(done.detail["phases"].values()) == pytest.approx(done.seconds, rel=0.005)
    assert len(done.detail["step_seconds"]) == done.steps
    assert sum(done.detail["step_seconds"]) == pytest.approx(done.seconds, rel=0.005)


# With 2 workers a batch takes 0.37 s to make, so that one comes each 0.185 s.
@pytest.mark.parametrize(
    ("workers", "sample", "collate", "wait"),
    [(0, 0.02, 0.02, 0.1), (2, 0.0825, 0.04, 0.05)],
)
@pytest.mark.slow
def test_shares_of_a_step_are_those_of_its_sleeps(
    guest: StartGuest, tmp_path: Path, workers: int, sample: float, collate: float, wait: float
) -> None:
    script = guest(SLEEPS, str(workers), str(sample), str(collate))
    script.found()
    plain = script.window({}, lead_in=6, steps=12)
    clean = script.notes("hooks")
    # What only watches until the loop is found was there at the start, and is gone now.
    at_rest = clean[-1]
    assert set(clean[-12:]) == {at_rest}
    assert at_rest <= 3
    done = script.window({}, mode="phases", lead_in=6, steps=24)
    assert (done.status, done.reason) == ("ok", "")
    close_to_window(done)

    shares = phases.phases([done.detail])
    assert shares is not None
    truth = {**STEP, "data_wait": wait, "host_to_device": 0.0}
    for name, seconds in truth.items():
        assert getattr(shares, name) == pytest.approx(seconds / sum(truth.values()), abs=POINTS), name

    steps = phases.step_times([done.detail], 1.0)
    assert steps is not None
    assert steps.mean_ms == pytest.approx(1000 * done.seconds / done.steps, rel=0.005)
    assert steps.wait_mean_ms == pytest.approx(1000 * shares.data_wait * done.seconds / done.steps, rel=0.05)
    assert steps.ready_share == done.ready_batches / done.steps

    made = phases.loading([done.detail], {})
    assert made is not None, done.detail["loading_missing"]
    assert made.num_workers == workers
    assert made.samples_per_batch == 4
    assert made.bytes_per_batch == 4 * 4 * 4
    assert made.fetch_ms in lasting(4000 * sample, rel=0.25)
    assert made.collate_ms in lasting(1000 * collate, rel=0.25)
    quick, slow = made.transforms
    assert (quick.name, slow.name) == ("quick", "Slow")
    # A sleep on a busy machine is longer than asked for, which makes the shorter of the two the larger part.
    both_transforms = slow.share_of_fetch + quick.share_of_fetch
    assert 0.9 < both_transforms < 1
    assert slow.share_of_fetch / both_transforms == pytest.approx(0.8, abs=POINTS)
    assert slow.ms_per_sample in lasting(800 * sample, rel=0.25)
    assert (slow.file, slow.line) == (str(tmp_path / "train.py"), line_of(SLEEPS, "class Slow:") + 1)
    assert (quick.file, quick.line) == (str(tmp_path / "train.py"), line_of(SLEEPS, "def quick(sample):"))
    assert made.fetch_site is not None
    assert SLEEPS.splitlines()[made.fetch_site.line - 1].strip() == "def __getitem__(self, index):"
    assert "Pictures" in "".join(SLEEPS.splitlines()[made.fetch_site.line - 9 : made.fetch_site.line])
    assert made.collate_site is not None
    assert made.collate_site.line == line_of(SLEEPS, "def gather(samples):")
    assert made.files is not None
    assert (made.files.per_batch, made.files.mean_bytes) == (4, 300)
    assert made.files.file_system
    assert [each.worker for each in made.workers] == list(range(workers))
    drawn = phases.timeline([done.detail], {})
    assert drawn is not None
    assert {event.lane for event in drawn.events} == {"main", *(f"worker {number}" for number in range(workers))}
    assert all(0 <= event.start <= event.start + event.seconds <= drawn.seconds + 1e-6 for event in drawn.events)
    main = [event for event in drawn.events if event.lane == "main"]
    assert sum(event.seconds for event in main) == pytest.approx(drawn.seconds, rel=0.01)
    # Two workers that began together also finish together, and every other batch lies ready.
    assert sum(event.kind == "data_wait" for event in main) >= (6 if workers else 12)
    if workers:
        assert made.hand_over_ms is not None
        assert 0 < made.hand_over_ms < 20 * LOOSE
        # Batches are waited for, so the workers have nothing to wait for themselves.
        assert all(each.idle_share < 0.1 * LOOSE for each in made.workers)
        assert sum(each.batches for each in made.workers) == made.batches
        fetches = {event.batch: event for event in drawn.events if event.kind == "fetch"}
        waits = {event.batch: event for event in main if event.kind == "data_wait"}
        both = sorted(number for number in fetches.keys() & waits.keys() if number is not None)
        assert both
        for number in both:  # A batch arrives when it was made, and not before.
            assert waits[number].start + waits[number].seconds >= fetches[number].start + fetches[number].seconds

    hooked = set(script.notes("hooks")[len(clean) :])
    assert max(hooked) > 8
    noted = len(script.notes("hooks"))
    after = script.window({}, lead_in=6, steps=12)
    # The first of the notes may be of the step in which the window came to its end.
    assert set(script.notes("hooks")[noted + 1 :]) == {at_rest}
    assert (after.status, after.detail) == ("ok", {})
    assert after.seconds / after.steps == pytest.approx(plain.seconds / plain.steps, rel=0.1 * LOOSE)
    assert script.session.pid is not None
    assert not left_behind(script.session._folder)


CLOSURE = (
    PRELUDE
    + """
class Dropout(nn.Module):  # A transform, and no part of the model.
    def forward(self, row):
        time.sleep(0.005)
        return row

class Rows(Rows):
    transform = Dropout()
    def __getitem__(self, index):
        row, label = super().__getitem__(index)
        return self.transform(row), label

class Model(nn.Linear):
    def forward(self, rows):
        time.sleep(0.01)
        return super().forward(rows)

model = Model(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
values = torch.arange(50)

def closure():
    optimizer.zero_grad()
    loss = model(batch[0]).mean()
    loss.backward()
    time.sleep(0.03)
    return loss

while True:
    for batch in DataLoader(Rows(), batch_size=4):
        optimizer.step(closure)
        for value in values:
            time.sleep(0.0002)
            value.item()
        gc_ = [[] for _ in range(1000)]
        __import__("gc").collect()
"""
)


CALLED_BY_METHODS = (
    PRELUDE
    + """
import sys
import time

import torch
from torch import nn

called = sys.argv[1]


class Ranking(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, rows):
        time.sleep(0.03)
        return self.spread(self.layer(rows))

    def spread(self, values):
        time.sleep(0.01)
        return values

    def loss(self, rows):
        return self.forward(rows).square().mean()

    def learn(self, rows):
        time.sleep(0.05)
        optimizer.zero_grad()
        self.loss(rows).backward()
        optimizer.step()


model = Ranking()
before = Ranking.forward, Ranking.loss, Ranking.spread
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
rows = torch.randn(8, 4)
while True:
    if called == "learn":
        model.learn(rows)
    else:
        time.sleep(0.05)
        optimizer.zero_grad()
        if called == "loss":
            loss = model.loss(rows)
        else:
            loss = (model.forward(rows) if called == "forward" else model(rows)).square().mean()
        loss.backward()
        optimizer.step()
    note("left", before == (Ranking.forward, Ranking.loss, Ranking.spread))
"""
)


@pytest.mark.parametrize(
    ("called", "forward"),
    [
        ("loss", 0.04),
        pytest.param("forward", 0.04, marks=pytest.mark.slow),
        pytest.param("model", 0.04, marks=pytest.mark.slow),
        pytest.param("learn", 0.0, marks=pytest.mark.slow),
    ],
)
def test_a_method_that_is_called_in_place_of_the_model_is_its_forward_pass(
    guest: StartGuest, called: str, forward: float
) -> None:
    script = guest(CALLED_BY_METHODS, called)
    found = script.found()
    calls = {"loss": "loss = model.loss(rows)", "forward": "loss = (model.forward(rows) if"}.get(called)
    if calls is None:
        assert (found.methods, found.method_site) == ([], None)
    else:
        assert {name for _, name in found.methods} == {"forward", "spread", "loss", "learn"}
        assert found.method_site is not None
        assert calls in CALLED_BY_METHODS.splitlines()[found.method_site.line - 1]
    done = script.window({}, mode="phases", lead_in=3, steps=16)
    shares = phases.phases([done.detail])
    assert shares is not None
    # What also calls the backward pass trains the model, and is the loop's own.
    assert shares.forward == pytest.approx(forward / 0.09, abs=POINTS)
    assert shares.between == pytest.approx((0.09 - forward) / 0.09, abs=POINTS)
    script.window({}, lead_in=1, steps=2)
    assert script.notes("left")[-1] is True


def test_closure_values_and_garbage(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(CLOSURE)
    script.found()
    done = script.window({}, mode="phases", steps=16)
    assert done.status == "ok", done.reason
    close_to_window(done)
    step = done.seconds / done.steps
    spent = {name: seconds / done.steps for name, seconds in done.detail["phases"].items()}
    # The closure's own work is neither the optimizer's nor the model's, and a transform is no forward pass.
    assert spent["data_wait"] == pytest.approx(0.020, abs=POINTS * step)
    assert spent["forward"] == pytest.approx(0.010, abs=POINTS * step)
    assert spent["optimizer"] == pytest.approx(0.0, abs=POINTS * step)
    assert spent["between"] > 0.035
    calls = phases.synchronising([done.detail])
    assert [(call.name, call.per_step) for call in calls] == [(".item()", 50)]
    assert (calls[0].path, calls[0].line) == (
        str(tmp_path / "train.py"),
        line_of(CLOSURE, "            value.item()"),
    )
    assert 0 < calls[0].ms_per_step < 1000 * spent["between"]
    garbage = phases.garbage([done.detail])
    assert garbage is not None
    assert garbage.collections >= done.steps
    assert 0 < garbage.share < 1


PAUSES = (
    PRELUDE
    + """
import io
held_out = DataLoader(Rows(8, 0.005), batch_size=4)
loader = DataLoader(Rows(40, 0.0025), batch_size=4)
done = 0
while True:
    for batch in loader:
        train_on(batch)
        time.sleep(0.01)
        done += 1
        if done % 7 == 3:
            with torch.no_grad():
                for other in held_out:
                    model(other[0])
                    time.sleep(0.02)
    with torch.no_grad():
        for other in held_out:
            model(other[0])
            time.sleep(0.01)
    torch.save(model.state_dict(), "model.pt")
    time.sleep(0.03)
"""
)


COUNTED = (
    PRELUDE
    + """
batches = int(sys.argv[1])
loader = DataLoader(Rows(4 * batches), batch_size=4)
for epoch in range(100000):
    source = iter(loader)
    for _ in range(batches):
        train_on(next(source))
        time.sleep(0.02)
    time.sleep(0.06)
"""
)
"""As a trainer that counts its batches, and asks for no more once an epoch is over."""


@pytest.mark.parametrize("batches", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_the_pause_after_an_epoch_of_a_batch_or_two_is_known(guest: StartGuest, batches: str) -> None:
    script = guest(COUNTED, batches)
    found = script.found()
    assert found.epoch_length == int(batches)
    done = script.window({}, mode="timed", lead_in=0, steps=0, epochs=6)
    assert (done.status, done.steps, done.epoch_batches) == ("ok", 6 * int(batches), int(batches))
    explained = script.window({}, mode="phases", lead_in=2, steps=12)
    assert explained.status == "ok", explained.reason
    pause = phases.epoch_pause([explained.pauses])
    assert pause is not None
    assert pause.seen >= 6
    # Where the last step ends is seen by its optimizer, so what the loop does behind it counts as the pause.
    assert pause.rest in lasting(0.08, abs=0.02)


def test_pauses_are_no_part_of_a_step(guest: StartGuest) -> None:
    script = guest(PAUSES)
    script.found()
    windows: list[dict[str, int]] = [{"steps": 20}, {"epochs": 2, "lead_in": 0}]
    for size in windows:
        done = script.window({}, mode="phases", **size)
        assert done.status == "ok", done.reason
        close_to_window(done)
        shares = phases.phases([done.detail])
        assert shares is not None
        # Evaluation, in the midst of an epoch and after it, would make the loop's own 10 ms a small part.
        assert shares.data_wait == pytest.approx(0.5, abs=2 * POINTS)
        assert shares.between == pytest.approx(0.45, abs=2 * POINTS)
        assert shares.forward < POINTS
    within = phases.interruption([done.pauses])
    assert within is not None
    assert within.every == pytest.approx(7, abs=0.5)
    assert within.seconds in lasting(0.06, abs=0.015)
    assert within.passes >= 2
    assert within.with_graph == 0
    pause = phases.epoch_pause([done.pauses])
    assert pause is not None
    assert pause.seen >= 2
    assert pause.evaluation in lasting(0.06, abs=0.015)
    assert pause.rest in lasting(0.03, abs=0.01)
    assert pause.first_batch in lasting(0.01, abs=0.005)
    assert 0 < pause.saving < 0.02 * LOOSE
    assert pause.seconds == pytest.approx(pause.evaluation + pause.rest + pause.first_batch + pause.saving)
    only_timed = phases.epoch_pause([script.window({}, steps=20).pauses])
    assert only_timed is not None
    assert only_timed.seen > pause.seen, "each window tells of what was seen up to its end"


GENERATES = (
    PRELUDE
    + """
def computed(rows):
    model.eval()
    for _ in range(3):
        with torch.no_grad():
            model(rows)
        time.sleep(0.1)
    model.train()


loader = DataLoader(Rows(1000), batch_size=4)
steps = 0
while True:
    for batch in loader:
        if sys.argv[1] == "ahead" and steps % 30 == 29:
            computed(batch[0])
        time.sleep(0.01)
        train_on(batch)
        steps += 1
        if sys.argv[1] == "behind" and steps % 30 == 0:
            computed(batch[0])
"""
)


@pytest.mark.parametrize(
    ("place", "whole"), [("behind", 0.0105), pytest.param("ahead", 0.0205, marks=pytest.mark.slow)]
)
def test_what_a_model_makes_in_evaluation_mode_is_no_part_of_a_step_behind_it(
    guest: StartGuest, place: str, whole: float
) -> None:
    """It lies behind every 30th step or, as labels that are computed, within it."""
    script = guest(GENERATES, place)
    script.found()
    for mode in ("timed", "phases"):
        done = script.window({}, mode=mode, steps=90, lead_in=2)
        assert (done.status, done.steps) == ("ok", 90)
        if mode == "timed":
            assert done.seconds / done.steps in lasting(whole, rel=0.25)
    within = phases.interruption([done.pauses])
    if place == "ahead":
        assert within is None
        return
    assert within is not None
    assert within.by_mode
    assert within.every == pytest.approx(30)
    assert within.seconds in lasting(0.3, abs=0.06)


REPEATED = (
    PRELUDE
    + """
from torch.utils.data import SubsetRandomSampler
held_out = DataLoader(Rows(8), batch_size=4)
loader = DataLoader(Rows(40), batch_size=4, shuffle=True)
other = {
    "loader": loader,
    "dataset": DataLoader(loader.dataset, batch_size=4),
    "part": DataLoader(loader.dataset, batch_size=4, sampler=SubsetRandomSampler(range(40))),
}[sys.argv[1]]
while True:
    for batch in loader:
        train_on(batch)
        time.sleep(0.01)
    for each in (held_out, other):
        with torch.no_grad():
            for rows, _ in each:
                model(rows)
                time.sleep(0.02)
        time.sleep(0.01)
"""
)
"""After every epoch, 2 batches of other data and then 10 of the training data are evaluated, 20 ms each."""


@pytest.mark.parametrize(
    ("what", "again"),
    [
        pytest.param("loader", 0.2, marks=pytest.mark.slow),
        ("dataset", 0.2),
        pytest.param("part", 0.0, marks=pytest.mark.slow),
    ],
)
def test_evaluation_of_the_training_data_is_known(guest: StartGuest, what: str, again: float) -> None:
    script = guest(REPEATED, what)
    script.found()
    done = script.window({}, mode="phases", epochs=3, lead_in=0)
    pause = phases.epoch_pause([done.pauses])
    assert pause is not None
    assert pause.seen >= 2
    # Between two loaders there are 10 ms, too.
    assert pause.evaluation in lasting(0.25, abs=0.03)
    assert pause.of_training in lasting(again, abs=0.03 if again else 0.001)


WAITING = (
    PRELUDE
    + """
held_out = DataLoader(Rows(8, 0.01), batch_size=4, num_workers=int(sys.argv[1]))  # the slow line
loader = DataLoader(Rows(40), batch_size=4, shuffle=True)
while True:
    for batch in loader:
        train_on(batch)
        time.sleep(0.01)
    with torch.no_grad():
        for rows, _ in held_out:
            model(rows)
            time.sleep(0.03)
"""
)
"""After every epoch, 2 batches of 40 ms are evaluated, 30 ms each."""


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_evaluation_that_waits_for_its_data_is_known(guest: StartGuest, workers: int) -> None:
    script = guest(WAITING, str(workers))
    script.found()
    done = script.window({}, mode="phases", epochs=3, lead_in=0)
    pause = phases.epoch_pause([done.pauses])
    assert pause is not None
    assert pause.evaluation > 0.1
    assert pause.waited_for is not None
    line = next(number for number, text in enumerate(WAITING.split("\n"), 1) if "# the slow line" in text)
    assert (pause.waited_for.workers, pause.waited_for.site and pause.waited_for.site.line) == (workers, line)
    if workers:  # The second batch is made while the first is evaluated, but the worker has to be started.
        assert 0.04 < pause.waiting < pause.evaluation
    else:
        assert pause.waiting in lasting(0.08, abs=0.015)


@pytest.mark.parametrize(
    "under",
    [
        "torch.enable_grad()",
        pytest.param("torch.no_grad()", marks=pytest.mark.slow),
        pytest.param("torch.inference_mode()", marks=pytest.mark.slow),
    ],
)
def test_evaluation_with_gradients_is_known(guest: StartGuest, under: str) -> None:
    within = "        for rows, _ in held_out:\n            with torch.no_grad():\n                model(rows)\n"
    around = "        for rows, _ in held_out:\n            model(rows)\n"
    program = WAITING.replace("0.01), batch", "0.0), batch").replace("            time.sleep(0.03)\n", "")
    for text in (program, program.replace(around, within)):
        script = guest(text.replace("\n    with torch.no_grad():", f"\n    with {under}:"), "0")
        script.found()
        done = script.window({}, mode="phases", epochs=3, lead_in=0)
        pause = phases.epoch_pause([done.pauses])
        assert pause is not None
        assert pause.passes >= 4
        assert pause.with_graph == (pause.passes if "enable" in under and text is program else 0)


def test_loop_without_loader(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
rows = torch.ones(8, 4)
class Model(nn.Linear):
    def forward(self, rows):
        time.sleep(0.03)
        return super().forward(rows)
model = Model(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
while True:
    time.sleep(0.02)
    train_on([rows])
"""
    )
    script.found()
    done = script.window({}, mode="phases", steps=10)
    assert done.status == "ok", done.reason
    close_to_window(done)
    shares = phases.phases([done.detail])
    assert shares is not None
    assert shares.data_wait == 0
    assert shares.forward == pytest.approx(0.6, abs=POINTS)
    assert shares.between == pytest.approx(0.4, abs=POINTS)
    assert phases.loading([done.detail], {}) is None
    assert phases.loading_missing([done.detail])
    assert script.window({}).status == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_inherit_nothing_record_as_well(guest: StartGuest, method: str) -> None:
    """Also those of a fork server that was started before anybody wanted to know."""
    script = guest(
        PRELUDE
        + """
class Compose:
    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, sample):
        for transform in self.transforms:
            sample = transform(sample)
        return sample

def slow(sample):
    time.sleep(0.008)
    return sample

class Named(Rows):
    def __init__(self):
        super().__init__(4000, 0.002)
        self.transform = Compose(slow, len)

    def __getitem__(self, index):
        self.transform(super().__getitem__(index))
        return torch.ones(4), torch.ones(1)

if __name__ == "__main__":
    model = torch.nn.Linear(4, 1)  # Without one, doctor waits for training to begin.
    loader = DataLoader(Named(), batch_size=4, num_workers=1, multiprocessing_context=sys.argv[1])
    while True:
        for batch in loader:
            pass  # Nothing but batches: no forward, no backward, no optimizer.
""",
        method,
    )
    assert script.found().rung == "batches"
    done = script.window({}, mode="phases", lead_in=1, steps=8)
    assert done.status == "ok", done.reason
    close_to_window(done)
    made = phases.loading([done.detail], {})
    assert made is not None, phases.loading_missing([done.detail])
    assert made.samples_per_batch == 4
    assert done.detail["loading"]["delivered"] == done.steps
    fetch = sum(done.detail["loading"]["fetch_seconds"])
    slow, quick = done.detail["loading"]["transforms"]
    assert (slow["name"], quick["name"]) == ("slow", "len")
    assert slow["seconds"] / fetch == pytest.approx(0.8, abs=0.05 * LOOSE)
    assert script.window({}, lead_in=1, steps=2).status == "ok"


@pytest.mark.parametrize("persistent", [pytest.param(False, marks=pytest.mark.slow), True])
def test_every_batch_is_told_of(guest: StartGuest, persistent: bool) -> None:
    """An iterable dataset in two workers, persistent or not, whose epochs end within the window."""
    script = guest(
        PRELUDE
        + """
class Stream(IterableDataset):
    def __iter__(self):
        number = torch.utils.data.get_worker_info().id
        for index in range(40):
            time.sleep(0.001 * (1 + 4 * number))
            yield torch.full((4,), float(index)), torch.tensor(0.0)

loader = DataLoader(Stream(), batch_size=4, num_workers=2, persistent_workers=sys.argv[1] == "True")
while True:
    for batch in loader:
        train_on(batch)
""",
        str(persistent),
    )
    script.found()
    for setting in ({}, {"num_workers": 1}):
        done = script.window(setting, mode="phases", lead_in=4, steps=30)
        assert done.status == "ok", done.reason
        close_to_window(done)
        made = phases.loading([done.detail], setting)
        assert made is not None
        assert made.samples_per_batch == 4
        assert done.detail["loading"]["delivered"] == done.steps
        assert len(made.workers) == setting.get("num_workers", 2)
        assert made.files is None
    assert script.window({}, steps=8).status == "ok"


def test_compiled_model_is_left_whole(guest: StartGuest) -> None:
    """Hooks are on while the model is compiled (those that find the loop) and while it runs: its graph must not break,
    nor be made anew for a window."""
    script = guest(
        PRELUDE
        + """
whole = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)), backend="eager", fullgraph=True)
optimizer = torch.optim.SGD(whole.parameters(), lr=1e-4)
model = lambda rows: (time.sleep(0.005), whole(rows))[1]
while True:
    for batch in DataLoader(Rows(64, 0.001), batch_size=4):
        train_on(batch)
        note("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])
"""
    )
    found = script.found()
    assert found.has_root_module
    assert script.window({}).status == "ok"
    made = script.notes("graphs")
    done = script.window({}, mode="phases", steps=12)
    assert done.status == "ok", done.reason
    close_to_window(done)
    shares = phases.phases([done.detail])
    assert shares is not None
    assert shares.forward > 0
    assert script.window({}).status == "ok"
    assert set(script.notes("graphs")[len(made) :]) == {made[-1]}


MASKED = (
    PRELUDE
    + """
class Sentences(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        mask = (torch.arange(32) < 1 + index % 4).long()
        return {"input_ids": mask * 7, "attention_mask": mask}


loader = DataLoader(Sentences(), batch_size=4, num_workers=int(sys.argv[1]))
for epoch in range(1000):
    for batch in loader:
        train_on((batch["input_ids"][:, :4].float(), batch["attention_mask"][:, 0].float()))
"""
)


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow), "1"])
def test_padding_is_counted_where_batches_are_made(guest: StartGuest, workers: str) -> None:
    script = guest(MASKED, workers)
    script.found()
    done = script.window(mode="phases", lead_in=2, steps=8)
    made = phases.loading([done.detail], {})
    assert made is not None
    # Rows of one to four places out of 32 in every batch.
    assert made.padding == PaddingUse(columns=32.0, empty=1 - 10 / 128, behind_longest=1 - 4 / 32)


FROZEN = (
    PRELUDE
    + """
class Features(nn.Linear):
    def forward(self, rows):
        time.sleep(0.03)
        return super().forward(rows)

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(Features(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 1)

    def forward(self, rows):
        features = self.features(rows)  # the slow line
        time.sleep(0.01)
        return self.head(features)

model = Whole()
model.features.requires_grad_(sys.argv[1] == "learns")
optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=1e-4)
while True:
    for rows, _ in DataLoader(Rows(40), batch_size=4):
        optimizer.zero_grad()
        model(rows).mean().backward()
        optimizer.step()
        time.sleep(0.02)
"""
)


@pytest.mark.parametrize("frozen", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_frozen_part_takes_what_it_sleeps(guest: StartGuest, tmp_path: Path, frozen: bool) -> None:
    script = guest(FROZEN, "frozen" if frozen else "learns")
    script.found()
    done = script.window({}, mode="phases", steps=16)
    assert done.status == "ok", done.reason
    close_to_window(done)
    told = phases.frozen([done.detail])
    assert [each.names for each in told] == ([["features"]] if frozen else [])
    if frozen:
        assert told[0].share == pytest.approx(0.5, abs=POINTS)
        assert told[0].site.file == str(tmp_path / "train.py")
        assert FROZEN.splitlines()[told[0].site.line - 1].endswith("# the slow line")
        assert (told[0].batch, told[0].random) == (False, False)
    after = script.window({}, steps=8)
    assert after.status == "ok"
