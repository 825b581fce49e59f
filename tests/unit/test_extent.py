"""How long a program says that it will train: loops of all kinds, run here, asked at one of their steps."""

from __future__ import annotations

import itertools
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from bottleneck_doctor.runtime.loop.extent import UNKNOWN, Extent, extent_of

numbers = itertools.count()


class _Enough(Exception):
    pass


class Loader:
    """Gives batches without an end of its own making: `batches` an epoch. Asks at the one numbered `at`."""

    def __init__(self, at: int, batches: int) -> None:
        self.at, self.batches, self.taken = at, batches, 0
        self.seen: Extent | None = None

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[int]:
        return _Batches(self)

    def step(self, depth: int = 1) -> None:
        """A batch is asked for, or an optimizer steps."""
        if self.taken == self.at:
            self.seen = extent_of(sys._getframe(depth), self.taken)
            raise _Enough
        self.taken += 1


class _Batches:
    def __init__(self, loader: Loader) -> None:
        self.loader, self.left = loader, loader.batches

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> int:
        if not self.left:
            raise StopIteration
        self.left -= 1
        self.loader.step(2)
        return self.left


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., Extent]:
    """Runs a program, and returns what it said when its loader was asked for a batch."""

    def ask(program: str, *, at: int = 7, batches: int = 5, **names: Any) -> Extent:
        file = tmp_path / f"program_{next(numbers)}.py"
        text = textwrap.dedent(program)
        file.write_text(text)
        linecache.checkcache()
        loader = Loader(at, batches)
        names = {"__name__": "__main__", "loader": loader, "step": loader.step, **names}
        with pytest.raises(_Enough):
            exec(compile(text, str(file), "exec"), names)
        assert loader.seen is not None
        return loader.seen

    return ask


class Options:
    """As argparse and dataclasses hold them."""

    shown = 4

    def __init__(self) -> None:
        self.epochs = 30

    @property
    def computed(self) -> int:
        return 30


EPOCHS = [
    ("for epoch in range(20):\n    for batch in loader:\n        pass", 20),
    ("for epoch in range(1, 20 + 1):\n    for i, batch in enumerate(loader):\n        pass", 20),
    ("for epoch in range(args.epochs):\n    for batch in loader:\n        pass", 30),
    ("for epoch in range(args.shown):\n    for batch in loader:\n        pass", 4),
    ("n = 6\nfor epoch in range(2, n):\n    for batch in loader:\n        pass", 4),
    ("c = {'t': {'epochs': 9}}\nfor e in range(c['t']['epochs']):\n    for b in loader:\n        pass", 9),
    ("for epoch in range(10, -1, -1):\n    for batch in loader:\n        pass", 11),
    ("for epoch in range(int('11')):\n    for batch in loader:\n        pass", 11),
    ("rates = [0.1] * 8\nfor rate in rates:\n    for batch in loader:\n        pass", 8),
    ("rates = [0.1] * 8\nfor e, rate in enumerate(rates):\n    for batch in loader:\n        pass", 8),
    ("rates = [0.1] * 8\nfor e in range(len(rates)):\n    for batch in loader:\n        pass", 8),
    ("for fold in range(5):\n    for epoch in range(4):\n        for batch in loader:\n            pass", 20),
    ("for batch in loader:\n    pass\nfor batch in loader:\n    pass", 1),
    ("for epoch in range(3):\n    for batch in loader:\n        for again in range(10):\n            pass", 3),
    ("def train(loader):\n    for batch in loader:\n        pass\nfor epoch in range(12):\n    train(loader)", 12),
    (
        "def seen(x):\n    for one in x:\n        yield one\n"
        "for e in range(12):\n    for b in seen(loader):\n        pass",
        12,
    ),
    (
        "import functools\ndef train(e):\n    for b in loader:\n        pass\nfor e in range(12):\n"
        "    functools.reduce(lambda a, b: train(e), [1, 2])",
        12,
    ),
]


@pytest.mark.parametrize(("program", "epochs"), EPOCHS)
def test_loops_around_the_loader_count_epochs(program: str, epochs: int, asked: Callable[..., Extent]) -> None:
    assert asked(program, args=Options())._replace(may_end_sooner=False) == Extent(epochs=epochs)


def test_a_configuration_of_omegaconf(asked: Callable[..., Extent]) -> None:
    omegaconf = pytest.importorskip("omegaconf")
    made = omegaconf.OmegaConf.create({"train": {"epochs": 9, "again": "${train.epochs}"}})
    loop = "for epoch in range({}):\n    for batch in loader:\n        pass"
    assert asked(loop.format("cfg.train.epochs"), cfg=made) == Extent(epochs=9)
    assert asked(loop.format("cfg['train']['epochs']"), cfg=made) == Extent(epochs=9)
    assert asked(loop.format("int(cfg.train.again)"), cfg=made) == UNKNOWN


def test_a_wrapper_of_progress_hands_its_range_on(asked: Callable[..., Extent]) -> None:
    program = "for epoch in trange(15, desc='e'):\n    for batch in tqdm(loader):\n        pass"
    assert asked(program, trange=lambda n, desc: range(n), tqdm=lambda x: x) == Extent(epochs=15)


STEPS = [
    ("for i in range(1000):\n    step()", 1, 1000),
    ("for i in range(100):\n    step()\n    step()", 1, 200),
    ("for i in range(100):\n    for micro in range(4):\n        step()", 1, 400),
    ("it = iter(loader)\nfor i in range(1000):\n    batch = next(it)", 50, 1000),
    ("def one():\n    step()\nfor i in range(1000):\n    one()", 1, 1000),
]


@pytest.mark.parametrize(("program", "batches", "steps"), STEPS)
@pytest.mark.parametrize("at", [20, 21, 22, 23, 24])
def test_where_no_loop_is_over_the_loader_turns_count_steps(
    program: str, batches: int, steps: int, at: int, asked: Callable[..., Extent]
) -> None:
    assert asked(program, at=at, batches=batches) == Extent(steps=steps)


UNTIL = [
    ("i = 0\nwhile i < 300:\n    step()\n    i += 1", 300),
    ("i = 1\nwhile i <= 300:\n    step()\n    i += 1", 300),
    ("i = 0\nwhile True:\n    step()\n    i += 1\n    if i > args.epochs:\n        break", 31),
    ("i = 0\nwhile 1:\n    if i >= args.epochs:\n        break\n    step()\n    step()\n    i += 1", 60),
    ("i = 0\nwhile i < 300:\n    for micro in range(4):\n        step()\n    i += 1", 1200),
    ("for i in range(0, data.size(0) - 1, 2):\n    step()", 500),
    ("for i in range(len(data)):\n    step()", 1000),
]


@pytest.mark.parametrize(("program", "steps"), UNTIL)
def test_counters_and_sizes_of_tensors(program: str, steps: int, asked: Callable[..., Extent]) -> None:
    assert asked(program, at=21, args=Options(), data=torch.zeros(1000)) == Extent(steps=steps)


def test_a_counter_of_epochs_is_trusted_in_its_first_one(asked: Callable[..., Extent]) -> None:
    program = "epoch = 0\nwhile epoch < 10:\n    for batch in loader:\n        pass\n    epoch += 1"
    assert asked(program, at=3) == Extent(epochs=10)
    assert asked(program, at=7) == UNKNOWN


NOT_TOLD = [
    "i = 50\nwhile i < 300:\n    step()\n    i += 1",
    "i = 0\nwhile i < 300:\n    step()\n    i += 2",
    "i = 0\nwhile i < 300:\n    step()\n    i += 1\n    i += 1",
    "i = 0\nwhile i < 300:\n    step()\n    if good:\n        i += 1\n    else:\n        i += 1",
    "i, n = 0, 300\nwhile i < n:\n    step()\n    i += 1\n    n = n - 1",
    "i = 0\nwhile go():\n    step()\n    i += 1",
    "for epoch in count():\n    for batch in loader:\n        pass",
    "for epoch in range(read()):\n    for batch in loader:\n        pass",
    "for epoch in range(args.computed):\n    for batch in loader:\n        pass",
    "n = 5\nfor epoch in range(n):\n    for batch in loader:\n        pass\n    n = n + 1",
    "for epoch in range(10):\n    [batch for batch in loader]",
    "for epoch in range(10):\n    for batch in loader: pass",
    "def forever():\n    while True:\n        for b in loader:\n            yield b\nfor batch in forever():\n    pass",
    "for i in range(100):\n    for again in range(i % 3 + 1):\n        step()",
    "step(); step(); step(); step(); step(); step(); step(); step()",
]


@pytest.mark.parametrize("program", NOT_TOLD)
def test_what_is_not_certain_is_not_told(program: str, asked: Callable[..., Extent]) -> None:
    names = {"count": itertools.count, "read": lambda: 10, "args": Options(), "good": True, "go": lambda: True}
    assert asked(program, **names) == UNKNOWN


def test_a_loader_that_is_cycled_tells_nothing(asked: Callable[..., Extent]) -> None:
    program = "for epoch in range(10):\n    for batch in cycle(loader):\n        pass"
    assert asked(program, at=3, cycle=itertools.cycle) == UNKNOWN


LEFT = [
    "for epoch in range(9):\n    for batch in loader:\n        pass\n    if good:\n        break",
    "for epoch in range(9):\n    for batch in loader:\n        if good:\n            break",
    "def main():\n    for e in range(9):\n        for b in loader:\n            pass\n"
    "        if good:\n            return\nmain()",
    "for epoch in range(9):\n    for batch in islice(loader, 4):\n        pass",
]


@pytest.mark.parametrize("program", LEFT)
def test_a_loop_that_can_be_left_may_end_sooner(program: str, asked: Callable[..., Extent]) -> None:
    assert asked(program, at=3, good=False, islice=itertools.islice) == Extent(epochs=9, may_end_sooner=True)


def test_a_break_of_another_loop_ends_nothing_sooner(asked: Callable[..., Extent]) -> None:
    program = """
        for epoch in range(9):
            for batch in loader:
                for word in "ab":
                    break
                def inner():
                    return 1
    """
    assert asked(program) == Extent(epochs=9)


def test_a_library_that_may_loop_around_the_user_tells_nothing(tmp_path: Path, asked: Callable[..., Extent]) -> None:
    folder = tmp_path / "site-packages" / "driver"
    folder.mkdir(parents=True)
    text = "def drive(train):\n    for epoch in range(3):\n        train()\n"
    names: dict[str, Any] = {}
    exec(compile(text, str(folder / "driver.py"), "exec"), names)
    program = "def train():\n    for batch in loader:\n        pass\ndrive(train)"
    assert asked(program, drive=names["drive"]) == UNKNOWN
    exec(compile(text, str(tmp_path / "site-packages" / "click" / "core.py"), "exec"), names)
    assert asked(program, at=3, drive=names["drive"]) == Extent(epochs=1)


def test_a_source_that_is_not_there_tells_nothing() -> None:
    loader = Loader(2, 5)
    with pytest.raises(_Enough):
        exec(
            compile("for e in range(3):\n    for b in loader:\n        pass", "/nowhere/gone.py", "exec"),
            {"loader": loader},
        )
    assert loader.seen == UNKNOWN


def test_nothing_that_a_function_lets_go_is_kept_alive(asked: Callable[..., Extent]) -> None:
    """A copy of its locals in the frame would hold a step's tensors for as long as the training runs."""
    program = """
        import weakref
        class Batch:
            pass
        def train(epochs):
            kept = Batch()
            seen = weakref.ref(kept)
            for epoch in range(epochs):
                ask()
                kept = None
                assert seen() is None
                for batch in loader:
                    pass
        train(6)
    """
    answers: list[Extent] = []

    def ask() -> None:
        answers.append(extent_of(sys._getframe(1), 10))

    assert asked(program, ask=ask) == Extent(epochs=6)
    assert len(answers) == 2


def test_what_a_function_asked_of_its_locals_is_left_alone(asked: Callable[..., Extent]) -> None:
    program = """
        def train(epochs):
            config = locals()
            for epoch in range(epochs):
                for batch in loader:
                    assert list(config) == ["epochs"]
        train(6)
    """
    assert asked(program) == UNKNOWN


def test_a_function_that_evaluates_its_model_tells_how_long_it_trains(asked: Callable[..., Extent]) -> None:
    """`model.eval()` is no call of `eval`, which would read the function's locals."""
    program = """
        def train(model, epochs):
            for epoch in range(epochs):
                model.train()
                for batch in loader:
                    pass
                model.eval()
        train(torch.nn.Linear(2, 2), 6)
    """
    assert asked(program, torch=torch) == Extent(epochs=6)
    assert asked(program.replace("model.eval()", "eval('epoch')"), torch=torch) == UNKNOWN


def test_the_owner_of_a_method_is_not_kept_either(asked: Callable[..., Extent]) -> None:
    program = """
        import weakref
        class Trainer:
            def fit(self, held):
                seen = weakref.ref(held)
                for epoch in range(4):
                    for batch in loader:
                        del held
                        held = 1
                        assert seen() is None
        class Held:
            pass
        Trainer().fit(Held())
    """
    assert asked(program, at=0) == Extent(epochs=4)
