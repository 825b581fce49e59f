"""What is made of statements: order, folding, what can't stand side by side, and what could not be judged."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bottleneck_doctor import diagnose as room
from bottleneck_doctor import fixes
from bottleneck_doctor.diagnose import (
    RETIRED_IDS,
    Diagnosis,
    Evidence,
    Rule,
    Statement,
    Unjudged,
    diagnose,
    headline,
    rules,
    themes,
)
from bottleneck_doctor.diagnose._evidence import NEEDS
from bottleneck_doctor.documents.report import FixOutcome, Site, Status
from bottleneck_doctor.runtime.wire.messages import Found

DOCS = Path(__file__).parents[2] / "docs" / "findings.md"
BY_ID = {rule.id: rule for rule in rules()}
FOUND = Found(
    rung="optimizer step",
    period=1,
    periodic=True,
    step_seconds=[0.1] * 8,
    wait_seconds=[0.05] * 8,
    samples_per_step=32.0,
    device="cpu",
    usable_cpus=4,
    threads=4,
    has_loader=True,
)
BARE = Evidence(found=FOUND)


def rule(identifier: str, outcome: Statement | Unjudged | Exception | None, **fields: Any) -> Rule:
    """A rule that says the same of any evidence."""

    def judge(_: Evidence) -> Statement | Unjudged | None:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    given: dict[str, Any] = {"topic": "data", "needs": (), "source": "a test", "advice": "Do it.", **fields}
    return Rule(id=identifier, title=identifier.title(), judge=judge, **given)


def says(weight: float, **fields: Any) -> Statement:
    return Statement(sentence=f"It takes {weight}.", figures={"share": weight}, weight=weight, **fields)


def order(*catalogue: Rule, evidence: Evidence = BARE) -> list[tuple[str, float]]:
    return [(finding.id, round(finding.weight, 4)) for finding in diagnose(evidence, catalogue).findings]


def test_heavier_findings_come_first_and_carry_what_the_rule_said() -> None:
    site = Site(file="/home/me/train.py", line=31)
    made = diagnose(BARE, [rule("light", says(0.1)), rule("heavy", says(0.4, site=site), topic="host")])
    assert [finding.id for finding in made.findings] == ["heavy", "light"]
    heavy = made.findings[0]
    assert (heavy.title, heavy.sentence, heavy.evidence) == ("Heavy", "It takes 0.4.", {"share": 0.4})
    assert (heavy.site, heavy.advice, heavy.weight) == (site, "Do it.", 0.4)
    assert made.not_judged == []


def test_a_statement_s_own_advice_replaces_the_rule_s() -> None:
    assert diagnose(BARE, [rule("one", says(0.5, advice="Do that."))]).findings[0].advice == "Do that."


def test_the_cause_takes_the_weight_of_what_it_explains_and_precedes_it() -> None:
    assert order(rule("symptom", says(0.8), depth=1), rule("cause", says(0.5), depth=4)) == [
        ("cause", 0.8),
        ("symptom", 0.792),
    ]


def test_a_taken_over_weight_is_handed_on_to_the_cause_of_the_cause() -> None:
    ranked = order(
        rule("wait", says(0.9), depth=0), rule("cause", says(0.8), depth=4), rule("origin", says(0.5), depth=5)
    )
    assert [identifier for identifier, _ in ranked] == ["origin", "cause", "wait"]
    assert ranked[0][1] == 0.9


def test_a_small_cause_does_not_explain_a_large_symptom() -> None:
    assert order(rule("symptom", says(0.8), depth=1), rule("cause", says(0.3), depth=4)) == [
        ("symptom", 0.8),
        ("cause", 0.3),
    ]


def test_findings_on_different_topics_do_not_explain_each_other() -> None:
    assert order(rule("data", says(0.8), depth=1), rule("host", says(0.6), depth=4, topic="host")) == [
        ("data", 0.8),
        ("host", 0.6),
    ]


def test_a_general_finding_is_gone_where_a_cause_is_known_and_stays_where_none_is() -> None:
    general = rule("general", says(0.8), depth=0, general=True)
    assert order(general, rule("cause", says(0.6), depth=4)) == [("cause", 0.8)], "and hands its weight on"
    assert order(general, rule("cause", says(0.2), depth=4)) == [("general", 0.8), ("cause", 0.2)]


def test_a_general_finding_gives_way_to_the_largest_of_several_causes_but_not_to_another_symptom() -> None:
    general = rule("general", says(0.8), depth=0, general=True)
    assert order(general, rule("less", says(0.26), depth=4), rule("most", says(0.35), depth=4)) == [
        ("most", 0.8),
        ("less", 0.26),
    ]
    assert order(general, rule("symptom", says(0.35), depth=1))[0] == ("general", 0.8)


def test_a_finding_yields_to_those_it_names() -> None:
    yielding = rule("yielding", says(0.8), yields_to=("other",))
    assert order(yielding, rule("other", says(0.1))) == [("other", 0.1)]
    assert order(yielding, rule("other", None)) == [("yielding", 0.8)]


def test_of_two_that_contradict_each_other_the_heavier_stays_whichever_declares_it() -> None:
    for heavy, light in (({"contradicts": ("light",)}, {}), ({}, {"contradicts": ("heavy",)})):
        assert order(rule("heavy", says(0.6), **heavy), rule("light", says(0.5), **light)) == [("heavy", 0.6)]


def test_a_residual_finding_is_gone_where_anything_weighs_but_not_for_a_symptom() -> None:
    rest = rule("rest", says(0.9), residual=True, topic="host")
    assert order(rest, rule("cause", says(0.1))) == [("cause", 0.1)]
    assert order(rest, rule("cause", says(0.09))) == [("rest", 0.9), ("cause", 0.09)]
    assert order(rest, rule("symptom", says(0.3), depth=1)) == [("rest", 0.9), ("symptom", 0.3)]


def test_a_rule_that_raises_costs_itself_only() -> None:
    made = diagnose(BARE, [rule("broken", ZeroDivisionError("division by zero")), rule("whole", says(0.5))])
    assert [finding.id for finding in made.findings] == ["whole"]
    assert [each.id for each in made.not_judged] == ["broken"]
    assert "ZeroDivisionError: division by zero" in made.not_judged[0].reason


def test_a_rule_may_say_itself_that_it_can_not_judge() -> None:
    made = diagnose(BARE, [rule("unsure", Unjudged("the system does not say"))])
    assert [(each.id, each.reason) for each in made.not_judged] == [("unsure", "the system does not say")]


def test_missing_evidence_is_named_and_never_taken_for_fine() -> None:
    made = diagnose(BARE, [rule("needy", says(0.5), needs=("loader", "phases"))])
    assert made.findings == []
    assert [(each.id, each.reason) for each in made.not_judged] == [("needy", "the phases of a step were not measured")]


def test_with_nothing_gathered_every_rule_is_not_judged() -> None:
    made = diagnose(BARE)
    assert made.findings == []
    assert {each.id for each in made.not_judged} == set(BY_ID)
    assert all(each.reason and "bug" not in each.reason for each in made.not_judged)


@pytest.mark.parametrize(
    ("status", "named"),
    [
        ("faster", True),
        ("cannot_tell", True),
        ("no_difference", False),
        ("slower", False),
        ("failed", False),
        ("not_applicable", False),
    ],
)
def test_fixes_that_were_measured_not_to_help_are_not_named(status: Status, named: bool) -> None:
    outcome = FixOutcome(
        id="second", title="", why="", setting={}, status=status, risk="identical", reason="", speedup=None
    )
    made = diagnose(replace(BARE, fixes=[outcome]), [rule("one", says(0.5), fixes=("first", "second"))])
    assert ("second" in made.findings[0].fixes) == named
    if status == "faster":
        assert made.findings[0].fixes == ["second", "first"], "what was measured to help comes first"


# -- headline ----------------------------------------------------------------------------------------------------------


def test_the_headline_names_the_first_finding_that_takes_time() -> None:
    made = diagnose(
        BARE,
        [
            rule("noise", says(0.9, clause="runs on a noisy machine"), told=False, topic="machine"),
            rule("cause", says(0.73, clause="waits for data 73 % of the time, most of it in `Blur`")),
            rule("other", says(0.2, clause="collects garbage"), topic="host"),
        ],
    )
    told = headline(made.findings, made.clauses)
    assert told is not None
    assert told.finding == "cause"
    assert told.opening == "Training waits for data 73 % of the time, most of it in `Blur`."


def test_no_headline_without_a_finding_of_weight() -> None:
    made = diagnose(BARE, [rule("light", says(0.04, clause="does little"))])
    assert headline(made.findings, made.clauses) is None
    empty = Diagnosis([], [])
    assert headline(empty.findings, empty.clauses) is None


# -- the catalogue -----------------------------------------------------------------------------------------------------


ROOM = Path(room.__file__).parent


def out_of_place(folder: Path) -> list[str]:
    """Files below a folder that hold a rule where none is looked for, or hold none where one is."""
    wrong = []
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder)
        found = len(place.parts) == 2 and not path.stem.startswith("_")
        names = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Name)]
        holds = any(name.id == "RULE" and isinstance(name.ctx, ast.Store) for name in names)
        if holds != found:
            wrong.append(place.as_posix())
    return wrong


def test_every_finding_is_a_file_in_a_theme_and_nothing_else_is() -> None:
    assert out_of_place(ROOM) == [], "a finding is diagnose/<theme>/<id>.py; what is none begins with an underscore"
    assert themes() == tuple(sorted(path.parent.name for path in ROOM.glob("*/__init__.py")))
    files = [path.stem for theme in themes() for path in ROOM.joinpath(theme).glob("*.py") if path.stem[0] != "_"]
    assert sorted(files) == sorted(each.id.replace("-", "_") for each in rules())
    assert len(BY_ID) == len(rules())
    assert not RETIRED_IDS & set(BY_ID)


@pytest.mark.parametrize(
    ("place", "text", "wrong"),
    [
        ("theme/slow_thing.py", "RULE = Rule()", False),
        ("theme/_helper.py", "SMALL = 1", False),
        ("_helper.py", "SMALL = 1", False),
        ("slow_thing.py", "RULE = Rule()", True),
        ("_slow_thing.py", "RULE = Rule()", True),
        ("theme/_slow_thing.py", "RULE = Rule()", True),
        ("theme/deeper/slow_thing.py", "RULE = Rule()", True),
        ("theme/helper.py", "SMALL = 1", True),
    ],
)
def test_a_finding_elsewhere_is_seen(tmp_path: Path, place: str, text: str, wrong: bool) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert out_of_place(tmp_path) == ([place] if wrong else [])


@pytest.mark.parametrize("identifier", BY_ID)
def test_rule_declares_what_exists(identifier: str) -> None:
    each = BY_ID[identifier]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", each.id)
    assert each.title
    assert not each.title.endswith(".")
    assert each.advice.endswith(".")
    assert each.source.startswith("https://")
    assert set(each.needs) <= set(NEEDS)
    assert set(each.fixes) <= {fix.id for fix in fixes.catalogue()}
    assert set(each.yields_to) | set(each.contradicts) <= set(BY_ID) - {each.id}


def test_no_two_findings_yield_to_each_other_in_a_circle() -> None:
    for start in rules():
        seen, waiting = set(), list(start.yields_to)
        while waiting:
            identifier = waiting.pop()
            assert identifier != start.id, f"{start.id} yields to itself by way of others"
            if identifier not in seen:
                seen.add(identifier)
                waiting += BY_ID[identifier].yields_to


def test_rules_and_sections_of_the_docs_agree() -> None:
    sections = re.findall(r"^### (.+)$", DOCS.read_text("utf-8"), re.MULTILINE)
    assert len(sections) == len(set(sections))
    assert not set(BY_ID) - set(sections), "these need a section in docs/findings.md"
    assert not set(sections) - set(BY_ID), "these sections speak of findings that are gone"


def test_a_chapter_of_the_docs_is_a_theme() -> None:
    theme = {path.stem.replace("_", "-"): path.parent.name for path in ROOM.glob("*/*.py")}
    chapters = re.split(r"^## ", DOCS.read_text("utf-8"), flags=re.MULTILINE)[1:]
    told = [{theme[each] for each in re.findall(r"^### (.+)$", chapter, re.MULTILINE)} for chapter in chapters]
    assert sorted(map(sorted, told)) == [[each] for each in themes()]


@pytest.mark.parametrize("identifier", BY_ID)
def test_section_says_what_it_rests_on_its_threshold_and_what_to_do(identifier: str) -> None:
    text = DOCS.read_text("utf-8").partition(f"\n### {identifier}\n")[2].partition("\n### ")[0]
    for word in ("Rests on:", "Said when:", "Do:"):
        assert word in text, f"the section of {identifier} has no {word}"
