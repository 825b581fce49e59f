"""`grouped_lengths`: whether each batch gets rows of similar length, so that it holds less padding."""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import GroupedRows
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "grouped_lengths"


def part(found: Found) -> str | None:
    """What of a sample is as long as its row, as code behind a sample; None where that is not known."""
    seen = (told(found, NAME) or {}).get("part")
    return seen if isinstance(seen, str) else None


def _of_trainer(value: SettingValue, found: Found) -> Mapping[str, object]:
    match (told(found, NAME) or {}).get("by_trainer"):
        case [str(name), given]:
            return {name: given}
    return {}


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=GroupedRows("batch_sampler=GroupedByLength(...)", part),
    # They put other batches, or another dataset, where this one does.
    idle_beside=("batch_size", "batched_fetch", "cached_inputs", "cached_samples"),
    resizes=True,
    may_crash=True,
    # Its rows are some of the dataset, in another order than the user's.
    in_part=True,
    of_trainer=_of_trainer,
)
