"""What a check looks like in each of its outputs, and that each is what its readers take.

After a change that is meant, `UPDATE_GOLDEN=1 python -m pytest tests/unit/test_check_outputs.py` rewrites the files.
"""

from __future__ import annotations

import copy
import html.parser
import json
import os
import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bottleneck_doctor.documents.check import Check
from bottleneck_doctor.documents.check_json import from_json, json_schema, to_json
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.render.check import github, gitlab, junit, markdown, page
from bottleneck_doctor.render.check.outputs import OUTPUTS
from bottleneck_doctor.render.check.places import from_root
from bottleneck_doctor.wording.check_words import amount_text, change_text, side_text, value_text

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
NAMES = ["passed", "regressed", "hostile", "stored", "try-faster", "try-slower"]
REPOSITORY = Path("/home/ada/pets")


def load(name: str) -> Check:
    path = GOLDEN / "checks" / f"{name}.json"
    return from_root(from_json(path.read_bytes(), source=path.name), REPOSITORY)


def without_style(page: str) -> str:
    """The stylesheet is the report's, and looked at there."""
    page = re.sub(r"<style>.*?</style>", "<style></style>", page, flags=re.DOTALL)
    return re.sub(r"'sha256-[^']*'", "'sha256-'", page)


RENDERED: dict[str, Callable[[Check], str]] = {
    "md": markdown.render,
    "xml": junit.render,
    "github": github.commands,
    "gitlab": gitlab.render,
    "html": lambda check: without_style(page.render(check)),
}


# -- the document ------------------------------------------------------------------------------------------------------


def test_every_golden_check_is_what_its_builder_makes() -> None:
    built = runpy.run_path(str(GOLDEN / "checks.py"))["results"]()
    assert sorted(built) == sorted(NAMES)
    for name, check in built.items():
        data = (GOLDEN / "checks" / f"{name}.json").read_bytes()
        assert data == to_json(check), "run tests/golden/checks.py"
        assert from_json(data, source=name) == check


def test_committed_schema_is_generated() -> None:
    path = ROOT / "docs" / "check.schema.json"
    assert path.read_bytes() == json_schema(), "run python -m bottleneck_doctor.documents.check_json"


@pytest.mark.parametrize("name", NAMES)
def test_golden_checks_are_valid(name: str) -> None:
    schema = json.loads((ROOT / "docs" / "check.schema.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads((GOLDEN / "checks" / f"{name}.json").read_bytes())
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("data", "slug"),
    [
        (b"", "check-unreadable"),
        (b"[]", "check-unreadable"),
        (b'{"format": 1}', "check-unreadable"),
        (b'{"format": 99}', "check-too-new"),
        (b'{"format": 4294967296}', "check-unreadable"),
        (b'{"format": 0}', "check-unreadable"),
        (b'{"format": 1e999}', "check-unreadable"),
        (b"[" * 100_000, "check-unreadable"),
        (b"\xff", "check-unreadable"),
    ],
)
def test_what_is_no_check_is_refused(data: bytes, slug: str) -> None:
    with pytest.raises(DoctorError) as refused:
        from_json(data, source="check.json")
    assert refused.value.slug == slug


# -- all outputs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RENDERED)
@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str, kind: str) -> None:
    path = GOLDEN / "checks" / f"{name}.{kind}"
    text = RENDERED[kind](load(name))
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_bytes().decode() == text, f"{path.name} differs; UPDATE_GOLDEN=1 rewrites it"


def test_paths_are_named_from_the_root() -> None:
    found = load("regressed")
    assert [each.site.file if each.site else None for each in found.culprits] == [
        None,
        "training/data.py",
        "lib/sharp.py",
    ]


def test_a_file_of_ours_is_known_by_its_mark() -> None:
    check = load("regressed")
    for output in OUTPUTS:
        text = output.render(check, REPOSITORY).encode()
        assert output.mark.search(text[:65536]), output.name
        for other in OUTPUTS:
            assert other is output or not other.mark.search(text), (output.name, other.name)


def test_figures_read_the_same_everywhere() -> None:
    step, wait = load("regressed").metrics[:2]
    assert value_text(step, step.head) == "131 ms"
    assert change_text(step) == "+31 % (+28 to +34)"
    assert change_text(wait) == "+22 points (+20 to +24)"
    assert amount_text("share", 0.01) == "1 point"
    assert amount_text("seconds", -0.004) == "\N{MINUS SIGN}0.4 %"
    assert amount_text("seconds", 0.0, sign=True) == "0 %"
    assert amount_text("seconds", float("nan")) == value_text(step, None) == "–"
    head = load("regressed").head
    assert side_text(head) == "the working tree (9cc02b8a1, with uncommitted changes)"
    assert side_text(replace(head, dirty=False, result="old.json")).endswith("(9cc02b8a1, stored in old.json)")


def test_phases_have_a_row_only_where_something_happened() -> None:
    check = load("regressed")
    step = check.metrics[0]
    phase = replace(step, id="phase_forward", title="Phase: forward")
    for verdict, shown in (("regression", True), ("unchanged", False), ("cannot_tell", False), ("gone", True)):
        one = replace(check, metrics=[step, replace(phase, verdict=verdict)])  # type: ignore[arg-type]
        assert ("Phase: forward" in markdown.render(one)) == shown
        assert ("Phase: forward" in page.render(one)) == shown
        assert "phase_forward" in junit.render(one)


def test_a_check_without_a_time_limit() -> None:
    check = replace(load("passed"), budget=0.0)
    assert "- Time: 2 min 11 s.\n" in markdown.render(check)
    assert "It took 2 min 11 s." in page.render(check)


def test_levels_decide_what_is_said() -> None:
    check = load("regressed")
    quiet = replace(check, metrics=[replace(each, level="off") for each in check.metrics])
    assert "step_time" not in junit.render(quiet)
    assert json.loads(gitlab.render(quiet)) == []
    assert "Step time" not in markdown.render(quiet)
    assert "Step time" not in page.render(quiet)
    assert "::error" not in github.commands(quiet)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    for key, inner in entries:
        found += _paths(inner, (*path, key))
    return found


DOCUMENT = json.loads((GOLDEN / "checks" / "regressed.json").read_bytes())
ODD: st.SearchStrategy[Any] = st.text(max_size=6) | st.sampled_from(
    [
        None,
        0,
        -1,
        1e308,
        -1e308,
        5e-324,
        2**40,
        True,
        "",
        "\x00",
        "\ud800",
        "\uffff",
        [],
        {},
        "error",
        "off",
        "gone",
        "new",
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(_paths(DOCUMENT)), ODD), min_size=1, max_size=4))
def test_a_damaged_check_is_written_or_refused(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = copy.deepcopy(DOCUMENT)
    for path, value in changes:
        inner = document
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # What it was part of is gone already.
    try:
        check = from_json(json.dumps(document).encode(), source="check.json")
    except DoctorError:
        return
    for output in OUTPUTS:
        assert output.render(check, REPOSITORY).encode("utf-8", "replace")
    ElementTree.fromstring(junit.render(check).encode("utf-8", "replace"))
    parsed(github.commands(check))


# -- Markdown ----------------------------------------------------------------------------------------------------------


class Seen(html.parser.HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[list[str]] = []
        self.text = ""
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
            self._in_cell = True

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_cell:
            self.cells[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False


def as_html(markdown: str) -> Seen:
    return Seen(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def test_markdown_reads_as_meant() -> None:
    seen = as_html(markdown.render(load("regressed")))
    assert seen.text.lstrip().startswith("A step takes 31 % longer than on origin/main (131 ms instead of 100 ms)")
    assert seen.cells[0] == ["", "base", "head", "change (95 %)", "threshold", "smallest detectable", "verdict"]
    assert seen.cells[1] == ["Step time", "100 ms", "131 ms", "+31 % (+28 to +34)", "5 %", "2.8 %", "worse"]
    assert seen.cells[2][-1] == "worse (warning)"
    assert {len(row) for row in seen.cells[:6]} == {7}
    assert seen.tags.count("details") == 3
    assert "as @ada asked in #12" in seen.text


def test_markdown_of_an_attack_is_text() -> None:
    text = markdown.render(load("hostile"))
    seen = as_html(text)
    assert not {"script", "img", "a"} & set(seen.tags)
    assert {len(row) for row in seen.cells[:6]} == {7}, "a pipe in a name opens no cell"
    assert "@all" in seen.text
    outside = re.sub(r"`[^`\n]*`|<code>.*?</code>", "", text)
    assert "@" in outside
    assert not re.search(r"@\w|(?<!&)#\d", outside), "nobody is called, nothing is referred to"
    assert not re.search("[\x00\x1b\u202e]", text)


@pytest.mark.parametrize(
    "text", ["a`b", "``", "`", "a``b`", "|", "\\", "\\|", "\n", "", "<b>&amp;", "a_b*c*", "[a](b)"]
)
def test_any_text_is_a_code_span(text: str) -> None:
    code = markdown.code(text)
    assert as_html(f"x {code} y").text.split() == ["x", *text.split(), "y"]
    cells = as_html(f"|a|b|\n|-|-|\n|x|{code}|\n").cells[1]
    assert [cell.strip() for cell in cells] == ["x", text.strip()]


# -- JUnit -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def junit_schema() -> Any:
    xmlschema = pytest.importorskip("xmlschema")
    return xmlschema.XMLSchema(str(GOLDEN / "junit.xsd"))


@pytest.mark.parametrize("name", NAMES)
def test_junit_is_valid(name: str, junit_schema: Any) -> None:
    junit_schema.validate(junit.render(load(name)))


def test_junit_of_no_metrics_is_valid(junit_schema: Any) -> None:
    check = replace(load("passed"), status="new", metrics=[], sentence="There is no train.py on origin/main.")
    text = junit.render(check)
    junit_schema.validate(text)
    suite = ElementTree.fromstring(text)[0]
    assert (suite.get("tests"), suite.get("skipped")) == ("1", "1")


def test_the_schema_refuses_what_is_no_junit(junit_schema: Any) -> None:
    text = junit.render(load("regressed"))
    for broken in (
        text.replace('failures="', 'failures="x'),
        text.replace("<failure ", "<fault ").replace("</failure>", "</fault>"),
        text.replace(' tests="', ' checks="'),
    ):
        assert broken != text
        assert not junit_schema.is_valid(broken)


def test_junit_says_what_failed() -> None:
    suite = ElementTree.fromstring(junit.render(load("regressed")))[0]
    cases = {str(case.get("name")).partition(":")[0]: case for case in suite.iter("testcase")}
    assert [name for name, case in cases.items() if case.find("failure") is not None] == ["step_time", "epoch_turn"]
    assert [name for name, case in cases.items() if case.find("skipped") is not None] == ["first_step"]
    failure = cases["step_time"].find("failure")
    assert failure is not None
    assert failure.get("message") == "Step time: grew by 31 %, from 100 ms to 131 ms; the limit is 5 %."
    assert "training/data.py:42" in str(failure.text)
    assert str(cases["data_wait"].findtext("system-out")).startswith("warning: ")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "1")


# -- GitHub ------------------------------------------------------------------------------------------------------------

COMMAND = re.compile(r"::(error|warning|notice) ([^:\n]*)::([^\n]*)")


def parsed(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Commands as GitHub's runner reads them."""
    found = []
    for line in text.splitlines():
        match = COMMAND.fullmatch(line)
        assert match is not None, line
        properties = {}
        for part in match[2].split(","):
            name, _, value = part.partition("=")
            for escape, character in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
                value = value.replace(escape, character)
            properties[name] = value
        found.append((match[1], properties, match[3]))
    return found


def test_annotations_stand_on_changed_lines() -> None:
    found = parsed(github.commands(load("regressed")))
    assert [level for level, _, _ in found] == ["error", "error", "warning"]
    assert found[0][1] == {"file": "training/data.py", "line": "42", "title": "Step time: worse"}
    assert found[0][2] == "Step time: grew by 31 %25, from 100 ms to 131 ms; the limit is 5 %25."
    assert "file" not in found[1][1], "what is gone has no line"
    assert github.commands(load("passed")) == ""


def test_annotations_are_ten_at_most_and_of_one_line() -> None:
    check = load("hostile")
    many = replace(check, metrics=[replace(check.metrics[0], id=str(number)) for number in range(30)])
    found = parsed(github.commands(many))
    assert len(found) == github.ANNOTATIONS
    assert {level for level, _, _ in found} == {"error"}


def test_annotations_of_lines_elsewhere_have_no_file() -> None:
    check = from_root(from_json((GOLDEN / "checks/regressed.json").read_bytes(), source="x"), Path("/srv/other"))
    found = parsed(github.commands(check))
    assert found[0][0] == "error"
    assert all("file" not in properties for _, properties, _ in found)


def test_a_check_that_cannot_tell_says_so() -> None:
    check = replace(load("passed"), status="cannot_tell", sentence="Cannot tell: 2 pairs.")
    [(level, _, message)] = parsed(github.commands(check))
    assert (level, message) == ("warning", "Cannot tell: 2 pairs.")


def test_a_summary_keeps_to_its_room() -> None:
    check = load("regressed")
    whole = github.summary(check)
    assert whole == markdown.render(check)
    for room in (len(whole.encode()) - 1, 1500, 700, 300, 90, 10, 0, -5):
        short = github.summary(check, room)
        assert len(short.encode()) <= max(room, 0)
        assert not short or "too long for a summary" in short
    assert "A step takes 31 %" in github.summary(check, 700)


def test_a_summary_of_everything_has_room() -> None:
    check = load("hostile")
    long = replace(
        check,
        metrics=check.metrics * 100,
        culprits=check.culprits * 1000,
        commits=["x" * 10_000] * 1000,
        warnings=check.warnings * 1000,
    )
    assert len(github.summary(long).encode()) < github.SUMMARY_BYTES


# -- GitLab ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_gitlab_is_code_quality(name: str) -> None:
    issue = {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/]"},
                    "lines": {"type": "object", "properties": {"begin": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    }
    found = json.loads(gitlab.render(load(name)))
    jsonschema.validate(found, {"type": "array", "items": issue}, cls=jsonschema.Draft202012Validator)
    assert len({each["fingerprint"] for each in found}) == len(found)


def test_gitlab_knows_a_finding_again() -> None:
    check = load("regressed")
    later = replace(check, metrics=[replace(each, sentence="other", head=9.0) for each in check.metrics])
    first, second = (json.loads(gitlab.render(each)) for each in (check, later))
    assert [each["fingerprint"] for each in first] == [each["fingerprint"] for each in second]
    assert [each["severity"] for each in first] == ["major", "minor", "major"]
    assert first[0]["location"] == {"path": "training/data.py", "lines": {"begin": 42}}
    assert json.loads(gitlab.render(load("passed"))) == []


# -- the page ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_page_reads_without_scripts_and_style(name: str) -> None:
    check = load(name)
    seen = Seen(without_style(page.render(check)))
    assert not {"script", "img", "link", "iframe"} & set(seen.tags)
    # What is drawn has colours of its own, for black is all that would be left of it.
    drawn = page.render(check)
    curve, flames = (re.findall(rf'<svg class="{name}".*?</svg>', drawn, re.DOTALL) for name in ("losses", "flame"))
    assert all('fill="#' in each for each in re.findall(r"<(?:rect|text)\b[^>]*>", "".join(flames)))
    assert all('stroke="#' in each for each in re.findall(r"<polyline\b[^>]*>", "".join(curve)))
    assert (len(curve), bool(flames)) == (int(check.losses is not None), bool(check.growth))
    assert not [name for name, _ in seen.attributes if name == "style" or name.startswith("on")]
    assert not [value for name, value in seen.attributes if name in ("src", "href")]
    text = " ".join(seen.text.split())
    base = {"stored": "ci/pets.json of 18 November 2026", "try-faster": "as written", "try-slower": "as written"}
    assert name == "hostile" or base.get(name, "origin/main") in text
    if name == "regressed":
        assert text.index("A step takes 31 % longer than") < text.index("Base and head") < text.rindex("What grew")
        assert ["Step time", "100 ms", "131 ms", "+31 % (+28 to +34)", "5 %", "2.8 %", "worse"] in seen.cells
        assert "training/data.py:42 (changed here)" in text
