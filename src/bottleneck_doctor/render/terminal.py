"""The end of a run on the terminal: the verdict and why, the first rows of the ranking, what to do next.

A `Result` goes in, text comes out; with `color` it holds terminal escapes, without it nothing but plain lines. What
the user wrote is shown without its control characters, so that a file name can't drive the terminal.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Change, FixOutcome, Result, Site, Speedup
from bottleneck_doctor.render import patches
from bottleneck_doctor.render.console import text_console
from bottleneck_doctor.render.flame import short_path
from bottleneck_doctor.render.sections.applying import applying
from bottleneck_doctor.runtime.wire.notebooks import is_notebook
from bottleneck_doctor.wording import (
    doubt,
    durations,
    memory_words,
    patch_words,
    promise_words,
    ranking,
    rates,
    run_words,
    words,
)
from bottleneck_doctor.wording.command_words import measured_again

FIRST_ROWS = 5
FIRST_WARNINGS = 3
FIRST_REASONS = 3
PLAIN_WIDTH = 100
LEAST_LONGER = 180.0
"""Seconds of the budget that is offered at least where one was too small: in so many an ordinary script is decided."""
ACCENT = "cyan"


def render(result: Result, *, report_path: str | None, width: int | None, color: bool) -> str:
    """The summary, ending in a newline. `width`: columns of the terminal, None where there is none."""
    console = text_console(max(width or PLAIN_WIDTH, 40), color=color)
    console.print()
    console.print(_sentence(result.verdict.sentence, "bold", color))
    if result.baseline is not None:
        console.print(Text(_speeds(result), style="dim" if color else ""))
    run = run_words.sentence(result)
    if run:
        console.print(_sentence(run, "dim", color))
    for confirmation in ranking.confirmations(result):
        said = (
            f"{promise_words.label(confirmation)}: {confirmation.sentence} {promise_words.memory(confirmation)}".strip()
        )
        console.print(_sentence(said, "dim", color))
    if memory := memory_words.promise(result):
        console.print(_sentence(memory, "dim", color))
    if result.ranks:
        console.print(Text(f"Measured in {words.ranks_text(result.ranks)}.", style="dim" if color else ""))
    reasons, faster = ranking.reasons(result)[:FIRST_REASONS], ranking.ranked(result)
    if reasons:
        console.print()
        console.print(Text("Why:", style="bold" if color else ""))
    for finding in reasons:
        place = f" ({_place(finding.site, result)})" if finding.site else ""
        line = Text("- ").append(_sentence(finding.sentence, "", color)).append(place, style="dim" if color else "")
        console.print(Padding(line, (0, 0, 0, 2)))
        if finding is reasons[0] and ranking.advised(result, finding):
            said = f"What to do: {finding.advice} {words.spared_text(ranking.at_most(result, finding))}".rstrip()
            console.print(Padding(_sentence(said, "", color), (0, 0, 0, 4)))
    together = ranking.together(result)
    unsure = [fix for fix in together if fix.status != "faster"]
    if faster or together:
        console.print()
        console.print(_table([*faster[:FIRST_ROWS], *unsure], len(together), result))
    likely = ranking.open_fixes(result)
    if likely:
        console.print()
        console.print(Text("Not yet sure, best chance first:", style="bold" if color else ""))
        console.print(Padding(_open_table(likely[:FIRST_ROWS], result), (0, 0, 0, 2)))
    rest = _rest(result, len(faster), [*likely[:FIRST_ROWS], *unsure])
    if rest:
        console.print(Padding(Text(rest, style="dim" if color else ""), (1, 0, 0, 0)))
    if result.warnings:
        console.print()
        console.print(Text(words.count_text(len(result.warnings), "warning") + ":", style="bold" if color else ""))
        for warning in result.warnings[:FIRST_WARNINGS]:
            line = Text("- ").append(_sentence(warning.sentence, "", color)).append(f" [{warning.slug}]")
            console.print(Padding(line, (0, 0, 0, 2)))
        if len(result.warnings) > FIRST_WARNINGS:
            console.print(f"  - {len(result.warnings) - FIRST_WARNINGS} more in the report")
    console.print()
    files = words.protection_text(result.method.protection)
    if files:
        console.print(_sentence(f"Files:  {files}", "", color))
    if report_path is not None:
        # Never wrapped: a path that is broken over two lines can't be opened.
        console.print(Text(f"Report: {words.visible(report_path)}"), soft_wrap=True)
        _print_applying(result, report_path, console)
    console.print(Text(f"Next:   {_next(result)}"), soft_wrap=True)
    if words.has_masked(result.method.command):
        console.print(Text(f"        {words.MASKED_NOTE}"), soft_wrap=True)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().split("\n"))


def _print_applying(result: Result, report_path: str, console: Console) -> None:
    """The command that makes the promised change, where one can, and the patch that does the same."""
    promise = ranking.promise(result)
    folder = str(Path(report_path).parent)
    how = None if promise is None else applying(result, promise.changes, patches.HEADLINE)
    if how is not None:
        command = words.command_text(words.visible(word) for word in patch_words.apply_command(folder))
        console.print(Text(f"Apply:  {command} (or {words.visible(str(Path(folder) / how.patch))})"), soft_wrap=True)
        for sentence in how.rest:
            console.print(Padding(Text(words.visible(sentence)), (0, 0, 0, 8)))


def _sentence(sentence: str, style: str, color: bool) -> Text:
    """With colour, code stands out by colour; without, by its backticks."""
    text = Text(style=style if color else "")
    for is_code, part in words.code_parts(words.visible(sentence)):
        if is_code and color:
            text.append(part, style=ACCENT)
        else:
            text.append(f"`{part}`" if is_code else part)
    return text


def _place(site: Site, result: Result) -> str:
    return words.visible(words.site_text(short_path(site.file, result.entrypoint.cwd), site.line))


def _speeds(result: Result) -> str:
    """`Now 12.0 samples/s; best measured 41.2; 45.0 if every batch were ready at once.`"""
    assert result.baseline is not None
    rate = rates.rate(result.baseline)
    now = rate.of(result.baseline.samples_per_second)
    parts = [f"Now {words.amount_text(now)} {rate.short}"]
    best, ceiling = ranking.best_measured(result), ranking.ceiling(result)
    if best is not None:
        parts.append(f"best measured {words.amount_text(now * best.speedup.estimate)}")
    if ceiling is not None:
        name, speedup = ceiling
        most = words.amount_text(now * speedup.estimate)
        parts.append(f"{most} {words.ceiling_text(name)}")
    return "; ".join(parts) + "."


def _table(fixes: list[FixOutcome], together: int, result: Result) -> Table:
    """What is promised together in the first row, if that is several fixes, of which there are `together`; then the
    fixes. Some of what is promised may not be surely faster by itself."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", collapse_padding=True)
    table.add_column("Fix", overflow="fold", ratio=2)
    table.add_column(f"Speedup [{words.share_text(result.method.confidence)}]", no_wrap=True)
    table.add_column("Change", overflow="fold", ratio=3)
    table.add_column("Risk", no_wrap=True)
    bold, whole, promised = f"bold {ACCENT}", result.combination, ranking.promise(result)
    if together and promised is not None and whole is not None:
        title, ratio = f"{words.count_text(together, 'fix')} together", _ratio(promised.speedup)
        places = _places(promised.changes, result) or words.setting_text(promised.setting, whole=True)
        table.add_row(title, Text(ratio, style=bold), Text(words.visible(places)), Text(whole.risk))
    for fix in fixes:
        is_sure = fix.status == "faster"
        table.add_row(
            Text(words.visible(fix.title)),
            Text(_ratio(fix.speedup), style=bold) if is_sure else Text("not sure alone"),
            Text(words.visible(_change(fix, result))),
            Text(fix.risk),
        )
    return table


def _open_table(fixes: list[FixOutcome], result: Result) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False, collapse_padding=True)
    table.add_column("Chance", no_wrap=True)
    table.add_column("Change", overflow="fold", ratio=3)
    table.add_column("Seen", overflow="fold", ratio=2)
    for fix in fixes:
        table.add_row(
            Text(doubt.chance_text(fix), style=f"bold {ACCENT}" if fix.chance and fix.chance >= ranking.LIKELY else ""),
            Text(words.visible(_change(fix, result))),
            Text(doubt.looked_text(fix)),
        )
    return table


def _ratio(speedup: Speedup | None) -> str:
    if speedup is None:
        return words.DASH
    if not words.has_interval(speedup):
        return f"{words.estimate_text(speedup)} [no interval yet]"
    return f"{words.estimate_text(speedup)} [{words.interval_text(speedup)}]"


def _change(fix: FixOutcome, result: Result) -> str:
    if fix.change is None:
        return words.setting_text(fix.setting, ranking.device(result), whole=True) if fix.setting else ""
    if knobs.is_by_variables(fix.setting):
        return f"before the command: {words.setting_text(fix.setting, whole=True)}"
    setting = words.setting_text(fix.setting, ranking.device(result)) if fix.setting else ""
    file = short_path(fix.change.file, result.entrypoint.cwd)
    place = words.site_text(file, fix.change.line)
    return f"{place}  {setting}".rstrip()


def _rest(result: Result, faster: int, told: Sequence[FixOutcome]) -> str:
    """What isn't in a table, counted: `2 more faster, 3 no difference, 1 cannot tell.` `told`: what is in one though it
    is not surely faster."""
    ids = {fix.id for fix in told}
    counts = [(faster - FIRST_ROWS, "more faster")] if faster > FIRST_ROWS else []
    for status in ranking.FOLDED:
        found = sum(1 for fix in result.fixes if fix.status == status and fix.id not in ids)
        counts.append((found, words.STATUS_WORDS[status].lower()))
    said = [f"{count} {what}" for count, what in counts if count]
    title = "Other fixes" if faster or told else "Fixes"
    return f"{title}: {', '.join(said)}." if said else ""


def _next(result: Result) -> str:
    """What to do with this outcome: change the line, or give it more time, or run it again."""
    promise = ranking.promise(result)
    again = measured_again(result, () if promise is None else promise.changes)
    if promise is not None and knobs.is_by_variables(promise.setting):
        before = words.setting_text(promise.setting, whole=True)
        return f"put {before} before the command that starts the training, then measure again: {again}"
    if promise is not None and any(change.words for change in promise.changes):
        # No line is changed for these, or not only.
        edited = [change for change in promise.changes if change.diff]
        said = [f"Change {_places(edited, result)}."] if edited else []
        said += [change.note for change in promise.changes if change.words]
        return f"{words.visible(' '.join(said))} Then measure again: {again}"
    if promise is not None and promise.changes:
        variables = knobs.by_variables(promise.setting)
        also = f", put {words.setting_text(variables, whole=True)} before the command" if variables else ""
        return f"change {words.visible(_places(promise.changes, result))}{also}, then measure again: {again}"
    interrupted = any(warning.slug == "interrupted" for warning in result.warnings)
    if interrupted and result.baseline is None:
        return f"let it run to its end, to measure what helps: {again}"
    settle = result.verdict.settle
    if any(fix.status == "cannot_tell" for fix in result.fixes):
        if interrupted and settle is None:
            return f"let it run to its end, to decide what is still open: {again}"
        if settle is not None:
            command = words.command_text(words.visible(word) for word in settle.command)
            return f"make sure, in about {durations.spoken_duration(settle.seconds)}: {command}"
        doubted = any(fix.chance is not None for fix in result.fixes)
        if ranking.too_noisy(result) or ranking.open_fixes(result):
            busy = any(warning.slug == "other-load" for warning in result.warnings)
            quiet = "stop the other programs on this machine, then" if busy else "when the machine is quiet,"
            return f"{quiet} measure again: {again}"
        if not doubted or any(fix.status == "cannot_tell" and fix.speedup is None for fix in result.fixes):
            longer = words.command_text(words.visible(word) for word in _longer(result))
            return f"give it more time, to decide what is still open: {longer}"
    return f"measure again after your next change: {again}"


def _places(changes: Sequence[Change], result: Result) -> str:
    """`line 42 of train.py`, `lines 42 and 57 of train.py and line 3 of model.py`; the file alone without a line."""
    lines: dict[str, list[int]] = {}
    for change in changes:
        lines.setdefault(short_path(change.file, result.entrypoint.cwd), []).extend(patch_words.lines_of(change))
    places = []
    for file, here in lines.items():
        lines_of = [line for line in dict.fromkeys(here) if line > 0]
        known = [str(line) for line in lines_of]
        if is_notebook(file):
            places.append(words.listed([f"{words.line_text(file, line)} of {file}" for line in lines_of]) or file)
        else:
            places.append(f"{words.plural('line', len(known))} {words.listed(known)} of {file}" if known else file)
    return words.listed(places)


def _longer(result: Result) -> list[str]:
    """The command that does the same in more time."""
    command = result.method.command
    entrypoint = {*result.entrypoint.argv[:1], "-m", "--exec"}
    own = next((index for index, word in enumerate(command) if word in entrypoint), len(command))
    budget = ["--budget", f"{max(LEAST_LONGER, 2 * result.method.budget_seconds):g}s"]
    if "--budget" in command[:own]:
        at = command.index("--budget")
        return [*command[:at], *budget, *command[at + 2 :]]
    return [*command[:own], *budget, *command[own:]]
