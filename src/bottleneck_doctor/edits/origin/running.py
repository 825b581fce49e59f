"""What is known of the program as it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor.edits.origin.command_line import CommandLine
from bottleneck_doctor.edits.origin.definition import Origin
from bottleneck_doctor.runtime.wire.messages import Taker


@dataclass(frozen=True)
class Running:
    """`files`: some that are known to run, in which callers are looked for. `script`: the one that is started, None
    where that is not known. `own`: the values that its loader has, by the names of the DataLoader's arguments.
    `takers`: what takes these from the program if a library makes the loader, None if the program does."""

    command_line: CommandLine = field(default_factory=CommandLine)
    files: tuple[str, ...] = ()
    script: str | None = None
    own: Mapping[str, object] = field(default_factory=dict)
    takers: Sequence[Taker] | None = None

    def may_come_from(self, origin: Origin, name: str) -> bool:
        """Whether an argument's value may be the one that stands there, as far as it is known."""
        own, command = self.own.get(name), origin.command
        if own is None:
            return True
        if command is not None and command.given:
            return command.needed(own) == command.given
        return origin.now is None or origin.now[0] is None or str(origin.now[0]) == str(own)
