"""Goes on where the planned time brought no answer, or a small one where what contains it may be much more, and a few
more processes may bring it within ten minutes. Not used if the user set a budget.

What was planned once the first process was done rests on the figures of that process. Where processes and windows turn
out to differ more than they did in it, what leads is still undecided in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import Combination, FixOutcome, Setting
from bottleneck_doctor.examine import judge, looks, telling, time_wanted
from bottleneck_doctor.examine.blocks import Blocks
from bottleneck_doctor.examine.doubt import Doubt
from bottleneck_doctor.examine.evidence import Estimates, JudgeEvidence
from bottleneck_doctor.examine.headline import Claim
from bottleneck_doctor.examine.selection import WORTH_IT
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.schedule import probe
from bottleneck_doctor.measure.starter import Starter
from bottleneck_doctor.wording import ranking

LIKELY = 0.5
"""More time is given to what leads if the chance that it is worth its edit is at least this."""
FEW_LIKELY = ranking.HARDLY
"""The same where fewer processes have measured it than a claim takes: then most of the chance is what fixes bring
elsewhere."""


def goes_on(blocks: Blocks, starter: Starter) -> bool:
    """Whether more processes are planned now, with the time for them: nothing is claimed, something is likely to help,
    and it takes no more than ten minutes in all to be sure of it; or what is claimed with more on top is not yet sure.
    Where a claim's fewest processes are lacking, as many of them as fit are planned. The user is told."""
    budget = starter.budget
    if budget.strict or budget.total is None or blocks.interim.sure_after is not None or blocks.selection.crowded:
        return False
    evidence = replace(looks.evidence_of(blocks.selection, blocks.beside), edits=False)
    judged, device = judge.judge(evidence), blocks.selection.found.device
    left = budget.left() + time_wanted.LONGEST - budget.total
    wanted = lacking(evidence, judged)
    if wanted is None:
        return _goes_on_for_more(blocks, starter, judged, left)
    leading, needed = wanted
    each = _process_seconds(blocks, starter, [leading.setting, *([leading.over] if leading.over else [])])
    room = int(left // each)
    more = needed if needed <= room else min(_fewest_lacking(leading), room)
    if more < 1:
        return False
    _plan(blocks, starter, more, each)
    starter.progress.note(telling.undecided(leading, more, budget.total, device, enough=more >= needed))
    return True


def _goes_on_for_more(blocks: Blocks, starter: Starter, judged: judge.Judgement, left: float) -> bool:
    """The same where something is claimed, and what contains it looks worth much more. `left`: seconds of ten minutes,
    of which half is the changed program's."""
    budget, found = starter.budget, larger(judged)
    if found is None or budget.total is None:
        return False
    claimed, together = found
    each = _process_seconds(blocks, starter, [together.setting, claimed.setting])
    more = min(schedule.LEAST_SESSIONS, int(left / 2 // each))
    if more < 1:
        return False
    _plan(blocks, starter, more, each)
    device = blocks.selection.found.device
    starter.progress.note(telling.may_be_more(claimed.figure, together, more, budget.total, device))
    return True


def _plan(blocks: Blocks, starter: Starter, more: int, seconds: float) -> None:
    """Plan so many processes more, with the time for them. `seconds`: of each."""
    starter.budget.extend(max(0.0, more * seconds - starter.budget.left()))
    blocks.plan = replace(blocks.plan, sessions=blocks.held() + more)


def larger(judged: judge.Judgement) -> tuple[Claim, Combination] | None:
    """What is claimed, and the fixes together where these look worth an edit beyond it, and are not sure to be; None
    elsewhere. Pure."""
    claimed, together = judged.claimed, judged.combination
    if claimed is None or together is None or not claimed.setting.keys() < together.setting.keys():
        return None
    return (claimed, together) if together.speedup.estimate >= WORTH_IT * claimed.figure.estimate else None


def _fewest_lacking(leading: FixOutcome) -> int:
    """How many processes it lacks of the fewest that a claim of anything but a large gain takes."""
    held = 0 if leading.speedup is None else leading.speedup.sessions
    return max(0, schedule.LEAST_SESSIONS - held)


def lacking(evidence: JudgeEvidence, judged: judge.Judgement) -> tuple[FixOutcome, int] | None:
    """What leads, and how many more processes would decide it; None if something is claimed, nothing is likely to help,
    or no number of processes would do. `judged`: what the evidence allows to be said. Pure."""
    leading = _leading(judged)
    if leading is None or leading.speedup is None:
        return None
    needed, fewest = Doubt(evidence, Estimates(evidence)).sessions(leading), _fewest_lacking(leading)
    if needed is None:
        # What one or two processes say of how many it takes is hardly worth anything.
        return (leading, fewest) if fewest else None
    return leading, max(1, fewest, needed - leading.speedup.sessions)


def _leading(judged: judge.Judgement) -> FixOutcome | None:
    """The undecided fix that most likely helps; None if something is claimed, or nothing is likely to help."""
    if judged.claimed is not None:
        return None
    switched = [
        each
        for each in judged.fixes
        if each.status == "cannot_tell" and each.speedup is not None and not knobs.of_layer(each.setting, "session")
    ]
    leading = ranking.likeliest(switched)
    if leading is None or leading.speedup is None:
        return None
    few = _fewest_lacking(leading) > 0 and leading.speedup.estimate >= WORTH_IT
    return leading if (leading.chance or 0.0) >= (FEW_LIKELY if few else LIKELY) else None


def _process_seconds(blocks: Blocks, starter: Starter, parts: Sequence[Setting]) -> float:
    """Seconds that a process takes with these settings, between windows as written."""
    costs = blocks.prober.costs
    block = schedule.block_seconds([probe(key_of(part), part) for part in parts], costs.seconds, costs.baseline())
    return time_wanted.MARGIN * (starter.setup() + costs.baseline() + block)
