"""The interim looks of an examination: what may be claimed by now, whether that is enough, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.examine import going_on, looks, telling
from bottleneck_doctor.examine.evidence import JudgeEvidence
from bottleneck_doctor.examine.going_on import Confirming
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.explain.explainer import Explainer
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.schedule import Probe
from bottleneck_doctor.measure.starter import Starter


class Interim:
    """`confirming`: what it takes to measure the program with a change made; None if that does not follow."""

    def __init__(
        self,
        selection: Selection,
        costs: Costs,
        starter: Starter,
        explainer: Explainer | None,
        confirming: Confirming | None,
    ) -> None:
        self.sure_after: float | None = None
        """Seconds from the start when a look found that more processes would change nothing; None if not."""
        self.left_to_confirming = False
        """Whether it ended then because the time that is left is enough for the program with the change made."""
        self.claimed_after: float | None = None
        """Seconds from the start when a look first claimed a large gain; None if none did."""
        self._told_sure = False
        self._selection = selection
        self._costs = costs
        self._starter = starter
        self._explainer = explainer
        self._confirming = confirming

    def look(
        self, evidence: JudgeEvidence, coming: Mapping[str, Setting], probes: Sequence[Probe], *, more: bool
    ) -> None:
        """Take a look. `coming`: the settings that the next process would measure, by key, and `probes`: what it would
        measure first. `more`: whether there would be one."""
        seen = looks.Look(evidence)
        elapsed = self._starter.budget.elapsed()
        self._claim(seen, goes_on=more)
        enough = seen.is_enough(coming, confirms=self._confirming is not None)
        self.left_to_confirming = more and not enough and seen.large is not None and self._confirms_instead(probes)
        self.sure_after = elapsed if enough or self.left_to_confirming else None

    def tell_claim(self, evidence: JudgeEvidence) -> None:
        """Tell a large gain as soon as it is sure, in the midst of a process. Nothing ends with that."""
        self._claim(looks.Look(evidence), goes_on=True)

    def _claim(self, seen: looks.Look, *, goes_on: bool) -> None:
        if self.claimed_after is None and seen.large is not None:
            self.claimed_after = elapsed = self._starter.budget.elapsed()
            device = self._selection.found.device
            self._starter.progress.note(telling.claimed(elapsed, *seen.large, device, goes_on=goes_on))

    def is_not_enough(self) -> None:
        """No look could find anything: too few processes hold a comparison."""
        self.left_to_confirming, self.sure_after = False, None

    def _confirms_instead(self, probes: Sequence[Probe]) -> bool:
        """Whether another process would take the time in which the program with the change made can be measured, and
        tell less."""
        if self._confirming is None:
            return False
        explaining = 0.0 if self._explainer is None else self._explainer.allowance.left()
        return going_on.decides_confirming(
            self._selection, self._costs, self._starter, self._confirming, probes, explaining
        )

    def tell_sure(self) -> None:
        """Tell the user that the result is sure: once, as soon as nothing that is still measured could change it."""
        if self.sure_after is not None and not self._told_sure:
            self._told_sure = True
            self._starter.progress.note(telling.sure(self.sure_after, confirms=self.left_to_confirming))
