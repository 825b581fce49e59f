"""The place of this process among those that train together: its rank, how many ranks there are, and its host.

The process group knows best. Before there is one, the variables that every launcher sets are used. Without either, the
process trains alone.
"""

from __future__ import annotations

import os
import socket
from typing import NamedTuple, Optional

import torch


class Place(NamedTuple):
    """One process of `world` that train together."""

    rank: int
    world: int
    local_rank: int
    host: str


def place() -> Place:
    """This process's place. Alone it is rank 0 of 1."""
    rank, world = _number("RANK"), _number("WORLD_SIZE")
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    if rank is None or world is None or world < 2 or rank >= world:
        return Place(0, 1, 0, socket.gethostname())
    local = _number("LOCAL_RANK")
    return Place(rank, world, rank if local is None else local, socket.gethostname())


def ranks_here(place: Place) -> int:
    """Number of ranks on this host, from a variable; all ranks if no variable says it."""
    for name in ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE"):
        number = _number(name)
        if number and place.world > 1:
            return min(number, place.world)
    return place.world


def _number(name: str) -> Optional[int]:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None
