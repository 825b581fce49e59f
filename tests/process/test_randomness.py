"""What a program draws at random is what it draws without us: up to the first window always, and in windows as written
as long as it loads in its own process."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, run_plain

pytestmark = pytest.mark.process

DRAWING = (
    PRELUDE
    + """
import random
try:
    import numpy
    numpy.random.seed(1)
    rand = numpy.random.rand
except ImportError:
    rand = float

class Noisy(Rows):
    def __getitem__(self, index):
        row, label = super().__getitem__(index)
        return row + torch.rand(4), label

class Shuffled(torch.utils.data.Sampler):
    asked = 0

    def __len__(self):
        return 48

    def __iter__(self):
        self.asked += 1
        return iter(torch.randperm(48).tolist())

random.seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
given = {"own": dict(sampler=Shuffled()), "generator": dict(shuffle=True, generator=torch.Generator())}
loader = DataLoader(
    Noisy(48), batch_size=4, num_workers=int(sys.argv[2]), persistent_workers=sys.argv[1] == "persistent",
    **given.get(sys.argv[1], dict(shuffle=True)))
for epoch in range(8):
    for batch in loader:
        loss = train_on(batch)
        assert torch.initial_seed() == 0
        drawn = [loss.item(), torch.rand(1).item(), random.random(), float(rand()), getattr(loader.sampler, "asked", 0)]
        print(epoch, *drawn)
"""
)


@pytest.mark.parametrize(
    ("shuffles", "workers"),
    [
        ("default", 0),
        pytest.param("own", 0, marks=pytest.mark.slow(together=True)),
        pytest.param("generator", 0, marks=pytest.mark.slow(together=True)),
        pytest.param("default", 1, marks=pytest.mark.slow(together=True)),
        pytest.param("persistent", 1, marks=pytest.mark.slow(together=True)),
    ],
)
def test_draws_are_those_without_us(guest: StartGuest, tmp_path: Path, shuffles: str, workers: int) -> None:
    script = guest(DRAWING, shuffles, str(workers))
    found = script.found()
    # Amid epochs and over their ends, and whole ones.
    assert script.window({}, steps=6).status == "ok"
    assert script.window({}, lead_in=1, steps=15).status == "ok"
    assert script.window({}, lead_in=0, steps=0, epochs=1).status == "ok"
    ended = script.run_out()
    plain = run_plain([str(tmp_path / "train.py"), shuffles, str(workers)], tmp_path)
    assert (ended.code, plain.code) == (0, 0), (ended.tail, plain.err)
    ours, theirs = ended.tail.splitlines(), plain.out.splitlines()
    assert len(theirs) == len(ours) == 96
    assert 0 < found.position < 48
    if workers == 0:
        assert ours == theirs
    else:
        # Workers had taken indices ahead when the windows began.
        assert ours[: found.position] == theirs[: found.position]
