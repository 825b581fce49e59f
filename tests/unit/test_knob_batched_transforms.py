"""The last transforms done to whole batches: the same batches in every byte, or a word why not."""

from __future__ import annotations

import copy
import pickle
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, default_collate
from torchvision import transforms
from torchvision.transforms import v2

from bottleneck_doctor.edits import transformed_batches
from bottleneck_doctor.runtime.knobs import batched_transforms, shape
from bottleneck_doctor.runtime.knobs._tail import WithoutTail, tail_of
from bottleneck_doctor.runtime.knobs.batched_transforms import NAME, look

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
AUGMENT = [transforms.RandomCrop(8, padding=2), transforms.RandomHorizontalFlip()]
LAST = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
V2 = [v2.ToImage(), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]


def picture(index: int, mode: str = "RGB") -> Any:
    made = numpy.random.default_rng(index).integers(0, 256, (8, 8, 3), dtype=numpy.uint8)
    return Image.fromarray(made).convert(mode)


class Pictures(Dataset[Any]):
    """Samples of `made(index)`, with what `transform` makes of it."""

    def __init__(self, transform: Any, made: Callable[[int], Any] = picture, count: int = 20) -> None:
        self.transform = transform
        self._made = made
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        return self.transform(self._made(index)), index


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    yield
    batched_transforms._places.clear()


def batches(loader: Any, seed: int = 3) -> list[Any]:
    random.seed(seed)
    torch.manual_seed(seed)
    return list(loader)


def in_the_window(loader: Any) -> Any:
    """The loader as a window with the knob has it."""
    shadow = copy.copy(loader)
    shape(shadow, {NAME: True})
    return shadow


def assert_same(loader: Any) -> None:
    told = look(loader)
    assert told["obstacle"] == ""
    changed = in_the_window(loader)
    assert isinstance(changed.dataset, WithoutTail)
    for one, other in zip(batches(loader), batches(changed), strict=True):
        for before, after in zip(one, other, strict=True):
            assert torch.equal(before, after)
            assert (before.dtype, before.stride()) == (after.dtype, after.stride())


def array(index: int) -> Any:
    return numpy.array(picture(index))


def gray(index: int) -> Any:
    return picture(index, "L")


class Blurred:
    """A transform that makes numbers by itself, and a picture again."""

    def __init__(self) -> None:
        self.to_numbers, self.to_picture = transforms.ToTensor(), transforms.ToPILImage()

    def __call__(self, given: Any) -> Any:
        return self.to_picture(self.to_numbers(given).clamp(max=0.9))


KINDS: dict[str, Callable[[], Dataset[Any]]] = {
    "augmented": lambda: Pictures(transforms.Compose([*AUGMENT, *LAST])),
    "only these": lambda: Pictures(transforms.Compose(LAST)),
    "numbers before": lambda: Pictures(transforms.Compose([Blurred(), *AUGMENT, *LAST])),
    "lone": lambda: Pictures(transforms.ToTensor()),
    "gray": lambda: Pictures(transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.2)]), gray),
    "arrays": lambda: Pictures(transforms.Compose(LAST), array),
    "nested": lambda: Pictures(transforms.Compose([*AUGMENT, transforms.Compose(LAST)])),
    "new ones": lambda: Pictures(v2.Compose(V2)),
    "bytes before": lambda: Pictures(
        transforms.Compose([transforms.PILToTensor(), *AUGMENT, transforms.ConvertImageDtype(torch.float32), LAST[1]])
    ),
    "subset": lambda: Subset(Pictures(transforms.Compose([*AUGMENT, *LAST])), range(1, 18)),
    "two, alike": lambda: ConcatDataset([Pictures(transforms.Compose([*AUGMENT, *LAST])) for _ in range(2)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_the_same_in_every_byte(kind: str) -> None:
    assert_same(DataLoader(KINDS[kind](), batch_size=4, shuffle=True))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_make_the_same_batches(context: str) -> None:
    data = Pictures(transforms.Compose(LAST), count=12)
    loader: Any = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context=context)
    assert look(loader)["obstacle"] == ""
    for one, other in zip(DataLoader(data, batch_size=4), in_the_window(loader), strict=True):
        assert all(torch.equal(*parts) for parts in zip(one, other, strict=True))


def test_a_model_that_looks_twice_and_a_batch_that_is_a_dictionary() -> None:
    class Twice(Pictures):
        def __getitem__(self, index: int) -> Any:
            one, other = self.transform(self._made(index)), self.transform(self._made(index))
            return {"views": [one, other], "label": index}

    loader: Any = DataLoader(Twice(transforms.Compose([*AUGMENT, *LAST])), batch_size=5)
    assert look(loader)["places"] == ["['views'][0]", "['views'][1]"]
    for one, other in zip(batches(loader), batches(in_the_window(loader)), strict=True):
        assert all(torch.equal(*views) for views in zip(one["views"], other["views"], strict=True))


def test_what_a_user_would_write_is_told() -> None:
    told = look(DataLoader(KINDS["augmented"](), batch_size=4))
    assert told == {
        "obstacle": "",
        "transforms": ["ToTensor()", "Normalize((0.5, 0.4, 0.3), (0.2, 0.25, 0.3))"],
        "instead": "PILToTensor()",
        "on_batch": ["ConvertImageDtype(torch.float32)", "Normalize((0.5, 0.4, 0.3), (0.2, 0.25, 0.3))"],
        "where": [[0]],
        "places": ["[0]"],
    }
    assert look(DataLoader(KINDS["arrays"]()))["instead"] == "v2.ToImage()"
    new = look(DataLoader(KINDS["new ones"](), batch_size=4))
    assert (new["instead"], new["on_batch"][0]) == ("", "ToDtype(torch.float32, scale=True)")


def _pairs(samples: Any) -> Any:
    return tuple(default_collate(samples))


def test_a_batch_in_which_nothing_can_be_replaced_is_told_without_a_place() -> None:
    told = look(DataLoader(KINDS["augmented"](), batch_size=4, collate_fn=_pairs))
    assert (told["obstacle"], told["places"]) == ("", [])


class _AndMore(Pictures):
    def __getitem__(self, index: int) -> Any:
        made, label = super().__getitem__(index)
        return made.flip(0), label


class _Own(Pictures):
    """Draws from a generator that nobody can put back."""

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index)[0], random.SystemRandom().random()


class _Rows(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield from range(4)


class _Fails(Pictures):
    def __getitem__(self, index: int) -> Any:
        raise OSError("it is gone")


def slow(index: int) -> Any:
    time.sleep(0.15)
    return picture(index)


def test_a_first_sample_that_imports_is_tried_once_more() -> None:
    asked: list[int] = []

    def first_imports(index: int) -> Any:
        asked.append(index)
        time.sleep(0.15 if len(asked) == 1 else 0.0)
        return picture(index)

    chain = transforms.Compose([transforms.RandomHorizontalFlip(), *LAST])
    assert look(DataLoader(Pictures(chain, first_imports), batch_size=2))["obstacle"] == ""
    assert asked[:2] == [0, 0]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (Pictures(transforms.Compose(LAST), slow), "cost next to nothing"),
        (Pictures(transforms.Compose([*LAST, transforms.RandomErasing(1.0)])), "do not end with transforms"),
        (Pictures(transforms.Compose([transforms.ToTensor(), transforms.Lambda(abs)])), "do not end with transforms"),
        (Pictures(transforms.PILToTensor()), "do not end with transforms"),
        (Pictures(transforms.RandomApply([transforms.ToTensor()], p=1.0)), "do not end with transforms"),
        (_AndMore(transforms.Compose(LAST)), "something else is done"),
        (_Own(transforms.Compose(LAST)), "not the same each time"),
        (Pictures(transforms.ToTensor(), lambda index: picture(index, "F")), "change no batch"),
        (_Rows(), "an iterable dataset"),
        (_Fails(transforms.Compose(LAST)), "failed (OSError)"),
    ],
)
def test_a_loader_whose_batches_could_not_get_them(data: Any, why: str) -> None:
    loader: Any = DataLoader(data, batch_size=4)
    assert why in look(loader)["obstacle"]
    assert in_the_window(loader).dataset is data


def transformed(samples: Any) -> Any:
    """As the edit writes it."""
    return default_collate(samples)


def test_what_the_edit_has_written_is_already_on() -> None:
    data = Pictures(transforms.PILToTensor())
    assert look(DataLoader(data, batch_size=4, collate_fn=transformed))["obstacle"].startswith(
        "already on: the loader's"
    )
    assert transformed.__name__ == transformed_batches.NAME


def test_looking_draws_no_random_number() -> None:
    torch.manual_seed(5)
    random.seed(5)
    numpy.random.seed(5)
    before = torch.get_rng_state(), random.getstate(), str(numpy.random.get_state())
    assert look(DataLoader(KINDS["augmented"](), batch_size=4))["obstacle"] == ""
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), str(numpy.random.get_state())) == before[1:]


def test_an_evaluation_that_shares_the_transforms_gets_all_of_them_meanwhile() -> None:
    chain = transforms.Compose([*AUGMENT[1:], *LAST])
    held = list(chain.transforms)
    training, inside, go_on = Pictures(chain), threading.Event(), threading.Event()

    def waiting(index: int) -> Any:
        inside.set()
        assert go_on.wait(20)
        return picture(index)

    tail = tail_of(training)
    assert tail is not None
    bare = WithoutTail(training, tail)
    training._made = waiting
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(bare[0][0]))
    thread.start()
    assert inside.wait(20)
    evaluated, _ = Pictures(chain)[0]
    go_on.set()
    thread.join()
    assert evaluated.dtype is torch.float32
    assert found[0].dtype is torch.uint8
    assert chain.transforms == held
    assert Pictures(chain)[0][0].dtype is torch.float32


def test_a_worker_may_ask_for_and_set_what_the_dataset_has() -> None:
    data = Pictures(transforms.Compose(LAST))
    tail = tail_of(data)
    assert tail is not None
    bare = WithoutTail(data, tail)
    bare.part = 3
    assert (data.part, bare._count, len(bare)) == (3, 20, 20)  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(bare))
    assert again[0][0].dtype is torch.uint8
    assert again._doctor_dataset[0][0].dtype is torch.float32


def test_whole_batches_of_indices_are_passed_on() -> None:
    class Many(Pictures):
        def __getitems__(self, indices: Any) -> Any:
            return [self[index] for index in indices]

    assert_same(DataLoader(Many(transforms.Compose([*AUGMENT, *LAST])), batch_size=4))


def test_numbers_are_no_bytes() -> None:
    """As where all samples were prepared before: what was done to them is not done twice."""
    tail = tail_of(KINDS["augmented"]())
    assert tail is not None
    with pytest.raises(TypeError, match="and not bytes"):
        tail.finished(torch.rand(2, 3, 4, 4))
