"""Pictures that are decoded larger than they are used, as the guest sees them where batches are made."""

from __future__ import annotations

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.measure import phases

pytestmark = pytest.mark.process

PICTURES = (
    PRELUDE
    + """
import numpy, PIL.Image

grain = numpy.random.default_rng(0).integers(0, 256, (1200, 1600, 3), dtype=numpy.uint8)
PIL.Image.fromarray(grain).save("one.jpg")


class Thumbnails(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        with open("one.jpg", "rb") as handle:
            small = PIL.Image.open(handle).convert("RGB").resize((64, 48))
        return torch.from_numpy(numpy.array(small)).flatten()[:4].float(), torch.tensor(0.0)


for epoch in range(1000):
    for batch in DataLoader(Thumbnails(), batch_size=2, num_workers=int(sys.argv[1])):
        train_on(batch)
"""
)


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow(together=True)), "1"])
def test_pictures_are_seen_where_they_are_decoded(guest: StartGuest, workers: str) -> None:
    script = guest(PICTURES, workers)
    script.found()
    done = script.window(mode="phases", lead_in=2, steps=6)
    assert done.status == "ok", done.reason
    made = phases.loading([done.detail], {})
    assert made is not None
    seen = made.pictures
    assert seen is not None
    assert (seen.width, seen.height, seen.used_width, seen.used_height, seen.factor) == (1600, 1200, 64, 48, 8)
    # Two pictures a batch, and next to nothing else. Compared with what is computed: beside other programs, a fetch
    # also waits for a core.
    assert made.decoding is not None
    assert made.computing is not None
    assert made.decoding > 0.5 * made.computing
    assert seen.reduced_ms < seen.whole_ms < made.fetch_ms
    assert seen.tried == 1
