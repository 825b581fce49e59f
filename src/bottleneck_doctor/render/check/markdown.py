"""A check as Markdown for a comment or a step summary: a `Check` in, text for GitHub and GitLab out.

The sentence stands first and the table below it; what explains a finding is folded. Names and code of the user's are
shown as code, where neither service makes links, mentions or markup of them.
"""

from __future__ import annotations

import re

from bottleneck_doctor.documents.check import Check, Culprit, Metric
from bottleneck_doctor.wording import check_words, race_words, words
from bottleneck_doctor.wording.check_words import one_line

MARK = "<!-- bottleneck-doctor check -->"
"""The first line, by which a comment of an earlier check is found again."""
TRIED_MARK = "<!-- bottleneck-doctor try -->"
"""The same of an edit that was tried, which takes no check's place."""

ROWS = 50
"""Rows of a table, and entries of a list: a comment has at most 65 536 characters."""

DIFF_LINES = 200
"""Lines of an edit that are shown, for the same reason."""

_MARKUP = re.compile(r"([\\`*_\[\]<>~$]|^[#+-])")
_LINKS = re.compile(r"(?<![\w`])([@#])(?=\w)|(?<=\w)(://|@)(?=\w)")


def render(check: Check) -> str:
    """The whole text, ending in a newline."""
    parts = [MARK if check.edit is None else TRIED_MARK, f"### {sentence(check.sentence)}", _what(check)]
    raced = race_words.rows(check)
    parts += [_race(raced)] if raced else []
    shown = [each for each in check.metrics if check_words.is_shown(each)][:ROWS]
    if shown:
        parts.append(_table(check, shown))
    said = [f"- {sentence(each.sentence)}" for each in shown if each.verdict not in ("unchanged", "new")]
    said += [] if check.losses is None else [f"- {sentence(check.losses.sentence)}"]
    parts += ["\n".join(said)] if said else []
    parts += [_warnings(check)] if check.warnings else []
    if check.culprits:
        parts.append(_folded("What grew", _culprits(check, check.culprits[:ROWS])))
    if check.commits:
        commits = "\n".join(f"- {code(each)}" for each in check.commits[:ROWS])
        more = len(check.commits) - ROWS
        commits += f"\n- and {words.count_text(more, 'commit')} before" if more > 0 else ""
        parts.append(_folded(words.count_text(len(check.commits), "commit"), commits))
    if check.edit is not None:
        parts.append(_folded("What was tried", _tried(check)))
    parts.append(_folded("How this was measured", _method(check)))
    return "\n\n".join(parts) + "\n"


def sentence(text: str) -> str:
    """A sentence of ours with its `backticked` parts as code; the rest says what it says and formats nothing."""
    return "".join(code(part) if is_code else plain(part) for is_code, part in words.code_parts(one_line(text)))


def plain(text: str) -> str:
    """Text that formats nothing, links nothing and calls nobody."""
    shown = _MARKUP.sub(r"\\\1", re.sub(r"\s+", " ", words.visible(text)))
    # The comment splits a mention (`@ada`), a reference (`#12`) and an address, without being seen.
    return _LINKS.sub(lambda found: f"{found[0]}<!-- -->", shown.replace("&", "&amp;").replace("|", "&#124;"))


def code(text: str) -> str:
    """Text as code, in a table's cell too."""
    shown = one_line(text, 200) or " "
    if re.search(r"[`|\\]", shown):
        # A code span can't hold them everywhere: in a cell, a bar ends it even there.
        return f"<code>{re.sub(r'[^0-9A-Za-z /.,:=-]', lambda found: f'&#{ord(found[0])};', shown)}</code>"
    return f"`{shown}`"


def _what(check: Check) -> str:
    sides = f"{code(check_words.side_text(check.base))} → {code(check_words.side_text(check.head))}"
    return f"{code(words.command_text(check.entrypoint.argv))}: {sides}, {check_words.effort_text(check)}."


def _race(raced: list[race_words.Row]) -> str:
    rows = [f"| {' | '.join(race_words.HEAD)} |", "|---|--:|--:|--:|---|"]
    for row in raced:
        name, *figures, said = row.cells
        rows.append(f"| {code(name)} | {' | '.join(figures)} | {f'**{said}**' if row.bad else said} |")
    return "\n".join([*rows, "", race_words.NOTE])


def _table(check: Check, metrics: list[Metric]) -> str:
    sides = check_words.side_words(check)
    rows = [
        f"| | {sides.base_title.lower()} | {sides.head_title.lower()} "
        "| change (95 %) | threshold | smallest detectable | verdict |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for each in metrics:
        verdict = check_words.verdict_text(check, each)
        if check_words.fails(each):
            verdict = f"**{verdict}**"
        elif check_words.is_finding(each):
            verdict += " (warning)"
        cells = (
            plain(one_line(each.title)),
            check_words.value_text(each, each.base),
            check_words.value_text(each, each.head),
            check_words.change_text(each),
            check_words.amount_text(each.unit, each.threshold),
            check_words.amount_text(each.unit, each.smallest),
            verdict,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _warnings(check: Check) -> str:
    return "\n".join(f"- Note: {sentence(each.sentence)} {code(each.slug)}" for each in check.warnings[:ROWS])


def _culprits(check: Check, culprits: list[Culprit]) -> str:
    sides = check_words.side_words(check)
    titles = f"{sides.base_title.lower()}, a step | {sides.head_title.lower()}, a step"
    rows = [f"| | where | {titles} | |", "|---|---|--:|--:|---|"]
    for each in culprits:
        where = "" if each.site is None else code(check_words.site_text(each.site))
        changed = "changed here" if each.changed_here else ""
        base, head = words.duration_text(each.base), words.duration_text(each.head)
        rows.append(f"| {each.kind} {code(each.name)} | {where} | {base} | {head} | {changed} |")
    return "\n".join(rows)


def _tried(check: Check) -> str:
    rows = [f"- {sentence(each)}" for each in check_words.tried_texts(check)]
    diff = "" if check.edit is None else check.edit.diff
    if not diff:
        return "\n".join(rows)
    # Not splitlines: it also splits at characters that are part of a line of Python.
    lines = [words.visible(line) for line in diff.removesuffix("\n").split("\n")]
    # Longer than any run of backticks in it, so that none of them ends the block.
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", diff))])
    left = len(lines) - DIFF_LINES
    more = ["", f"{words.count_text(left, 'more line')} not shown."] if left > 0 else []
    return "\n".join([*rows, "", f"{fence}diff", *lines[:DIFF_LINES], fence, *more])


def _method(check: Check) -> str:
    rows = [
        f"- Error rate: {check_words.promise_text(check)}",
        f"- Time: {check_words.time_text(check)}.",
    ]
    if check.stored is not None:
        rows.append(f"- Baseline: {sentence(check_words.stored_text(check))}")
    if check.lent is not None:
        rows.append(f"- {sentence(check_words.lent_text(check))}")
    if check.steady:
        rows.append(
            "- Both sides ran with a steady memory allocator, which makes times vary less (`--no-steady` turns it off)."
        )
    environment = check.environment
    if environment is not None:
        devices = ", ".join(environment.devices) or f"{environment.usable_cpus} of {environment.total_cpus} CPUs"
        rows.append(f"- Machine: {plain(one_line(environment.cpu))}; {plain(one_line(devices))}.")
        system = f"Python {environment.python}, torch {environment.torch}, {environment.platform}"
        rows.append(f"- System: {plain(one_line(system))}.")
    rows.append(f"- {plain(check.tool.name)} {plain(check.tool.version)}, {plain(words.date_text(check.created))}.")
    if check.command:
        rows.append(f"- Command: {code(words.command_text(check.command))}")
    return "\n".join(rows)


def _folded(title: str, body: str) -> str:
    # Without the empty line the body would not be read as Markdown.
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"
