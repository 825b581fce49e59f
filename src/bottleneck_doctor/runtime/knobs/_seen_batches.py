"""What knobs noted of the first batches of each loader, until the loop is found."""

from __future__ import annotations

from typing import Any, Dict, List

from ..loop.steps import Steps


def of_loader(steps: Steps, name: str, loader: Any) -> List[Any]:
    """What the knob of this name has noted of a loader's batches; it may add to that."""
    noted: List[Any] = steps.noted.setdefault(name, {}).setdefault(id(loader), [])
    return noted


def so_far(steps: Steps, name: str, loader: Any) -> List[Any]:
    """What the knob of this name has noted of the loop's loader until now; empty if nothing."""
    return _of(steps.noted.get(name, {}), loader)


def taken(steps: Steps, name: str, loader: Any) -> List[Any]:
    """What the knob of this name has noted of the loop's loader; empty if nothing. All of its notes are gone then."""
    return _of(steps.noted.pop(name, {}), loader)


def _of(by_loader: Dict[int, List[Any]], loader: Any) -> List[Any]:
    if loader is None:
        return []
    # Where this process asks a copy of the loader's dataset, the loader is a copy, too.
    return by_loader.get(id(loader)) or max(by_loader.values(), key=len, default=[])
