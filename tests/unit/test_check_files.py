"""Targets of a check's outputs: looked at before, written whole or not at all, all before the command ends."""

from __future__ import annotations

import io
import json
import os
import runpy
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.unit import stored_samples

from bottleneck_doctor.cli._check_outputs import asked, output_options
from bottleneck_doctor.documents import stored_baseline
from bottleneck_doctor.documents.check import Check
from bottleneck_doctor.documents.check_json import to_json
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.render.check import outputs
from bottleneck_doctor.render.check.outputs import OUTPUTS, Output, Wanted, prepare, wanted, write_all

GOLDEN = Path(__file__).parents[1] / "golden"
CHECKS: dict[str, Check] = runpy.run_path(str(GOLDEN / "checks.py"))["results"]()
ROOT = Path("/home/ada/pets")
NAMES = [output.name for output in OUTPUTS]


def write(asked_for: Wanted, check: Check = CHECKS["regressed"]) -> tuple[str, str]:
    """What went to stdout and to stderr."""
    out, err = io.StringIO(), io.StringIO()
    write_all(check, asked_for, ROOT, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def refusal(files: dict[str, Path | None], github: bool | None = False, **environment: str) -> DoctorError:
    with pytest.raises(DoctorError) as refused:
        wanted(files, github, environment)
    return refused.value


def test_all_are_written_and_overwritten(tmp_path: Path) -> None:
    files = {name: tmp_path / "new" / "folder" / f"check.{name}" for name in NAMES}
    for check in ("regressed", "passed", "passed"):
        # The second round also shows that each knows what the one before wrote.
        write(wanted(dict(files), False, {}), CHECKS[check])
        assert json.loads(files["json"].read_bytes())["status"] == check
        assert files["markdown"].read_text().startswith("<!-- bottleneck-doctor check -->")
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(f"check.{n}" for n in NAMES)
    assert files["json"].stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("name", NAMES)
def test_files_of_others_are_left_alone(tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "file"
    theirs.write_text('<testsuites name="pytest tests"></testsuites> "tool": {"name": "other"}')
    refused = refusal({name: theirs})
    assert refused.slug == "output-not-ours"
    assert f"--{name}" in refused.next_step
    theirs.write_text("\n")
    wanted({name: theirs}, False, {})


@pytest.mark.parametrize("name", ["json", "html"])
def test_documents_of_other_commands_are_left_alone(tmp_path: Path, name: str) -> None:
    """A baseline is the work of days; a report is another command's."""
    contents = [(GOLDEN / f"pets.{name}").read_bytes()]
    if name == "json":
        contents.append(stored_baseline.to_json(stored_samples.stored()))
    for content in contents:
        theirs = tmp_path / "file"
        theirs.write_bytes(content)
        assert refusal({name: theirs}).slug == "output-not-ours"


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refusal({"junit": tmp_path}).slug == "output-unwritable"
    assert refusal({"junit": tmp_path / "file" / "x.xml"}).slug == "output-unwritable"
    assert refusal({"junit": Path("/proc/nowhere/x.xml")}).slug == "output-unwritable"


def test_one_target_takes_one_output(tmp_path: Path) -> None:
    same = tmp_path / "x"
    (tmp_path / "link").symlink_to(same)
    for files in ({"json": same, "junit": tmp_path / "link"}, {"json": Path("-"), "markdown": Path("-")}):
        refused = refusal(dict(files))
        assert refused.slug == "usage"
        assert "--json" in refused.sentence
    prepare(Wanted({"json": Path(os.devnull), "junit": Path(os.devnull)}))


def test_a_dash_is_stdout_and_a_device_stays_one(tmp_path: Path) -> None:
    out, err = write(wanted({"json": Path("-"), "junit": Path(os.devnull)}, None, {}))
    assert json.loads(out)["status"] == "regressed"
    assert err == ""
    assert not Path(os.devnull).is_file()


def test_the_file_behind_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link.md", tmp_path / "there" / "real.md"
    link.symlink_to(target)
    write(wanted({"markdown": link}, False, {}))
    assert link.is_symlink()
    assert target.read_text().startswith("<!--")


def test_a_link_to_where_nothing_can_be_written_is_told_at_once(tmp_path: Path) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(tmp_path / "nowhere" / "real.md")
    with pytest.raises(DoctorError) as refused:
        prepare(wanted({"markdown": link}, False, {}))
    assert refused.value.slug == "output-unwritable"


def test_the_longest_name_that_there_may_be(tmp_path: Path) -> None:
    path = tmp_path / ("名" * 84 + ".md")
    write(wanted({"markdown": path}, False, {}))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_github_is_on_by_itself_there(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("Before.\n")
    there = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    out, _ = write(wanted({}, None, there))
    assert out.startswith("::error file=training/data.py,line=42,")
    assert summary.read_text().startswith("Before.\n<!-- bottleneck-doctor check -->")
    assert wanted({}, False, there) == Wanted()
    assert wanted({}, None, {"GITHUB_STEP_SUMMARY": str(summary)}) == Wanted()
    assert wanted({}, True, {}) == Wanted(github=True)


def test_annotations_leave_stdout_to_a_document(tmp_path: Path) -> None:
    out, err = write(wanted({"json": Path("-")}, True, {}))
    json.loads(out)
    assert err.startswith("::error ")


def test_a_summary_out_of_reach(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere" / "summary.md")
    assert refusal({}, True, GITHUB_STEP_SUMMARY=nowhere).slug == "output-unwritable"
    on_by_itself = wanted({}, None, {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": nowhere})
    assert on_by_itself == Wanted(github=True)


def test_a_summary_that_is_nearly_full_stays_within_its_limit(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    for taken in (1024 * 1024 - 600, 1024 * 1024, 1024 * 1024 + 5):
        summary.write_text("x" * taken)
        write(Wanted(github=True, summary=summary))
        assert summary.stat().st_size <= max(taken, 1024 * 1024)


def test_one_failure_keeps_nothing_else_from_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(check: Check, root: Path) -> str:
        raise ZeroDivisionError("of the renderer")

    changed = tuple(Output(o.name, o.help, broken, o.mark) if o.name == "junit" else o for o in OUTPUTS)
    monkeypatch.setattr(outputs, "OUTPUTS", changed)
    files = {name: tmp_path / name for name in NAMES}
    with pytest.raises(ZeroDivisionError):
        write(Wanted(files, github=True))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(set(NAMES) - {"junit"})


def test_a_full_disk_is_said_and_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    old = tmp_path / "check.md"
    old.write_text("old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DoctorError) as failed:
        write(Wanted({"markdown": old}))
    assert failed.value.slug == "output-failed"
    assert [path.name for path in tmp_path.iterdir()] == ["check.md"]
    assert old.read_text() == "old"


def test_a_reader_that_has_gone_is_no_failure(tmp_path: Path) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    files = {"json": Path("-"), "markdown": tmp_path / "x.md"}
    write_all(CHECKS["passed"], Wanted(files), ROOT, stdout=Gone(), stderr=io.StringIO())
    assert (tmp_path / "x.md").exists()


def test_stdout_on_a_full_disk_costs_no_file(tmp_path: Path) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    files = {"json": Path("-"), "markdown": tmp_path / "x.md"}
    with pytest.raises(DoctorError) as failed:
        write_all(CHECKS["passed"], Wanted(files), ROOT, stdout=Full(), stderr=io.StringIO())
    assert failed.value.slug == "output-failed"
    assert "Standard output" in failed.value.sentence
    assert (tmp_path / "x.md").exists()


def test_bytes_that_are_no_text_do_not_cost_the_document() -> None:
    odd = replace(CHECKS["passed"], commits=["f00 d\udce9j\udce0 vu"], command=["doctor", "check", "\udcff.py"])
    document = json.loads(to_json(odd))
    assert document["commits"] == ["f00 d\ufffdj\ufffd vu"]
    assert document["command"][2] == "\ufffd.py"


def test_options_are_made_from_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Wanted] = []

    @click.command()
    @output_options
    def command(**options: object) -> None:
        found.append(asked(options))

    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    names = [word for output in OUTPUTS for word in (output.option, str(tmp_path / output.name))]
    result = CliRunner().invoke(command, [*names, "--github"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert found == [Wanted({name: tmp_path / name for name in NAMES}, github=True, summary=found[0].summary)]
    assert CliRunner().invoke(command, ["--json", "-"], catch_exceptions=False).exit_code == 0
    assert found[1].takes_stdout
    assert not found[0].takes_stdout
