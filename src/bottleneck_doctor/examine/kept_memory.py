"""Settings whose windows had memory at hand that a program with the change made has to ask the kernel for. Pure.

glibc gives large blocks of memory back to the kernel when they are freed, which clears every page of them before they
are used again. How large a block has to be, glibc learns from the blocks that are freed (`M_MMAP_THRESHOLD` in
mallopt(3)). So a process that has trained in float32 keeps tensors that take half as much, and asks for no page while a
window computes in bfloat16. A program that computes in bfloat16 from its start has learnt from smaller blocks, and asks
for nearly as many pages as the one as written. Its speed is not what such a window shows; with the variables of the
`allocator` fix, it is. So these become a part of the setting where the windows show that it needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.labels import BASELINE, key_of
from bottleneck_doctor.documents.report import Change, Combination, FixOutcome, Setting, Window
from bottleneck_doctor.knobs import allocator, kept_memory
from bottleneck_doctor.measure import pairing

LEAST_SHARE = 0.03
"""Part of a step as written for which the kernel works less under the setting. Ours: below it, nobody sees the
difference between promise and edit."""
FEW = 0.5
"""Of the pages of a step as written, those that a step under the setting asks for at most. Tensors of half the size
have half of the pages if nothing else is kept."""


class KeptMemory:
    """What the windows of one examination show. `changes`: the edits that bring a setting."""

    def __init__(self, windows: Sequence[Window], device: str, changes: Callable[[Setting], list[Change]]) -> None:
        self._windows = [each for each in windows if pairing.usable(each) and each.mode == "timed"]
        self._on_cpu = device.startswith("cpu")
        self._changes = changes

    def setting(self, setting: Setting) -> Setting:
        """The setting with the variables that it needs to be as fast as in its windows; itself if it needs none."""
        shrinking = knobs.shrinking(setting)
        if not self._on_cpu or not shrinking or kept_memory.is_part(setting):
            return setting
        # By itself, where it was measured so: more workers take pages away from this process for another reason.
        under = self._step(key_of(shrinking)) or self._step(key_of(setting))
        written = self._step(BASELINE)
        if under is None or written is None:
            return setting
        saved = written[1] - under[1]
        needs = under[0] < FEW * written[0] and saved > LEAST_SHARE * written[2]
        return allocator.kept(setting) if needs else setting

    def fix(self, outcome: FixOutcome) -> FixOutcome:
        """A fix that is faster, with the whole setting that makes it so."""
        whole = self.setting(outcome.setting)
        if outcome.status != "faster" or whole == outcome.setting:
            return outcome
        changes = self._changes(whole)
        return replace(outcome, setting=whole, change=next(iter(changes), None), more_changes=changes[1:])

    def together(self, combination: Combination | None) -> Combination | None:
        """The same of several fixes together."""
        if combination is None or (whole := self.setting(combination.setting)) == combination.setting:
            return combination
        return replace(combination, setting=whole, changes=self._changes(whole))

    def _step(self, key: str) -> tuple[float, float, float] | None:
        """A typical step of the windows of this key: pages that the process got, seconds of the kernel's, seconds; None
        where the system does not tell them."""
        told = [
            (around.faults * seconds, around.kernel_cpu * seconds, seconds)
            for window in self._windows
            if window.label == key and (around := window.around) is not None and window.steps
            if around.faults is not None and around.kernel_cpu is not None
            for seconds in [window.seconds / window.steps]
        ]
        if not told:
            return None
        faults, kernel, seconds = (median(each) for each in zip(*told, strict=True))
        return faults, kernel, seconds
