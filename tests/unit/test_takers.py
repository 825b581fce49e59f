"""What takes arguments of a loader, or of Lightning's trainer, that a library makes: seen by the frames between it and
the user's line. Edits of loaders that libraries make are tried out in `test_call_sites.py`."""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from torch.utils.data import Dataset

from bottleneck_doctor.runtime.loader.takers import dataset_takers_of, takers_of
from bottleneck_doctor.runtime.loop.signatures import given_to, looked_up, taken_by
from bottleneck_doctor.runtime.loop.trainers import lightning_takers
from bottleneck_doctor.runtime.wire.messages import Found, Taker, decode, encode

LIGHTNING = "class Trainer:\n    def fit(self, model):\n        return ask()\n"
TIMED = """
import functools

def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper
"""
KIT = f"""{TIMED}
class Base:
    def __init__(self, chunk, pl_trainer_kwargs=None):
        pass

class Forecaster(Base):  # As those of darts.
    def __init__(self, chunk, layers=2, **kwargs):
        super().__init__(chunk, **kwargs)

    @timed
    def fit(self, series):
        return Trainer().fit(self)

class Estimator:  # As those of GluonTS.
    @timed
    def __init__(self, trainer_kwargs=None):
        pass

    def train(self, series):
        return Trainer().fit(self)

class Net:  # As those of neuralforecast.
    def __init__(self, h, **trainer_kwargs):
        pass

    def fit(self):
        return Trainer().fit(self)

class Forecasts:
    def __init__(self, models):
        self.models = models

    def fit(self, df):
        return self.models[0].fit()

class Cells:  # As those of scvi-tools.
    def train(self, max_epochs=None, **trainer_kwargs):
        return Trainer().fit(self)

class Own:
    def __init__(self, trainer):
        self.trainer = trainer

    def run(self):
        return self.trainer.fit(self)
"""


def library(name: str, text: str, **more: Any) -> dict[str, Any]:
    """A module as if it were installed."""
    made = {"__name__": name, **more}
    exec(compile(text, f"/lib/site-packages/{name}.py", "exec"), made)
    return made


@pytest.fixture
def kit() -> dict[str, Any]:
    lightning = library("lightning.pytorch.trainer", LIGHTNING, ask=lambda: lightning_takers(sys._getframe(1)))
    return library("kit", KIT, Trainer=lightning["Trainer"])


PRECISION = {"precision": "precision"}


@pytest.mark.parametrize(
    ("train", "takers"),
    [
        (lambda kit: kit["Forecaster"](24).fit([1]), [Taker("Forecaster", PRECISION, within="pl_trainer_kwargs")]),
        (lambda kit: kit["Estimator"]().train([1]), [Taker("Estimator", PRECISION, within="trainer_kwargs")]),
        (lambda kit: kit["Forecasts"]([kit["Net"](12)]).fit(1), [Taker("Net", PRECISION)]),
        (lambda kit: kit["Cells"]().train(max_epochs=3), [Taker("", PRECISION)]),
        (lambda kit: kit["Own"](kit["Trainer"]()).run(), []),
        (lambda kit: kit["Trainer"]().fit(None), []),
    ],
    ids=["a dict", "a dict of a wrapped class", "all the rest", "the function", "nothing", "no library between"],
)
def test_what_takes_arguments_of_lightning_s_trainer(
    kit: dict[str, Any], train: Callable[[dict[str, Any]], Any], takers: list[Taker]
) -> None:
    assert train(kit) == takers


def test_a_line_of_the_user_s_makes_its_own_loader() -> None:
    assert takers_of(sys._getframe(), object(), {}) is None


NET = f"""{TIMED}
from torch.utils.data import DataLoader, Dataset, Subset

class Net:  # As those of skorch.
    @timed
    def fit(self, X, y=None):
        return self.loader_of(Subset(Subset(X, range(2)), range(1)))

    def loader_of(self, rows):
        return ask(DataLoader(rows))

class Keeping(Net):
    def __init__(self, batch_size, rows=None):
        self.rows = rows

    def train(self):
        return self.loader_of(self.rows)

class Starting(Net):
    def __init__(self, *, rows):
        self.told = self.loader_of(rows)

class Own(Dataset):
    def __len__(self):
        return 4
"""


class Rows(Dataset[int]):
    def __len__(self) -> int:
        return 4


@pytest.fixture
def net() -> dict[str, Any]:
    return library("net", NET, ask=lambda loader: dataset_takers_of(sys._getframe(1), loader))


X = {"dataset": "X"}
ROWS = {"dataset": "rows"}


@pytest.mark.parametrize(
    ("train", "takers"),
    [
        (lambda net: net["Net"]().fit(Rows()), [Taker("", X, {"dataset": 0}, called="fit")]),
        (lambda net: net["Keeping"](8, Rows()).train(), [Taker("Keeping", ROWS, {"dataset": 1})]),
        (lambda net: net["Starting"](rows=Rows()).told, [Taker("", ROWS, called="Starting")]),
        (lambda net: net["ask"](net["DataLoader"](Rows())), []),
    ],
    ids=["a function", "an object", "a class that makes it", "the user's line"],
)
def test_what_is_given_the_dataset(
    net: dict[str, Any], train: Callable[[dict[str, Any]], Any], takers: list[Taker]
) -> None:
    assert train(net) == takers


def test_nothing_is_told_of_a_library_s_own_datasets(net: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("net")
    module.__file__ = "/lib/site-packages/net.py"
    monkeypatch.setitem(sys.modules, "net", module)
    assert net["Net"]().fit(net["Own"]()) == []


def test_a_class_that_hands_nothing_on_has_nothing_from_above() -> None:
    made = library(
        "kit", "class Above:\n    def __init__(self, a=1): pass\nclass Below(Above):\n    def __init__(self, b): pass\n"
    )
    assert taken_by(made["Below"]).places == {"b": 0}
    assert looked_up(made["Below"]) == []


def test_what_a_function_holds_is_not_kept_alive() -> None:
    class Rows:
        pass

    made = library("kit", "def use(rows, look):\n    look()\n    rows = None\n    return there()\n")
    held: list[Any] = []
    rows: Any = Rows()
    there = weakref.ref(rows)
    made["there"] = there
    handed = [rows]
    del rows

    def look() -> None:
        held.append(sorted(given_to(sys._getframe(1))))

    left = made["use"](handed.pop(), look)  # An assertion would hold the arguments.
    assert left is None
    assert held == [["look", "rows"]]


def test_what_was_seen_comes_over_the_wire() -> None:
    found = Found(
        rung="optimizer",
        period=1,
        periodic=True,
        step_seconds=[],
        wait_seconds=[],
        samples_per_step=1.0,
        device="cpu",
        usable_cpus=2,
        threads=2,
        has_loader=True,
        dataset_takers=[Taker("", X, called="fit")],
        loader_takers=[Taker(), Taker("Trainer", {"num_workers": "num_workers"}, {"num_workers": 3})],
        trainer_takers=[Taker("", PRECISION, within="trainer_kwargs")],
    )
    assert decode(encode(found)) == found
