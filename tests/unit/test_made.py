"""Where a transform is made: the user's line, and none where more than one could be meant."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bottleneck_doctor.runtime.modes import made
from bottleneck_doctor.runtime.modes.reach import find

pytest.importorskip("torchvision")

HEAD = """
import functools
import torch
from torch.utils.data import Dataset
from torchvision import transforms
from torchvision.transforms import RandomRotation as Turned, functional
from torchvision.transforms import v2

class Rows(Dataset):
    def __init__(self, transform, train=True):
        self.transform, self.train = transform, train
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return self.transform(index)

class Blur:
    def __call__(self, sample):
        return sample
"""
Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Runs a source as a module of the user's; every line that ends in `# it` is one that shall be found."""
    names = []

    def load(text: str, name: str = "made_here") -> Any:
        path = tmp_path / f"{name}.py"
        path.write_text(HEAD + textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        names.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in set(names):
        del sys.modules[name]


def lines(module: Any, loader_file: str = "") -> dict[str, int]:
    """Where each transform of the module's `dataset` is made, by its class."""
    found = find((module.dataset,))
    sites = made.made_sites(found.groups, found.datasets, loader_file)
    every = [each for group in found.groups for each in group.elements]
    return {type(each).__name__: sites[id(each)].line for each in every if id(each) in sites}


def marked(module: Any) -> list[int]:
    text = Path(module.__file__).read_text().splitlines()
    return [number for number, line in enumerate(text, 1) if line.endswith("# it")]


FOUND = {
    "in a list": """
        dataset = Rows(transforms.Compose([
            transforms.ToTensor(),  # it
            transforms.RandomRotation(  # it
                30
            ),
        ]))
        """,
    "by another name": "dataset = Rows(transforms.Compose([Turned(30), Blur()]))  # it",
    "alone": "dataset = Rows(transforms.ToTensor())  # it",
    "alone, for training": """
        dataset = Rows(train=True, transform=transforms.ToTensor())  # it
        other = Rows(train=False, transform=transforms.ToTensor())
        """,
    "alone, for evaluation, by position": """
        other = Rows(transforms.ToTensor(), True)
        dataset = Rows(transforms.ToTensor(), False)  # it
        """,
    "in a wrapper": """
        class Wrapper(Rows):
            def __init__(self, inner, transform):
                self.inner, self.transform = inner, transform
        dataset = Wrapper(Rows(None), transforms.ToTensor())  # it
        other = Rows(transforms.ToTensor())
        """,
    "not the one in a chain": """
        other = transforms.Compose([transforms.ToTensor(), transforms.Resize(4)])
        to_tensor = transforms.ToTensor()  # it
        dataset = Rows(to_tensor)
        """,
    "in the longer chain": """
        other = transforms.Compose([transforms.Resize(4), transforms.ToTensor()])
        dataset = Rows(transforms.Compose([
            transforms.Resize(4),  # it
            Blur(),  # it
            transforms.ToTensor(),  # it
        ]))
        """,
    "told apart by an argument": """
        other = transforms.Compose([transforms.Resize(4), transforms.ToTensor()])
        dataset = Rows(transforms.Compose([transforms.Resize(8), transforms.ToTensor()]))  # it
        """,
    "two generations": """
        other = Rows(transforms.ToTensor())
        dataset = Rows(v2.ToTensor())  # it
        """,
    "beside a variable": """
        normalize = transforms.Normalize([0.5], [0.5])  # it
        dataset = Rows(transforms.Compose([
            transforms.ToTensor(),  # it
            normalize,
        ]))
        """,
    "one by one": """
        steps = []
        if True:
            steps.append(transforms.RandomRotation(30))  # it
        steps += [
            transforms.ToTensor()  # it
        ]
        steps.insert(0, Blur())  # it
        dataset = Rows(transforms.Compose(steps))
        """,
    "in a function that imports": """
        def build():
            from torchvision.transforms import ToTensor as Tensored
            return Rows(Tensored())  # it
        dataset = build()
        """,
    "a partial": """
        other = functools.partial(functional.hflip)
        dataset = Rows(functools.partial(functional.rotate, angle=30))  # it
        """,
    "arguments of a chain of the user's": """
        class Steps:
            def __init__(self, *transforms):
                self.transforms = transforms
            def __call__(self, sample):
                return sample
        dataset = Rows(Steps(
            Blur(),  # it
            transforms.ToTensor(),  # it
        ))
        """,
}


@pytest.mark.filterwarnings("ignore:The transform `ToTensor")
@pytest.mark.parametrize("kind", FOUND)
def test_the_line_that_makes_it(load: Load, kind: str) -> None:
    module = load(FOUND[kind])
    assert sorted(set(lines(module).values())) == marked(module)


NOT_FOUND = {
    "twice alike": """
        dataset = Rows(transforms.Compose([transforms.ToTensor(), Blur()]))
        other = Rows(transforms.Compose([transforms.ToTensor(), Blur()]))
        """,
    "by name": """
        dataset = Rows(getattr(transforms, "ToTensor")())
        """,
    "a class of the same name": """
        class ToTensor(Blur):
            pass
        other = Rows(ToTensor())
        dataset = Rows(getattr(transforms, "ToTensor")())
        """,
    "by a library, beside a chain of the user's": """
        library = [getattr(transforms, name) for name in ("ToTensor", "ToPILImage")]
        other = transforms.Compose([transforms.ToTensor()])
        dataset = Rows(transforms.Compose([make() for make in library]))
        """,
    "in a chain, where a lone one is asked for": """
        other = transforms.Compose([transforms.ToTensor(), transforms.Resize(4)])
        dataset = Rows(getattr(transforms, "ToTensor")())
        """,
    "a function": "dataset = Rows(functional.to_tensor)",
}


@pytest.mark.parametrize("kind", NOT_FOUND)
def test_no_line_where_more_than_one_could_be_meant(load: Load, kind: str) -> None:
    assert lines(load(NOT_FOUND[kind])) == {}


def test_of_two_files_that_which_makes_the_loader(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    # Beside all tests more files are loaded than a training has.
    monkeypatch.setattr(made, "_MOST_FILES", 10_000)
    monkeypatch.setattr(made, "_SECONDS", 60.0)
    module = load("to_tensor = transforms.ToTensor()  # it\ndataset = Rows(to_tensor)")
    load("\n\nto_tensor = transforms.ToTensor()", "made_elsewhere")
    assert lines(module) == {}
    assert lines(module, module.__file__) == {"ToTensor": marked(module)[0]}
    assert lines(module, "/another.py") == {}


def test_presets_of_libraries(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    timm = types.ModuleType("timm")
    kind = type("RandomErasing", (), {"__module__": "timm.data", "__call__": lambda self, sample: sample})
    vision = pytest.importorskip("torchvision.transforms")
    exec(
        compile("def create_transform(): return make()", "/x/site-packages/timm/data.py", "exec"),
        {"make": lambda: vision.Compose([getattr(vision, "Resize")(4), kind()])},  # noqa: B009  # a name to be found
        vars(timm),
    )
    monkeypatch.setitem(sys.modules, "timm", timm)
    once = load("import timm\ndataset = Rows(timm.create_transform())  # it\n")
    assert lines(once) == dict.fromkeys(("Resize", "RandomErasing"), marked(once)[0])
    twice = load("import timm\ndataset = Rows(timm.create_transform())\nother = timm.create_transform()\n")
    assert lines(twice) == {}
    weights = load(
        """
        from torchvision.models import ResNet18_Weights
        dataset = Rows(ResNet18_Weights.DEFAULT.transforms())  # it
        """
    )
    assert lines(weights) == {"ImageClassification": marked(weights)[0]}


def test_reading_source_is_bounded_and_never_raises(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("dataset = Rows(transforms.ToTensor())  # it")
    broken = types.ModuleType("broken")
    broken.__file__ = str(Path(module.__file__).with_name("broken.py"))
    monkeypatch.setitem(sys.modules, "broken", broken)
    Path(broken.__file__).write_text("ToTensor( = \n")
    assert lines(module) == {"ToTensor": marked(module)[0]}
    Path(broken.__file__).unlink()
    assert lines(module) == {"ToTensor": marked(module)[0]}
    monkeypatch.setattr(made, "_SECONDS", -1.0)
    assert lines(module) == {}
    monkeypatch.undo()
    monkeypatch.setattr(made, "_LARGEST", 10)
    assert lines(module) == {}
