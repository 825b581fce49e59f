"""Samplers whose batches are made of those of another one."""

from __future__ import annotations

from typing import Any, Iterator, List


class Rebatched:
    """A sampler each of whose batches takes `times` batches of another one. It goes on with any that it is given: a
    window puts one there that goes on where the last window ended."""

    times = 1

    def of(self, batches: Any) -> Rebatched:
        """The same of other batches."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[List[Any]]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class Joined(Rebatched):
    """Batches that are made of `times` batches of another sampler each."""

    def __init__(self, batches: Any, times: int) -> None:
        self._batches = batches
        self.times = times

    def of(self, batches: Any) -> Joined:
        return Joined(batches, self.times)

    def __iter__(self) -> Iterator[List[Any]]:
        together: List[Any] = []
        for number, batch in enumerate(self._batches, 1):
            together += batch
            if number % self.times == 0:
                yield together
                together = []
        if together:
            yield together

    def __len__(self) -> int:
        return -(-len(self._batches) // self.times)
