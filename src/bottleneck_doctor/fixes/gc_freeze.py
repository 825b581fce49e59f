"""`gc-freeze`: keep Python's garbage collector from walking, again and again, what stays until the end."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import gc_freeze
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.wording import words

LEAST = 0.02
"""Part of the time that the collector has to take: so much could be gained at the most."""


def propose(found: Found) -> Offer | NotApplicable:
    return propose_between(found, 0.0)


def propose_between(found: Found, between: float) -> Offer | NotApplicable:
    """`between`: the part of the time in which the collector runs between epochs; they come after the loop is found."""
    if gc_freeze.is_off(found):
        return NotApplicable("already on: the script has switched Python's garbage collector off")
    if gc_freeze.is_frozen(found):
        return NotApplicable("already on: the script calls `gc.freeze()`")
    share = gc_freeze.collecting(found)
    if share is None:
        return NotApplicable("how long Python's garbage collector takes was not measured")
    if max(share, between) < LEAST:
        return NotApplicable(
            f"Python's garbage collector took only {words.share_text(share)} of the time until the loop was found"
        )
    return Offer(({gc_freeze.NAME: gc_freeze.THRESHOLD},))


FIX = Fix(
    id="gc-freeze",
    title="Freeze the objects made before the loop",
    why=(
        "Python's garbage collector goes through all objects that can refer to others, such as the data set and the "
        "model. `gc.freeze()` makes it skip the objects that exist by then, and a higher threshold lets it run less "
        "often."
    ),
    source="https://docs.python.org/3/library/gc.html#gc.freeze",
    risk="identical",
    how=(
        "Call `gc.collect()`, `gc.freeze()` and `gc.set_threshold(50_000)` once the model and the data set are made, "
        "before the training loop."
    ),
    target="compute",
    propose=propose,
    propose_between=propose_between,
    order=46,
)
