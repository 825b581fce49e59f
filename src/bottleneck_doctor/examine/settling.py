"""What a new examination would take to settle what this one left open: its sessions, its seconds, its command. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import SessionRecord, Settle, Window
from bottleneck_doctor.examine.pair_costs import all_pairs
from bottleneck_doctor.explain.explainer import ALLOWANCE_SHARE, LEAST_ALLOWANCE
from bottleneck_doctor.measure import pairing, schedule
from bottleneck_doctor.wording.durations import round_up

MARGIN = 1.25
"""Times what the sessions are expected to take: what is needed is an estimate itself, and so is what they take."""
CEILING_WINDOWS = 4
"""Windows of the ceilings, with those of the baseline around them."""
LEFT_TO_US = schedule.LEAST_SESSIONS + 1
"""Most sessions that an examination of this budget holds without being told how many."""

LEAST_SECONDS = 120.0
"""Asked for at least: in less, an examination is mostly starts."""

Command = Callable[["frozenset[str]", "frozenset[str]", float, "int | None"], tuple[list[str], str]]
"""Ids of the fixes to try alone (none: the same ones again) and of those to leave out beside, seconds and sessions
(None: left to us) in; a command and the same for a sentence out."""


@dataclass(frozen=True)
class Open:
    """A fix that is still open: its id and those of what it builds on, the keys of all settings that are tried for them
    and of those that are measured on, the sessions that a verdict needs, and the blocks in each.

    `beside`: its settings are measured in pairs of processes instead.
    """

    fixes: tuple[str, ...]
    keys: tuple[str, ...]
    best: tuple[str, ...]
    sessions: int
    blocks: int = 1
    beside: bool = False


@dataclass(frozen=True)
class Settling:
    """What things took in this examination, in seconds, and how another one is asked for.

    `setup`: a start, until it stands at its loop. `windows`: a window with its lead-in, by key. `baseline`: one as
    written. `beside`: one in a pair of processes. `ceilings`: whether they are measured. `explains`: whether time is
    set apart for why it is slow. `fresh_runs`: whether every window is a start of its own.
    """

    command: Command
    setup: float
    windows: Mapping[str, float]
    baseline: float
    beside: float
    ceilings: bool
    explains: bool
    fresh_runs: bool = False

    def settle(self, wanted: Sequence[Open], tried: frozenset[str]) -> tuple[Settle, str]:
        """What would settle these, one at least; and its command for a sentence. `tried`: ids of all that can be tried:
        the command names these, or the others where those are fewer."""
        fixes = list(dict.fromkeys(fix for each in wanted for fix in each.fixes))
        sessions = max((each.sessions for each in wanted if not each.beside), default=0)
        seconds = round_up(max(LEAST_SECONDS, MARGIN * self.seconds(wanted)))
        asked = sessions if sessions > LEFT_TO_US else None
        others = tried - set(fixes)
        only, skip = (frozenset(fixes), frozenset[str]()) if len(fixes) <= len(others) else (frozenset[str](), others)
        command, short = self.command(only, skip, seconds, asked)
        return Settle(seconds=seconds, command=command, fixes=fixes), short

    def seconds(self, wanted: Sequence[Open]) -> float:
        """What an examination of these alone is expected to take."""
        switched = [each for each in wanted if not each.beside]
        sessions = max((each.sessions for each in switched), default=1)
        blocks = max((each.blocks for each in switched), default=1)
        everything = list(dict.fromkeys(key for each in switched for key in each.keys))
        best = list(dict.fromkeys(key for each in switched for key in each.best))
        first = self._block(everything) + (CEILING_WINDOWS * self._window(None) if self.ceilings else 0.0)
        later = self._block(best)
        starts = 0 if self.fresh_runs else sessions
        seconds = starts * self.setup + first + (sessions * blocks - 1) * later + self._pairs(wanted)
        if self.explains:
            seconds = max(seconds + LEAST_ALLOWANCE, seconds / (1 - ALLOWANCE_SHARE))
        return seconds

    def _pairs(self, wanted: Sequence[Open]) -> float:
        settings = len({key for each in wanted if each.beside for key in each.keys})
        return all_pairs(settings, self.setup, self.beside) if settings else 0.0

    def _block(self, keys: Sequence[str]) -> float:
        costs = {key: self._window(key) for key in keys}
        return schedule.block_seconds([schedule.probe(key, {}) for key in keys], costs, self._window(None))

    def _window(self, key: str | None) -> float:
        seconds = self.baseline if key is None else self.windows.get(key, self.baseline)
        return seconds + (self.setup if self.fresh_runs else 0.0)


def settling(
    command: Command | None,
    windows: Sequence[Window],
    beside: Sequence[Window],
    records: Sequence[SessionRecord],
    *,
    has_loader: bool,
    explains: bool,
    fresh_runs: bool,
) -> Settling | None:
    """What things took, from the windows and sessions of an examination; `beside`: windows in pairs of processes. None
    where the training as written was not measured, or there is no command."""
    taken: dict[str, list[float]] = {}
    for window in windows:
        if pairing.usable(window) and window.mode == "timed":
            taken.setdefault(window.label, []).append(_seconds(window))
    means = {key: fmean(seconds) for key, seconds in taken.items()}
    if command is None or labels.BASELINE not in means:
        return None
    setups = [record.setup_seconds for record in records if record.setup_seconds > 0]
    baseline = means[labels.BASELINE]
    return Settling(
        command=command,
        setup=median(setups) if setups else 0.0,
        windows=means,
        baseline=baseline,
        beside=fmean([_seconds(window) for window in beside] or [baseline]),
        ceilings=has_loader,
        explains=explains,
        fresh_runs=fresh_runs,
    )


def _seconds(window: Window) -> float:
    """What a window took with its lead-in."""
    timed = window.lead_in_seconds + window.seconds
    return timed if window.ended is None else max(timed, window.ended - window.started)
