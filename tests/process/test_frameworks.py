"""Windows in loops that a framework runs: the programs of `frameworks`, alone and under a guest."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, run_plain
from tests.quiet import LOOSE, POINTS, lasting

from bottleneck_doctor.documents.report import Phases
from bottleneck_doctor.measure import phases
from bottleneck_doctor.runtime.wire import messages

pytestmark = pytest.mark.process

FOLDER = Path(__file__).parent / "frameworks"
QUIET = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def program(name: str) -> str:
    """The program under that framework. Skips the test where the framework is not installed.

    Only its place is looked up: importing it takes seconds, and its warnings would be errors here.
    """
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return (FOLDER / f"with_{name}.py").read_text()


def explained(done: messages.WindowDone) -> Phases:
    """The shares in a `phases` window, which sum to the whole of it."""
    assert (done.status, done.reason) == ("ok", "")
    assert sum(done.detail["phases"].values()) == pytest.approx(done.seconds, rel=0.005)
    assert sum(done.detail["step_seconds"]) == pytest.approx(done.seconds, rel=0.005)
    shares = phases.phases([done.detail])
    assert shares is not None
    return shares


# -- what the loop does after a step ---------------------------------------------------------------------------------

AFTER_STEP = (
    PRELUDE
    + """
class Model(nn.Linear):
    def forward(self, rows):
        time.sleep(0.01)
        return super().forward(rows)

class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        time.sleep(0.01)
        return super().step(closure)

model = Model(4, 1)
optimizer = Optimizer(model.parameters(), lr=1e-4)
while True:
    for batch in DataLoader(Rows(4000, 0.005), batch_size=4):
        train_on(batch)
        if os.path.exists("sleep"):
            time.sleep(0.05)
"""
)


@pytest.mark.parametrize("framework", [pytest.param("none", marks=pytest.mark.slow), "lightning"])
def test_work_after_a_step_is_no_part_of_the_optimizer(guest: StartGuest, tmp_path: Path, framework: str) -> None:
    if framework == "none":
        script = guest(AFTER_STEP)
    else:
        script = guest(program(framework), "--bar", environment=QUIET)
    script.found()
    own = script.window({}, mode="phases", lead_in=2, steps=12)
    # What a trainer itself takes between steps is told by a window without the sleep.
    between = explained(own).between * own.seconds / own.steps
    (tmp_path / "sleep").touch()
    done = script.window({}, mode="phases", lead_in=2, steps=12)
    shares = explained(done)
    step = done.seconds / done.steps
    assert shares.between == pytest.approx((0.05 + between) / step, abs=POINTS)
    assert shares.optimizer == pytest.approx(0.01 / step, abs=POINTS)
    assert shares.forward == pytest.approx(0.01 / step, abs=POINTS)
    assert shares.data_wait == pytest.approx(0.02 / step, abs=POINTS)
    assert between < 0.02 * LOOSE


# -- where epochs end ------------------------------------------------------------------------------------------------

PAUSE = 0.3
UNASKED = (
    PRELUDE
    + """
def counted(loader):  # As trainers do that know how long an epoch is: nobody asks for one batch too many.
    iterator = iter(loader)
    for _ in range(len(loader)):
        yield next(iterator)

def ahead(loader):  # As accelerate does: the loader is at its end before the last batch is trained on.
    iterator = iter(loader)
    current = next(iterator)
    for following in iterator:
        yield current
        current = following
    yield current

batches = globals()[sys.argv[1]]
held_out = DataLoader(Rows(2, 0.02), batch_size=1)
loader = DataLoader(Rows(16, 0.02), batch_size=1)
while True:
    for batch in batches(loader):
        time.sleep(0.05)
        train_on(batch)
        time.sleep(0.01)
    with torch.no_grad():
        for other in held_out:
            model(other[0])
    time.sleep(0.3)
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["counted", "ahead"])
def test_what_follows_an_epoch_is_no_part_of_its_steps(guest: StartGuest, shape: str) -> None:
    script = guest(UNASKED, shape)
    script.found()
    for mode, steps in (("timed", 14), ("phases", 36)):
        done = script.window({}, mode=mode, lead_in=2, steps=steps)
        assert (done.status, done.reason) == ("ok", "")
        assert done.samples == done.steps
        # The 0.3 s between epochs would be as long as four steps.
        assert done.seconds / done.steps in lasting(0.08, rel=0.15)
    shares = explained(done)
    step = done.seconds / done.steps
    assert shares.data_wait == pytest.approx(0.02 / step, abs=POINTS)
    assert shares.between == pytest.approx(0.06 / step, abs=POINTS)
    pause = phases.epoch_pause([done.pauses])
    assert pause is not None
    assert pause.seen >= 2
    # It begins with the end of the last optimizer step, which for `ahead` comes after the end of the loader.
    assert pause.rest in lasting(PAUSE + 0.01, abs=0.02)
    assert pause.evaluation in lasting(0.04, abs=0.015)


# -- examined as any other loop --------------------------------------------------------------------------------------


class Expected(NamedTuple):
    """What the guest has to find in one of the programs."""

    framework: str
    accumulate: int
    dataset: str
    loader_made: str
    model_called: str


PROGRAMS = [
    Expected("lightning", 1, "Rows", "DataLoader(Rows(4", "self.model(rows)"),
    Expected("transformers", 1, "Sentences", "trainer.train()", "trainer.train()"),
    Expected("transformers", 2, "Sentences", "trainer.train()", "trainer.train()"),
    Expected("accelerate", 2, "Rows", "accelerator.prepare(", "model(rows)"),
]


@pytest.mark.slow
@pytest.mark.parametrize("expected", PROGRAMS, ids=lambda each: f"{each.framework}-{each.accumulate}")
def test_program_is_found_examined_and_unharmed(guest: StartGuest, tmp_path: Path, expected: Expected) -> None:
    text = program(expected.framework)
    arguments = ("--epochs", "5", "--batches", "16", "--accumulate", str(expected.accumulate))
    script = guest(text, *arguments, environment=QUIET)
    (tmp_path / "plain").mkdir()
    plain = run_plain([str(tmp_path / "train.py"), *arguments], tmp_path / "plain", QUIET)
    assert plain.code == 0, plain.err

    found = script.found()
    assert (found.rung, found.periodic, found.period) == ("optimizer step", True, expected.accumulate)
    assert (found.loader_type, found.dataset_type, found.num_workers) == ("DataLoader", expected.dataset, 0)
    assert (found.epoch_batches, found.samples_per_step) == (16, 4)
    assert found.has_root_module
    assert not found.workers_unsafe
    for site, line in ((found.loader_site, expected.loader_made), (found.forward_site, expected.model_called)):
        assert site is not None
        assert site.file == str(tmp_path / "train.py")
        assert line in text.splitlines()[site.line - 1]

    alone = script.window({}, lead_in=2, steps=6)
    assert (alone.status, alone.samples) == ("ok", 24)
    two = script.window({"num_workers": 2}, lead_in=4, steps=10)
    assert (two.status, two.effect) == ("ok", {"num_workers": True})
    assert two.wait_seconds / two.steps < 0.7 * alone.wait_seconds / alone.steps

    (tmp_path / "sleep").touch()
    done = script.window({}, mode="phases", lead_in=2, steps=18)
    (tmp_path / "sleep").unlink()
    shares = explained(done)
    assert done.optimizer_steps * expected.accumulate >= done.steps
    assert shares.forward > 0
    assert shares.backward > 0
    assert shares.data_wait == pytest.approx(alone.wait_seconds / alone.steps * done.steps / done.seconds, abs=POINTS)
    pause = phases.epoch_pause([done.pauses])
    assert pause is not None
    assert pause.evaluation > 0
    assert pause.rest in lasting(PAUSE, abs=0.12)
    assert pause.seen >= 1
    assert (
        done.seconds / done.steps
        < alone.seconds / alone.steps + 0.05 * (expected.framework == "lightning") + 0.02 * LOOSE
    )

    assert script.run_out().code == 0
    ours, theirs = (json.loads((path / "result.json").read_text()) for path in (tmp_path, tmp_path / "plain"))
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert ours[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name
