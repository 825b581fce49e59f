"""Writing a report: checked before any work, never over somebody else's file, never half."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bottleneck_doctor.documents.report import Entrypoint, Environment, Method, Result, Tool, Verdict, from_json
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.system import output

OURS_HTML = '<!doctype html><html><head><meta charset="utf-8"><meta name="generator" content="bottleneck-doctor 0.1.0">'


def make_result() -> Result:
    return Result(
        tool=Tool(name="bottleneck-doctor", version="0.1.0"),
        created="2026-01-01T00:00:00Z",
        entrypoint=Entrypoint(argv=["train.py"], cwd="/home/user"),
        environment=Environment(
            python="3.12.1",
            torch="2.6.0",
            platform="Linux",
            cpu="some",
            usable_cpus=2,
            total_cpus=2,
            memory_bytes=1,
            devices=[],
            variables={},
            fingerprint="f",
        ),
        verdict=Verdict(sentence="Nothing is faster."),
        baseline=None,
        noise=None,
        ceilings={},
        fixes=[],
        combination=None,
        workers=None,
        phases=None,
        utilization=None,
        profiles=None,
        findings=[],
        warnings=[],
        windows=[],
        method=Method(command=["doctor", "run"], seed=0, budget_seconds=1, seconds=1, ways="windows", sessions=[]),
    )


def files(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def test_makes_the_folder_and_leaves_no_trace_of_the_check(tmp_path: Path) -> None:
    output.prepare(tmp_path / "a" / "b")
    assert files(tmp_path / "a" / "b") == []


def test_writes_both_and_overwrites_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        output.prepare(tmp_path)
        output.write(tmp_path, make_result(), OURS_HTML + "é")
    assert files(tmp_path) == ["report.html", "report.json"]
    assert from_json((tmp_path / "report.json").read_bytes(), source="it") == make_result()
    assert (tmp_path / "report.html").read_text("utf-8") == OURS_HTML + "é"


def test_files_are_as_readable_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    output.write(tmp_path, make_result(), OURS_HTML)
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("report.json", ""),
        ("report.json", "[1, 2]"),
        ("report.json", '{"tool": "bottleneck-doctor"}'),
        ("report.json", '{"tool": {"name": "lighthouse"}}'),
        ("report.json", '{"tool": {"name": "bottleneck-doctor"'),
        ("report.html", "<html>"),
        ("report.html", '<meta name="generator" content="Hugo">bottleneck-doctor'),
        ("report.html", ""),
    ],
)
def test_leaves_what_is_not_ours_alone(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DoctorError) as caught:
        output.prepare(tmp_path)
    assert caught.value.slug == "output-not-ours"
    assert caught.value.exit_code == 2
    assert name in caught.value.sentence
    assert (tmp_path / name).read_text() == content


def test_a_folder_in_the_way_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(DoctorError) as caught:
        output.prepare(tmp_path)
    assert caught.value.slug == "output-not-ours"


def test_knows_its_own_by_the_generator_tag(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(OURS_HTML)
    (tmp_path / "report.json").write_text(json.dumps({"tool": {"name": "bottleneck-doctor"}}))
    output.prepare(tmp_path)
    (tmp_path / "report.html").write_text("<META content='bottleneck-doctor 0.9' name='generator'/>")
    output.prepare(tmp_path)
    (tmp_path / "report.html").write_bytes((Path(__file__).parents[1] / "golden" / "pets.html").read_bytes())
    output.prepare(tmp_path)


def test_says_why_a_folder_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        with pytest.raises(DoctorError) as caught:
            output.prepare(directory)
        assert caught.value.slug == "output-unwritable"
        assert str(directory) in caught.value.sentence


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_says_that_a_folder_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DoctorError) as caught:
        output.prepare(tmp_path)
    assert caught.value.slug == "output-unwritable"


def test_the_report_behind_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    behind = tmp_path / "kept" / "latest.html"
    behind.write_text(OURS_HTML)
    (tmp_path / "report.html").symlink_to(behind)
    output.prepare(tmp_path)
    output.write(tmp_path, make_result(), OURS_HTML + "new")
    assert (tmp_path / "report.html").is_symlink()
    assert behind.read_text() == OURS_HTML + "new"


def test_a_page_may_have_the_longest_name(tmp_path: Path) -> None:
    page = tmp_path / ("p" * 250 + ".html")
    output.prepare(tmp_path, (page.name,))
    output.write_page(page, OURS_HTML)
    assert files(tmp_path) == [page.name]


def test_a_full_disk_leaves_the_old_report_and_no_half_file(tmp_path: Path) -> None:
    output.write(tmp_path, make_result(), OURS_HTML)
    script = """
        import resource, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[2])
        from bottleneck_doctor.system import output
        from bottleneck_doctor.errors import DoctorError
        from bottleneck_doctor.documents.report import from_json
        directory = Path(sys.argv[1])
        result = from_json((directory / "report.json").read_bytes(), source="it")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # stands in for a full disk
        try:
            output.write(directory, result, "x" * 1_000_000)
        except DoctorError as error:
            print(error.slug)
    """
    source = Path(output.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path), str(source)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "output-failed\n"
    assert files(tmp_path) == ["report.html", "report.json"]
    assert (tmp_path / "report.html").read_text() == OURS_HTML


def test_a_folder_that_vanished_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(DoctorError) as caught:
        output.write_html(tmp_path / "gone", OURS_HTML)
    assert caught.value.slug == "output-failed"


def test_artifacts_lie_beside_the_report_and_replace_those_of_an_earlier_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "profile.raw").write_text("first")
    target = tmp_path / "out"
    output.prepare(target)
    output.write(target, make_result(), OURS_HTML, made)
    folder = target / output.ARTIFACTS_NAME
    assert (folder / "profile.raw").read_text() == "first"

    (made / "profile.raw").rename(made / "other.raw")
    output.prepare(target)
    output.write(target, make_result(), OURS_HTML, made)
    assert not (folder / "profile.raw").exists()
    assert (folder / "other.raw").exists()

    output.write(target, make_result(), OURS_HTML)
    assert files(target) == ["report.html", "report.json"]


def test_a_folder_of_that_name_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / output.ARTIFACTS_NAME
    theirs.mkdir()
    (theirs / "thesis.txt").write_text("years of work")
    with pytest.raises(DoctorError) as error:
        output.prepare(tmp_path)
    assert error.value.slug == "output-not-ours"
    assert (theirs / "thesis.txt").exists()
