"""What was sampled in one session: a table with a row for each sample. The more a column costs to read, the less often
it is read.

Row i is valid from `times[i - 1]` (or `begun`) to `times[i]`, in seconds of the same clock as the windows' times.
Counters are stored as rates over that time, so a reading that comes once a second fills all rows since the last one.
NaN is a gap.

Columns of processes are named `role.field` with the fields of `ProcessUse`; those of a GPU `gpu0.field` with the fields
of `DeviceUse`; those of the machine by their own name.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

GAP = math.nan


class Missing:
    """What could not be read: sentences, each only once, in the order in which they were found."""

    def __init__(self, *sentences: str) -> None:
        self._sentences = dict.fromkeys(sentences)

    def add(self, sentence: str) -> None:
        self._sentences[sentence] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._sentences)


@dataclass(frozen=True)
class Device:
    """A GPU that the session may use. `index`: its number for the user's script (`cuda:0` is 0)."""

    index: int
    name: str


@dataclass(frozen=True)
class UsageRecording:
    """Everything sampled in one session. `cpu_seconds`: CPU time that the sampling took."""

    begun: float
    times: Sequence[float]
    columns: Mapping[str, Sequence[float]]
    devices: tuple[Device, ...] = ()
    cpu_seconds: float = 0.0
    missing: tuple[str, ...] = ()

    @property
    def ended(self) -> float:
        return self.times[-1] if self.times else self.begun

    def rows(self, start: float, end: float) -> range:
        """Rows whose time overlaps the one from `start` to `end`."""
        return range(bisect_right(self.times, start), min(bisect_left(self.times, end) + 1, len(self.times)))

    def samples(self, start: float, end: float) -> int:
        """Samples taken from `start` to `end`."""
        return bisect_right(self.times, end) - bisect_left(self.times, start)

    def mean(self, name: str, start: float, end: float) -> float | None:
        """Mean of a column over a time, gaps left out. None where there is nothing but gaps."""
        weighed = self._weighed(name, start, end)
        weight = sum(seconds for seconds, _ in weighed)
        return sum(seconds * value for seconds, value in weighed) / weight if weight > 0 else None

    def presence(self, name: str, start: float, end: float) -> float:
        """The share of a time in which a column is above zero."""
        weighed = self._weighed(name, start, end)
        weight = sum(seconds for seconds, _ in weighed)
        return sum(seconds for seconds, value in weighed if value > 0) / weight if weight > 0 else 0.0

    def values(self, name: str, start: float, end: float) -> list[float]:
        """The values of a column over a time, without gaps."""
        return [value for _, value in self._weighed(name, start, end)]

    def _weighed(self, name: str, start: float, end: float) -> list[tuple[float, float]]:
        """Values of a column, each with the seconds of the given time for which it is valid."""
        column = self.columns.get(name)
        if column is None:
            return []
        found = []
        for row in self.rows(start, end):
            if not math.isnan(column[row]):
                since = self.times[row - 1] if row else self.begun
                found.append((min(end, self.times[row]) - max(start, since), column[row]))
        return found


class Recorder:
    """Builds a `UsageRecording`. About 4 bytes a value: ten minutes with eight workers and a GPU come to 1.5 MB."""

    def __init__(self, begun: float) -> None:
        self.begun = begun
        self._times = array("d")
        self._columns: dict[str, array[float]] = {}

    def row(self, time: float, values: Mapping[str, float]) -> None:
        """Append a row that ends at `time`."""
        self._times.append(time)
        for name, value in values.items():
            self._column(name)[-1] = value

    def fill(self, name: str, since: float, value: float) -> None:
        """Set a column for all rows that end after `since`."""
        column = self._column(name)
        for row in range(bisect_right(self._times, since), len(self._times)):
            column[row] = value

    def recording(self, devices: tuple[Device, ...], cpu_seconds: float, missing: tuple[str, ...]) -> UsageRecording:
        for name in self._columns:
            self._column(name)
        return UsageRecording(self.begun, self._times, self._columns, devices, cpu_seconds, missing)

    def _column(self, name: str) -> array[float]:
        column = self._columns.setdefault(name, array("f"))
        if len(column) < len(self._times):
            column.extend([GAP] * (len(self._times) - len(column)))
        return column
