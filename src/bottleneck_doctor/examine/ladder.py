"""The ladder of the combination: which fix comes first, and which fixes may bring something on top of it. Pure.

Ratios used here are rough (`pairing.quick_speeds`): they decide what is measured, and nothing is claimed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.knobs import needs_workers, num_workers

WORTH_TRYING = 1.02
"""A fix is not tried if its ceiling is below this ratio, and not combined if it brings less by itself."""
MOST_RUNGS = 4


def rungs(
    tried: Mapping[str, Sequence[Setting]], speeds: Mapping[str, float], workers: Setting, own_workers: int
) -> list[tuple[str, Setting]]:
    """The rungs: the best fix first, then each other fix that promised a gain by itself; empty if there are fewer than
    two.

    `tried`: settings by fix, including what they build on. `speeds`: those of settings, by key. `workers`: the best
    number of workers, empty if that is the user's own (`own_workers`). A rung is the fix that it adds, and the whole
    setting.
    """
    gains: list[tuple[float, str, Setting]] = []
    if workers:
        fix = next(fix for fix, settings in tried.items() if workers in settings)
        gains.append((speeds[labels.key_of(workers)], fix, workers))
    everything = [setting for settings in tried.values() for setting in settings]
    for fix, settings in tried.items():
        # Only the best number of workers is combined with other fixes.
        others = [setting for setting in settings if num_workers.alone(setting) is None]
        gain, setting = max(
            ((_gain(each, everything, speeds), each) for each in others), key=lambda known: known[0], default=(0.0, {})
        )
        if gain > WORTH_TRYING:
            gains.append((gain, fix, setting))
    gains.sort(key=lambda gain: -gain[0])
    return _stacked(gains[:MOST_RUNGS], own_workers)


def _gain(setting: Setting, tried: Sequence[Setting], speeds: Mapping[str, float]) -> float:
    """How many times as fast a setting is as the best part of it; 0 if a setting that changes less is as fast."""
    speed = speeds.get(labels.key_of(setting), 0.0)
    smaller = [each for each in tried if each.keys() < setting.keys() and labels.key_of(each) in speeds]
    if any(speed <= WORTH_TRYING * speeds[labels.key_of(each)] for each in smaller):
        return 0.0
    held = [speeds[labels.key_of(each)] for each in smaller if each.items() < setting.items()]
    return speed / max(held, default=1.0)


def _stacked(gains: Sequence[tuple[float, str, Setting]], own_workers: int) -> list[tuple[str, Setting]]:
    made: list[tuple[str, Setting]] = []
    together: Setting = {}
    for _, fix, change in gains:
        if any(name in together and together[name] != value for name, value in change.items()):
            continue
        if change.items() <= together.items():
            continue  # An earlier fix has set all of this already.
        if needs_workers(change) and not num_workers.under(together, own_workers):
            continue
        together = {**together, **change}
        made.append((fix, together))
    return made if len(made) > 1 else []
