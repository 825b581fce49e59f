"""What is known of the programs in `programs/`: how to start each, what is found in it, and which fix is right.

Every program has a bottleneck that is planted as a sleep, so that the right fix and what it is worth are known: with W
workers a step that loads for `load` and computes for `compute` takes the longer of `load` / W and `compute`, without
any their sum. Samples of a program are all alike: what it prints does not depend on the order in which batches came,
and has to be the same with windows inside as without.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Setting = Mapping[str, Any]

PROGRAMS = Path(__file__).parent / "programs"
TWO: Setting = {"num_workers": 2}


@dataclass(frozen=True, kw_only=True)
class Known:
    """One program and the truth about it. Seconds a step in `load` and `compute`.

    `found`: fields of `messages.Found` that are known. `right`: the setting that helps, by as much as the sleeps say or
    by `at_least`; None where there is none. `wrong`: one that does not (`slower`: that harms; `without_effect`: that
    does nothing at all, and is told to). `refused`: fixes that must not be tried, and a part of the reason. `long`:
    arguments with which it trains for minutes. `needs`: the library without which it can't run.
    """

    name: str
    arguments: tuple[str, ...] = ()
    long: tuple[str, ...] = ("4000",)
    module: str = ""
    found: Mapping[str, Any] = field(default_factory=dict)
    samples: float = 4.0
    load: float = 0.024
    compute: float = 0.006
    right: Setting | None = field(default_factory=lambda: TWO)
    at_least: float | None = None
    wrong: Setting | None = field(default_factory=lambda: {"intra_op_threads": 2})
    slower: bool = False
    without_effect: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    steps: int = 8
    epochs: int = 0
    code: int = 0
    needs: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    slow: bool = False

    @property
    def folder(self) -> Path | None:
        """Its folder, where it has one of its own."""
        folder = PROGRAMS / self.name
        return folder if folder.is_dir() else None

    def missing(self) -> str:
        """Why it can't be run here; "" where it can."""
        return f"{self.needs} is not installed" if self.needs and importlib.util.find_spec(self.needs) is None else ""

    def put(self, into: Path) -> tuple[str, ...]:
        """Put the program into the new folder `into`, and return what the interpreter is started with there."""
        into.mkdir()
        if self.folder is not None:
            shutil.copytree(self.folder, into, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PROGRAMS / f"{self.name}.py", into / "train.py")
        shutil.copy(PROGRAMS / "letters.txt", into)
        return ("-m", self.module) if self.module else ("train.py",)

    def argv(self, into: Path) -> tuple[str, ...]:
        """Put the program into `into`, and return the command that trains for a few seconds there."""
        return (sys.executable, *self.put(into), *self.arguments)

    def step(self, setting: Setting) -> float:
        """Seconds that a step takes under a setting, by the sleeps."""
        workers = int(setting.get("num_workers", self.found.get("num_workers", 0)))
        return max(self.load / workers, self.compute) if workers else self.load + self.compute

    def wait(self) -> float:
        """Seconds of a step as written in which the loop waits for its batch."""
        return self.step({}) - self.compute


KNOWN = (
    Known(
        name="module_level",
        slow=True,
        arguments=("--epochs", "2", "-o", "there", "--budget", "3", "-q", "--only", "a", "b"),
        long=("--epochs", "400", "-o", "there", "--budget", "3", "-q", "--only", "a", "b"),
        found={"epoch_batches": 40, "dataset_type": "Letters", "has_root_module": True},
    ),
    Known(
        name="rowtrain",
        slow=True,
        module="rowtrain.train",
        arguments=("epochs=4", "rows=64", "seconds=0.006", "lr=0.02"),
        long=("epochs=400", "rows=64", "seconds=0.006", "lr=0.02"),
        found={"epoch_batches": 16, "dataset_type": "Rows"},
        code=3,
    ),
    Known(
        name="sharded_stream",
        slow=True,
        arguments=("96",),
        found={"iterable": True, "batch_size": None, "epoch_batches": None},
    ),
    Known(
        name="spawned_workers",
        arguments=("2",),
        long=("100",),
        found={"start_method": "spawn", "num_workers": 1, "persistent_workers": True, "workers_unsafe": ""},
        load=0.032,
        compute=0.0,
        wrong=None,
        slow=True,
    ),
    Known(
        name="unguarded_spawn",
        arguments=("60",),
        found={"start_method": "spawn"},
        load=0.02,
        compute=0.0,
        right={**TWO, "multiprocessing_context": "fork"},
        refused={"workers": "no `if __name__ == '__main__':` guard", "prefetch-factor": ""},
    ),
    Known(name="gan", arguments=("80",), found={"period": 2}, slow=True),
    Known(name="zipped_loaders", arguments=("80",), found={"batch_size": 4}, load=0.024, compute=0.008, slow=True),
    Known(
        name="reinforcement",
        arguments=("120",),
        found={"has_loader": False, "rung": "optimizer step"},
        samples=1.0,
        load=0.0,
        compute=0.018,
        right=None,
        wrong=None,
        refused={"workers": "no torch DataLoader feeds this loop"},
        slow=True,
    ),
    Known(
        name="scaler_accumulation",
        slow=True,
        arguments=("80",),
        found={"period": 4, "grad_scaler": True},
        samples=2.0,
        compute=0.0,
        steps=12,
        refused={"amp-bf16": "scales its gradients itself"},
    ),
    Known(name="lbfgs_closure", arguments=("80",), found={"period": 1}, slow=True),
    Known(
        name="next_by_hand",
        slow=True,
        arguments=("80",),
        found={"epoch_batches": 1000, "epoch_batches_seen": 1},
        right=None,
        wrong=TWO,  # They would be started anew for every batch.
        slower=True,
        epochs=8,
        steps=0,
    ),
    Known(name="endless_cycle", arguments=("80",), found={"epoch_batches": 20}, slow=True),
    Known(name="numbered_rows", arguments=("80",), found={"loader_type": "Numbered", "dataset_type": "Rows"}),
    Known(
        name="compiled_autocast",
        arguments=("2",),
        long=("100",),
        found={"autocast": "bfloat16", "has_root_module": True},
        samples=8.0,
        load=0.0,
        compute=0.02,
        right=None,
        wrong=None,
        refused={"amp-bf16": "already on"},
        slow=True,
    ),
    Known(
        name="short_epochs",
        slow=True,
        arguments=("9",),
        long=("900",),
        found={"epoch_batches": 6},
        load=0.04,
        compute=0.005,
        at_least=1.3,  # Starting the workers comes on top, in every epoch of six batches.
        wrong={"num_workers": 2, "persistent_workers": True},
        without_effect=True,
        refused={"persistent-workers": "makes a new loader for every epoch"},
        epochs=2,
        steps=0,
    ),
    Known(name="slow_step", arguments=("60",), load=0.0, compute=0.02, right=None, wrong=TWO, slow=True),
    Known(
        name="many_workers",
        arguments=("16",),
        long=("1000",),
        found={"num_workers": 2, "epoch_batches": 12},
        load=0.0,
        compute=0.002,
        right={"num_workers": 0},
        at_least=1.5,
        wrong=None,
        epochs=3,
        steps=0,
        slow=True,
    ),
    Known(name="own_update", arguments=("90",), found={"rung": "backward"}, load=0.016, compute=0.004, slow=True),
    Known(
        name="manual_update",
        slow=True,
        arguments=("110",),
        found={"has_loader": False, "rung": "backward", "has_root_module": False},
        samples=1.0,
        load=0.0,
        compute=0.06,
        right=None,
        wrong=None,
        refused={
            "workers": "no torch DataLoader feeds this loop",
            "amp-bf16": "no call of a module with trainable parameters was seen",
        },
    ),
    Known(
        name="unpicklable",
        arguments=("50",),
        found={"start_method": "forkserver"},
        compute=0.0,
        right=None,
        refused={"workers": "the dataset cannot be pickled", "persistent-workers": "forkserver"},
        slow=True,
    ),
    Known(
        name="forkserver_workers",
        arguments=("1", "160", "1"),
        # Epochs that are long beside what a fork server takes to start a worker.
        long=("100", "4000", "1"),
        found={"start_method": "forkserver", "num_workers": 1, "loader_type": "CountingLoader", "batch_size": None},
        compute=0.006,
        wrong=None,
        slow=True,
    ),
    Known(name="stdin_closed", arguments=("80",), found={"epoch_batches": 40}, slow=True),
    Known(name="trained_in_child", arguments=("80",), slow=True),
    Known(name="trained_in_fork", arguments=("80",), slow=True),
    Known(name="stateful", arguments=("80",), needs="torchdata", found={"loader_type": "StatefulDataLoader"}),
    Known(name="graphs", arguments=("80",), needs="torch_geometric", found={"dataset_type": "Molecules"}),
    Known(name="pictures_timm", arguments=("80",), needs="timm", wrong=None),
    Known(name="tar_shards", arguments=("80",), needs="webdataset", found={"iterable": True}),
    Known(name="rows_in_hdf5", arguments=("80",), needs="h5py", slow=True),
    Known(name="rows_in_lmdb", arguments=("80",), needs="lmdb", slow=True),
    Known(
        name="fastai_learner",
        arguments=("80",),
        needs="fastai",
        found={"iterable": True, "rung": "backward"},  # Its optimizers are none of torch's.
        slow=True,
    ),
    Known(name="keras_fit", arguments=("80",), needs="keras", found={"rung": "backward"}, slow=True),
    Known(name="lightning_trainer", arguments=("80",), needs="lightning", slow=True),
    Known(
        name="transformers_trainer",
        arguments=("80",),
        needs="transformers",
        environment={"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"},  # It tells of wandb's where that is installed.
        slow=True,
    ),
    Known(name="accelerate_loop", arguments=("80",), needs="accelerate", slow=True),
    Known(name="logs_tensorboard", arguments=("80",), needs="tensorboard", slow=True),
    Known(
        name="logs_wandb",
        arguments=("80",),
        needs="wandb",
        environment={"WANDB_MODE": "offline", "WANDB_SILENT": "true"},
        slow=True,
    ),
    Known(name="logs_mlflow", arguments=("80",), needs="mlflow", slow=True),
)
