"""Shared by the knobs that flip a switch of torch's which is on or off for the whole process."""

from __future__ import annotations

from typing import Any

from ._held import Held


class Switch(Held):
    @classmethod
    def is_on(cls) -> bool:
        raise NotImplementedError

    def turn(self, on: bool) -> None:
        raise NotImplementedError

    @classmethod
    def stands(cls) -> Any:
        return cls.is_on()

    def put(self, value: Any) -> None:
        self.turn(bool(value))

    @classmethod
    def own(cls) -> Any:
        return True if cls.is_on() else None
