"""Options of the user's own program that may do what an edit does: named beside the edit, and nothing more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.documents.report import Change
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.runtime.wire.messages import Found, Site

ARGPARSE = """\
import argparse
import torch
from helpers import more
parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=1)
parser.add_argument('-a', '--amp', action='store_true', help='use mixed precision')
more(parser)
args = parser.parse_args()
for x in loader:
    loss = model(x).sum()
    loss.backward()
"""
HELPERS = """\
def more(parser):
    parser.add_argument('--amp_dtype', default='float16')
    parser.add_argument('--channels-last', action='store_true')
"""
CLICK = """\
import click
@click.command()
@click.option('--bf16/--no-bf16', default=False)
def main(bf16):
    for x in loader:
        loss = model(x).sum()
        loss.backward()
"""


def asked(folder: Path, script: str, *words: str, forward: int, knob: str = "autocast") -> list[Change]:
    path = folder / "train.py"
    path.write_text(script)
    (folder / "helpers.py").write_text(HELPERS)
    sites = [Site(file=str(path), line=line) for line in (forward, forward + 1)]
    found: Found = replace(FOUND, device="cpu", loader_site=None, forward_site=sites[0], backward_site=sites[1])
    return changes_for({knob: "bfloat16" if knob == "autocast" else True}, found, [str(path), *words])


def test_options_of_the_script_and_of_its_modules_are_named(tmp_path: Path) -> None:
    (only,) = asked(tmp_path, ARGPARSE, forward=10)
    assert "+    with torch.autocast(" in only.diff
    assert only.note == (
        "The program has options of its own that may do this: `--amp` (train.py, line 6) and `--amp_dtype` "
        "(helpers.py, line 2). `doctor try --args` measures what they bring."
    )


def test_one_option_of_click(tmp_path: Path) -> None:
    (only,) = asked(tmp_path, CLICK, forward=6)
    assert only.note == (
        "The program has an option of its own that may do this: `--bf16` (train.py, line 3). `doctor try --args` "
        "measures what it brings."
    )


def test_what_the_command_line_gives_is_not_named(tmp_path: Path) -> None:
    (only,) = asked(tmp_path, ARGPARSE, "--amp", forward=10)
    assert "`--amp_dtype`" in only.note
    assert "`--amp`" not in only.note
    (only,) = asked(tmp_path, ARGPARSE, "-a", "--amp_dtype=bfloat16", forward=10)
    assert only.note == ""


@pytest.mark.parametrize(
    ("knob", "said"), [("channels_last", "`--channels-last` (helpers.py, line 3)"), ("compiled", "")]
)
def test_each_change_has_options_of_its_own(tmp_path: Path, knob: str, said: str) -> None:
    changes = asked(tmp_path, ARGPARSE, forward=10, knob=knob)
    told = " ".join(change.note for change in changes)
    assert ("option" in told) == bool(said)
    assert said in told


def test_lines_are_those_of_the_file_as_it_is(tmp_path: Path) -> None:
    """Also beside another edit that writes a line above them."""
    path = tmp_path / "train.py"
    path.write_text(ARGPARSE.replace("import torch\n", ""))
    (tmp_path / "helpers.py").write_text(HELPERS)
    sites = [Site(file=str(path), line=line) for line in (9, 10)]
    found = replace(FOUND, device="cpu", loader_site=None, forward_site=sites[0], backward_site=sites[1])
    both = changes_for({"autocast": "bfloat16", "intra_op_threads": 1}, found, [str(path)])
    assert any("`--amp` (train.py, line 5)" in change.note for change in both)


UNFOLLOWED = """\
import argparse
import torch
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument('--num_workers', type=int, default=10)
parser.add_argument('--batch_size', type=int, default=8)
class Experiment:
    def __init__(self, args):
        self.args = args
    def train(self):
        for x in DataLoader(rows, num_workers=self.args.num_workers):
            model(x).sum().backward()
{made}(parser.parse_args()).train()
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), " `--num_workers` (train.py, line 5) may be that option."),
        (("--num_workers", "10"), ""),
    ],
)
def test_the_option_that_a_value_may_come_from_is_named(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(UNFOLLOWED.format(made="{'train': Experiment}['train']"))
    here = Site(file=str(path), line=11)
    found = replace(FOUND, device="cpu", num_workers=10, loader_site=here, forward_site=None, backward_site=None)
    (only,) = changes_for({"num_workers": 0}, found, [str(path), *words])
    told = "`self.args.num_workers` sets num_workers now. If it is an option of your program, set it to 0 there."
    assert only.note == told + said
