"""A sampler whose batches are made of several batches of another one."""

from __future__ import annotations

from typing import Any, Iterator, List


class Joined:
    """A sampler of batches that are made of `times` batches of another one each."""

    def __init__(self, batches: Any, times: int) -> None:
        self._batches = batches
        self.times = times

    def of(self, batches: Any) -> Joined:
        """The same of other batches."""
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
