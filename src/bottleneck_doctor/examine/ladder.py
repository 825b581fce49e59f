"""The ladder of the combination: which fix comes first, and which fixes may bring something on top of it. Pure.

Ratios used here are rough (`pairing.quick_speeds`): they decide what is measured, and nothing is claimed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import Setting, SettingValue
from bottleneck_doctor.examine import spoilt
from bottleneck_doctor.examine.evidence import TOO_LITTLE, Candidate
from bottleneck_doctor.knobs import clash, needs_workers, num_workers
from bottleneck_doctor.measure import pairing, schedule
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.supply import WAITING

WORTH_TRYING = 1.02
"""A fix is not tried if its ceiling is below this ratio, and not combined if it brings less by itself."""
MOST_RUNGS = 4
MUCH = 1.3
"""If a fix that loads faster brings this much, one that computes faster may bring something on top of it which it did
not bring alone: then computing is a larger part of a step."""
LUCK = 1.1
"""A fix that loads faster is left out if one window showed it this many times as slow; less is taken for chance where
steps wait under what leads. So is anything up to `MUCH` if the same workers load, or none, and steps wait for half as
long: pages of memory that a window has to ask the kernel for make the same training slower by half."""
TWICE = 2.0
"""Where steps wait this many times as long under one way to load as under another, they load differently well."""


Rungs = list[tuple[str, Setting]]
"""A rung is the fix that it adds, and the whole setting."""


def pays(candidate: Candidate, speeds: Mapping[str, float]) -> bool:
    """Whether a setting of it was faster. `speeds`: by key."""
    return any(speeds.get(candidate.key(setting), 0.0) >= WORTH_TRYING for setting in candidate.settings)


class Ladder:
    """The rungs of one examination. They may grow by what is tried late, and lose what spoils or brings nothing."""

    def __init__(self) -> None:
        self.rungs: Rungs = []
        self._chosen: Rungs = []
        """As they were before changes that brought nothing were left out; empty if none was."""
        self._known: frozenset[str] = frozenset()
        """Keys of what had been measured when they were chosen."""
        self._one_more = False

    def climb(
        self, candidates: Sequence[Candidate], measured: Measurements, workers: Setting, *, one_more: bool = False
    ) -> None:
        """Choose the rungs by what is measured so far. `workers`: as for `rungs`. `one_more`: there is time for a rung
        that may bring nothing."""
        self._known, self._one_more = frozenset(measured.sessions_by_key()), one_more
        self.rungs = _best(candidates, measured, workers, one_more=one_more)

    def climb_on(self, candidates: Sequence[Candidate], measured: Measurements, workers: Setting) -> bool:
        """Choose the rungs again if something that was measured for the first time since then seems to pay, or if steps
        wait for batches under all of them. The first rung has to stay a part of them. Returns whether they changed."""
        speeds = measured.speeds()
        pays = any(
            candidate.key(setting) not in self._known
            and speeds.get(candidate.key(setting), 0.0) >= WORTH_TRYING * speeds.get(labels.key_of(candidate.base), 1.0)
            for candidate in candidates
            for setting in candidate.settings
        )
        fed = _with_more_workers(self.rungs, candidates, measured)
        if self._chosen or (not pays and fed == self.rungs):
            return False
        self._known = frozenset(measured.sessions_by_key())
        best = _best(candidates, measured, workers, one_more=self._one_more) if pays else fed
        first, last = (self.rungs[0][1], self.rungs[-1][1]) if self.rungs else ({}, {})
        if not best or best[-1][1].items() <= last.items() or not _but_workers(first) <= _but_workers(best[-1][1]):
            return False
        self.rungs = best
        return True

    def heed_losses(self, measured: Measurements, candidates: Sequence[Candidate]) -> None:
        """Leave out what spoils the training, here and among the settings of the candidates."""
        self.rungs = spoilt.left(measured, candidates, self.rungs)

    def lighten(self, measured: Measurements, chosen_after: int) -> None:
        """Leave out changes that brought nothing on top of the rungs below them, in processes that had no part in the
        choice. Does nothing until one of these has measured all rungs."""
        sessions = measured.sessions_by_key()
        keys = [labels.key_of(setting) for _, setting in self.rungs]
        held = min((sum(each > chosen_after for each in sessions.get(key, ())) for key in keys), default=0)
        if not held:
            return
        later = [window for window in measured.windows if window.session > chosen_after]
        speeds = pairing.quick_speeds(later, measured.epoch_batches)
        lighter = lightened(self.rungs, speeds, held, measured.found.num_workers)
        if lighter != self.rungs:
            self._chosen, self.rungs = self._chosen or self.rungs, lighter

    def claimable(self, measured: Measurements) -> Rungs:
        """The rungs about which something may be claimed: as they were chosen, if there was no time to measure the
        lighter ones in enough processes."""
        sessions = measured.sessions_by_key()
        few = any(len(sessions.get(labels.key_of(each), ())) < schedule.LEAST_SESSIONS for _, each in self.rungs)
        return self._chosen if self._chosen and few else self.rungs


def _best(candidates: Sequence[Candidate], measured: Measurements, workers: Setting, *, one_more: bool) -> Rungs:
    tried = {each.fix.id: [{**each.base, **setting} for setting in each.settings] for each in candidates}
    more = {each.fix.id for each in candidates if one_more and each.fix.target == "compute"}
    waits = pairing.waiting(measured.windows) if one_more else {}
    made = rungs(tried, measured.speeds(), workers, measured.found.num_workers, more, waits)
    if not made:
        made = _fastest(tried, measured.speeds())
    fed = _with_more_workers(made, candidates, measured)
    return fed if len(fed) > 1 else []


def _with_more_workers(made: Rungs, candidates: Sequence[Candidate], measured: Measurements) -> Rungs:
    """These rungs with twice as many workers, if steps wait for workers under the highest one that was measured with
    as many. A number of workers that was enough for the model as written is too small once it computes faster."""
    if not made:
        return made
    top = made[-1][1]
    found, asked = measured.found, num_workers.asked(top)
    count = num_workers.under(top, found.num_workers)
    shares = pairing.waiting(measured.windows)
    keys = (labels.key_of(each) for _, each in reversed(made) if num_workers.asked(each) == asked)
    waits = next((shares[key] for key in keys if key in shares), 0.0)
    if not 0 < 2 * count <= found.usable_cpus or waits < WAITING:
        return made
    sweep = next((each.fix.id for each in candidates if each.sweep and _is_offered(each)), None)
    if sweep is None:
        return made
    more = num_workers.setting_of(2 * count)
    if asked is not None:
        fed = [(fix, {**each, **more} if num_workers.asked(each) else each) for fix, each in made]
        return fed if len(fed) > 1 or fed[0][1] == more else [(sweep, more), *fed]
    cheap = [each for each in made if not knobs.is_dear(each[1])] or made
    dear = [(fix, {**each, **more}) for fix, each in made[len(cheap) :]]
    return [*cheap, (sweep, {**cheap[-1][1], **more}), *dear]


def _is_offered(candidate: Candidate) -> bool:
    """Whether a fix is tried, or is out only because it brings too little by itself."""
    return bool(candidate.settings) or candidate.refusal.startswith(TOO_LITTLE)


def _fastest(tried: Mapping[str, Sequence[Setting]], speeds: Mapping[str, float]) -> Rungs:
    """The fastest setting, if it pays. It is known by itself, but more workers may belong on top of it."""
    known = [(speeds.get(labels.key_of(each), 0.0), fix, each) for fix, settings in tried.items() for each in settings]
    speed, fix, setting = max(known, key=lambda each: each[0], default=(0.0, "", {}))
    return [(fix, setting)] if speed > WORTH_TRYING else []


def _but_workers(setting: Setting) -> Set[tuple[str, SettingValue]]:
    return {name: value for name, value in setting.items() if num_workers.alone({name: value}) is None}.items()


def rungs(
    tried: Mapping[str, Sequence[Setting]],
    speeds: Mapping[str, float],
    workers: Setting,
    own_workers: int,
    more: Set[str] = frozenset(),
    waits: Mapping[str, float] = MappingProxyType({}),
) -> Rungs:
    """The rungs: the best fix first, then each other fix that promised a gain by itself; empty if there are fewer than
    two.

    `tried`: settings by fix, including what they build on. `speeds`: those of settings, by key. `workers`: the best
    number of workers, empty if that is the user's own (`own_workers`). `more`: fixes of which the best is added, even
    if it brought nothing by itself, where the first rung is none of them and brings `MUCH`. `waits`: the share of the
    time that steps wait for batches, by key. Where that is much under the first rung, and no rung loads about as well,
    a fix that loads is added, too: the one under which steps wait least.
    """
    gains: list[tuple[float, str, Setting]] = []
    alike: list[tuple[float, str, Setting]] = []
    loading: list[tuple[float, str, Setting]] = []
    if workers:
        fix = next(fix for fix, settings in tried.items() if workers in settings)
        gains.append((speeds[labels.key_of(workers)], fix, workers))
    everything = [setting for settings in tried.values() for setting in settings]
    for fix, settings in tried.items():
        loading += [(_gain(each, everything, speeds), fix, each) for each in settings if knobs.only_loads(each)]
        # Only the best number of workers is combined with other fixes.
        others = [setting for setting in settings if num_workers.alone(setting) is None]
        gain, setting = max(
            ((_gain(each, everything, speeds), each) for each in others), key=lambda known: known[0], default=(0.0, {})
        )
        if gain > WORTH_TRYING:
            gains.append((gain, fix, setting))
        elif gain > 1 / WORTH_TRYING and fix in more:
            alike.append((gain, fix, setting))
    gains.sort(key=lambda gain: -gain[0])
    if alike and gains and gains[0][0] >= MUCH and gains[0][1] not in more:
        gains.append(max(alike, key=lambda gain: gain[0]))
    fed = [each for each in loading if each[0] > 1 / (MUCH if _hardly_waits(each[2], waits, own_workers) else LUCK)]
    if fed and gains and waits.get(labels.key_of(gains[0][2]), 0.0) >= WAITING:
        best_fed = min(fed, key=lambda gain: (waits.get(labels.key_of(gain[2]), 1.0), -gain[0]))
        left = TWICE * waits.get(labels.key_of(best_fed[2]), 1.0)
        loads = [setting for _, _, setting in gains if knobs.of_layer(setting, "loader")]
        if all(waits.get(labels.key_of(setting), 0.0) > left for setting in loads):
            gains.insert(1, best_fed)
    best = [(fix, setting) for _, fix, setting in gains[:MOST_RUNGS]]
    # If there is no time for what takes long to try, the rungs below it are measured all the same.
    return _stacked(sorted(best, key=lambda each: knobs.is_dear(each[1])), own_workers)


def _hardly_waits(setting: Setting, waits: Mapping[str, float], own_workers: int) -> bool:
    """Whether steps wait at most half as long as before under a setting that leaves the number of workers."""
    known = waits.get(labels.key_of(setting)), waits.get(labels.key_of({}))
    same = num_workers.under(setting, own_workers) == own_workers
    return same and known[0] is not None and known[1] is not None and TWICE * known[0] <= known[1]


def lightened(
    made: Sequence[tuple[str, Setting]], speeds: Mapping[str, float], sessions: int, own_workers: int
) -> Rungs:
    """The ladder without changes that brought nothing on top of the rungs below them; empty if fewer than two rungs are
    left. Rungs above such a change are settings that nobody has measured yet.

    `speeds`: those of the rungs, by key, in processes that had no part in the choice; `sessions`: how many. One
    process alone has to show a change as a loss.
    """
    least = WORTH_TRYING if sessions > 1 else 1.0
    changes = []
    below: Setting = {}
    for fix, setting in made:
        speed = speeds.get(labels.key_of(setting))
        before = speeds.get(labels.key_of(below), 1.0)
        if speed is None or speed >= least * before:
            changes.append((fix, {name: value for name, value in setting.items() if name not in below}))
        below = setting
    return list(made) if len(changes) == len(made) else _stacked(changes, own_workers)


def _gain(setting: Setting, tried: Sequence[Setting], speeds: Mapping[str, float]) -> float:
    """How many times as fast a setting is as the best part of it; 0 if a setting that changes less is as fast."""
    speed = speeds.get(labels.key_of(setting), 0.0)
    smaller = [each for each in tried if each.keys() < setting.keys() and labels.key_of(each) in speeds]
    if any(speed <= WORTH_TRYING * speeds[labels.key_of(each)] for each in smaller):
        return 0.0
    held = [speeds[labels.key_of(each)] for each in smaller if each.items() < setting.items()]
    return speed / max(held, default=1.0)


def _stacked(changes: Sequence[tuple[str, Setting]], own_workers: int) -> Rungs:
    """The rungs of these fixes, each on top of the ones before it; empty if there are fewer than two."""
    made: Rungs = []
    together: Setting = {}
    for fix, change in changes:
        if any(name in together and together[name] != value for name, value in change.items()):
            continue
        if change.items() <= together.items():
            continue  # An earlier fix has set all of this already.
        if clash({**together, **change}):
            continue
        if needs_workers(change) and not num_workers.under(together, own_workers):
            continue
        together = {**together, **change}
        made.append((fix, together))
    return made if len(made) > 1 else []
