"""`debug-switches`: train without what is on for finding mistakes, or for runs that repeat to the last bit."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import cudnn_deterministic, detect_anomaly, deterministic_algorithms
from bottleneck_doctor.runtime.wire.messages import Found

SWITCHES = (detect_anomaly.KNOB, deterministic_algorithms.KNOB, cudnn_deterministic.KNOB)


def propose(found: Found) -> Offer | NotApplicable:
    on = [knob.name for knob in SWITCHES if knob.own(found)]
    if not on:
        return NotApplicable("neither anomaly detection nor deterministic algorithms are on")
    # Anomaly detection only looks on: without it every number is as before.
    return Offer((dict.fromkeys(on, False),), risk="identical" if on == [detect_anomaly.NAME] else "numerics")


FIX = Fix(
    id="debug-switches",
    title="Train without anomaly detection and deterministic algorithms",
    why=(
        "Anomaly detection notes where each operation was called and searches each gradient for NaN. Deterministic "
        "algorithms are often slower than the fastest ones. Keep them for finding a mistake, or where runs must repeat "
        "exactly."
    ),
    source="https://pytorch.org/docs/stable/notes/randomness.html",
    risk="numerics",
    how=(
        "Remove `torch.autograd.set_detect_anomaly(True)`, `torch.use_deterministic_algorithms(True)` and "
        "`torch.backends.cudnn.deterministic = True`, or set them to `False`."
    ),
    target="compute",
    propose=propose,
    order=45,
)
