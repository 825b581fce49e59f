"""A figure with its name and what it means: the rows of the fact lists that several sections show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    name: str
    value: str
    meaning: str = ""
