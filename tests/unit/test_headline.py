"""Which of several claims the verdict names."""

from __future__ import annotations

from bottleneck_doctor.documents.report import Setting, Speedup
from bottleneck_doctor.examine.headline import Claim, named


def claim(setting: Setting, low: float, *, alone: bool = True) -> Claim:
    figure = Speedup(estimate=low * 1.05, low=low, high=low * 1.1, pairs=9, sessions=3)
    return Claim(setting, figure, "identical", "+".join(setting), alone)


def never(whole: Setting, part: Setting) -> bool:
    return False


def always(whole: Setting, part: Setting) -> bool:
    return True


ONE, OTHER = claim({"a": 1}, 1.3), claim({"b": 1}, 1.2)
BOTH, ALL = claim({"a": 1, "b": 1}, 1.5), claim({"a": 1, "b": 1, "c": 1}, 1.6)


def test_nothing_leads_where_nothing_is_claimed() -> None:
    assert named([], always) is None


def test_interval_that_begins_highest_leads() -> None:
    assert named([OTHER, ONE], never) is ONE


def test_change_that_adds_something_sure_is_asked_for() -> None:
    assert named([ONE, OTHER, BOTH, ALL], always) is ALL


def test_change_that_adds_nothing_sure_is_not() -> None:
    assert named([ONE, OTHER, BOTH, ALL], never) is ONE


def test_only_what_changes_less_takes_its_place() -> None:
    """What changes something else may be as good too, but costs the user as much."""
    assert named([claim({"d": 1}, 1.59), ALL], never) is ALL


def test_other_value_of_the_same_knob_changes_less() -> None:
    """One worker, against two workers and fewer threads."""
    one = claim({"a": 2}, 1.49)
    assert named([one, BOTH], never) is one


def test_what_adds_to_what_is_asked_of_the_right_pairs() -> None:
    asked: list[tuple[Setting, Setting]] = []

    def adds(whole: Setting, part: Setting) -> bool:
        asked.append((whole, part))
        return part == ONE.setting

    assert named([ONE, BOTH, ALL], adds) is BOTH
    assert asked == [(ALL.setting, ONE.setting), (ALL.setting, BOTH.setting), (BOTH.setting, ONE.setting)]


def test_part_that_chance_explains_among_many_takes_the_place_of_what_adds_nothing_to_it() -> None:
    part = claim({"a": 1}, 1.05, alone=False)
    assert named([part], never) is None
    assert named([part, OTHER], never) is OTHER
    assert named([part, BOTH], never) is part
    assert named([part, BOTH], always) is BOTH
