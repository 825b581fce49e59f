"""`cached-inputs`: keep what the transforms get in memory, in place of reading and decoding it once an epoch."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.fixes._kept import offered, refusal
from bottleneck_doctor.knobs import cached_inputs, cached_samples
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    refused = refusal(found, cached_inputs.NAME, cached_inputs.obstacle(found), "takes its samples", "read")
    if refused is None and cached_samples.obstacle(found) == "":
        return NotApplicable("whole samples can be kept, with their transforms done (`cached-samples`)")
    return refused or offered(found, {cached_inputs.NAME: True})


FIX = Fix(
    id="cached-inputs",
    title="Keep what the transforms get in memory",
    why=(
        "Every epoch reads and decodes the same files again, though only the transforms are random. To keep what the "
        "transforms get needs memory, and saves that time from the second epoch on."
    ),
    source="https://docs.pytorch.org/docs/stable/data.html#map-style-datasets",
    risk="identical",
    how=(
        "Read the data set once without its transforms, into a list, and do the transforms in a data set around that "
        "list. In Lightning, do that in `setup`. In the library `datasets`, `list(dataset.with_format(None))` is that "
        "list. Some libraries have an option: `--cache ram` in YOLO, `cache_rate` of MONAI's `CacheDataset`."
    ),
    target="data",
    propose=propose,
    frees_cpus=True,
    order=9,
)
