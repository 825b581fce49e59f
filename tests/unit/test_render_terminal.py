"""What a reader relies on at the end of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.reports import invented as load
from tests.reports import recorded

from bottleneck_doctor.documents.report import Change, Status
from bottleneck_doctor.knobs import allocator
from bottleneck_doctor.render import terminal
from bottleneck_doctor.wording import patch_words, ranking


def test_says_verdict_ranking_report_and_next_step_in_this_order() -> None:
    text = terminal.render(load("pets"), report_path="out/report.html", width=120, color=False)
    marks = [
        "Training waits for data 73 %",
        "Why:",
        "1.95 s of it pass before its batch is there. (train.py:58)",
        "`ColorJitter` takes 11.8 ms a sample",
        "Keep workers between epochs",
        "Load in worker processes",
        "2 warnings",
        "Report: out/report.html",
        "Next:   change line 42 of train.py",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert text.endswith("\n")


def test_at_most_three_reasons_are_told() -> None:
    result = load("pets")
    assert len(result.findings) > 3
    text = terminal.render(result, report_path=None, width=200, color=False)
    told = [finding for finding in result.findings if finding.sentence in text]
    assert told == result.findings[:3]
    assert "Why:" not in terminal.render(replace(result, findings=[]), report_path=None, width=200, color=False)


def test_the_advice_is_told_with_its_worth_where_nothing_is_faster() -> None:
    result = load("undecided")
    first = replace(load("pets").findings[0], sentence="The optimizer takes 80 %.", advice="Fuse it.", at_most=5.0)
    text = terminal.render(replace(result, findings=[first]), report_path=None, width=200, color=False)
    assert "What to do: Fuse it. If this took no time, training would be 5.0× as fast." in text
    unknown = replace(result, findings=[replace(first, at_most=None)])
    assert "If this took" not in terminal.render(unknown, report_path=None, width=200, color=False)


def test_a_line_to_change_is_said_from_the_folder_of_the_run() -> None:
    """Reports hold whole paths; one of them would fill the column and break in the middle of a name."""
    text = terminal.render(recorded("pets"), report_path=None, width=None, color=False)
    assert "examples/pets/train.py:100" in text
    assert "Next:   change lines 100 and 112 of examples/pets/train.py, then measure again" in text
    assert recorded("pets").entrypoint.cwd not in text


def test_each_part_of_a_promise_has_a_row_though_it_is_not_sure_alone() -> None:
    result = recorded("pets")
    parts = ranking.together(result)
    assert len(parts) == 2
    assert result.combination is not None
    assert {**parts[0].setting, **parts[1].setting} == result.combination.setting

    def rows(status: Status) -> list[str]:
        fixes = [replace(fix, status=status) if fix.id in ids else fix for fix in result.fixes]
        text = terminal.render(replace(result, fixes=fixes), report_path=None, width=300, color=False)
        return text[text.index("Fix ") :].splitlines()

    ids = [fix.id for fix in parts]
    sure, none = rows("faster"), rows("cannot_tell")
    assert sure[1].startswith("2 fixes together")
    assert "lines 100 and 112 of" in sure[1]
    assert "not sure alone" not in "".join(sure)
    assert [row.startswith(fix.title) and "not sure alone" in row for row, fix in zip(none[2:4], parts, strict=True)]
    # What has a row is not counted below.
    counts = [next(row for row in each if row.startswith("Other fixes: ")) for each in (sure, none)]
    assert counts[0] == counts[1]


def test_a_change_that_touches_several_places_names_them() -> None:
    """What two fixes do in one file is one change where their lines lie within each other."""
    diff = "@@ -3,1 +3,2 @@\n a\n+b\n@@ -41,3 +42,3 @@\n c\n-d\n+e\n f\n"
    change = Change(file="train.py", line=42, diff=diff)
    assert patch_words.lines_of(change) == [4, 42]
    assert patch_words.lines_of(replace(change, diff="")) == [42]
    assert patch_words.lines_of(replace(change, diff="@@ what")) == [42]
    assert patch_words.lines_of(replace(change, file="train.ipynb")) == [42]
    many = "".join(f"@@ -{line},1 +{line},1 @@\n-a\n+b\n" for line in range(10, 60, 10))
    assert patch_words.lines_of(replace(change, diff=many)) == [42]


def test_variables_that_belong_to_a_change_are_told_with_it() -> None:
    """Its lines alone bring less than was promised."""
    result = load("pets")
    named = next(each for each in result.fixes if each.id == result.verdict.fix)
    with_variables = replace(named, setting=allocator.kept(named.setting))
    result = replace(result, fixes=[with_variables if each is named else each for each in result.fixes])
    text = " ".join(terminal.render(result, report_path=None, width=400, color=False).split())
    variables = " ".join(f"{name}={value}" for name, value in allocator.KEEPING.items())
    assert f"Next: change line 42 of train.py, put {variables} before the command, then measure again" in text


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([("train.py", 42)], "change line 42 of train.py, then"),
        ([("train.py", 42), ("train.py", 42)], "change line 42 of train.py, then"),
        ([("train.py", 0)], "change train.py, then"),
        (
            [("train.py", 42), ("model.py", 3), ("train.py", 57), ("conf.py", 0)],
            "change lines 42 and 57 of train.py, line 3 of model.py and conf.py, then",
        ),
    ],
)
def test_the_next_step_names_each_file_once(places: list[tuple[str, int]], said: str) -> None:
    result = recorded("pets")
    assert result.combination is not None
    changes = [Change(file=file, line=line, diff="") for file, line in places]
    result = replace(result, combination=replace(result.combination, changes=changes))
    assert said in terminal.render(result, report_path=None, width=200, color=False)


def test_without_colour_there_are_no_escapes_and_with_colour_there_are() -> None:
    result = load("pets")
    assert "\x1b" not in terminal.render(result, report_path=None, width=80, color=False)
    assert "\x1b[" in terminal.render(result, report_path=None, width=80, color=True)


def test_the_users_texts_cannot_drive_the_terminal() -> None:
    text = terminal.render(load("hostile"), report_path="\x1b]0;evil\x07", width=80, color=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
    result = load("pets")
    marked = replace(result.fixes[0], title="[bold]title[/bold] :smile:")
    assert "[bold]title[/bold] :smile:" in terminal.render(
        replace(result, fixes=[marked]), report_path=None, width=160, color=False
    )


def test_lines_fit_the_width_but_what_is_copied_is_never_broken() -> None:
    path = "/a-rather-long-folder-name" * 6 + "/report.html"
    text = terminal.render(load("pets"), report_path=path, width=60, color=False)
    assert path in text
    long = [line for line in text.splitlines() if len(line) > 60]
    assert all(line.startswith(("Report:", "Next:")) for line in long)


def test_next_step_follows_the_outcome() -> None:
    nothing_yet = terminal.render(recorded("no-baseline"), report_path=None, width=None, color=False)
    assert "let it run to its end, to measure what helps" in nothing_yet
    open_fix = terminal.render(recorded("interrupted"), report_path=None, width=None, color=False)
    assert "let it run to its end" in open_fix
    assert "measure again after your next change" in terminal.render(
        recorded("bare-loop"), report_path=None, width=None, color=False
    )
    result = load("pets")
    unplaced = [replace(fix, change=Change(file="train.py", line=0, diff="")) for fix in result.fixes]
    text = terminal.render(replace(result, fixes=unplaced), report_path=None, width=None, color=False)
    assert "change train.py, then measure again" in text


@pytest.mark.parametrize(
    ("budget", "command", "said"),
    [
        (30.0, "doctor run --budget 30s --seed 7 train.py", "doctor run --budget 180s --seed 7 train.py"),
        (600.0, "doctor run --seed 7 --budget 600s train.py", "doctor run --seed 7 --budget 1200s train.py"),
        (
            180.0,
            "doctor run --seed 7 train.py -- --budget 9",
            "doctor run --seed 7 --budget 360s train.py -- --budget 9",
        ),
        (180.0, "doctor run --seed 7 -m pets -- --budget 9", "doctor run --seed 7 --budget 360s -m pets -- --budget 9"),
    ],
)
def test_more_time_is_offered_and_not_the_same_again(budget: float, command: str, said: str) -> None:
    result = recorded("interrupted")
    method = replace(result.method, command=command.split(), budget_seconds=budget)
    entrypoint = replace(result.entrypoint, argv=["train.py"] if " train.py" in command else ["-m", "pets"])
    result = replace(result, warnings=[], noise=None, method=method, entrypoint=entrypoint)
    text = terminal.render(result, report_path=None, width=None, color=False)
    assert f"give it more time, to decide what is still open: {said}\n" in text
