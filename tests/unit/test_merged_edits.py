"""Several edits at once: whole texts, diffs that fit one another, and values that calls and switches take from
elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND
from tests.unit.test_call_sites import patched

from bottleneck_doctor.documents.report import Change, Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.edits.drafts import Drafts
from bottleneck_doctor.edits.origin.command_line import CommandLine
from bottleneck_doctor.edits.project import FilesOnDisk
from bottleneck_doctor.runtime.wire.messages import Found, Site

SCRIPT = """\
import gc
import torch
from torch.utils.data import DataLoader

def main(args):
    model = Net()
    loader = DataLoader(data, num_workers=args.workers)
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(3):
        for images, labels in loader:
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            gc.collect()

if __name__ == "__main__":
    from options import parser
    main(parser.parse_args())
"""
OPTIONS = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--threads", type=int, default=8)
parser.add_argument("--debug", action="store_true", default=True)
"""
FORMAT = ".to(memory_format=torch.channels_last)"


@dataclass(frozen=True)
class Texts:
    """A project of texts, all in one folder."""

    texts: Mapping[str, str]

    def text(self, path: str) -> str | None:
        return self.texts.get(path)

    def module(self, name: str, importer: str) -> str | None:
        return f"/{name}.py" if f"/{name}.py" in self.texts else None

    def file(self, written: str) -> str:
        return f"/{written}"


def of(script: str, **others: str) -> Texts:
    return Texts({"/train.py": script, **{f"/{name}.py": text for name, text in others.items()}})


def found_in(script: str, **values: object) -> Found:
    """What the guest finds of the script, by the words of its lines."""

    def site(word: str) -> Site | None:
        line = next((number for number, text in enumerate(script.split("\n"), 1) if word in text), None)
        return None if line is None else Site(file="/train.py", line=line)

    found = replace(FOUND, device="cpu", has_loader=False)
    sites = {
        "loader_site": site("DataLoader("),
        "forward_site": site("model(images"),
        "backward_site": site("backward("),
    }
    return replace(found, **{**sites, **values})  # type: ignore[arg-type]


EVERYTHING: Setting = {
    "num_workers": 4,
    "persistent_workers": True,
    "channels_last": True,
    "autocast": "bfloat16",
    "cleanup_calls": False,
    "fused_optimizer": True,
    "intra_op_threads": 2,
}


def test_all_edits_of_a_setting_are_one_text_a_file() -> None:
    project = of(SCRIPT, options=OPTIONS)
    lines = [["gc.collect", "/train.py", 14, 9]]
    found = found_in(SCRIPT, facts={"cleanup_calls": {"lines": lines, "steps": 9}})
    files = edited_files(EVERYTHING, found, ["train.py"], project)
    assert set(files) == {"/train.py", "/options.py"}
    before, after = files["/train.py"]
    assert before == SCRIPT
    assert after == (
        SCRIPT.replace("DataLoader\n\ndef", "DataLoader\ntorch.set_num_threads(2)\n\ndef")
        .replace("args.workers)", "args.workers, persistent_workers=True)")
        .replace("parameters())", "parameters(), fused=True)")
        .replace("    for epoch", f"    model = model{FORMAT}\n    for epoch")
        .replace(
            "            loss = criterion(model(images), labels)\n",
            f"            images = images{FORMAT}\n"
            '            with torch.autocast("cpu", dtype=torch.bfloat16):\n'
            "                loss = criterion(model(images), labels)\n",
        )
        .replace("            gc.collect()\n", "")
    )
    assert files["/options.py"] == (OPTIONS, OPTIONS.replace("default=0", "default=4"))


def test_the_diffs_of_a_setting_can_be_applied_one_after_the_other() -> None:
    """And come to the same as all edits at once, in whatever order."""
    project = of(SCRIPT, options=OPTIONS)
    lines = [["gc.collect", "/train.py", 14, 9]]
    found = found_in(SCRIPT, facts={"cleanup_calls": {"lines": lines, "steps": 9}})
    changes = changes_for(EVERYTHING, found, ["train.py"], project)
    files = edited_files(EVERYTHING, found, ["train.py"], project)
    for file, (before, after) in files.items():
        diffs = [change.diff for change in changes if change.file == file and change.diff]
        text = before
        # From the end, so that line numbers of those that are left still hold.
        for hunk in sorted((hunk for diff in diffs for hunk in hunks(diff)), key=first_line, reverse=True):
            text = patched(text, hunk)
        assert text == after


def hunks(diff: str) -> list[str]:
    return [f"@@{part.rstrip(chr(10))}\n" for part in f"\n{diff}".split("\n@@")[1:]]


def first_line(hunk: str) -> int:
    return int(hunk.split()[1][1:].partition(",")[0])


def test_edits_of_neighbouring_lines_are_one_change() -> None:
    setting: Setting = {"channels_last": True, "autocast": "bfloat16"}
    found = found_in(SCRIPT)
    changes = changes_for(setting, found, [], of(SCRIPT))
    assert len(changes) == 1
    assert changes[0].note == ""
    (both,) = edited_files(setting, found, [], of(SCRIPT)).values()
    assert patched(SCRIPT, changes[0].diff) == both[1]
    ast.parse(both[1])


def test_one_import_serves_two_edits() -> None:
    script = "loader = DataLoader(data)\nloss = model(images)\nloss.backward()\n"
    setting: Setting = {"autocast": "bfloat16", "intra_op_threads": 2}
    ((_, after),) = edited_files(setting, found_in(script), [], of(script)).values()
    assert after.count("import torch\n") == 1
    (change,) = changes_for(setting, found_in(script), [], of(script))
    assert patched(script, change.diff) == after


def one(setting: Setting, script: str, words: str = "train.py", **others: str) -> Change:
    (change,) = changes_for(setting, found_in(script), words.split(), of(script, **others))
    return change


THREADS = (
    "import torch\nfrom options import parser\nargs = parser.parse_args()\n"
    "torch.set_num_threads(args.threads)\nmodel(images)\n"
)


def test_a_call_takes_its_argument_from_an_option() -> None:
    change = one({"intra_op_threads": 2}, THREADS, options=OPTIONS)
    assert (change.file, change.line) == ("/options.py", 4)
    assert '+parser.add_argument("--threads", type=int, default=2)\n' in change.diff
    assert change.note == (
        "`args.threads` takes its value from the default of `--threads`. "
        "`--threads 2` on the command line does the same."
    )
    told = one({"intra_op_threads": 2}, THREADS, "train.py --threads 4", options=OPTIONS)
    assert (told.file, told.line, told.diff) == ("/train.py", 4, "")
    assert told.note == (
        "Your command line gives `set_num_threads` its value: write `--threads 2` there in place of `--threads 4`."
    )


def test_a_switch_takes_its_value_from_an_option() -> None:
    script = (
        "import torch\nfrom options import parser\nargs = parser.parse_args()\n"
        "torch.autograd.set_detect_anomaly(args.debug)\nmodel(images)\n"
    )
    change = one({"detect_anomaly": False}, script, options=OPTIONS)
    assert change.file == "/options.py"
    assert '+parser.add_argument("--debug", action="store_true", default=False)\n' in change.diff
    told = one({"detect_anomaly": False}, script, "train.py --debug", options=OPTIONS)
    assert told.note == "Leave `--debug` out of your command line: it gives `args.debug` its value."


def test_an_optimizer_takes_its_argument_from_a_constant() -> None:
    script = "FUSED = False\noptimizer = AdamW(model.parameters(), fused=FUSED)\nmodel(images)\n"
    change = one({"fused_optimizer": True}, script)
    assert "+FUSED = True\n" in change.diff


def test_a_password_beside_an_edit_is_not_shown() -> None:
    script = "import yaml\ncfg = yaml.safe_load(open('c.yaml'))\nDataLoader(data, num_workers=cfg['workers'])\n"
    texts = {"/train.py": script, "/c.yaml": "password: correct-horse\nworkers: 0\n"}
    found = found_in(script)
    (change,) = changes_for({"num_workers": 4}, found, [], Texts(texts))
    assert (change.file, change.line, change.diff) == ("/c.yaml", 2, "")
    assert change.note.endswith("Write `workers: 4` in line 2: the lines beside it may be secret, and are not shown.")
    ((_, after),) = edited_files({"num_workers": 4}, found, [], Texts(texts)).values()
    assert after == "password: correct-horse\nworkers: 4\n"


def test_a_file_that_is_gone_is_told_of_and_not_edited() -> None:
    found = found_in(SCRIPT)
    (change,) = changes_for({"num_workers": 4}, found, [], Texts({}))
    assert (change.diff, change.note) == ("", "Make the change where the DataLoader is built.")
    assert edited_files({"num_workers": 4}, found, [], Texts({})) == {}
    assert edited_files({}, found, [], of(SCRIPT)) == {}


def test_an_edit_that_another_one_leaves_no_place_for_is_refused_by_name() -> None:
    """Whole batches need the call as it is written; the arguments that are added before come from a partial."""
    script = "loader = DataLoader(data, 4, **options)\nmodel(images)\n"
    setting: Setting = {"num_workers": 4, "batched_fetch": True}
    change = one(setting, script)
    assert "**{**options, 'num_workers': 4}" in change.diff.replace('"', "'")
    assert "Pass `sampler=BatchSampler(...), batch_size=None` to the DataLoader" in change.note


# -- lines, files and words --------------------------------------------------------------------------------------------


def test_lines_are_found_again_behind_edits() -> None:
    drafts = Drafts(Texts({"/a": "one\ntwo\nthree\nfour\n"}))
    assert drafts.line("/a", 3) == 3
    drafts.write("/a", "zero\none\nTWO\nthree\nfour\n")
    assert [drafts.line("/a", line) for line in (1, 2, 3, 4)] == [2, 3, 4, 5]
    drafts.write("/a", "zero\none\nthree\nfour\n")
    assert [drafts.line("/a", line) for line in (1, 3, 4, 99)] == [2, 3, 4, 99]
    assert drafts.changed() == {"/a": ("one\ntwo\nthree\nfour\n", "zero\none\nthree\nfour\n")}
    drafts.write("/a", "one\ntwo\nthree\nfour\n")
    assert drafts.changed() == {}


def test_modules_are_the_users_own(tmp_path: Path) -> None:
    for name in ("pkg/__init__.py", "pkg/inner/config.py", "pkg/train.py", "top.py", "site-packages/lib.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x = 1\r\n")
    files = FilesOnDisk(str(tmp_path))
    script = str(tmp_path / "pkg/train.py")
    for name, path in {
        "inner.config": "pkg/inner/config.py",
        ".inner.config": "pkg/inner/config.py",
        "pkg": "pkg/__init__.py",
        ".": "pkg/__init__.py",
        "pkg.inner.config": "pkg/inner/config.py",
        "top": "top.py",
        "..top": "top.py",
    }.items():
        assert files.module(name, script) == str(tmp_path / path), name
    assert files.module("lib", str(tmp_path / "site-packages/other.py")) is None
    assert files.module("torch", script) is None
    assert files.module("...top", script) is None
    assert files.text(script) == "x = 1\r\n"
    assert files.text(str(tmp_path)) is None
    (tmp_path / "top.py").write_bytes("é".encode("latin-1"))
    assert files.text(str(tmp_path / "top.py")) is None
    assert files.file("a/../b.yaml") == str(tmp_path / "b.yaml")


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("train.py --workers 8", "--workers 8"),
        ("train.py --workers=8 --workers 9", "--workers 9"),
        ("train.py -j8", "-j8"),
        ("train.py -j 8", "-j 8"),
        ("train.py --work 8", "--work 8"),
        ("train.py --workers-of-others 8", None),
        ("train.py -- --workers 8", None),
        ("python -u train.py --workers 8", "--workers 8"),
        ("-m pkg.train --workers 8", "--workers 8"),
        ("mytrain --workers 8", "--workers 8"),
        ("--workers 8 train.py", None),
        ("", None),
    ],
)
def test_an_option_is_found_among_the_programs_own_words(words: str, given: str | None) -> None:
    found = CommandLine(words.split()).option(("-j", "--workers"))
    assert (None if found is None else found.words) == given


def test_conditions_on_the_words() -> None:
    for words, more in (("train.py", False), ("train.py a", True)):
        for test in ("len(sys.argv) > 1", "len(sys.argv)>=2", "len(sys.argv) != 1", "sys.argv[1:]"):
            assert CommandLine(words.split()).says(test) is more
    assert CommandLine(["train.py"]).says("len(args) > 1") is None
    assert CommandLine().says("len(sys.argv) > 1") is None


def test_what_is_started() -> None:
    assert CommandLine(["train.py", "other.py"]).script == "train.py"
    assert CommandLine(["-m", "pkg.train", "other.py"]).module == "pkg.train"
    assert CommandLine(["-m", "pkg.train", "other.py"]).behind == ["other.py"]
    assert CommandLine(["mytrain", "a"]).script is CommandLine(["mytrain"]).module is None
    assert CommandLine(["train.py", "+a.b=1", "a.b=2"]).override("a.b") == "a.b=2"
    assert CommandLine(["train.py", "a.bc=1"]).override("a.b") is None
