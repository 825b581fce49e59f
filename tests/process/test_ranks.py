"""Several processes train together: all serve the same windows at the same step, the slowest is named, none is left."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.process.driver import IMPATIENT, PRELUDE, Guest, run_plain, wait_until, write

from bottleneck_doctor.documents.report import Result, from_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.session.ranks import Together
from bottleneck_doctor.session.session import Command, Exited

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch.distributed") is None, reason="this torch knows no ranks"),
]

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")

GROUP = """
import torch.distributed as dist
from torch.utils.data import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)


def sharded(data, **given):
    return DataLoader(data, batch_size=4, sampler=DistributedSampler(data), **given)


"""
RANKS = PRELUDE + GROUP
LOOP = """
loader = sharded(Rows(80, 0.001))
for epoch in range(100000):
    for batch in loader:
        train_on(batch)
"""
"""Ten batches an epoch in each of two ranks."""

StartRanks = Callable[..., Guest]


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[StartRanks]:
    """Start a script under torchrun in two processes, a guest in each. All are ended after the test."""
    started: list[Guest] = []

    def start(text: str, *arguments: str, launcher: tuple[str, ...] = TORCHRUN) -> Guest:
        script = write(tmp_path, text)
        argv = (*(launcher or (sys.executable,)), str(script), *arguments)
        started.append(Guest(Command(argv, tmp_path, launched=bool(launcher))))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            each.close()
            assert not list(Path(os.environ["TMPDIR"]).glob("torchelastic_*"))


def together(window: object) -> Together:
    """A window of both ranks, after which they stand at one step."""
    assert isinstance(window, Together)
    assert window.parts is not None
    assert sorted(window.parts) == [0, 1]
    assert len({part.position for part in window.parts.values()}) == 1
    return window


def taken(window: Together) -> int:
    """Steps that both ranks have behind them."""
    assert window.parts is not None
    return window.parts[0].position


# -- windows ---------------------------------------------------------------------------------------------------------


def test_ranks_serve_the_same_windows_at_the_same_step(ranks: StartRanks) -> None:
    """Epochs of ten batches end inside the windows."""
    script = ranks(RANKS + LOOP)
    found = script.found()
    assert (found.num_workers, found.epoch_batches, found.samples_per_step) == (0, 10, 8.0)
    assert [(hello.rank, hello.world) for hello in script.session.ranks] == [(0, 2), (1, 2)]
    first = together(script.window({}, steps=6))
    assert (first.status, first.samples) == ("ok", 8.0 * first.steps)
    before = taken(first)
    for setting, lead_in, steps in (({"num_workers": 1}, 3, 25), ({"replay": True}, 2, 31), ({}, 0, 1)):
        done = together(script.window(setting, lead_in=lead_in, steps=steps))
        assert done.status == "ok", done.reason
        assert 0 < done.steps <= steps
        assert taken(done) == before + lead_in + steps
        before = taken(done)
    alone = together(script.window({"num_workers": 1}, mode="loader_only", lead_in=2, steps=4))
    assert (alone.status, alone.samples, taken(alone)) == ("ok", 32.0, before)
    whole = together(script.window({"num_workers": 1}, lead_in=0, steps=0, epochs=2))
    assert (whole.status, whole.steps, whole.whole_epochs) == ("ok", 20, 2)
    phases = together(script.window({}, mode="phases"))
    assert phases.parts is not None
    # Of so small a net all of a backward pass may be waiting for the other rank.
    told = [part.detail["phases"] for part in phases.parts.values()]
    assert all(each["backward"] + each["communication"] > 0 for each in told)


@pytest.mark.slow
def test_waiting_for_a_late_rank_is_communication_and_not_computing(ranks: StartRanks) -> None:
    late = LOOP.replace("        train_on(batch)", "        time.sleep(0.04 * rank)\n        train_on(batch)")
    script = ranks(RANKS + late)
    script.found()
    done = together(script.window({}, mode="phases", steps=20))
    assert done.parts is not None
    for rank, part in done.parts.items():
        phases = part.detail["phases"]
        assert sum(phases.values()) == pytest.approx(part.detail["seconds"])
        assert part.detail["seconds"] > 0.035 * part.steps, "they keep step"
        assert (phases["between"] > 0.5 * part.detail["seconds"]) == (rank == 1)
        assert (phases["communication"] > 0.5 * part.detail["seconds"]) == (rank == 0)
        assert phases["backward"] < 0.3 * part.detail["seconds"]


ACCUMULATED = """
loader = sharded(Rows(160, 0.001))
for epoch in range(100000):
    for number, batch in enumerate(loader):
        last = number % 4 == 3
        with contextlib.nullcontext() if last or "--always" in sys.argv else model.no_sync():
            loss = model(batch[0]).square().mean()
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("always", [True, False])
def test_which_passes_exchange_gradients_is_seen(ranks: StartRanks, always: bool) -> None:
    script = ranks("import contextlib\n" + RANKS + ACCUMULATED, *(["--always"] if always else []))
    assert script.found().period == 4
    done = together(script.window({}, mode="phases", lead_in=4, steps=16))
    assert done.parts is not None
    for part in done.parts.values():
        told = part.detail["exchanges"]
        # The last pass would be read by the next one.
        assert told["updates"] >= 2
        assert told["passes"] == 4 * told["updates"] - 1
        if always:
            assert told["exchanged"] == told["passes"]
        else:
            assert told["exchanged"] <= told["updates"] + 1 < told["passes"] / 2


TELL_WEIGHTS = """
torch.distributed.barrier()
values = [value for each in model.parameters() for value in each.flatten().tolist()]
os.write(1, ("weights " + " ".join(f"{value:.5f}" for value in values) + "\\n").encode())
"""


def expect_same_weights(ended: Exited, folder: Path, *arguments: str) -> None:
    """Both ranks have the weights that the same script has without us."""
    assert ended.code == 0, ended.tail
    (folder / "left").mkdir()  # torchrun leaves folders behind.
    left = {"TMPDIR": str(folder / "left")}
    plain = run_plain([*TORCHRUN[1:], str(folder / "train.py"), *arguments], folder, left)
    assert plain.code == 0, plain.err
    weights = [re.findall(r"weights((?: -?[0-9.]+){5})", text) for text in (ended.tail, plain.out)]
    assert [len(each) for each in weights] == [2, 2], (ended.tail, plain.out)
    assert len({*weights[0], *weights[1]}) == 1, weights


ENDS_SHORT = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = sharded(Rows(80, 0.001))
for epoch in range(int(sys.argv[1])):
    for number, batch in enumerate(loader):
        (model(batch[0] / 7).mean() - rank).square().backward()
        if number % 4 == 3 or number == 9:
            optimizer.step()
            optimizer.zero_grad()
"""
"""Updates of four, four and two passes, on different data in each rank."""


@pytest.mark.slow(together=True)
def test_gradients_that_are_exchanged_once_an_update_train_the_same(ranks: StartRanks, tmp_path: Path) -> None:
    script = ranks(RANKS + ENDS_SHORT + TELL_WEIGHTS, "12")
    found = script.found()
    assert found.obstacles["no_sync"] == ""
    exchanges = []
    for setting in ({}, {"no_sync": True}):
        done = together(script.window(setting, mode="phases", lead_in=10, steps=20))
        assert (done.status, done.reason) == ("ok", "")
        assert done.parts is not None
        exchanges.append([part.detail["exchanges"] for part in done.parts.values()])
    assert all(each["exchanged"] == each["passes"] for each in exchanges[0])
    # The update of two passes is exchanged by us, without the model, and counts for none.
    assert all(each["exchanged"] <= each["passes"] / 4 for each in exchanges[1])
    expect_same_weights(script.run_out(), tmp_path, "12")


SEARCHES = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = sharded(Rows(80, 0.001))
for epoch in range(int(sys.argv[1])):
    for batch in loader:
        (model(batch[0] / 7).mean() - rank).square().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.slow(together=True)
def test_another_way_of_exchanging_gradients_trains_the_same(ranks: StartRanks, tmp_path: Path) -> None:
    searching = RANKS.replace("DataParallel(model)", "DataParallel(model, find_unused_parameters=True)")
    script = ranks(searching + SEARCHES + TELL_WEIGHTS, "12")
    found = script.found()
    search, view, cap = {"find_unused_parameters": False}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 1}
    assert [found.obstacles[name] for name in (*search, *view, *cap)] == ["", "", ""]
    copies = {name: True for name in ("batched_grad_copy",) if found.obstacles[name] == ""}
    for setting in ({}, search, view, {**search, **view}, {**cap, **copies}, {}):
        done = together(script.window(setting, lead_in=4, steps=12))
        assert (done.status, done.reason) == ("ok", "")
    expect_same_weights(script.run_out(), tmp_path, "12")


SPARED = """
class Spared(nn.Module):
    def __init__(self, used):
        super().__init__()
        self.used, self.spare = used, nn.Linear(3, 3)

    def forward(self, rows):
        return self.used(rows)


"""


@pytest.mark.slow(together=True)
def test_a_graph_that_always_leaves_out_the_same_may_be_static(ranks: StartRanks, tmp_path: Path) -> None:
    wrapped = "DataParallel(Spared(model), find_unused_parameters=True)"
    sparing = PRELUDE + SPARED + GROUP.replace("DataParallel(model)", wrapped)
    script = ranks(sparing + SEARCHES + TELL_WEIGHTS, "12")
    found = script.found()
    assert found.obstacles["static_graph"] == ""
    assert found.obstacles["find_unused_parameters"] == "some steps do not use all parameters"
    static, view = {"static_graph": True}, {"gradient_as_bucket_view": True}
    for setting in ({}, static, {**static, **view}, {}):
        done = together(script.window(setting, lead_in=4, steps=12))
        assert (done.status, done.reason) == ("ok", "")
    expect_same_weights(script.run_out(), tmp_path, "12")


@pytest.mark.slow(together=True)
def test_setting_that_fails_in_one_rank_fails_in_all(ranks: StartRanks) -> None:
    text = """
class Fragile(Rows):
    def __getitem__(self, index):
        if rank == 1 and torch.utils.data.get_worker_info() is not None:
            raise ValueError("no database in this worker")
        return super().__getitem__(index)


loader = sharded(Fragile(80))
for epoch in range(100000):
    for batch in loader:
        train_on(batch)
"""
    script = ranks(RANKS + text)
    script.found()
    before = taken(together(script.window({})))
    failed = together(script.window({"num_workers": 1}, lead_in=2, steps=12))
    assert (failed.status, failed.steps) == ("failed", 0)
    assert failed.reason.startswith("rank 1: ")
    assert failed.reason.endswith("no database in this worker")
    assert taken(failed) == before + 14
    for epochs in (1, 3):
        whole = together(script.window({"num_workers": 1}, lead_in=0, steps=0, epochs=epochs))
        assert whole.status == "failed"
        after = together(script.window({}))
        assert (after.status, after.steps) == ("ok", 6)


@pytest.mark.slow
def test_one_rank_alone_evaluates_and_saves(ranks: StartRanks) -> None:
    """Amid an epoch, so that only this rank's clock stops: the windows of both end at one step all the same."""
    text = """
loader, held_out = sharded(Rows(400)), DataLoader(Rows(8), batch_size=4)
for epoch in range(100000):
    for number, batch in enumerate(loader):
        train_on(batch)
        if rank == 0 and number % 7 == 6:
            with torch.no_grad():
                for rows, _ in held_out:
                    model.module(rows)
            time.sleep(0.2)  # Much more than a step takes, also beside other work.
"""
    script = ranks(RANKS + text)
    script.found()
    for setting in ({}, {"num_workers": 1}, {}):
        done = together(script.window(setting, lead_in=3, steps=20))
        assert done.status == "ok"
        assert done.slowest == 0
        # The other's clock runs on while it waits; what is told has no part of that.
        assert done.parts is not None
        assert done.seconds / done.steps < 0.5 * done.parts[1].seconds / done.parts[1].steps


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "smoke = next(iter(sharded(Rows(80)))) if rank == 0 else None\n" + LOOP.replace("80", "800"),
            marks=pytest.mark.slow(together=True),
        ),
        """
loader = sharded(Rows(1600, 0.001))
for epoch in range(100000):
    for number, batch in enumerate(loader):
        with model.no_sync() if number % 4 < 3 else __import__("contextlib").nullcontext():
            model(batch[0]).mean().backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
""",
    ],
    ids=["a batch before", "accumulation"],
)
def test_ranks_come_to_one_step(ranks: StartRanks, text: str) -> None:
    script = ranks(RANKS + text)
    found = script.found()
    for setting in ({}, {"num_workers": 1}):
        done = script.window(setting, lead_in=4, steps=12)
        assert (done.status, done.steps) == ("ok", 12)
        assert done.optimizer_steps == 16 // found.period


SPAWNED = """
import os, sys

import torch


def main(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for batch in torch.utils.data.DataLoader(torch.randn(400000, 4), batch_size=4):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(main, (port,), nprocs=2)
"""
WITH_LIGHTNING = """
import lightning, torch


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-4)


loader = torch.utils.data.DataLoader(torch.randn(400000, 4), batch_size=4)
options = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
lightning.Trainer(max_epochs=1, accelerator="cpu", devices=2, strategy="ddp", **options).fit(Model(), loader)
"""
ACCELERATE = (sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2")


@pytest.mark.parametrize(
    ("text", "launcher", "needs"),
    [
        pytest.param(SPAWNED, (), "torch", marks=pytest.mark.slow(together=True)),
        pytest.param(WITH_LIGHTNING, (), "lightning", marks=pytest.mark.slow(together=True)),
        pytest.param(RANKS + LOOP, ACCELERATE, "accelerate", marks=pytest.mark.slow(together=True)),
    ],
    ids=["spawn", "lightning", "accelerate"],
)
def test_other_ways_to_start_ranks(ranks: StartRanks, text: str, launcher: tuple[str, ...], needs: str) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    script = ranks(text, launcher=launcher)
    script.found()
    for setting in ({}, {"num_workers": 1}):
        done = together(script.window(setting, lead_in=4, steps=12))
        assert (done.status, done.samples) == ("ok", 8.0 * done.steps)


FULLY_SHARDED = (
    PRELUDE
    + """
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DistributedSampler

dist.init_process_group("gloo")
mesh = dist.init_device_mesh("cpu", (2,))
model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
data = Rows(80, 0.001)
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
for epoch in range(int(sys.argv[1])):
    for batch in loader:
        train_on(batch)
print("trained", flush=True)
dist.destroy_process_group()
"""
)
JOINED = (
    RANKS
    + """
loader = DataLoader(Rows(320 + 8 * rank, 0.001), batch_size=4)
for epoch in range(int(sys.argv[1])):
    with model.join():
        for batch in loader:
            train_on(batch)
print("trained", flush=True)
"""
)
ACCELERATED = (
    PRELUDE
    + """
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
loader = DataLoader(Rows(160, 0.001), batch_size=4, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(int(sys.argv[1])):
    for rows, _ in loader:
        optimizer.zero_grad()
        accelerator.backward(model(rows).mean())
        optimizer.step()
accelerator.wait_for_everyone()
print("trained", flush=True)
accelerator.end_training()
"""
)


@pytest.mark.slow(together=True)
@pytest.mark.parametrize(
    ("text", "launcher", "epochs"),
    [
        pytest.param(FULLY_SHARDED, TORCHRUN, 12, id="fsdp2"),
        pytest.param(JOINED, TORCHRUN, 3, id="join"),
        pytest.param(ACCELERATED, ACCELERATE, 10, id="accelerate"),
    ],
)
def test_ranks_that_share_more_than_gradients(
    ranks: StartRanks, tmp_path: Path, text: str, launcher: tuple[str, ...], epochs: int
) -> None:
    """Windows of both ranks are of one step; and once the script may run on, it comes to its own end."""
    needs = "accelerate" if launcher is ACCELERATE else "torch"
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    script = write(tmp_path, text)
    (tmp_path / "left").mkdir()  # torchrun leaves folders behind, without us too.
    plain = run_plain([*launcher[1:], str(script), "1"], tmp_path, {"TMPDIR": str(tmp_path / "left")})
    if text is FULLY_SHARDED and plain.code != 0:
        pytest.skip("this torch shards nothing on the CPU")
    assert (plain.code, plain.out.count("trained")) == (0, 2), plain.err
    guest = ranks(text, str(epochs), launcher=launcher)
    found = guest.found()
    assert (found.rung, found.period, found.samples_per_step) == ("optimizer step", 1, 8.0)
    before = taken(together(guest.window({}, steps=4)))
    for setting, lead_in, steps in (({}, 2, 12), ({"num_workers": 1}, 4, 12), ({}, 2, 12)):
        done = together(guest.window(setting, lead_in=lead_in, steps=steps))
        # Where an epoch ends within, a part of it goes into leading in again.
        assert (done.status, done.samples) == ("ok", 8.0 * done.steps), done.reason
        assert steps - 4 <= done.steps <= steps
        assert taken(done) == before + lead_in + steps
        before = taken(done)
    ended = guest.run_out()
    assert ended.code == 0, ended.tail
    assert ended.tail.count("trained") == 2, ended.tail


# -- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [3, pytest.param(40, marks=pytest.mark.slow(together=True))])
def test_rank_that_crashes(ranks: StartRanks, tmp_path: Path, step: int) -> None:
    """Its own traceback is told, and neither the launcher's nor those of the ranks that were waiting for it."""
    text = f"""
def step(number, batch):
    if rank == 1 and number == {step}:
        raise RuntimeError("NaN in the loss")
    train_on(batch)


for number, batch in enumerate(sharded(Rows(4000))):
    step(number, batch)
"""
    script = ranks(RANKS + text)
    if step > 10:
        script.found()
        script.grant({}, steps=1000)
    exited = script.exited()
    assert exited.code != 0
    lines = exited.tail.rstrip().splitlines()
    assert lines[0].startswith("Rank 1 of 2 on ")
    assert "Traceback (most recent call last):" in lines
    assert lines[-1] == "RuntimeError: NaN in the loss"
    assert "bottleneck_doctor" not in exited.tail


@pytest.mark.slow(together=True)
def test_ranks_with_unequal_batches_are_told_apart(tmp_path: Path) -> None:
    """`join` lets one rank end its epoch while the other goes on; windows of one length can't."""
    text = """
loader = DataLoader(Rows(48 if rank == 0 else 40, 0.001), batch_size=4)
for epoch in range(100000):
    with model.join():
        for batch in loader:
            train_on(batch)
"""
    write(tmp_path, RANKS + text)
    command = [sys.executable, "-c", IMPATIENT, "run", "--launch", " ".join(TORCHRUN), "--budget", "60s", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == Exit.NO_TRAINING, done.stderr
    assert "[ranks-apart]" in done.stderr
    assert "(batches of an epoch: 12 in rank 0, 10 in rank 1)" in done.stderr
    assert "drop_last" in done.stderr


@pytest.mark.slow(together=True)
def test_rank_that_is_killed(ranks: StartRanks) -> None:
    script = ranks(RANKS + LOOP)
    script.found()
    script.grant({}, steps=10**6)
    psutil.Process(script.session.ranks[1].pid).kill()
    exited = script.exited()
    assert isinstance(exited, Exited)
    assert exited.code != 0
    assert "rank 1 of 2" in exited.tail


@pytest.mark.slow(together=True)
def test_ranks_end_with_their_supervisor(tmp_path: Path) -> None:
    """Nothing can be cleaned up after SIGKILL; the launcher goes with the doctor, and the ranks with both."""
    write(tmp_path, RANKS + LOOP)
    command = [sys.executable, "-m", "bottleneck_doctor", "run", "--launch", " ".join(TORCHRUN), "train.py"]
    doctor = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert doctor.stderr is not None
        next(line for line in doctor.stderr if "Measuring " in line)
        left = psutil.Process(doctor.pid).children(recursive=True)
        assert len(left) >= 3
    finally:
        doctor.send_signal(signal.SIGKILL)
        doctor.communicate()
    assert wait_until(lambda: not any(process.is_running() for process in left))
    for folder in Path(os.environ["TMPDIR"]).glob("bottleneck-doctor-*"):
        for path in sorted(folder.rglob("*"), reverse=True):
            path.unlink() if not path.is_dir() else path.rmdir()
        folder.rmdir()


# -- from end to end -------------------------------------------------------------------------------------------------


def examined(folder: Path, *options: str) -> tuple[Result, str]:
    command = [sys.executable, "-m", "bottleneck_doctor", "run", "--launch", " ".join(TORCHRUN), *options, "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == Exit.DONE, done.stderr
    return from_json((folder / "report.json").read_bytes(), source="report.json"), done.stdout


@pytest.mark.slow
def test_slow_data_in_two_ranks(tmp_path: Path) -> None:
    text = """
loader = sharded(Rows(800, 0.012))
for epoch in range(100000):
    for batch in loader:
        train_on(batch)
        time.sleep(0.008)
"""
    write(tmp_path, RANKS + text)
    result, said = examined(tmp_path, "--budget", "40s", "--no-explain", "--only", "workers", "--seed", "1")
    workers = {outcome.id: outcome for outcome in result.fixes}["workers"]
    assert workers.speedup is not None
    assert workers.speedup.estimate > 1.5
    assert workers.setting["num_workers"] in (1, 2, 3, 4, 6, 8)
    assert [each.rank for each in result.ranks] == [0, 1]
    assert "2 ranks on" in said
    assert result.baseline is not None
    assert result.baseline.data_wait_share is not None
    assert result.baseline.data_wait_share > 0.6
    counted = [window for window in result.windows if window.status == "ok" and window.steps]
    assert all([part.rank for part in window.parts] == [0, 1] for window in counted)
    assert all(window.seconds >= 0.999 * max(part.seconds for part in window.parts) for window in counted)
    assert {record.ended for record in result.method.sessions} <= {"told to end", "the time was over"}


@pytest.mark.slow
def test_slowest_rank_is_named(tmp_path: Path) -> None:
    text = """
loader = sharded(Rows(800))
for epoch in range(100000):
    for batch in loader:
        train_on(batch)
        time.sleep(0.02 if rank == 1 else 0.004)
"""
    write(tmp_path, RANKS + text)
    result, _ = examined(tmp_path, "--budget", "24s", "--only", "workers", "--seed", "1")
    told = {found.id: found for found in result.findings}
    assert "straggler-rank" in told
    assert "Rank 1 spends" in told["straggler-rank"].sentence
    assert told["straggler-rank"].evidence["rank"] == 1.0


@pytest.mark.slow(together=True)
def test_crash_of_a_rank_is_the_scripts_own(tmp_path: Path) -> None:
    write(tmp_path, RANKS + "if rank == 1:\n    raise RuntimeError('no GPU for me')\n" + LOOP)
    command = [sys.executable, "-m", "bottleneck_doctor", "run", "--launch", " ".join(TORCHRUN), "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == Exit.ENTRYPOINT_FAILED, done.stderr
    assert "[entrypoint-failed]" in done.stderr
    assert done.stderr.rstrip().endswith("RuntimeError: no GPU for me")
    assert "ChildFailedError" not in done.stderr


def test_launcher_that_does_not_exist(tmp_path: Path) -> None:
    write(tmp_path, "raise SystemExit('must not be started')\n")
    command = ["-m", "bottleneck_doctor", "run", "--launch", "torchrunn --nproc-per-node 2", "train.py"]
    done = run_plain(command, tmp_path)
    assert done.code == Exit.USAGE
    assert "[launcher-missing]" in done.err


# -- two hosts -------------------------------------------------------------------------------------------------------

TWO_HOSTS = """
set -e
ip link set lo up
hostname node1
unshare --net --uts bash -c 'hostname node2; ip link set lo up; exec sleep 300' &
export OTHER=$!
trap 'kill $OTHER' EXIT
until [ "$(nsenter -t $OTHER --uts hostname)" = node2 ]; do sleep 0.05; done
ip link add near type veth peer name far netns $OTHER
ip addr add 10.93.7.1/24 dev near
ip link set near up
nsenter -t $OTHER --net ip addr add 10.93.7.2/24 dev far
nsenter -t $OTHER --net ip link set far up
"""
"""Two network namespaces with a cable between them, each with a name of its own: two hosts with a shared folder."""
EACH = """
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=10.93.7.1 MASTER_PORT=29400
RANK=1 GLOO_SOCKET_IFNAME=far nsenter -t $OTHER --net --uts "$@" &
RANK=0 GLOO_SOCKET_IFNAME=near "$@"
wait
"""


def two_hosts(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the first of two hosts; `bash each.sh` there starts one rank on each."""
    (tmp_path / "each.sh").write_text(EACH)
    (tmp_path / "hosts.sh").write_text(TWO_HOSTS + '"$@"\n')
    apart = ["unshare", "--user", "--map-root-user", "--net", "--uts", "bash", "hosts.sh"]
    return subprocess.run(
        [*apart, *command], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=170
    )


@pytest.mark.slow
def test_ranks_on_two_hosts(tmp_path: Path) -> None:
    if not all(map(shutil.which, ("unshare", "nsenter", "ip", "hostname"))):
        pytest.skip("the tools that make two hosts of one are not installed")
    tried = two_hosts(tmp_path, "true")
    if tried.returncode:
        pytest.skip(f"this kernel makes no two hosts of one: {tried.stderr.strip()}")
    write(tmp_path, RANKS + LOOP)
    options = ["--listen", "10.93.7.1:0", "--launch", f"bash each.sh {sys.executable}"]
    measure = ["--budget", "14s", "--no-explain", "--only", "workers", "train.py"]
    done = two_hosts(tmp_path, sys.executable, "-m", "bottleneck_doctor", "run", *options, *measure)
    assert done.returncode == Exit.DONE, done.stderr
    result = from_json((tmp_path / "report.json").read_bytes(), source="report.json")
    assert [(each.rank, each.host) for each in result.ranks] == [(0, "node1"), (1, "node2")]
    assert "2 ranks: 0 on node1; 1 on node2" in done.stdout
    assert all([part.rank for part in window.parts] == [0, 1] for window in result.windows if window.status == "ok")
