"""`long-pause`: the script did something other than training for so long that its process was ended."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import SEEN_OFTEN, Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, LARGE, Rule, Statement, at
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    seen, step = evidence.long_pause, evidence.step_ms
    if seen is None or seen.seen < SEEN_OFTEN or not step:
        return None
    training = seen.steps * step / 1000
    share = seen.seconds / (seen.seconds + training)
    if share < LARGE:
        return None
    return Statement(
        sentence=(
            f"After about {words.count_text(round(seen.steps), 'step')}, the script did something other than training"
            f"{at(seen.site)} for at least {words.duration_text(seen.seconds)}: doctor waited no longer. These steps "
            f"take {words.duration_text(training)}, so that is at least {words.share_text(share)} of the time until "
            "then."
        ),
        figures={"pause_share": share, "pause_seconds": seen.seconds, "steps_before": seen.steps},
        weight=share,
        clause=f"stands still for other work at least {words.share_text(share)} of the time",
        site=seen.site,
    )


RULE = Rule(
    id="long-pause",
    title="Long breaks in training",
    topic="epoch",
    depth=CAUSE,
    needs=("step",),
    judge=judge,
    source="https://docs.pytorch.org/tutorials/beginner/introyt/trainingyt.html",
    advice="If it evaluates there, let it do so less often, or on fewer samples.",
)
