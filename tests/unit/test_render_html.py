"""What a reader and a browser rely on in report.html."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from tests.reports import DRAWN, drawn, recorded
from tests.reports import invented as load

from bottleneck_doctor.documents.report import Change, FixOutcome, PeakMemory, Phases, PhaseTable, Result, Speedup
from bottleneck_doctor.render import engine, html, markup, terminal

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements, attributes and text of a page; fails on elements that are left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.drawings: list[tuple[dict[str, str | None], bool]] = []
        """Attributes of each outermost drawing, and whether it begins with a title."""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in <{tag}>"
        if tag == "svg" and "svg" not in self.open:
            self.drawings.append((dict(attrs), False))
        if tag == "title" and self.open[-1] == "svg" and self.open.count("svg") == 1:
            self.drawings[-1] = (self.drawings[-1][0], True)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text_of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


@pytest.fixture(params=DRAWN)
def page(request: pytest.FixtureRequest) -> Page:
    return Page(html.render(drawn(request.param)))


def policy_of(page: Page) -> str:
    return next(m["content"] or "" for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")


def sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_policy_allows_this_style_and_this_script_and_nothing_else(page: Page) -> None:
    style, (_, script) = page.text_of("style"), page.text_of("script")
    assert len(style) == 1
    assert policy_of(page) == (
        f"default-src 'none'; style-src '{sha256(style[0])}'; script-src '{sha256(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_styled_or_handled_inline_and_nothing_is_fetched(page: Page) -> None:
    assert len(page.all("style")) == 1
    assert [script.get("type") for script in page.all("script")] == ["application/json", None]
    for tag, attributes in page.elements:
        assert tag not in {"img", "link", "iframe", "object", "embed", "base", "form", "image", "use"}
        for name, value in attributes.items():
            assert name != "style"
            assert not name.startswith("on")
            if name in {"href", "src", "action", "xlink:href"}:
                assert (value or "").startswith("#")


def test_headings_landmarks_and_drawings_are_fit_for_a_screen_reader(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.all("main")) == 1
    for drawing in page.drawings:
        assert (drawing[0].get("role") == "img" and drawing[1]) or drawing[0].get("aria-hidden") == "true"
    assert len(page.all("caption")) == len(page.all("table"))
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    for tag, attributes in page.elements:
        for name in ("aria-labelledby", "href"):
            target = attributes.get(name)
            if target and tag != "meta":
                assert target.lstrip("#") in identifiers


def test_hostile_texts_stay_texts() -> None:
    text = html.render(load("hostile"))
    assert "alert(1)" in text
    assert "<img" not in text
    assert "onerror=alert(1)&gt;" in text
    assert "{{ 7*7 }}" in text, "the user's braces are not a template"
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert text.count("<script") == 2
    assert text.count("</script>") == 2


def test_embedded_data_is_the_result() -> None:
    result = load("hostile")
    data = next(text for text in Page(html.render(result)).text_of("script"))
    assert not set("<>&\u2028\u2029") & set(data)
    assert json.loads(data)["verdict"]["sentence"] == result.verdict.sentence


def cards(text: str) -> list[str]:
    return re.findall(r'<article class="card" id="fix-([^"]+)"', text)


def test_fixes_are_ordered_by_the_lower_end_of_the_interval() -> None:
    result = load("pets")
    fix = result.fixes[0]

    def faster(name: str, low: float, estimate: float, sessions: int = 3) -> FixOutcome:
        speedup = Speedup(estimate=estimate, low=low, high=estimate * 2 - low, pairs=6, sessions=sessions)
        return replace(fix, id=name, speedup=speedup)

    lucky, solid = faster("lucky", 1.1, 4.0), faster("solid", 1.9, 2.0)
    unknown = faster("unknown", 0.01, 9.0, sessions=1)
    text = html.render(replace(result, fixes=[unknown, lucky, solid], combination=None))
    assert cards(text) == ["solid", "lucky", "unknown"]


def test_verdict_change_and_worth_come_first() -> None:
    text = html.render(load("pets"))
    first = text[: text.index('id="fixes"')]
    assert "3.4× faster</span>" in first
    assert "train.py, line 42" in first
    assert "<b>, num_workers=4, persistent_workers=True</b>" in first


def promising_all(name: str = "pets") -> Result:
    """A report whose sentence promises the combination, which takes two edits."""
    result = load(name)
    assert result.combination is not None
    edits = [
        Change(file="train.py", line=42, diff="@@ -42 +42 @@\n-loader = old()\n+loader = new()\n"),
        Change(file="loop.py", line=7, diff="@@ -7 +7 @@\n-model(x)\n+model(x, fast=True)\n", note="And sleep well."),
    ]
    return replace(
        result,
        verdict=replace(result.verdict, together=True),
        combination=replace(result.combination, changes=edits),
    )


def test_every_edit_of_what_the_sentence_promises_is_shown_beside_it() -> None:
    result = promising_all()
    text = html.render(result)
    first = text[: text.index('id="fixes"')]
    assert "Change these 2 places" in first
    assert "3.6× faster</span>" in first
    for told in ("train.py, line 42", "loop.py, line 7", "And sleep well."):
        assert told in first
    assert "change line 42 of train.py and line 7 of loop.py, then measure" in terminal.render(
        result, report_path=None, width=None, color=False
    )
    # A report of an earlier release names one fix, and does not know of more.
    older = replace(result, verdict=replace(result.verdict, together=False))
    assert "Change this" in html.render(older)


def test_sections_without_evidence_are_left_out_and_named() -> None:
    text = html.render(recorded("no-baseline"))
    for section in ("fixes", "together", "workers"):
        assert f'id="{section}"' not in text
    for section in ("why", "step", "method"):
        assert f'id="{section}"' in text, "where the time goes is known before anything is measured"
    assert "Speed against number of workers" in text


def test_phases_are_shown_where_they_were_measured() -> None:
    phases = Phases(
        data_wait=0.73, host_to_device=0, forward=0.1, backward=0.12, optimizer=0.02, zero_grad=0.01, between=0.02
    )
    text = html.render(replace(load("pets"), phases=PhaseTable(baseline=phases, best=phases)))
    assert 'id="step"' in text
    assert "Waiting for data" in text
    assert "Where the time of one step goes" not in text
    assert 'id="step"' in html.render(replace(load("pets"), phases=PhaseTable(baseline=phases)))


def test_what_no_examination_produces_is_not_drawn() -> None:
    """Fields that may still be in a report.json, and that nothing has ever written."""
    result = load("pets")
    bare = [replace(fix, memory=None, numerics=None) for fix in result.fixes]
    filled = [replace(fix, memory={"main_bytes": 10**9}, numerics={"as written": [3.0, 2.0]}) for fix in result.fixes]
    session = result.method.sessions[0]

    def drawn(fixes: list[FixOutcome], log: str) -> str:
        method = replace(result.method, sessions=[replace(session, log=log)])
        text = html.render(replace(result, fixes=fixes, method=method))
        return text[text.index("<main") : text.index("</main>")]

    assert drawn(filled, "session-1.log") == drawn(bare, "")


def test_memory_is_told_on_the_card_and_in_the_verdict_only_if_it_is_much() -> None:
    result = load("pets")
    gib = float(1 << 30)

    def drawn(changed: float) -> str:
        held = [PeakMemory(where="host", written=2 * gib, changed=changed)]
        combination = result.combination and replace(result.combination, peak_memory=held)
        fixes = [replace(fix, peak_memory=held) for fix in result.fixes]
        return html.render(replace(result, fixes=fixes, combination=combination, confirmation=None))

    assert "<dt>Memory</dt><dd>no more than as written (2 GiB)</dd>" in drawn(2 * gib)
    assert "It needs" not in drawn(2.1 * gib)
    assert "<strong>Memory:</strong> It needs 1 GiB more memory: 3 GiB, 2 GiB as written." in drawn(3 * gib)


def test_figures_that_are_not_finite_read_as_dashes() -> None:
    result = load("pets")
    assert result.baseline is not None
    assert result.workers is not None
    nothing = Speedup(estimate=math.nan, low=-math.inf, high=math.inf, pairs=1, sessions=1)
    fixes = [replace(fix, speedup=nothing, steady=nothing, confirmed=nothing) for fix in result.fixes]
    curve = [replace(point, speedup=nothing, steady=nothing) for point in result.workers.curve]
    broken = replace(
        result,
        baseline=replace(result.baseline, samples_per_second=math.inf, step_ms=math.nan),
        ceilings={"synthetic": nothing},
        fixes=fixes,
        workers=replace(result.workers, curve=curve),
        windows=[replace(result.windows[0], seconds=math.nan, wait_seconds=math.inf)],
    )
    text = html.render(broken)
    body = text[text.index("<main") : text.index("</main>")]
    assert not re.search(r"\b(nan|inf)\b", body)
    Page(text)


def test_a_long_report_stays_below_a_megabyte() -> None:
    result = load("pets")
    fixes = [replace(result.fixes[index % 10], id=f"fix-{index}") for index in range(60)]
    windows = [replace(result.windows[index % 40], reason="x" * 300) for index in range(20_000)]
    text = html.render(replace(result, fixes=fixes, windows=windows))
    assert len(text.encode()) < 1_000_000
    assert f"The first {html.WINDOW_ROWS} of 20000" in text
    assert len(cards(text)) == 18
    assert "10 more, with smaller gains" in text
    Page(text)


def test_a_build_log_as_a_reason_is_cut() -> None:
    result = load("pets")
    text = html.render(replace(result, fixes=[replace(result.fixes[-1], reason="error " * 500_000)]))
    assert len(text.encode()) < 1_000_000


def test_diff_is_shown_without_common_indentation_and_with_the_change_set_apart() -> None:
    lines = markup.diff_lines("@@ -4 +4 @@\n-    load(data)\n+    load(data, num_workers=4)\n")
    assert lines == [
        markup.DiffLine("removed", "load(data)"),
        markup.DiffLine("added", "load(data", ", num_workers=4", ")"),
    ]


def test_a_diff_of_several_hunks_keeps_their_places() -> None:
    lines = markup.diff_lines("@@ -1 +1 @@\n-a\n+b\n@@ -9,0 +10 @@\n+c\n")
    assert [line.kind for line in lines] == ["place", "removed", "added", "place", "added"]


def test_what_cannot_be_copied_in_full_is_not_offered() -> None:
    change = Change(file="train.py", line=1, diff="@@ -1 +1 @@\n-a\n+" + "b" * 5000)
    assert markup.copies(change, "train.py") == ("", "")
    assert markup.copies(replace(change, diff="@@ -1 +1 @@\n-a\n+  b\n"), "train.py")[0] == "  b"
    # No tool reads a patch whose lines are numbered by cells.
    assert markup.copies(replace(change, diff="@@ -2001 +2001 @@\n-a\n+b\n"), "train.ipynb") == ("b", "")


@pytest.mark.parametrize("name", ["report.css", "report.js"])
def test_assets_cannot_end_their_element(name: str) -> None:
    assert "</" not in (engine.templates_folder() / name).read_text(encoding="utf-8")
