"""`process/recorded_values.py`: which numbers of a loop are only recorded, by what its source says."""

from __future__ import annotations

import ast
import textwrap

import pytest

from bottleneck_doctor.runtime.process.recorded_values import taken_values

LOOP = """
def train(loader, model, total, meter, logger, best):
    losses, logs = [], {{}}
    for epoch in range(9):
        for step, batch in enumerate(loader):
            loss = model(batch)
            loss.backward()
            {line}
        print(total)
    return losses
"""


def of(line: str, text: str = LOOP) -> dict[int, bool]:
    """What is said of a loop with these lines (divided by `|`), as lines of it from 1."""
    inner = textwrap.indent(line.replace("|", "\n"), " " * 12).strip()
    source = text.format(line=inner)
    function = ast.parse(source).body[0]
    first = 1 + source.splitlines().index("            loss.backward()") + 1
    return {at - first + 1: only for at, only in taken_values(function, first - 1).items()}


@pytest.mark.parametrize(
    "line",
    [
        "total += loss.item()",
        "total += loss.item() * len(batch)",
        "losses.append(loss.item())",
        "losses.append(float(loss))",
        "losses.append(round(loss.item(), 4))",
        "meter.update(loss.item(), len(batch))",
        "logger.add_scalar('loss', loss.item(), step)",
        "print(f'{step}: {loss.item():.4f}')",
        "logs['loss'] = loss.item()",
        "logs['loss'] += loss.item()",
        "logger.log({'loss': loss.item(), 'step': step})",
        "value = loss.item()|print(value)",
        "value = loss.item() / 2|text = f'{value}'|logger.info(text)",
        "if step % 50 == 0:|    print(loss.item())",
        "loss.item()",
    ],
)
def test_what_is_only_recorded(line: str) -> None:
    assert set(of(line).values()) == {True}


@pytest.mark.parametrize(
    "line",
    [
        "if loss.item() > 9:|    break",
        "if loss.item() < best:|    best = 1",
        "value = loss.item()|if value < best:|    break",
        "value = loss.item()|print(value)|assert value > 0",
        "total += loss.item()|if total > 9:|    break",
        "logs['loss'] = loss.item()|if logs['loss'] > 9:|    break",
        "scheduler.step(loss.item())",
        "best = min(best, loss.item())",
        "batch[int(loss.item())]",
        "rows = batch[:int(loss.item())]",
        "for _ in range(int(loss.item())):|    pass",
        "total = total + 1 if loss.item() else total",
        "correct = guess.item() == label.item()",
        "value = loss.item()|loss = model(value)",
        "a, b = loss.item(), 1",
        "self.loss = loss.item()",
        "total = loss.item()|yield total",
        "global total|total = loss.item()",
        "while loss.item() > 1:|    pass",
    ],
)
def test_what_may_be_gone_by(line: str) -> None:
    assert False in of(line).values()


def test_a_line_counts_only_if_all_that_it_takes_is_recorded() -> None:
    assert of("print(loss.item(), choose(loss.item()))") == {1: False}


def test_only_the_innermost_loop_is_looked_at() -> None:
    text = """
def train(loader, model, {line}):
    for epoch in range(9):
            loss.backward()
            print(loss.item())
    print(loss.item())
"""
    assert of("x", text) == {1: True}
    outside = ast.parse("def train(loss):\n    print(loss.item())\n").body[0]
    assert taken_values(outside, 2) == {}


@pytest.mark.parametrize(
    "line", ["x = items.item(3)", "x = float()", "x = float(3, 4)", "x = loss.item", "x = 'float'"]
)
def test_what_takes_no_number(line: str) -> None:
    assert of(line) == {}
