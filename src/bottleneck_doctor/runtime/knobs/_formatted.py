"""Datasets of the library `datasets` that call a function of the user's on each batch of rows, as after
`with_transform`: their rows as they are read, and what the function makes of them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from ._inputs import Input, Kept

_LIBRARY = "datasets."


def transform_of(dataset: Any) -> Optional[Any]:
    """The function that is called on all columns of each batch; None for any other dataset."""
    if not type(dataset).__module__.startswith(_LIBRARY) or not hasattr(dataset, "with_format"):
        return None
    told = dataset.format
    whole = told["type"] == "custom" and list(told["columns"]) == list(dataset.column_names)
    return told["format_kwargs"].get("transform") if whole else None


class Transform:
    """What such a dataset does to rows. Called with one row, it returns what becomes of it."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, row: Dict[str, Any]) -> Dict[str, Any]:
        return self.many([row])[0]

    def many(self, rows: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """In one call, as for a batch."""
        made = self._function({name: [row[name] for row in rows] for name in rows[0]})
        return [{name: values[place] for name, values in made.items()} for place in range(len(rows))]


class Rows:
    """The rows of such a dataset as they are read: decoded, and without its function."""

    def __init__(self, dataset: Any) -> None:
        self._plain = dataset.with_format(None)

    def __getitem__(self, index: int) -> Input:
        return Input(self._plain[index], 0)


class KeptRows(Kept):
    """Stands for such a dataset, and keeps its rows; it holds some of them."""

    def __getitems__(self, indices: Sequence[int]) -> List[Dict[str, Any]]:
        rows = [self._samples[index % len(self._samples)].value for index in indices]
        made: List[Dict[str, Any]] = self.chains[0].many(rows)
        return made
