"""What the README and its neighbours tell people to type exists and is understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from bottleneck_doctor.cli import doctor
from bottleneck_doctor.errors import Exit

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
LINES = [line.partition("  #")[0].strip() for block in BLOCKS for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("doctor ")])
def test_commands_are_understood(line: str) -> None:
    words = shlex.split(line)[1:]
    with doctor.make_context("doctor", words[:1]) as context:
        command = doctor.get_command(context, words[0])
        assert command is not None
        command.make_context(words[0], words[1:], parent=context)


def test_named_fixes_exist() -> None:
    from bottleneck_doctor.fixes import catalogue

    named = re.findall(r"--(?:only|skip) ([a-z][\w-]*)", "\n".join(page.read_text("utf-8") for page in PAGES))
    assert set(named) <= {fix.id for fix in catalogue()}


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("make ")])
def test_make_targets_exist(line: str) -> None:
    target = line.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_all_commands_are_of_a_known_kind() -> None:
    assert {line.split()[0] for line in LINES} == {"doctor", "make", "pip", "uv"}


def test_exit_codes_are_the_real_ones() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert listed <= {int(code) for code in Exit}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


def test_every_command_is_in_the_readme() -> None:
    with click.Context(doctor) as context:
        for name in doctor.list_commands(context):
            assert f"doctor {name} " in README or f"doctor {name}\n" in README
