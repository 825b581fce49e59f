"""`distribution-checks`: torch's distributions without checks of the values that they are given."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, Function, NotApplicable, Offer, told_refusal
from bottleneck_doctor.knobs import distribution_checks
from bottleneck_doctor.runtime.wire.messages import Found

FILE = "torch/distributions/distribution.py"
CHECKS: tuple[Function, ...] = ((FILE, "Distribution.__init__"), (FILE, "Distribution._validate_sample"))


def propose(found: Found) -> Offer | NotApplicable:
    refused = told_refusal(found, distribution_checks.NAME, "whether it makes distributions could not be seen")
    if refused is not None:
        return refused
    # A check waits for what the device computes, so how long it takes there is no bound of what it costs.
    within = CHECKS if found.device.startswith("cpu") else ()
    return Offer(({distribution_checks.NAME: False},), within=within)


FIX = Fix(
    id="distribution-checks",
    title="Make distributions without checks of their values",
    why=(
        "`torch.distributions` checks each value that a distribution is made of, and each sample whose probability is "
        "asked for. That takes several small operations each time, and on a GPU the program waits for their answer."
    ),
    source="https://docs.pytorch.org/docs/stable/distributions.html",
    risk="identical",
    how=(
        "Call `torch.distributions.Distribution.set_default_validate_args(False)` before training begins. A "
        "distribution of invalid values, such as NaN, is then no error."
    ),
    target="compute",
    propose=propose,
    order=45,
    acts_on=("forward", "between"),
)
