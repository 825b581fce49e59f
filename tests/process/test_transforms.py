"""The guest's `phases` windows against datasets whose transforms stand alone, under wrappers, and in fresh workers."""

from __future__ import annotations

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE
from tests.quiet import LOOSE

from bottleneck_doctor.measure import phases

pytestmark = pytest.mark.process


LONE = (
    PRELUDE
    + """
import functools
from torch.utils.data import ConcatDataset, Subset

NAP = 0.004

def nap(row):
    time.sleep(NAP)
    return row

class Nap(nn.Module):
    def forward(self, row):
        return nap(row)

class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, row):
        for transform in self.transforms:
            row = transform(row)
        return row

class Pictures(Dataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        time.sleep(NAP)
        row = torch.full((4,), float(index % 7))
        return row if self.transform is None else self.transform(row)

class Transformed(Dataset):
    def __init__(self, subset, transform):
        self.subset, self.transform = subset, transform

    def __len__(self):
        return len(self.subset)

    def __getitem__(self, index):
        return self.transform(self.subset[index])

def dataset():
    return {
        "lone": lambda: Pictures(
            transform=Nap(),
        ),
        "function": lambda: Pictures(nap),
        "lambda": lambda: Pictures(lambda row: nap(row)),
        "subset": lambda: Subset(Pictures(Compose([torch.nn.Identity(), Nap()])), range(4000)),
        "wrapper": lambda: Transformed(Subset(Pictures(), range(4000)), Nap()),
        "concat": lambda: ConcatDataset([Pictures(Compose([Nap()])), Pictures(functools.partial(nap))]),
    }[sys.argv[1]]()

if __name__ == "__main__":
    workers = int(sys.argv[2])
    context = "spawn" if workers else None
    while True:
        for batch in DataLoader(dataset(), batch_size=4, num_workers=workers, multiprocessing_context=context):
            train_on([batch])
"""
)
FORWARD = "    def forward(self, row):"


@pytest.mark.timed
@pytest.mark.parametrize(
    ("kind", "workers", "name", "own", "made"),
    [
        ("lone", 0, "Nap", FORWARD, "            transform=Nap(),"),
        ("lambda", 0, "<lambda>", '        "lambda": lambda: Pictures(lambda row: nap(row)),', ""),
        pytest.param("wrapper", 1, "Nap", FORWARD, '        "wrapper": lambda: ', marks=pytest.mark.slow),
        pytest.param("function", 1, "nap", "def nap(row):", "", marks=pytest.mark.slow),
        pytest.param("subset", 0, "Nap", FORWARD, '        "subset": lambda: ', marks=pytest.mark.slow),
        pytest.param("concat", 1, "Nap", FORWARD, '        "concat": lambda: ', marks=pytest.mark.slow),
    ],
)
def test_transforms_alone_and_under_wrappers(
    guest: StartGuest, kind: str, workers: int, name: str, own: str, made: str
) -> None:
    """The transform takes half of each sample; in a worker it is one that was started anew."""
    script = guest(LONE, kind, str(workers))
    script.found()
    done = script.window({}, mode="phases", lead_in=2, steps=10)
    assert (done.status, done.reason) == ("ok", "")
    loading = phases.loading([done.detail], {})
    assert loading is not None
    assert loading.num_workers == workers
    cost = max(loading.transforms, key=lambda each: each.share_of_fetch)
    assert cost.name == name
    assert cost.share_of_fetch == pytest.approx(0.5, abs=0.05 * LOOSE)
    text = LONE.splitlines()
    assert text[cost.line - 1] == own
    assert (text[cost.made_line - 1].startswith(made) and cost.made_line > 0) if made else cost.made_line == 0
    # The work beside the transform is that of the innermost dataset, also where it lies under another of the user's.
    assert loading.fetch_site is not None
    assert text[loading.fetch_site.line - 1] == "    def __getitem__(self, index):"
    assert text[loading.fetch_site.line] == "        time.sleep(NAP)"
    assert (loading.collate_name, loading.collate_module) == ("default_collate", "torch.utils.data._utils.collate")
    assert script.window({}, lead_in=1, steps=2).status == "ok"
