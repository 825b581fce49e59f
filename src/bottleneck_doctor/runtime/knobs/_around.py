"""A dataset that stands around another one, and fetches the same samples in another way."""

from __future__ import annotations

from typing import Any, Iterator


class Around:
    """It has all attributes of its dataset, since a `worker_init_fn` may ask for them, or set them. Its own are named
    `_doctor_...`, and are given when it is made."""

    def __init__(self, dataset: Any, **given: Any) -> None:
        own = self.__dict__
        own["_doctor_dataset"] = dataset
        own.update(given)
        if callable(getattr(dataset, "__getitems__", None)):
            own["__getitems__"] = self._fetch_many

    def _fetched(self, fetch: Any, index: Any) -> Any:
        """What `fetch`, a method of the dataset's, returns for an index or several."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        return self._fetched(self._doctor_dataset.__getitem__, index)

    def _fetch_many(self, indices: Any) -> Any:
        return self._fetched(self._doctor_dataset.__getitems__, indices)

    def __len__(self) -> int:
        return len(self._doctor_dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_doctor_")):  # While it is copied, it has no dataset yet.
            raise AttributeError(name)
        return getattr(self._doctor_dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._doctor_dataset, name, value)


def layers(dataset: Any) -> Iterator[Any]:
    """The dataset, and what stands within it, the outermost first: the last one is no `Around`."""
    yield dataset
    while isinstance(dataset, Around):
        dataset = vars(dataset)["_doctor_dataset"]
        yield dataset


def stands_around(dataset: Any, kind: type) -> bool:
    """Whether a dataset is of this kind of `Around`, or another kind around one of these."""
    return any(isinstance(each, kind) for each in layers(dataset))
