"""`doctor check` as CI runs it: a repository with a slow commit, a clean clone of it, and all that services read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bottleneck_doctor.documents.check_json import from_json

TRAIN = """\
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.full((8,), float(index)), torch.zeros(1)

def main():
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for epoch in range(int(sys.argv[1])):
        for features, labels in DataLoader(Squares(), batch_size=8):
            loss = (model(features / 4000) - labels).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

if __name__ == "__main__":
    main()
"""

SECRET = "not-for-everybody-1742"

SLOW = "        time.sleep(0.0006)  # sharpen\n"

SETTINGS = """\
[metrics.step_time]
threshold = "10%"
[metrics.host_memory]
level = "off"
"""


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clean clone whose last commit makes loading 60 % slower."""
    origin = tmp_path / "origin"
    (origin / "training").mkdir(parents=True)
    git(origin, "init", "--quiet", "--initial-branch=main")
    (origin / "doctor.toml").write_text(SETTINGS)
    (origin / "training" / "train.py").write_text(TRAIN)
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "Train")
    git(origin, "checkout", "--quiet", "-b", "topic")
    (origin / "training" / "train.py").write_text(
        TRAIN.replace("        return torch.full", SLOW + "        return torch.full")
    )
    git(origin, "commit", "--quiet", "-am", "Sharpen")
    git(tmp_path, "clone", "--quiet", "--branch", "topic", str(origin), "clone")
    return tmp_path / "clone"


def run(clone: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, *words],
        cwd=clone / "training", env=environment | variables, capture_output=True, text=True, timeout=170,
    )  # fmt: skip


@pytest.mark.slow
def test_everything_that_services_read_says_what_grew_and_where(clone: Path, tmp_path: Path) -> None:
    xmlschema = pytest.importorskip("xmlschema")
    made = tmp_path / "made"
    summary = tmp_path / "summary.md"
    done = run(
        clone, "-m", "bottleneck_doctor", "check", "--base-ref", "origin/main", "--pairs", "5", "--quiet",
        "--json", str(made / "check.json"), "--markdown", str(made / "check.md"), "--junit", str(made / "check.xml"),
        "--html", str(made / "check.html"), "--gitlab", str(made / "quality.json"), "train.py", "--", "1000",
        "--api-key", SECRET, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary),
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    check = from_json((made / "check.json").read_bytes(), source="check.json")
    assert check.status == "regressed"
    assert "host_memory" not in {metric.id for metric in check.metrics}, (
        "the configuration was found from a folder below"
    )

    for text in (done.stdout, done.stderr, *(path.read_text() for path in made.iterdir())):
        assert SECRET not in text
    assert next(each.name for each in check.culprits if each.kind == "phase") == "data_wait"
    function = check.culprits[0]
    assert function.kind == "function"
    assert function.name.endswith("__getitem__")
    assert function.changed_here
    (tree,) = check.growth
    assert tree.root.head > 1.2 * tree.root.base > 0

    line = 1 + (clone / "training" / "train.py").read_text().splitlines().index(SLOW.rstrip("\n"))
    here = rf"::error file=training/train\.py,line=({line - 1}|{line}|{line + 1}),title=[^:]*::\S.*"
    assert [each for each in done.stdout.splitlines() if re.fullmatch(here, each)], done.stdout
    assert summary.read_bytes() == (made / "check.md").read_bytes()
    text = summary.read_text()
    assert text.index(check.sentence[:20]) < text.index("| **worse** |") < text.index("training/train.py:")
    assert "Sharpen" in text

    xmlschema.XMLSchema(str(Path(__file__).parents[1] / "golden" / "junit.xsd")).validate(str(made / "check.xml"))
    cases = ElementTree.parse(made / "check.xml").iter("testcase")
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert any(str(name).startswith("step_time:") for name in failed)
    major = [each for each in json.loads((made / "quality.json").read_bytes()) if each["severity"] == "major"]
    assert major[0]["location"]["path"] == "training/train.py"
    assert "</html>" in (made / "check.html").read_text()
    assert git(clone, "status", "--porcelain") == "", "the clone is as it was"


@pytest.mark.slow
def test_a_test_with_the_fixture_fails_and_says_why(clone: Path) -> None:
    (clone / "training" / "pytest.ini").write_text("[pytest]\n")
    check = "doctor.check('train.py', '1000', options=['--pairs', '3'])"
    (clone / "training" / "test_speed.py").write_text(f"def test_speed(doctor):\n    {check}.assert_no_regression()\n")
    plugin = ["-p", "bottleneck_doctor.pytest_plugin", "-p", "no:cacheprovider"]
    done = run(clone, "-m", "pytest", *plugin, "--doctor-base-ref", "origin/main", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "A step takes" in done.stdout
    assert "longer than on origin/main" in done.stdout
    assert "1 failed" in done.stdout


def test_a_target_that_cannot_be_written_is_refused_before_anything_is_measured(clone: Path) -> None:
    done = run(clone, "-m", "bottleneck_doctor", "check", "--base-ref", "origin/main", "--junit", "..", "train.py")
    assert done.returncode == 2
    assert "[output-unwritable]" in done.stderr
    done = run(clone, "-m", "bottleneck_doctor", "check", "train.py")
    assert done.returncode == 2
    assert "There is nothing to compare with" in done.stderr
    (clone / "doctor.toml").write_text("[metrics.step-time]\n")
    done = run(clone, "-m", "bottleneck_doctor", "check", "--base-ref", "origin/main", "train.py")
    assert done.returncode == 2
    assert "Did you mean step_time?" in done.stderr
