"""What a new examination needs to decide what this one left open: its sessions, its seconds, its command. Pure."""

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
"""The expected time is multiplied by this: how many sessions are needed, and how long they take, are estimates."""
CEILING_WINDOWS = 4
"""Windows that measure the ceilings, including the baseline windows around them."""
LEFT_TO_US = schedule.LEAST_SESSIONS + 1
"""Most sessions that an examination holds unless the user says how many."""

LEAST_SECONDS = 120.0
"""The shortest budget that is suggested: a shorter examination would mostly be starts."""

Command = Callable[["frozenset[str]", "frozenset[str]", float, "int | None"], tuple[list[str], str]]
"""In: ids of the fixes to try (empty: the same as before), ids of fixes to leave out in addition, seconds, and sessions
(None: doctor decides). Out: the command, and a short form for a sentence."""


@dataclass(frozen=True)
class Open:
    """A fix that is still open.

    `fixes`: its id, and those of the fixes that it builds on. `keys`: all settings that are tried for them. `best`: the
    settings that are measured further. `sessions`: how many a verdict needs. `blocks`: how many in each session.
    `beside`: its settings are measured by pairs of processes instead.
    """

    fixes: tuple[str, ...]
    keys: tuple[str, ...]
    best: tuple[str, ...]
    sessions: int
    blocks: int = 1
    beside: bool = False


@dataclass(frozen=True)
class Settling:
    """How many seconds things took in this examination, and how to ask for another one.

    `setup`: a start, until it stands at its loop. `windows`: a window with its lead-in, by key. `baseline`: a window as
    written. `beside`: a window in a pair of processes. `ceilings`: whether they are measured. `explains`: whether time
    is reserved for explaining. `fresh_runs`: whether every window is a new start.
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
        """What would settle these fixes (at least one), and the command for a sentence. `tried`: ids of all fixes that
        can be tried. The command names the fixes to try, or those to skip if they are fewer."""
        fixes = list(dict.fromkeys(fix for each in wanted for fix in each.fixes))
        sessions = max((each.sessions for each in wanted if not each.beside), default=0)
        seconds = round_up(max(LEAST_SECONDS, MARGIN * self.seconds(wanted)))
        asked = sessions if sessions > LEFT_TO_US else None
        others = tried - set(fixes)
        only, skip = (frozenset(fixes), frozenset[str]()) if len(fixes) <= len(others) else (frozenset[str](), others)
        command, short = self.command(only, skip, seconds, asked)
        return Settle(seconds=seconds, command=command, fixes=fixes), short

    def seconds(self, wanted: Sequence[Open]) -> float:
        """Seconds that an examination of these fixes alone is expected to take."""
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
    """What things took, from the windows and sessions of an examination. `beside`: windows in pairs of processes. None
    if the training as written was not measured, or there is no command."""
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
    """Seconds that a window took with its lead-in."""
    timed = window.lead_in_seconds + window.seconds
    return timed if window.ended is None else max(timed, window.ended - window.started)
