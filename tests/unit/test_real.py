"""What `benchmarks/real.py` reads from an examination of somebody's program, and the table that it makes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.benchmark import load

real = load("real")


def row(**changed: Any) -> Any:
    """A row in which all is as it should be."""
    values: dict[str, Any] = {
        "name": "someone/prog",
        "revision": "abc1234",
        "command": ["train.py"],
        "exit": 0,
        "failure": "",
        "verdict": "Training waits for data.",
        "finding": "input-bound",
        "sentence": "Training waits for data 60 % of the time.",
        "place": "train.py:7",
        "findings": ["input-bound"],
        "faster": ["workers 1.52×"],
        "warnings": [],
        "seconds": 200.0,
        "setup": 5.0,
        "promised": 245.0,
        "totals": ["3 min"],
        "passed": "",
        "silence": 4.0,
        "silent_after": "Starting the script",
        "terminal": False,
        "files": "",
        "processes": "",
        "doctor": "def5678",
    }
    return real.Row(**{**values, **changed})


# -- the progress ------------------------------------------------------------------------------------------------------


def test_the_longest_silence_may_be_at_the_start_between_two_texts_or_at_the_end() -> None:
    shown = [(12.0, "starting"), (15.0, "measuring"), (22.0, "done")]
    assert real.silence(shown, 10.0, 23.0) == (7.0, "measuring")
    assert real.silence(shown, 0.0, 23.0) == (12.0, "")
    assert real.silence(shown, 10.0, 40.0) == (18.0, "done")
    assert real.silence([], 10.0, 40.0) == (30.0, "")


def test_a_text_that_is_only_repeated_breaks_no_silence() -> None:
    shown = [(1.0, "starting"), (5.0, "starting"), (9.0, "starting"), (10.0, "measuring")]
    assert real.silence(shown, 0.0, 11.0) == (9.0, "starting")


def test_a_live_line_is_the_same_text_however_its_wheel_turns() -> None:
    frames = "\r\x1b[2K\x1b[32m⠋\x1b[0m Starting\r\x1b[2K\x1b[32m⠙\x1b[0m Starting"
    assert set(real.words_of(frames)) == {"Starting"}
    assert real.words_of("[  1.0 s] one\n[  2.0 s] two\n\n") == ["[  1.0 s] one", "[  2.0 s] two"]


def test_totals_are_named_where_they_change_and_the_first_that_was_passed_is_kept() -> None:
    texts = [
        "[10 s] Measuring: 8 workers (10 s of 3 min)",
        "[20 s] Measuring: 4 workers (20 s of 3 min)",
        "[30 s] process 2 (of 3)",
        "[3 min] Explaining (3 min 25 s of 3 min)",
        "[4 min] Explaining (3 min 30 s of 4 min)",
    ]
    assert real.totals(texts) == (["3 min", "4 min"], "3 min 25 s of 3 min")
    assert real.totals(["Trying settings (3 of 5 processes)"]) == ([], "")


# -- the promise -------------------------------------------------------------------------------------------------------


def test_without_a_budget_the_first_start_and_a_minute_of_explaining_come_on_top() -> None:
    assert real.promise(["train.py"], 20.0) == 180.0 + 20.0 + 60.0
    assert real.promise(["--no-explain", "train.py"], 20.0) == 200.0


def test_measuring_the_changed_program_has_a_time_of_its_own() -> None:
    shown = ["Trying (3 s of 4 min)", "Confirming it with the change made (1 s of 2 min)", "Pair 1 (9 s of 2 min)"]
    examining, confirming = real.parted(shown)
    assert (real.totals(examining)[0], real.totals(confirming)[0]) == (["4 min"], ["2 min"])
    assert real.parted(shown[:1]) == (shown[:1], [])


def test_more_is_promised_where_the_progress_said_so() -> None:
    assert real.promise(["train.py"], 20.0, ["4 min 20 s", "8 min"]) == 480.0
    assert real.promise(["train.py"], 20.0, ["4 min 20 s", "12 min"]) == 600.0
    assert real.promise(["train.py"], 20.0, ["2 min"]) == 260.0
    assert real.promise(["--budget", "2m", "train.py"], 20.0, ["8 min"]) == 120.0


def test_a_budget_is_all_there_is_and_options_of_the_script_are_none_of_ours() -> None:
    assert real.promise(["--budget", "2m", "train.py"], 20.0) == 120.0
    assert real.promise(["--budget=90s", "train.py"], 20.0) == 90.0
    assert real.promise(["train.py", "--", "--budget", "5s"], 20.0) == 260.0


def test_time_is_kept_up_to_three_percent_over() -> None:
    assert row(seconds=102.0, promised=100.0).good
    assert not row(seconds=104.0, promised=100.0).good
    assert row(seconds=50.0, promised=100.0).over == pytest.approx(-0.5)


@pytest.mark.parametrize("what", ["failure", "files", "processes"])
def test_a_row_with_anything_wrong_is_not_good(what: str) -> None:
    assert row().good
    assert not row(**{what: "changed: prog/train.py"}).good


# -- names and places --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["https://github.com/someone/prog.git", "git@github.com:someone/prog", "https://github.com/someone/prog/"]
)
def test_a_repository_is_named_by_its_owner_and_name(url: str) -> None:
    assert real.repository(url) == "someone/prog"


def test_a_folder_within_a_clone_is_part_of_the_name(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "main.py").write_text("")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "A program")
    git("remote", "add", "origin", "https://github.com/someone/prog.git")
    clone = real.clone_of((tmp_path / "mnist").resolve())
    assert (clone.top, clone.name) == (tmp_path.resolve(), "someone/prog/mnist")
    assert len(clone.revision) >= 7


def test_a_folder_without_git_goes_by_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    clone = real.clone_of(tmp_path)
    assert (clone.top, clone.name, clone.revision) == (tmp_path, tmp_path.name, "-")


def test_a_place_is_told_from_the_programs_folder_and_of_a_library_by_its_end() -> None:
    def at(file: str) -> dict[str, Any]:
        return {"site": {"file": file, "line": 7}}

    assert real.place_of(at("/x/prog/utils/data.py"), "/x/prog") == "utils/data.py:7"
    assert real.place_of(at("train.py"), "/x/prog") == "train.py:7"
    assert real.place_of(at("/venv/lib/site-packages/timm/data/loader.py"), "/x/prog") == "timm/data/loader.py:7"
    assert real.place_of({"site": None}, "/x/prog") == real.place_of(None, "/x/prog") == ""


# -- the table ---------------------------------------------------------------------------------------------------------


def test_the_outcome_is_a_word() -> None:
    assert real.outcome(row()) == "faster"
    assert real.outcome(row(faster=[])) == "reason"
    assert real.outcome(row(faster=[], finding="")) == "nothing"
    assert real.outcome(row(failure="exit code 3. No training loop was found.")) == "no report"


def test_the_table_has_a_line_for_each_row_and_shows_what_is_wrong() -> None:
    wrong = row(
        name="other/a|b", seconds=300.0, silence=31.0, files="new: x", processes="process 7", faster=[], finding=""
    )
    head, rule, *lines = real.markdown([row(), wrong]).splitlines()
    assert head.count("|") == rule.count("|") == lines[0].count("|")
    good = (
        "| someone/prog | abc1234 | faster | input-bound | `train.py:7` | workers 1.52× | 200 s | -18.4% | 4 s | yes |"
    )
    assert lines[0].startswith(good)
    assert "other/a\\|b" in lines[1]
    assert lines[1].endswith("| **+22.4%** | **31 s** | NO | NO |")


def test_the_sums_count_what_is_as_it_should_be() -> None:
    said = real.sums([row(), row(failure="exit code 3", finding=""), row(files="new: x", silence=12.0)])
    assert said.startswith("3 programs: a report of 2, a finding in 2, time kept to 3% in 3")
    assert "silent for 10 s in 2, unchanged files in 2, clean processes in 3" in said
