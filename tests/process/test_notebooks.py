"""A notebook in place of a script: started, measured, edited in its cells, and put back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.notebooks import notebook, sources
from tests.process.driver import PRELUDE, Guest
from tests.process.test_run import DOCTOR, report, run

from bottleneck_doctor.documents.check_json import from_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.session.session import Command

pytestmark = pytest.mark.process

HELPER = "from pathlib import Path\nSECONDS = float(Path('seconds.txt').read_text())\n"
SETUP = "%matplotlib inline\n" + PRELUDE + "\nfrom helper import SECONDS"
DATA = """
class Slow(Rows):
    def __getitem__(self, index):
        time.sleep(SECONDS)
        return super().__getitem__(index)

display(get_ipython())
loader = DataLoader(
    Slow(400),
    batch_size=4,
)
"""
TRAINING = """%%time
for epoch in range(100000):
    for batch in loader:
        train_on(batch)
        time.sleep(SECONDS)
"""


def made(folder: Path, *cells: str) -> Path:
    (folder / "nb").mkdir()
    (folder / "nb" / "helper.py").write_text(HELPER)
    (folder / "nb" / "seconds.txt").write_text("0.004")
    path = folder / "nb" / "train.ipynb"
    path.write_bytes(notebook(*cells))
    return path


def test_the_guest_finds_the_loop_and_its_lines(guests: list[Guest], tmp_path: Path) -> None:
    """From another folder: what the notebook imports and opens lies beside it, as with Jupyter."""
    path = made(tmp_path, SETUP, DATA, TRAINING)
    guest = Guest(Command((sys.executable, "nb/train.ipynb", "--lr", "0.1"), tmp_path))
    guests.append(guest)
    found = guest.found()
    assert found.rung == "optimizer step"
    assert found.loader_site is not None
    assert (found.loader_site.file, found.loader_site.line) == (str(path), 2008)
    assert guest.window({}).status == "ok"
    assert guest.window({"num_workers": 2}).status == "ok"
    assert "None\n" in guest.session.tail()


def test_a_failing_cell_is_told_with_its_line(tmp_path: Path) -> None:
    made(tmp_path, SETUP, "x = 1\n\nraise ValueError('no data')")
    done = run("--budget", "20s", "nb/train.ipynb", cwd=tmp_path)
    assert done.returncode == Exit.ENTRYPOINT_FAILED
    assert "ValueError: no data" in done.stderr
    assert 'train.ipynb", line 2003, in <module>' in done.stderr
    assert "`%matplotlib …` (cell 1)" in done.stderr


@pytest.mark.slow
def test_a_notebook_is_examined_and_its_cell_edited(tmp_path: Path) -> None:
    path = made(tmp_path, SETUP, DATA, TRAINING)
    before = path.read_bytes()
    only = ("--only", "workers", "--budget", "60s", "--no-confirm")
    done = run(*only, "--seed", "1", "-o", "out", "nb/train.ipynb", cwd=tmp_path)
    assert done.returncode == Exit.DONE, done.stderr
    assert path.read_bytes() == before
    result = report(tmp_path / "out")
    workers = next(each for each in result.fixes if each.id == "workers")
    assert workers.status == "faster"
    assert workers.change is not None
    assert (Path(workers.change.file), workers.change.line // 1000) == (path, 2)
    assert any(each.slug == "notebook-lines" for each in result.warnings)
    lines = result.profiles.lines if result.profiles else None
    assert lines is not None
    texts = {line.line: line.text for listing in lines.listings for line in listing.lines}
    assert texts[2004] == "        time.sleep(SECONDS)"
    assert "cell 2, line" in done.stdout
    wanted = f"num_workers={workers.setting['num_workers']}"
    for there, back in (
        (["git", "apply", "out/report-artifacts/fix.patch"], ["git", "apply", "-R", "out/report-artifacts/fix.patch"]),
        ([*DOCTOR, "apply", "out"], [*DOCTOR, "apply", "out", "--undo"]),
    ):
        subprocess.run(there, cwd=tmp_path, check=True, capture_output=True)
        edited = sources(path.read_bytes())
        assert wanted in edited[1]
        assert (edited[0], edited[2]) == (SETUP, TRAINING)
        subprocess.run(back, cwd=tmp_path, check=True, capture_output=True)
        assert path.read_bytes() == before


@pytest.mark.slow
def test_a_slower_cell_is_found_by_a_check_and_a_faster_one_by_a_try(tmp_path: Path) -> None:
    path = made(tmp_path, SETUP, DATA, TRAINING)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "as it was"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    slower = DATA.replace("        time.sleep(SECONDS)\n", "        time.sleep(SECONDS)\n        time.sleep(SECONDS)\n")
    path.write_bytes(notebook(SETUP, slower, TRAINING))
    check = [*DOCTOR, "check", "-q", "--base-ref", "HEAD", "--pairs", "3", "--json", "check.json", "nb/train.ipynb"]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=170)
    assert done.returncode == Exit.REGRESSION, done.stderr
    judged = from_json((tmp_path / "check.json").read_bytes(), source="check.json")
    step = next(each for each in judged.metrics if each.id == "step_time")
    assert step.verdict == "regression"
    named = [each for each in judged.culprits if each.changed_here]
    assert {(each.site.file, each.site.line // 1000) for each in named if each.site} == {(str(path), 2)}
    assert any("of cell 2 of it was changed" in each.sentence for each in named), named

    faster = tmp_path / "faster.ipynb"
    faster.write_bytes(notebook(SETUP, DATA, TRAINING))
    tried = [*DOCTOR, "try", "--pairs", "3", "--edit", str(faster), "nb/train.ipynb"]
    done = subprocess.run(tried, cwd=tmp_path, capture_output=True, text=True, timeout=170)
    assert done.returncode == Exit.DONE, done.stderr
    assert "Faster: " in done.stdout
    assert path.read_bytes() == notebook(SETUP, slower, TRAINING)
