"""`reduced-decoding`: decode JPEG at a half, a quarter or an eighth of its size, where it is made smaller at once."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import reduced_decoding
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    obstacle = reduced_decoding.obstacle(found)
    if obstacle is None:
        return NotApplicable("how its pictures are decoded could not be seen")
    return NotApplicable(obstacle) if obstacle else Offer(({reduced_decoding.NAME: True},))


FIX = Fix(
    id="reduced-decoding",
    title="Decode pictures at a part of their size",
    why=(
        "Pictures of a camera are decoded whole, and made much smaller at once. JPEG can be decoded at a half, a "
        "quarter or an eighth of its size, which takes a part of the time. Each pixel is a mean of several then, so "
        "pictures are a little smoother."
    ),
    source="https://pillow.readthedocs.io/en/stable/reference/Image.html#PIL.Image.Image.draft",
    risk="numerics",
    how=(
        "Call `image.draft(image.mode, (side, side))` behind `image = Image.open(...)`: Pillow decodes no smaller than "
        "that. With OpenCV, give `cv2.imread` the flag `cv2.IMREAD_REDUCED_COLOR_2` (or `_4`, `_8`). `ImageFolder` "
        "gets a `loader=` of your own, and `Image(decode=False)` of the library `datasets` hands out bytes that you "
        "open. Boxes and other positions in pixels have to be divided, too."
    ),
    target="data",
    propose=propose,
    frees_cpus=True,
    order=9,
)
