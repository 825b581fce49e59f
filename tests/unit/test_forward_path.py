"""Edits where the model is called in another function than the one that trains: by the lines that lead there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.documents.report import Change, Setting
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.runtime.wire.messages import Site

ON: Setting = {"autocast": "bfloat16"}

RAYS = """\
import torch

def chunked(fn, chunk):
    def parts(rows):
        return torch.cat([fn(rows[n:n + chunk]) for n in range(0, len(rows), chunk)], 0)  # called
    return parts

def render(rows, model):
    made = chunked(model, 64)(rows)  # rendered
    return made * 2

def main():
    for rows, wanted in batches:
        optimizer.zero_grad()
        colours = render(rows, model)  # path
        loss = ((colours - wanted) ** 2).mean()
        loss.backward()  # backward
        optimizer.step()

main()  # started
"""


def lines(script: Path, *marks: str) -> list[Site]:
    source = script.read_text().splitlines()
    return [Site(str(script), 1 + next(n for n, each in enumerate(source) if f"# {mark}" in each)) for mark in marks]


def change(script: Path, backward: Site | None, forward: Site, *path: Site) -> Change:
    known = replace(FOUND, device="cpu", loader_site=None, forward_site=forward, backward_site=backward)
    (made,) = changes_for(ON, replace(known, forward_path=list(path)))
    return made


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(RAYS)
    return tmp_path / "train.py"


def test_the_line_of_the_loop_that_leads_to_the_model_is_put_under_it(script: Path) -> None:
    called, rendered, path, started, backward = lines(script, "called", "rendered", "path", "started", "backward")
    made = change(script, backward, called, rendered, path, started)
    assert made.line == path.line
    assert '+        with torch.autocast("cpu", dtype=torch.bfloat16):\n' in made.diff
    assert "+            colours = render(rows, model)  # path\n" in made.diff
    assert "+            loss = ((colours - wanted) ** 2).mean()\n" in made.diff
    assert "zero_grad" not in "".join(each for each in made.diff.splitlines() if each.startswith("+"))
    assert made.note == ""


RANKING = """\
import torch

class Ranking(torch.nn.Module):
    def loss(self, rows):
        scores = rows @ self.weights
        scores = self.layer(scores)  # called
        return scores.square().mean()

def main():
    for rows in batches:
        optimizer.zero_grad()
        loss = model.loss(rows)  # path
        loss.backward()  # backward
        optimizer.step()

main()  # started
"""


def test_a_method_that_is_called_in_place_of_the_model_is_put_under_it_as_a_whole(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(RANKING)
    called, path, started, backward = lines(script, "called", "path", "started", "backward")
    known = replace(FOUND, device="cpu", loader_site=None, forward_site=called, backward_site=backward)
    (made,) = changes_for(ON, replace(known, forward_path=[path, started], method_site=path))
    assert made.line == path.line
    assert '+        with torch.autocast("cpu", dtype=torch.bfloat16):\n' in made.diff
    assert "+            loss = model.loss(rows)  # path\n" in made.diff


def test_without_a_path_it_is_said_beside_the_call(script: Path) -> None:
    called, backward = lines(script, "called", "backward")
    made = change(script, backward, called)
    assert (made.line, made.diff) == (called.line, "")
    assert made.note.startswith("Put the forward pass and the loss under")


def test_a_loop_in_another_file_than_the_model_s_call(script: Path) -> None:
    source = script.read_text()
    begin = source.index("def main")
    loop = script.parent / "loop.py"
    loop.write_text("import torch\nfrom train import render\n\n" + source[begin:])
    script.write_text(source[:begin])
    (called, rendered), (path, backward) = lines(script, "called", "rendered"), lines(loop, "path", "backward")
    made = change(script, backward, called, rendered, path)
    assert (made.file, made.line) == (str(loop), path.line)
    assert "+            colours = render(rows, model)  # path\n" in made.diff


def test_a_function_around_it_that_returns_the_loss_comes_before_the_loop(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n\ndef encode(rows):\n    return model(rows)  # called\n\n"
        "def loss_of(rows):\n    made = encode(rows)  # path\n    loss = made.mean()\n    return loss\n\n"
        "trainer.fit(loss_of)  # started\n"
    )
    called, path, started = lines(script, "called", "path", "started")
    made = change(script, None, called, path, started)
    assert "+        made = encode(rows)  # path\n" in made.diff


def test_the_users_own_autocast_around_a_line_of_the_path_is_switched_on(script: Path) -> None:
    script.write_text(
        RAYS.replace(
            "        colours = render(rows, model)  # path\n",
            '        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):\n'
            "            colours = render(rows, model)  # path\n",
        )
    )
    called, rendered, path, backward = lines(script, "called", "rendered", "path", "backward")
    made = change(script, backward, called, rendered, path)
    assert '+        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=True):\n' in made.diff


def test_what_is_written_before_the_loop_finds_it_by_the_path(script: Path) -> None:
    script.write_text(
        RAYS.replace("def main():\n", "def main():\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n")
    )
    called, rendered, path, backward = lines(script, "called", "rendered", "path", "backward")
    known = replace(FOUND, device="cpu", loader_site=None, forward_site=called, backward_site=backward)
    setting: Setting = {"gc_freeze": True}
    (by_hand,) = changes_for(setting, known)
    assert by_hand.diff == ""
    (made,) = changes_for(setting, replace(known, forward_path=[rendered, path]))
    assert "+    gc.freeze()\n" in made.diff
    assert made.diff.index("gc.freeze()") < made.diff.index("for rows, wanted in batches")


TWO_LOSSES = """\
import torch

class Translation:
    def step(self):
        self.forward()  # begins
        self.critic_optimizer.zero_grad()
        self.critic_loss = self.loss_of_critic()  # criticised
        self.critic_loss.backward()  # backward
        self.critic_optimizer.step()
        self.optimizer.zero_grad()
        self.loss = self.loss_of_generator()
        self.loss.backward()
        self.optimizer.step()

    def forward(self):
        self.fake = self.generator(self.real)  # called

    def loss_of_critic(self):
        self.critic_loss = self.critic(self.fake.detach()).mean()  # criticism
        return self.critic_loss

    def loss_of_generator(self):
        self.loss = self.critic(self.fake).mean()
        return self.loss
"""


@pytest.mark.parametrize(("called", "led"), [("called", "begins"), ("criticism", "criticised")])
def test_one_of_two_functions_that_return_a_loss_is_not_all_of_a_step(tmp_path: Path, called: str, led: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(TWO_LOSSES)
    forward, path, backward = lines(script, called, led, "backward")
    made = change(script, backward, forward, path)
    assert made.line == path.line
    under = [each[1:].strip() for each in made.diff.splitlines() if each.startswith("+" + 12 * " ")]
    wanted = ["self.critic_loss = self.loss_of_critic()  # criticised", "self.loss = self.loss_of_generator()"]
    assert [each for each in under if "loss" in each] == wanted
    assert ("self.forward()  # begins" in under) == (led == "begins")
    assert made.diff.count("+        with torch.autocast") == 2


CYCLE = """\
import torch

class Cycle:
    def pretrain(self):
        self.loss = self.generator(self.real).mean()
        self.loss.backward()

    def forward(self):
        self.fake = self.generator(self.real)  # called

    def backward_of_critic(self, critic, fake):
        loss = critic(fake.detach()).mean()  # criticism
        if self.scaling:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()  # backward
        return loss

    def backward_of_first(self):
        self.first_loss = self.backward_of_critic(self.first, self.fake)

    def backward_of_generator(self):
        weight = self.weight
        self.loss = self.first(self.fake).mean() * weight
        self.loss.backward()

    def step(self):
        self.forward()  # begins
        self.optimizer.zero_grad()
        self.backward_of_generator()
        self.optimizer.step()
        self.critic_optimizer.zero_grad()
        self.backward_of_first()  # criticised
        self.critic_optimizer.step()

def train(model):
    for model.real in batches:
        model.step()  # trained
"""


CRITICISM = "loss = critic(fake.detach()).mean()  # criticism"


def cycle(tmp_path: Path, source: str = CYCLE, *marks: str) -> tuple[Change, list[str]]:
    """The change, and the lines that it puts under autocast."""
    script = tmp_path / "train.py"
    script.write_text(source)
    *path, backward = lines(script, *(marks or ("called", "begins", "trained")), "backward")
    made = change(script, backward, *path)
    return made, [each[1:].strip() for each in made.diff.splitlines() if each.startswith("+" + 12 * " ")]


def test_all_functions_of_a_step_that_go_back_are_put_under_it(tmp_path: Path) -> None:
    made, under = cycle(tmp_path)
    assert under == [
        CRITICISM,
        "weight = self.weight",
        "self.loss = self.first(self.fake).mean() * weight",
        "self.forward()  # begins",
    ]
    assert made.diff.count("+        with torch.autocast") == 3


def test_one_that_goes_back_is_enough_where_the_model_is_called_beside_it(tmp_path: Path) -> None:
    source = CYCLE.replace("        self.backward_of_generator()\n", "")
    assert cycle(tmp_path, source)[1] == [
        CRITICISM,
        "self.forward()  # begins",
    ]


def test_the_function_that_goes_back_first_may_call_the_model_itself(tmp_path: Path) -> None:
    under = cycle(tmp_path, CYCLE, "criticism", "criticised", "trained")[1]
    assert under[0] == CRITICISM
    assert "weight = self.weight" in under, "and the other one belongs to the same step"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "        else:\n            loss.backward()",
            "        else:\n            loss = loss * 2\n            loss.backward()",
        ),
        ("        loss = critic(fake.detach()).mean()", "        loss = critic(self.backward_of_generator()).mean()"),
        ("        weight = self.weight\n        self.loss = self.first(self.fake).mean() * weight\n", ""),
    ],
)
def test_what_does_more_than_go_back_is_left_to_the_user(tmp_path: Path, old: str, new: str) -> None:
    assert old in CYCLE
    made, _ = cycle(tmp_path, CYCLE.replace(old, new))
    assert made.diff == ""
    assert made.note.startswith("Put the forward pass and the loss under")


def test_a_step_in_place_of_the_other_is_no_part_of_it(tmp_path: Path) -> None:
    source = CYCLE.replace("        self.backward_of_generator()\n", "")
    source = source.replace(
        "        self.backward_of_first()  # criticised\n",
        "        if self.begins:\n            self.backward_of_generator()\n"
        "        else:\n            self.backward_of_first()  # criticised\n",
    )
    assert cycle(tmp_path, source)[1] == [
        CRITICISM,
        "self.forward()  # begins",
    ]


@pytest.mark.parametrize(
    ("made", "both"),
    [
        ("        if self.backward_of_first():\n            self.backward_of_generator()\n", True),
        (
            "        try:\n            self.backward_of_first()\n"
            "        except RuntimeError:\n            self.backward_of_generator()\n",
            False,
        ),
    ],
)
def test_what_a_condition_asks_is_made_and_what_an_error_brings_is_not(tmp_path: Path, made: str, both: bool) -> None:
    source = CYCLE.replace("        self.backward_of_generator()\n", "")
    source = source.replace("        self.backward_of_first()  # criticised\n", made)
    under = cycle(tmp_path, source)[1]
    assert {CRITICISM, "self.forward()  # begins"} <= set(under)
    assert ("weight = self.weight" in under) == both


def test_what_goes_back_before_the_loop_is_no_part_of_its_steps(tmp_path: Path) -> None:
    source = CYCLE[: CYCLE.index("    def step(self)")] + (
        "    def train(self):\n        self.pretrain()\n        for self.real in batches:\n"
        "            self.forward()  # begins\n            self.backward_of_first()\n"
    )
    made, under = cycle(tmp_path, source, "called", "begins")
    assert [each for each in under if "with" not in each] == [CRITICISM, "self.forward()  # begins"]
    assert made.diff.count("+            with torch.autocast") == 1


def test_a_function_with_a_loop_of_its_own_is_no_part_of_another_step(tmp_path: Path) -> None:
    """As one that trains for some steps before the other does."""
    source = RAYS.replace("main()  # started\n", "def first():\n    loss = model(1)\n    loss.backward()\n\n")
    source += "def both():\n    first()\n    main()\n\nboth()\n"
    script = tmp_path / "train.py"
    script.write_text(source)
    called, rendered, path, backward = lines(script, "called", "rendered", "path", "backward")
    made = change(script, backward, called, rendered, path)
    assert "first" not in made.diff
    assert "+            colours = render(rows, model)  # path\n" in made.diff
