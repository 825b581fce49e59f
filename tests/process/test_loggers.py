"""Loggers under examination: what they write goes away, what they wrote last week stays, and nothing is sent."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE, Guest, run_plain, write
from tests.process.test_files import Guarding, looks

from bottleneck_doctor.protection.protector import FileProtector, protecting
from bottleneck_doctor.session.session import Command

pytestmark = pytest.mark.process

LOGGING = (
    PRELUDE
    + """
class Csv:
    def __init__(self):
        import csv
        self.file = open("metrics.csv", "a", newline="")
        self.rows = csv.writer(self.file)

    def log(self, name, value, step):
        self.rows.writerow([step, name, value])
        self.file.flush()


class Tensorboard:
    def __init__(self):
        from torch.utils.tensorboard import SummaryWriter
        self.writer = SummaryWriter()

    def log(self, name, value, step):
        self.writer.add_scalar(name, value, step)
        self.writer.flush()


class Wandb:
    def __init__(self):
        import wandb
        self.run = wandb.init(project="rows", config={"lr": 1e-4})

    def log(self, name, value, step):
        self.run.log({name: value}, step=step)


class Mlflow:
    def __init__(self):
        import mlflow
        self.mlflow = mlflow
        mlflow.set_experiment("rows")
        mlflow.start_run()
        mlflow.log_params({"lr": 1e-4})

    def log(self, name, value, step):
        self.mlflow.log_metric(name, value, step=step)


class H5py:
    def __init__(self):
        import h5py
        self.file = h5py.File("features.h5", "a")

    def log(self, name, value, step):
        self.file.require_dataset("loss", (1,), "f4")[0] = value
        self.file.flush()


class Safetensors:
    def __init__(self):
        from safetensors.torch import save_file
        self.save_file = save_file

    def log(self, name, value, step):
        self.save_file(model.state_dict(), "model.safetensors")


if __name__ == "__main__":
    logger = globals()[sys.argv[1].capitalize()]()
    steps = 0
    while steps < int(sys.argv[2]):
        for batch in DataLoader(Rows(64, 0.001), batch_size=4):
            loss = train_on(batch)
            steps += 1
            if steps % 4 == 0:
                logger.log("loss", loss.item(), steps)
"""
)
NATIVE = {"h5py"}
"""Writes by a library of its own, where only a sandbox sees it."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    return write(tmp_path / "project", LOGGING).parent


@pytest.fixture(params=["sandbox", "guard"])
def protector(request: pytest.FixtureRequest, project: Path) -> Iterator[FileProtector]:
    made = Guarding(project) if request.param == "guard" else protecting(project, ["train.py"])
    if made.told().kind != request.param:
        reason = made.told().reason
        made.close()
        pytest.skip(f"no sandbox here: {reason}")
    try:
        yield made
    finally:
        made.close()


@pytest.mark.slow(together=True)  # `test_files.py` asks the same of a program with files of its own.
@pytest.mark.parametrize("logger", ["csv", "tensorboard", "safetensors", "wandb", "mlflow", "h5py"])
def test_what_a_logger_writes_goes_away(protector: FileProtector, project: Path, logger: str) -> None:
    for needs in {"csv": [], "tensorboard": ["tensorboard"]}.get(logger, [logger]):
        if importlib.util.find_spec(needs) is None:
            pytest.skip(f"{needs} is not installed")
    if logger in NATIVE and protector.told().kind == "guard":
        pytest.skip(f"{logger} writes by native code, which only a sandbox undoes; reports say so")
    # A run of last week, where its files are as this logger makes them.
    alone = run_plain(["train.py", logger, "8"], project, {"WANDB_MODE": "offline"})
    assert alone.code == 0, alone.err
    before = looks(project.parent)
    guest = Guest(Command((sys.executable, "train.py", logger, "1000000"), project), protector)
    try:
        guest.found()
        for setting in ({}, {"num_workers": 1}):
            assert guest.window(setting, lead_in=4, steps=12).status == "ok", guest.session.tail()
    finally:
        guest.close()
    # A second start finds nothing of the first that would make it go on from there.
    again = Guest(Command((sys.executable, "train.py", logger, "1000000"), project), protector)
    try:
        again.found()
    finally:
        again.close()
    protector.close()
    assert looks(project.parent) == before
    assert protector.lost == []
