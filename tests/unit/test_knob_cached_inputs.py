"""What the transforms get is kept: the same samples for the same random numbers, or a word why not."""

from __future__ import annotations

import copy
import os
import pickle
import random
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset
from torchvision import transforms

from bottleneck_doctor.edits import kept_inputs
from bottleneck_doctor.runtime.knobs import cached_inputs, shape
from bottleneck_doctor.runtime.knobs._inputs import Inputs, Kept, finished
from bottleneck_doctor.runtime.knobs._samples import alike
from bottleneck_doctor.runtime.knobs._tail import WithoutTail
from bottleneck_doctor.runtime.knobs.cached_inputs import NAME, look

CHAIN = [transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.2,) * 3)]


def decoded(index: int) -> Any:
    """A picture that takes a while to make."""
    noise = numpy.random.default_rng(index).standard_normal((96, 96, 3))
    for _ in range(3):
        noise = numpy.sort(noise, axis=0)
    return Image.fromarray(numpy.uint8(numpy.clip(64 * noise + 128, 0, 255))).resize((8, 8))


class Pictures(Dataset[Any]):
    def __init__(self, transform: Any, made: Callable[[int], Any] = decoded, count: int = 10) -> None:
        self.transform = transform
        self.made = made
        self.count = count
        self.pair: Any = None

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.made(index)), index


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    yield
    cached_inputs._source.clear()
    cached_inputs._kept.clear()


def epoch(loader: Any) -> list[Any]:
    random.seed(3)
    torch.manual_seed(3)
    return list(loader)


def in_the_window(loader: Any, **more: Any) -> Any:
    shadow = copy.copy(loader)
    shape(shadow, {**more, NAME: True})
    return shadow


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("wrapped", ["plain", "subset", "two"])
def test_samples_are_the_same_for_the_same_random_numbers(wrapped: str, workers: int) -> None:
    made = Pictures(transforms.Compose(CHAIN))
    data: Any = {"plain": made, "subset": Subset(made, range(1, 9)), "two": ConcatDataset([made, made])}[wrapped]
    loader: Any = DataLoader(data, batch_size=2, num_workers=workers)
    told = look(loader)
    assert told["obstacle"] == ""
    assert told["samples"] == len(data)
    assert 8 * 8 * 3 * len(data) <= told["bytes"] < 4096 * len(data)
    changed = in_the_window(loader)
    assert isinstance(changed.dataset, Kept)
    assert len(changed.dataset) == len(data)
    inputs = Inputs(data, changed.dataset.chains)
    whole = Kept([inputs[index] for index in range(len(data))], len(data), changed.dataset.chains)
    changed.__dict__["dataset"] = whole
    for one, other in zip(epoch(loader), epoch(changed), strict=True):
        assert torch.equal(one[0], other[0])
        assert torch.equal(one[1], other[1])


def at(place: str, name: str = "", made: str = "{}") -> dict[str, str]:
    return {"name": name, "place": place, "made": made}


def test_how_a_user_would_write_it_is_told() -> None:
    def held(data: Any) -> Any:
        told = look(DataLoader(data, batch_size=2))
        assert told["obstacle"] == ""
        return told["held"]

    class Keyed(Pictures):
        def __getitem__(self, index: int) -> Any:
            return {"label": index, "image": self.transform(self.made(index))}

    class Alone(Pictures):
        def __getitem__(self, index: int) -> Any:
            return self.transform(self.made(index))

    class Elsewhere(Pictures):
        """As torchvision's own: `transform` holds the chain, and what the samples go through holds it, too."""

        def __init__(self, transform: Any) -> None:
            super().__init__(transform)
            self.both = [transform]

        def __getitem__(self, index: int) -> Any:
            return self.both[0](self.made(index)), index

    class Preset:
        def __init__(self, transforms: Any) -> None:
            self.transforms = transforms

        def __call__(self, picture: Any) -> Any:
            return self.transforms(picture)

    chain = transforms.Compose(CHAIN)
    plain = {"owner": "", "name": "transform", "kind": "tuple", "places": [at("[0]")]}
    made = Pictures(chain)
    assert held(made) == plain
    assert made.transform is chain
    assert held(Subset(made, range(1, 9))) == {**plain, "owner": ".dataset"}
    assert held(Keyed(chain)) == {**plain, "kind": "dict", "places": [at("['image']")]}
    assert held(Alone(chain)) == {**plain, "kind": "", "places": [at("")]}
    # torchvision's own scripts have a class of presets around the chain, and its datasets one more around that.
    preset = Preset(chain)
    assert held(Pictures(preset)) == {**plain, "name": "transform.transforms"}
    assert preset.transforms is chain
    assert held(Subset(Pictures(preset), range(1, 9))) == {**plain, "owner": ".dataset", "name": "transform.transforms"}
    both = Pictures(preset)
    both.pair = types.SimpleNamespace(transform=chain)
    assert held(both) == {**plain, "name": "transform.transforms"}
    # Two data sets hold it; and there it is not the attribute that samples go through.
    assert held(ConcatDataset([made, made])) is None
    assert held(Elsewhere(chain)) is None


def by_name(**augmented: Any) -> Any:
    """A chain of albumentations, which asks for a newer version of itself when it is imported."""
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
    library = pytest.importorskip("albumentations")
    chain = [library.HorizontalFlip(p=0.5), library.RandomBrightnessContrast(p=0.5), library.Normalize()]
    return library.Compose([*chain, library.pytorch.ToTensorV2()], seed=5, **augmented)


class Masked(Pictures):
    """Its chain is given a picture and a mask by name."""

    def __getitem__(self, index: int) -> Any:
        picture = numpy.asarray(self.made(index))
        made = self.transform(image=picture, mask=picture[:, :, 0] // 128)
        return made["image"], {"index": index}, made["mask"].float().unsqueeze(0)


class OnlyPictures(Pictures):
    def __getitem__(self, index: int) -> Any:
        return self.transform(image=numpy.asarray(self.made(index)))["image"]


@pytest.mark.parametrize("kind", [Masked, OnlyPictures])
def test_a_chain_is_given_its_values_by_name(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Beside other tests, what is opened may seem to take no time.
    monkeypatch.setattr(cached_inputs, "LEAST_SHARE", 0.0)
    data = kind(by_name())
    alone = kind(by_name())
    loader: Any = DataLoader(data, batch_size=2)
    told = look(loader)
    assert told["obstacle"] == ""
    masked = [at("[0]", "image"), at("[2]", "mask", "{}.float().unsqueeze(0)")]
    places, sample = (masked, "tuple") if kind is Masked else ([at("", "image")], "")
    assert told["held"] == {"owner": "", "name": "transform", "kind": sample, "places": places}
    # Looking at samples drew no number of the chain's own generators.
    kept = Kept([Inputs(data, [data.transform])[index] for index in range(len(data))], len(data), [data.transform])
    for _ in range(2):
        for index in range(len(data)):
            assert alike(kept[index], alone[index])
    assert isinstance(in_the_window(loader).dataset, Kept)


def test_what_a_chain_is_given_and_nobody_gets_can_not_be_written() -> None:
    class Forgotten(Masked):
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index)[0]

    class Twice(Masked):
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index)[0], super().__getitem__(index)[2]

    for data in (Forgotten(by_name()), Twice(by_name())):
        told = look(DataLoader(data, batch_size=2))
        assert (told["obstacle"], told["held"]) == ("", None)


def rows(transform: Any, count: int = 10, **given: Any) -> Any:
    """Pictures of the library `datasets`, and its transform, which gets batches of them."""
    library = pytest.importorskip("datasets")
    data = library.Dataset.from_list(
        [{"image": decoded(index).resize((200, 200)), "label": index} for index in range(count)],
        features=library.Features({"image": library.Image(), "label": library.Value("int64")}),
    )
    return data.with_transform(transform, **given)


def flipped(batch: Any) -> Any:
    longest = max(batch["label"])
    chain = transforms.Compose([transforms.RandomCrop(8), *CHAIN])
    return {
        "pixels": [chain(each) for each in batch["image"]],
        "padded": [torch.nn.functional.pad(torch.ones(each), (0, longest - each)) for each in batch["label"]],
    }


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_of_the_library_datasets_are_transformed_in_batches(workers: int) -> None:
    data = rows(flipped)
    loader: Any = DataLoader(data, batch_size=4, num_workers=workers)
    told = look(loader)
    assert told["obstacle"] == ""
    assert told["samples"] == 10
    assert told["bytes"] >= 10 * 200 * 200 * 3
    assert told["held"] == {"owner": "", "name": "", "kind": "rows", "places": []}
    changed = in_the_window(loader)
    kept = changed.dataset
    assert isinstance(kept, Kept)
    assert len(kept) == 10
    inputs = cached_inputs.inputs_of(data, kept.chains)
    changed.__dict__["dataset"] = type(kept)([inputs[index] for index in range(10)], 10, kept.chains)
    for one, other in zip(epoch(loader), epoch(changed), strict=True):
        assert list(one) == list(other)
        assert all(torch.equal(one[name], other[name]) for name in one)
    torch.manual_seed(1)
    alone = data[3]
    torch.manual_seed(1)
    assert alike(changed.dataset[3], alone)


def test_rows_that_are_not_given_whole_or_to_no_function_are_left_alone() -> None:
    for data in (rows(flipped, columns=["image"], output_all_columns=True), rows(flipped).with_format("torch")):
        assert "no chain of transforms" in look(DataLoader(data, batch_size=2))["obstacle"]


def test_what_is_done_afterwards_is_done_again() -> None:
    class Halved(Pictures):
        def __getitem__(self, index: int) -> Any:
            made, label = super().__getitem__(index)
            return (made.to(self.kind) / 2).reshape(3, -1), label

        kind: Any = None

    data = Halved(transforms.Compose(CHAIN))
    data.kind = torch.float64
    told = look(DataLoader(data, batch_size=2))
    assert (told["obstacle"], told["held"]) == ("", None)  # `torch` may have another name there.
    data.kind = "cpu"
    told = look(DataLoader(data, batch_size=2))
    assert told["held"]["places"] == [at("[0]", made="({}.to('cpu') / 2).reshape(3, -1)")]
    kept = Kept([Inputs(data, [data.transform])[1]], 1, [data.transform])
    torch.manual_seed(2)
    again, _ = kept[0]
    torch.manual_seed(2)
    assert torch.equal(again, data[1][0])


def test_two_views_of_a_picture_are_drawn_each_time() -> None:
    class Twice:
        def __init__(self, chain: Any) -> None:
            self.chain = chain

        def __call__(self, picture: Any) -> Any:
            return [self.chain(picture), self.chain(picture)]

    chain = transforms.Compose([transforms.RandomCrop(4), *CHAIN])
    loader: Any = DataLoader(Pictures(Twice(chain)), batch_size=2)
    told = look(loader)
    assert (told["obstacle"], told["held"]) == ("", None)
    kept = in_the_window(loader).dataset
    torch.manual_seed(1)
    views, _ = kept[0]
    torch.manual_seed(1)
    first, second = chain(decoded(0)), chain(decoded(0))
    assert [torch.equal(*pair) for pair in zip(views, (first, second), strict=True)] == [True, True]


def test_with_the_transforms_of_whole_batches_beside_it() -> None:
    loader: Any = DataLoader(Pictures(transforms.Compose(CHAIN)), batch_size=5)
    assert look(loader)["obstacle"] == ""
    from bottleneck_doctor.runtime.knobs import batched_transforms

    assert batched_transforms.look(loader)["obstacle"] == ""
    changed = in_the_window(loader, batched_transforms=True)
    assert isinstance(changed.dataset, WithoutTail)
    assert isinstance(changed.dataset._doctor_dataset, Kept)
    assert next(iter(changed))[0].dtype is torch.float32
    assert changed.dataset[0][0].dtype is torch.uint8
    batched_transforms._places.clear()


class _Random(Pictures):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(random.randrange(len(self)))


class _Uneven(Pictures):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(random.SystemRandom().randrange(len(self)))


class _AndMore(Pictures):
    def __getitem__(self, index: int) -> Any:
        made, label = super().__getitem__(index)
        return [made, made] if isinstance(made, torch.Tensor) else made, label


class _OfItsShape(Pictures):
    def __getitem__(self, index: int) -> Any:
        made, label = super().__getitem__(index)
        return made.view(*made.shape[:1], -1), label


class _WithLabels(Pictures):
    def __getitem__(self, index: int) -> Any:
        made, label = super().__getitem__(index)
        return (made / 2).view(-1).add(torch.ones(1)), label


class _Rows(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield from range(4)


def _draws_on(picture: Any) -> Any:
    picture.putpixel((0, 0), picture.getpixel((0, 0))[0] // 2)
    return picture


QUICK = [Image.new("RGB", (512, 512)) for _ in range(10)]
"""So large that a moment given to another program is no large part of what transforming them takes."""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (_Random(transforms.Compose(CHAIN)), "drawn at random before"),
        (_Uneven(transforms.Compose(CHAIN), count=1000), "is not the same each time"),
        (_AndMore(transforms.Compose(CHAIN)), "something else is done"),
        (_OfItsShape(transforms.Compose(CHAIN)), "could not be taken without"),
        (_WithLabels(transforms.Compose(CHAIN)), "could not be taken without"),
        (Pictures(transforms.Compose([transforms.Lambda(_draws_on), *CHAIN])), "change what they are given"),
        (Pictures(transforms.Compose(CHAIN), QUICK.__getitem__), "goes into its transforms"),
        (Pictures(torch.tensor), "no chain of transforms"),
        (_Rows(), "an iterable dataset"),
    ],
)
def test_a_loader_whose_inputs_could_not_be_kept(data: Any, why: str) -> None:
    loader: Any = DataLoader(data, batch_size=4)
    assert why in look(loader)["obstacle"]
    assert in_the_window(loader).dataset is data


class KeptInputs(Pictures):
    """As the edit writes it."""


def test_what_the_edit_has_written_is_already_on() -> None:
    data = KeptInputs(transforms.Compose(CHAIN))
    assert look(DataLoader(data, batch_size=4))["obstacle"].startswith("already on: `KeptInputs`")
    assert KeptInputs.__name__ == kept_inputs.NAME


def test_samples_that_take_long_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def noted(index: int) -> Any:
        asked.append(index)
        return decoded(index)

    # How its time is divided is not asked here, and other tests beside this one change it.
    monkeypatch.setattr(cached_inputs, "LEAST_SHARE", 0.0)
    loader: Any = DataLoader(Pictures(transforms.Compose(CHAIN), noted), batch_size=4)
    assert look(loader)["obstacle"] == ""
    assert len(set(asked)) >= 2
    asked.clear()
    monkeypatch.setattr(cached_inputs, "SLOW_SECONDS", 0.0)
    assert look(loader)["obstacle"] == ""
    assert set(asked) == {0}


def test_looking_draws_no_random_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_inputs, "LEAST_SHARE", 0.0)
    torch.manual_seed(5)
    random.seed(5)
    before = torch.get_rng_state(), random.getstate()
    assert look(DataLoader(Pictures(transforms.Compose(CHAIN)), batch_size=4))["obstacle"] == ""
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


def test_an_evaluation_that_shares_the_chain_gets_its_transforms_meanwhile() -> None:
    chain = transforms.Compose(CHAIN[1:])
    inside, go_on = threading.Event(), threading.Event()

    def waiting(index: int) -> Any:
        inside.set()
        assert go_on.wait(20)
        return decoded(index)

    inputs = Inputs(Pictures(chain, waiting), [chain])
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(inputs[0]))
    thread.start()
    assert inside.wait(20)
    evaluated, _ = Pictures(chain)[0]
    go_on.set()
    thread.join()
    assert evaluated.dtype is torch.float32
    assert torch.equal(finished(found[0], [chain])[0], evaluated)
    assert chain.transforms == CHAIN[1:]


def test_what_is_kept_goes_to_workers_that_are_spawned() -> None:
    chain = transforms.Compose(CHAIN[1:])
    kept = Kept([Inputs(Pictures(chain), [chain])[3]], 10, [chain])
    again = pickle.loads(pickle.dumps(kept))
    assert torch.equal(again[0][0], Pictures(chain)[3][0])
