"""`denormal-numbers`: the processor computes with numbers next to 0, with which it is slow."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import LARGE, ROOT, Rule, Statement
from bottleneck_doctor.diagnose._worth import measured_gain, surely_lost
from bottleneck_doctor.knobs import flush_denormal
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    gain = measured_gain(evidence, flush_denormal.alone)
    lost = surely_lost(gain)
    if gain is None or lost < LARGE:
        return None
    places = flush_denormal.seen_in(evidence.found)
    # Nobody sees into a recurrent layer.
    where = f"in {words.listed(places)}" if places else "where gradients vanish within a recurrent layer"
    return Statement(
        sentence=(
            f"Numbers next to 0 (below 1.2e-38, denormal) turn up {where}, and this processor is slow with them. Where "
            f"they are taken as 0, training is {words.speedup_text(gain)} as fast."
        ),
        figures={"lost_share": lost, "speedup": gain.estimate},
        weight=lost * evidence.in_steps,
        measured=False,
        clause=f"loses {words.share_text(lost)} of the time or more to numbers next to 0, which slow it down",
    )


RULE = Rule(
    id="denormal-numbers",
    title="Numbers next to 0 slow the processor down",
    topic="host",
    depth=ROOT,
    needs=("phases",),
    judge=judge,
    source="https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html",
    advice="Call `torch.set_flush_denormal(True)` at the top of the script, before torch starts threads. Or keep them "
    "from turning up: by shorter sequences, normalised values, and no decay of weights that get no gradient.",
    fixes=("flush-denormal",),
    contradicts=("compute-bound", "python-bound"),
)
