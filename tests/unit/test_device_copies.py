"""Which calls of a loop copy to a device and wait, by their source."""

from __future__ import annotations

import ast
import textwrap

import pytest

from bottleneck_doctor.runtime.knobs._device_copies import waiting_copies


def found(source: str, line: int) -> list[tuple[str, int]]:
    tree = ast.parse(textwrap.dedent(source))
    made = []
    for each in waiting_copies(tree, line, tree):
        assert isinstance(each.func, ast.Attribute)
        made.append((each.func.attr, each.lineno))
    return made


LOOP = """\
model.to(device)
for epoch in range(3):
    for images, labels in loader:
        images, labels = images.to(device), labels.cuda()
        images = images.to(
            device=device,
        )
        train(images)
    for images, labels in others:
        images = images.to(device)
"""


@pytest.mark.parametrize("line", [3, 4, 8])
def test_the_innermost_loop_is_meant(line: int) -> None:
    assert found(LOOP, line) == [("to", 4), ("cuda", 4), ("to", 5)]


def test_outside_of_loops_nothing_is_copied_again_and_again() -> None:
    assert found(LOOP, 1) == []


@pytest.mark.parametrize(
    "copy",
    [
        "x.to(device, non_blocking=True)",
        "x.cuda(non_blocking=False)",
        "x.cuda(0, True)",
        "x.to(device, torch.float32, True)",
        "x.to(*where)",
        "x.to(**where)",
        "x.to(torch.float16)",
        "x.to(memory_format=torch.channels_last)",
        "x.to()",
        "to(x, device)",
        "x.cpu()",
    ],
)
def test_what_says_whether_it_waits_or_copies_to_no_device_is_left_out(copy: str) -> None:
    assert found(f"for x in loader:\n    {copy}\n", 1) == []


@pytest.mark.parametrize("copy", ["x.to(device)", "x.to(device, torch.float16)", "x.cuda()", "x['a'].to('cuda:0')"])
def test_what_waits_is_found(copy: str) -> None:
    assert len(found(f"for x in loader:\n    {copy}\n", 1)) == 1


def test_functions_that_the_loop_calls_are_looked_into() -> None:
    source = """\
    def moved(batch):
        return [each.to(device) for each in batch]

    class Trainer:
        def step(self, batch):
            return self.model(batch.cuda())

        def evaluate(self, batch):
            return batch.cuda()

        def train(self):
            for batch in self.loader:
                self.step(moved(batch))
    """
    assert found(source, 12) == [("to", 2), ("cuda", 6)]
