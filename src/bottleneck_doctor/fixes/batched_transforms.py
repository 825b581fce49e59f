"""`batched-transforms`: do `ToTensor` and `Normalize` to whole batches, in place of to each sample."""

from __future__ import annotations

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import batched_transforms
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    seen = batched_transforms.seen(found)
    if seen is None:
        return NotApplicable("which transforms its samples get could not be seen")
    if seen.get("obstacle"):
        return NotApplicable(str(seen["obstacle"]))
    here: Setting = {batched_transforms.NAME: True}
    there: Setting = {batched_transforms.NAME: batched_transforms.ON_DEVICE}
    return Offer((here,) if found.device.startswith("cpu") else (here, there))


FIX = Fix(
    id="batched-transforms",
    title="Transform whole batches at once",
    why=(
        "`ToTensor` and `Normalize` do the same to every picture. Done once to a batch, they cost one call each, in "
        "place of one for each sample, and workers stack bytes, which take a quarter of the memory."
    ),
    source="https://docs.pytorch.org/vision/stable/transforms.html#performance-considerations",
    risk="identical",
    how=(
        "End the samples' transforms with `PILToTensor()`, and do `ConvertImageDtype(torch.float32)` and `Normalize` "
        "to the batch in the loader's `collate_fn`; with a GPU, after the batch was moved there. In Lightning, "
        "`on_after_batch_transfer` is the place."
    ),
    target="data",
    propose=propose,
    order=13,
)
