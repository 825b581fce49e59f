"""From statements to findings: fold those that say the same, drop those that contradict a heavier one, put causes
first.

Pure. No rule is named here: everything follows from what rules declare (`topic`, `depth`, `general`, `residual`,
`yields_to`, `contradicts`). The steps are contradictions, weights and folding. A deeper statement that accounts for at
least half of a shallower one on its topic counts as its cause: it takes over the weight of what it explains, and what
it explains ranks just below it. So a weight is a rank, while the measured share of the time stays the statement's own.
A general statement only says that there is something to explain, and gives way to a cause that accounts for `PART` of
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bottleneck_doctor.diagnose._rule import LARGE, PART, SYMPTOM, Rule, Statement

EXPLAINS = 0.5
"""A cause accounts for at least this part of its symptom. Ours: less than half leaves another cause room to be the
main one."""
JUST_BELOW = 0.99
"""What a cause explains keeps at most this part of the cause's weight, and so comes after it."""


@dataclass(frozen=True)
class Said:
    """A rule and what it said, with the weight that it is ranked by."""

    rule: Rule
    statement: Statement
    weight: float

    @property
    def depth(self) -> int:
        return self.rule.depth if self.statement.depth is None else self.statement.depth

    @property
    def share(self) -> float | None:
        """The share of the training's time that the statement itself measured; None where it measured none."""
        return _own_weight(self.statement) if self.statement.measured else None

    @property
    def topic(self) -> str:
        return self.statement.topic or self.rule.topic


def settle(statements: Iterable[tuple[Rule, Statement]]) -> list[Said]:
    """The statements that are left, the cause first."""
    said = [Said(rule, statement, _own_weight(statement)) for rule, statement in statements]
    # By now, what is folded away has handed its weight to its cause.
    left = _folded(_weighed(_yielded(_parted(said))))
    return sorted(left, key=lambda each: (-each.weight, -each.depth, each.rule.id))


def explains(cause: Said, effect: Said) -> bool:
    """Whether one is the other's cause: on its topic, deeper, and by itself large enough to account for it."""
    needed = PART if effect.rule.general and cause.depth > SYMPTOM else EXPLAINS
    return (
        cause.topic == effect.topic
        and cause.depth > effect.depth
        and _own_weight(cause.statement) >= needed * _own_weight(effect.statement)
    )


def _own_weight(statement: Statement) -> float:
    return min(1.0, max(0.0, statement.weight))


def _parted(said: list[Said]) -> list[Said]:
    """Without the lighter of any two that can't both be true; if they weigh the same, without the shallower."""
    kept: list[Said] = []
    for each in sorted(said, key=lambda each: (each.rule.residual, -each.weight, -each.depth, each.rule.id)):
        if not any(_contradict(each, one) for one in kept):
            kept.append(each)
    return kept


def _contradict(one: Said, other: Said) -> bool:
    """Whether two can't both be true. What weighs little beside nearly all of the time contradicts nothing."""
    if (one.rule.residual and other.weight < LARGE) or (other.rule.residual and one.weight < LARGE):
        return False
    return one.rule.id in other.rule.contradicts or other.rule.id in one.rule.contradicts


def _yielded(said: list[Said]) -> list[Said]:
    ids = {each.rule.id for each in said}
    return [each for each in said if not ids.intersection(each.rule.yields_to)]


def _weighed(said: list[Said]) -> list[Said]:
    weight = {each.rule.id: each.weight for each in said}
    # From the surface down: a cause that took over a weight can hand it to a deeper cause.
    for effect in sorted(said, key=lambda each: each.depth):
        causes = [one for one in said if explains(one, effect)]
        if causes:
            cause = max(causes, key=lambda one: (one.weight, one.depth))
            weight[cause.rule.id] = max(weight[cause.rule.id], weight[effect.rule.id])
            weight[effect.rule.id] = min(weight[effect.rule.id], JUST_BELOW * weight[cause.rule.id])
    return [Said(each.rule, each.statement, weight[each.rule.id]) for each in said]


def _folded(said: list[Said]) -> list[Said]:
    kept = [each for each in said if not (each.rule.general and any(explains(one, each) for one in said))]
    return [each for each in kept if not (each.rule.residual and any(_weighs(one) for one in kept))]


def _weighs(each: Said) -> bool:
    """Whether it is heavy enough that the rest needs no words. A symptom without a known cause is not."""
    return each.weight >= LARGE and each.depth > SYMPTOM and not each.rule.residual
