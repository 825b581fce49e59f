"""What grew: phases, functions and lines, followed over edits and told from luck."""

from __future__ import annotations

import random

from tests.unit.gate_samples import pair

from bottleneck_doctor.documents.check import Culprit
from bottleneck_doctor.gate.cause import hunks
from bottleneck_doctor.gate.cause.culprits import Table, grown_functions, grown_lines, grown_phases, with_interval
from bottleneck_doctor.gate.cause.reasons import Seen, reasons

EDIT = hunks.read("--- data.py\n+++ data.py\n@@ -10,0 +11,2 @@\n+import time\n+time.sleep(1)\n")
BASE = Table(
    {("data.py", "load", 9): 0.010, ("data.py", "load", 20): 0.005, ("train.py", "step", 3): 0.020}, 1e-4, 0.035
)
HEAD = Table(
    {
        ("data.py", "load", 9): 0.010,
        ("data.py", "load", 12): 0.030,
        ("data.py", "load", 22): 0.005,
        ("train.py", "step", 3): 0.021,
    },
    1e-4,
    0.066,
)


def test_the_function_and_the_line_that_grew() -> None:
    (function,) = grown_functions(BASE, HEAD, 0.031, EDIT)
    assert (function.name, function.changed_here) == ("load", True)
    assert function.site is not None
    assert (function.site.file, function.site.line) == ("data.py", 12)
    assert round(function.base, 6) == 0.015
    assert round(function.head, 6) == 0.045
    (line,) = grown_lines(BASE, HEAD, 0.031, EDIT)
    assert line.name == "data.py:12"
    assert line.base == 0
    assert line.changed_here


def test_luck_of_sampling_is_no_growth() -> None:
    before, after = Table({("a.py", "f", 1): 0.010}, 1e-3, 0.03), Table({("a.py", "f", 1): 0.013}, 1e-3, 0.033)
    assert grown_functions(before, after, 0.003, hunks.Differences()) == []
    sharper = (Table(before.seconds, 1e-5, 0.03), Table(after.seconds, 1e-5, 0.033))
    assert [each.changed_here for each in grown_functions(*sharper, 0.003, hunks.Differences())] == [False]


def test_the_interval_of_a_growth_holds_what_samples_may_hide() -> None:
    """Functions of 3 and 6 ms in steps of 30 and 33, of which 400 samples are taken each."""
    generator = random.Random(31)

    def sampled(seconds: float, step: float) -> tuple[float, Table]:
        hits = sum(generator.random() < seconds / step for _ in range(400))
        return hits * step / 400, Table({}, step / 400, step)

    held = 0
    for _ in range(400):
        (before, base), (after, head) = sampled(0.003, 0.030), sampled(0.006, 0.033)
        grown = Culprit(kind="function", name="f", base=before, head=after, sentence="")
        seen = with_interval(grown, base, head)
        assert seen.low is not None
        assert seen.high is not None
        held += seen.low <= 0.003 <= seen.high
    assert 0.92 <= held / 400 <= 0.98
    phase = Culprit(kind="phase", name="forward", base=0.003, head=0.006, sentence="")
    assert with_interval(phase, BASE, HEAD) == phase


def test_what_was_changed_comes_before_what_grew_with_the_machine() -> None:
    """All takes longer on the head, by a neighbour; the change explains what the pairs have shown."""
    slower = Table({**HEAD.seconds, ("train.py", "step", 3): 0.060}, 1e-4, 0.105)
    assert [each.name for each in grown_functions(BASE, slower, 0.030, EDIT)] == ["step", "load"]
    for grew in (0.030, 0.070):
        found = reasons(Seen(BASE, slower, grew, EDIT))
        assert [each.name for each in found] == ["load", "data.py:12", "step", "train.py:3"]
        assert found[0].sentence.endswith("line 12 of it was changed.")


def test_phases_that_grew_come_largest_first() -> None:
    usual = {"data_wait": 0.004, "forward": 0.010, "backward": 0.020}
    pairs = [pair(n, 0.034, 0.052, phases=(usual, {**usual, "data_wait": 0.009, "forward": 0.022})) for n in (1, 2, 3)]
    found = grown_phases(pairs, 0.018)
    assert [each.name for each in found] == ["forward", "data_wait"]
    assert "22 ms" in found[0].sentence
