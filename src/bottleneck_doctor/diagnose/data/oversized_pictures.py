"""`oversized-pictures`: JPEG pictures are decoded whole, and made so small that a part of their size would do."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import (
    ORIGIN,
    Rule,
    Statement,
    at,
    clamp,
    made_here,
    milliseconds,
    portion,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._loading import decode_site, waited_making
from bottleneck_doctor.documents.report import PictureUse
from bottleneck_doctor.wording import words

SPARED = 0.2
"""Named if this part of making a batch would be spared, or more. Ours: with less, loading would be less than 1.25 times
as fast."""
_PARTS = {2: "a half", 4: "a quarter", 8: "an eighth"}


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    if loading is None or loading.pictures is None or loading.decoding is None or parts is None:
        return None
    pictures, decoding = loading.pictures, loading.decoding * parts.fetch
    spared = decoding * clamp(1.0 - pictures.reduced_ms / pictures.whole_ms) if pictures.whole_ms > 0 else 0.0
    if spared < SPARED:
        return None
    site, wait = decode_site(evidence), evidence.wait or 0.0
    whole, used = (pictures.width, pictures.height), (pictures.used_width, pictures.used_height)
    part = _PARTS[pictures.factor]
    return Statement(
        sentence=(
            f"JPEG pictures of {_size(whole)} are decoded whole{at(site)}, and {_size(used)} is made of them. At "
            f"{part} of their size, decoding one takes {milliseconds(pictures.reduced_ms)} in place of "
            f"{milliseconds(pictures.whole_ms)}. That alone would spare {words.share_text(spared)} of making a batch. "
            f"{training_waits(evidence)}"
        ),
        figures={
            "share_of_making": decoding,
            "spared_share_of_making": spared,
            "whole_ms": pictures.whole_ms,
            "reduced_ms": pictures.reduced_ms,
            "factor": float(pictures.factor),
            "data_wait_share": wait,
        },
        weight=wait * spared * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(decoding)} in decoding pictures that are larger than needed{at(site)}",
        site=site,
        advice=(
            f"{_edit(pictures)} Boxes and other positions in pixels have to be divided, too. Or store the pictures "
            "smaller."
        ),
    )


def _edit(pictures: PictureUse) -> str:
    """The call that decodes a smaller picture, in a sentence."""
    grey = pictures.mode == "L"
    if pictures.library == "OpenCV":
        flag = f"cv2.IMREAD_REDUCED_{'GRAYSCALE' if grey else 'COLOR'}_{pictures.factor}"
        return f"Give `cv2.imread` (or `cv2.imdecode`) the flag `{flag}`: OpenCV then decodes a smaller picture."
    enough = tuple(side // pictures.factor for side in (pictures.width, pictures.height))
    return (
        f'Write `image.draft("{"L" if grey else "RGB"}", {enough})` behind `image = Image.open(...)`: Pillow then '
        "decodes a smaller picture, of no less than that size."
    )


def _size(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


RULE = Rule(
    id="oversized-pictures",
    title="Pictures are decoded larger than they are used",
    topic="data",
    depth=ORIGIN,
    needs=("loader", "wait", "loading"),
    judge=judge,
    removable=True,
    source="https://pillow.readthedocs.io/en/stable/reference/Image.html#PIL.Image.Image.draft",
    advice="Decode pictures at a smaller size (`Image.draft`, `cv2.IMREAD_REDUCED_COLOR_2`), or store them smaller.",
    fixes=("reduced-decoding", "workers", "prefetch-factor", "intra-op-threads", "cached-samples", "cached-inputs"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
