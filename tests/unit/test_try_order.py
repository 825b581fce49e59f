"""The order of `doctor try`, on a machine that is made up: who starts, when it is enough, what is said and who is
blamed."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.made_up_check import Tried
from tests.unit.made_up_machine import FOUND_AFTER, Training

from bottleneck_doctor.documents.check import HOST_MEMORY
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.gate import decide, faster
from bottleneck_doctor.gate.limits import DEFAULTS, MetricLimit
from bottleneck_doctor.gate.tried import THRESHOLD

WRITTEN = "1\n" + 7 * "2\n"
EDITED = b"1\n" + 7 * b"3\n"
FASTER, SLOWER = Training(step=0.006), Training(step=0.014)
RESTLESS = (0.0, 0.1, 0.02, -0.07, 0.03, -0.02, 0.05, -0.1, 0.08, -0.04) * 3


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working folder: no repository, and what is tried leaves nothing in it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(WRITTEN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
        patch.delenv("PYTHONPATH", raising=False)
        patch.chdir(folder)
        yield folder
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"train.py": WRITTEN}


def lucky(mean: float, *offsets: float) -> list[Training]:
    """Processes whose steps take so many times the ten milliseconds, and so much longer as a share."""
    return [Training(step=0.010 * mean * (1 + offset)) for offset in offsets]


# -- the order ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, EDITED])
def test_both_stand_at_their_loops_before_either_trains(text: bytes | None) -> None:
    Tried(text=text).expects(
        *("start head", "start base", "loop head", "loop base"),
        *("window head", "window base", "window base", "window head", "window head", "window base"),
        *("phases base", "phases head", "end base", "end head"),
        *("start base", "start head", "loop base", "loop head"),
    )


def test_a_clear_gain_ends_it_once_it_is_known_well() -> None:
    tried = Tried(head=FASTER)
    assert len(tried.check.pairs) == decide.LEAST_PAIRS
    assert tried.check.status == "passed"
    assert tried.check.edit is not None
    found = tried.check.edit.speedup
    assert found is not None
    assert found.estimate == pytest.approx(1 / 0.6, rel=0.01)
    assert 0.9 * found.estimate < found.low < found.estimate < found.high
    assert found.sessions == decide.LEAST_PAIRS
    assert tried.check.sentence.startswith("The edit makes training 1.67× as fast (1.")
    assert tried.check.sentence.endswith(", 3 pairs of processes).")


def test_it_goes_on_until_the_gain_is_known_well_though_it_is_certain() -> None:
    """After five pairs nobody doubts that it is faster, and it could be 1.3 times or 1.8 times as fast."""
    tried = Tried(head=lucky(0.66, *(1.6 * offset for offset in RESTLESS)), budget=900.0)
    five = tried.check.pairs[:5]
    look = decide.interim_look_after(5, last=False)
    assert look is not None
    owns = [None if pair.log_error is None else decide.Own(pair.log_error, 2) for pair in five]
    seen = decide.estimate([pair.log_ratio for pair in five], owns)
    assert faster.settle(seen, seen, math.log1p(THRESHOLD), look)[1] == "improvement"
    assert math.exp(decide.interval(seen, look)[1] - seen.mean) > 1 / faster.LEAST_PART
    assert len(tried.check.pairs) > 5
    assert tried.check.edit is not None
    found = tried.check.edit.speedup
    assert found is not None
    assert found.low >= faster.LEAST_PART * found.estimate


@pytest.mark.parametrize("gives_up", [True, False])
def test_a_time_that_was_named_narrows_the_interval_where_nothing_can_be_claimed(gives_up: bool) -> None:
    heads = lucky(1.0, *(5 * offset for offset in RESTLESS))
    tried = Tried(head=heads, budget=150.0, gives_up=gives_up)
    assert tried.check.status == "cannot_tell"
    assert ("No pair that there was time for would have told" in tried.check.sentence) is gives_up
    assert (tried.machine.now > 0.9 * 150.0) is not gives_up


def test_what_changes_nothing_is_no_difference() -> None:
    tried = Tried(text=EDITED)
    assert tried.check.status == "passed"
    assert tried.check.metrics[0].verdict == "unchanged"
    assert tried.check.metrics[0].threshold == THRESHOLD
    assert tried.check.sentence.startswith("The edit makes no difference larger than 2 %: 1.00× as fast (")


def test_a_slower_one_is_explained_by_what_was_edited() -> None:
    seen = {"__getitem__": 80, "augment": 40}
    tried = Tried(head=Training(step=0.014, sampled=seen), text=EDITED)
    assert tried.check.status == "regressed"
    assert tried.check.sentence.startswith("The edit makes training slower: 0.71× as fast (0.")
    function = next(each for each in tried.check.culprits if each.kind == "function")
    assert (function.name, function.changed_here) == ("augment", True)
    assert function.site is not None
    assert Path(function.site.file) == Path.cwd() / "train.py"
    assert "augment" in tried.check.sentence
    assert tried.check.growth


def test_nobody_is_sampled_where_it_is_faster() -> None:
    assert not [name for name in Tried(head=FASTER).names if name.startswith(("sampled", "lines"))]


def test_what_cannot_be_told_is_said_with_what_would_settle_it() -> None:
    heads = lucky(0.97, *RESTLESS)
    tried = Tried(head=heads, budget=60.0)
    assert tried.check.status == "cannot_tell"
    said = tried.check.sentence
    assert re.search(r"whether the edit makes a difference: it seems to make training [01]\.\d\d× as fast \(", said)
    assert "but that may be chance." in said
    assert "threshold-below-noise" not in tried.warnings
    fixed = Tried(head=lucky(0.9, *RESTLESS), pairs=3)
    assert fixed.check.status == "cannot_tell"
    assert "pairs would tell: `--pairs " in fixed.check.sentence


def test_memory_that_grew_is_named_beside_the_gain() -> None:
    tried = Tried(head=Training(step=0.006, memory=3 << 29))
    assert tried.check.status == "passed"
    assert "The edit makes training 1.67×" in tried.check.sentence
    assert "Peak memory: grew by 50 %, from 1 GiB to 1.5 GiB" in tried.check.sentence
    limits = {**DEFAULTS, HOST_MEMORY: MetricLimit(0.10, "error")}
    assert Tried(head=Training(step=0.006, memory=3 << 29), limits=limits).check.status == "regressed"


# -- the document ------------------------------------------------------------------------------------------------------


def test_the_document_says_what_was_tried() -> None:
    check = Tried(head=FASTER, text=EDITED).check
    assert check.edit is not None
    assert check.edit.files == ["train.py"]
    assert check.edit.diff.splitlines()[:2] == ["--- a/train.py", "+++ b/train.py"]
    assert "-2\n" in check.edit.diff
    assert "+3\n" in check.edit.diff
    assert (check.base.name, check.head.name) == ("as written", "new.py")
    assert check.base.commit is None
    assert (check.edit.arguments, check.edit.variables) == (None, {})
    other = Tried(head=FASTER).check
    assert other.edit is not None
    assert (other.edit.files, other.edit.diff, other.edit.variables) == ([], "", {"FAST": "1"})
    assert other.head.name == "FAST=1"


def test_what_has_to_be_known_of_it_is_said() -> None:
    """The made-up machine has no sandbox."""
    assert Tried(text=EDITED).warnings == {"edited-in-copy"}
    assert Tried().warnings == {"edited-in-copy"}
    assert Tried(text=WRITTEN.encode()).warnings == {"edited-in-copy", "edit-changes-nothing"}


# -- losses ------------------------------------------------------------------------------------------------------------


def course(times: float = 1.0) -> Callable[[int, int], float]:
    """Losses that are the same in every process: the program is seeded."""
    return lambda process, step: times * (1 + math.exp(-step / 500)) * (1 + 0.1 * math.sin(1.7 * step))


def test_an_edit_that_leaves_the_loss_says_so_and_passes() -> None:
    tried = Tried(base=Training(loss=course()), head=Training(step=0.006, loss=course()))
    assert tried.check.status == "passed"
    assert tried.check.losses is not None
    assert tried.check.losses.verdict == "same"
    assert "loss" not in tried.check.sentence


def test_an_edit_that_moves_the_loss_has_not_passed_however_fast_it_is() -> None:
    tried = Tried(base=Training(loss=course()), head=Training(step=0.006, loss=course(1.6)))
    assert tried.check.status == "regressed"
    assert tried.check.losses is not None
    assert tried.check.losses.verdict == "moved"
    assert tried.check.sentence.startswith("The edited program trains to another loss: 60 % higher over ")
    assert "The edit makes training 1.67× as fast" in tried.check.sentence


def test_without_losses_nothing_is_said_of_them() -> None:
    assert Tried().check.losses is None


# -- who fails ---------------------------------------------------------------------------------------------------------

NO_LOOP = Training(steps=FOUND_AFTER - 3, code=1)


def test_an_edited_program_that_does_not_start_is_named_with_its_last_words() -> None:
    tried = Tried(head=NO_LOOP, text=EDITED)
    assert tried.error is not None
    assert tried.error.slug == "edited-failed"
    assert tried.error.exit_code == Exit.ENTRYPOINT_FAILED
    assert "The edited program fails; as written it trains: ValueError: of its own." in tried.error.sentence
    assert "ValueError: of its own" in tried.error.detail


def test_one_that_fails_as_written_is_named_too() -> None:
    tried = Tried(base=NO_LOOP)
    assert tried.error is not None
    assert tried.error.slug == "entrypoint-failed"
    assert "The program fails as written; it trains with the edit" in tried.error.sentence


def test_where_both_fail_alike_the_edit_is_not_to_blame() -> None:
    tried = Tried(base=NO_LOOP, head=NO_LOOP)
    assert tried.error is not None
    assert tried.error.slug == "entrypoint-failed"
    assert "edit" not in tried.error.sentence


def test_an_edited_program_that_crashes_in_every_pair_is_blamed() -> None:
    tried = Tried(head=Training(steps=200, code=1))
    assert tried.error is not None
    assert tried.error.slug == "edited-failed"


def test_the_seed_is_the_chance() -> None:
    assert Tried(seed=3, pairs=4).names == Tried(seed=3, pairs=4).names
    assert Tried(seed=3, pairs=4).names != Tried(seed=4, pairs=4).names


@pytest.mark.parametrize("text", [None, EDITED])
def test_interrupted_it_ends_both(text: bytes | None) -> None:
    tried = Tried(head=SLOWER, text=text, interrupted_at=5.0)
    assert tried.interrupted
    assert sorted(tried.names[-2:]) == ["end base", "end head"]


def test_variables_reach_the_edited_side_alone() -> None:
    tried = Tried()
    of = {session.who: session.command.environment for session in tried.machine.sessions}
    assert of["head"]["FAST"] == "1"
    assert "FAST" not in of["base"]
    assert "FAST" not in os.environ
