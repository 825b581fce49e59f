"""Several edits in one race, on a machine that is made up: who takes part for how long, and which of them leads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.unit.made_up_check import PairMachine
from tests.unit.made_up_machine import FOUND_AFTER, Noting, Training

from bottleneck_doctor.config import Config
from bottleneck_doctor.documents.check import Check
from bottleneck_doctor.documents.check_json import from_json, to_json
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.limits import configured_for_edit
from bottleneck_doctor.gate.race import race
from bottleneck_doctor.gate.request import TryRequest
from bottleneck_doctor.gate.sides.edit import planned
from bottleneck_doctor.gate.tried import THRESHOLD
from bottleneck_doctor.render.check import junit, markdown, page, terminal
from bottleneck_doctor.session.session import Command
from bottleneck_doctor.session.start import Start


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print()\n")
    yield tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@dataclass(kw_only=True)
class RaceMachine(PairMachine):
    """One on which a program is trained as written, and with each of these variables set."""

    def side_of(self, command: Command) -> str:
        return next((name for name in self.sides if name in command.environment), "base")


class Raced:
    """A race of edits that each set one variable. `trainings`: what is trained under each, and as written (`base`)."""

    def __init__(
        self, trainings: Mapping[str, Training], budget: float | None = None, pairs: int | None = None
    ) -> None:
        self.machine = RaceMachine(sides=trainings)
        start = Start(script=Path("train.py"), in_place=True)
        edits = [planned(start, Path.cwd(), variables={name: "1"}) for name in trainings if name != "base"]
        limits = configured_for_edit(Config(), None, THRESHOLD)
        request = TryRequest(start=start, edit=edits[0], seed=1, limits=limits, budget=budget, pairs=pairs)
        self.error: DoctorError | None = None
        self.check: Check
        try:
            requests = [replace(request, edit=edit) for edit in edits]
            self.check = race(requests, Noting(self.machine), self.machine.outside()).check
        except DoctorError as error:
            self.error = error
        self.machine.expects_all_ended()

    def started(self, who: str) -> int:
        return sum(session.who == who for session in self.machine.sessions)

    def order(self) -> list[str]:
        return [each.name for each in self.check.race]


AS_WRITTEN = Training(step=0.020)


def test_the_best_leads_and_all_are_held_against_the_same_process() -> None:
    made = Raced({"base": AS_WRITTEN, "A": Training(step=0.016), "B": Training(step=0.010), "C": AS_WRITTEN})
    assert made.order() == ["B=1", "A=1", "C=1"]
    check = made.check
    assert check.head.name == "B=1"
    assert check.edit is not None
    assert check.edit.variables == {"B": "1"}
    worth = [each.edit.speedup for each in check.race]
    assert [round(each.estimate, 2) for each in worth if each is not None] == [2.0, 1.25, 1.0]
    assert [each.verdict for each in check.race] == ["improvement", "improvement", "unchanged"]
    assert check.sentence.startswith("Of 3 edits, `B=1` is ahead. The edit makes training 2.00× as fast (")
    assert check.status == "passed"
    # One process as written stands beside all three, as long as there is anything to know of them.
    assert made.started("base") == max(made.started(each) for each in "ABC")
    assert made.started("base") + sum(map(made.started, "ABC")) == len(made.machine.sessions)


def test_they_share_the_error_rate() -> None:
    made = Raced({"base": AS_WRITTEN, "A": Training(step=0.016), "B": Training(step=0.018)})
    assert made.check.error_rate == decide.ERROR_RATE / 2


def test_what_is_known_takes_part_no_longer() -> None:
    uneven = Training(step=0.020, noise=0.03)
    made = Raced({"base": uneven, "A": Training(step=0.005), "B": Training(step=0.0195, noise=0.03)})
    assert made.started("A") < made.started("B")
    assert made.started("base") == made.started("B")


def test_an_edit_that_fails_costs_the_others_nothing() -> None:
    short = Training(steps=FOUND_AFTER - 3, code=1)
    made = Raced({"base": AS_WRITTEN, "A": short, "B": Training(step=0.010)})
    assert made.order() == ["B=1", "A=1"]
    failed = made.check.race[1]
    assert failed.failed
    assert failed.pairs == 0
    assert failed.edit.variables == {"A": "1"}
    assert "The program with A=1 fails; as written it trains" in failed.sentence
    assert made.started("A") == 1


def test_an_edit_that_fails_later_is_told_so() -> None:
    made = Raced({"base": AS_WRITTEN, "A": Training(step=0.010, steps=100, code=1), "B": Training(step=0.016)})
    assert made.order() == ["B=1", "A=1"]
    assert made.check.race[1].failed


def test_an_edit_that_ends_without_training_is_told_so() -> None:
    made = Raced({"base": AS_WRITTEN, "A": Training(steps=FOUND_AFTER - 3), "B": Training(step=0.016)})
    assert made.order() == ["B=1", "A=1"]
    assert made.check.race[1].failed
    assert made.started("A") == 1


def test_a_short_program_is_started_again() -> None:
    short = replace(AS_WRITTEN, steps=500)
    made = Raced({"base": short, "A": replace(short, step=0.010), "B": replace(short, step=0.016)})
    assert made.order() == ["A=1", "B=1"]
    assert [each.verdict for each in made.check.race] == ["improvement", "improvement"]
    assert not any(each.failed for each in made.check.race)


def test_where_all_edits_fail_it_is_said() -> None:
    short = Training(steps=FOUND_AFTER - 3, code=1)
    made = Raced({"base": AS_WRITTEN, "A": short, "B": Training(steps=FOUND_AFTER + 3, code=1)})
    assert made.error is not None
    assert made.error.slug == "edited-failed"


def test_an_edit_that_moves_the_loss_never_leads() -> None:
    def falling(process: int, step: int) -> float:
        return 2.0 / (1 + step / 500) + 0.001 * ((process * 7 + step) % 5)

    def stuck(process: int, step: int) -> float:
        return 2.0 + 0.001 * ((process * 7 + step) % 5)

    made = Raced(
        {
            "base": Training(step=0.020, loss=falling),
            "A": Training(step=0.005, loss=stuck),
            "B": Training(step=0.016, loss=falling),
        }
    )
    assert made.order() == ["B=1", "A=1"]
    assert made.check.race[1].losses == "moved"
    assert made.check.status == "passed"


def test_where_the_program_as_written_fails_nothing_is_compared() -> None:
    made = Raced({"base": Training(steps=FOUND_AFTER - 3, code=1), "A": AS_WRITTEN, "B": AS_WRITTEN})
    assert made.error is not None
    assert made.error.slug == "entrypoint-failed"


def test_where_all_fail_alike_it_is_the_program() -> None:
    short = Training(steps=FOUND_AFTER - 3, code=1)
    made = Raced({"base": short, "A": short, "B": short})
    assert made.error is not None


def test_a_number_of_pairs_is_kept() -> None:
    made = Raced({"base": AS_WRITTEN, "A": Training(step=0.010), "B": Training(step=0.016)}, pairs=4)
    assert [made.started(each) for each in ("base", "A", "B")] == [4, 4, 4]
    assert [each.pairs for each in made.check.race] == [4, 4]


def test_a_budget_is_kept() -> None:
    uneven = Training(step=0.020, noise=0.2)
    made = Raced({"base": uneven, "A": replace(uneven, step=0.0199), "B": AS_WRITTEN}, budget=60)
    assert made.check.seconds < 62


def test_every_output_names_all_of_them() -> None:
    made = Raced({"base": AS_WRITTEN, "A": Training(step=0.030), "B": Training(step=0.010)})
    check = made.check
    assert from_json(to_json(check), source="race.json") == check
    text = terminal.render(check, width=100, color=False)
    table = [line for line in text.split("\n") if line.startswith(("A=1", "B=1")) and "×" in line]
    assert [line.split()[0] for line in table] == ["B=1", "A=1"]
    assert table[1].endswith("slower")
    assert "| `A=1` | 0.67× |" in markdown.render(check)
    html = page.render(check)
    assert html.index('<th scope="row">B=1</th>') < html.index('<th scope="row">A=1</th>')
    assert "makes training slower" in html
    cases = [each.attrib["name"] for each in ElementTree.fromstring(junit.render(check)).iter("testcase")]
    assert "edit: A=1" in cases
