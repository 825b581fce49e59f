"""A program that refuses to start where it finds its own files is started again without them: nobody ran it before."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE, write

from bottleneck_doctor.documents.report import SessionRecord
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.starter import Broken, Side, Starter
from bottleneck_doctor.protection.protector import FileProtector
from bottleneck_doctor.session.ending import Ending
from bottleneck_doctor.system.progress import SilentProgress

pytestmark = pytest.mark.process

BODY = """
{refuses}
with open("config.yaml", "w") as handle:
    handle.write("lr: 0.1")
time.sleep(0.05)
for epoch in range(100000):
    for batch in DataLoader(Rows(), batch_size=4):
        train_on(batch)
"""
CRASHES = 'if os.path.exists("config.yaml"):\n    raise RuntimeError("config.yaml is there already")'
ENDS = 'if os.path.exists("config.yaml"):\n    sys.exit(0)'
FAILS = 'if os.path.exists("second"):\n    raise RuntimeError("of its own")'


@pytest.fixture(params=["sandbox", "guard"])
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Side]]:
    """Two sides of the program, each with a protection of its own. `tmp_path` is where they run."""
    protectors = [FileProtector(tmp_path, [], os.environ) for _ in range(2)]
    if request.param == "guard":
        for each in protectors:
            each.give_up("the test wants none")
    try:
        if request.param == "sandbox" and protectors[0].told().kind != "sandbox":
            pytest.skip(f"no sandbox here: {protectors[0].told().reason}")
        yield [
            Side(name=name, argv=(sys.executable, "train.py"), cwd=tmp_path, environment={}, protector=each)
            for name, each in zip(("base", "head"), protectors, strict=True)
        ]
    finally:
        for each in protectors:
            each.close()


def started(starter: Starter, sides: list[Side]) -> list[SessionRecord]:
    """What is recorded of one start, at whose end all stood at their loops."""
    before = len(starter.records)
    with starter.live(sides, what="Process", patience=lambda: 45.0) as lives:
        assert all(live.found is not None for live in lives)
    return starter.records[before:]


@pytest.mark.parametrize("refuses", [CRASHES, pytest.param(ENDS, marks=pytest.mark.slow(together=True))])
def test_a_program_that_finds_its_own_files_is_started_again(tmp_path: Path, sides: list[Side], refuses: str) -> None:
    write(tmp_path, PRELUDE + BODY.format(refuses=refuses))
    starter = Starter(Budget(120.0, strict=True), SilentProgress(), Outside())
    assert len(started(starter, sides[:1])) == 1
    again, trained = started(starter, sides[:1])
    assert "started again without the files of earlier processes" in again.ended
    assert again.setup_seconds == 0.0
    assert trained.ended == "told to end"
    # Nobody is blamed, and from now on it finds none.
    assert starter.endings == {}
    assert len(started(starter, sides[:1])) == 1
    assert not (tmp_path / "config.yaml").exists()


def test_a_pair_is_started_again_as_a_whole(tmp_path: Path, sides: list[Side]) -> None:
    write(tmp_path, PRELUDE + BODY.format(refuses=CRASHES))
    if sides[0].protector.told().kind != "sandbox":
        pytest.skip("two that write one file at once need a sandbox each")
    starter = Starter(Budget(120.0, strict=True), SilentProgress(), Outside())
    assert [len(started(starter, sides)) for _ in range(3)] == [2, 4, 2]
    assert starter.endings == {}


def test_one_that_fails_for_another_reason_is_told_so(tmp_path: Path, sides: list[Side]) -> None:
    write(tmp_path, PRELUDE + BODY.format(refuses=FAILS))
    starter = Starter(Budget(120.0, strict=True), SilentProgress(), Outside())
    started(starter, sides[:1])
    (tmp_path / "second").touch()
    with pytest.raises(Broken) as broken:
        started(starter, sides[:1])
    assert "of its own" in broken.value.why
    assert starter.endings == {3: Ending.CRASH}
