"""`slow-epoch-turn`: what lies between two epochs takes a good part of the time."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, LARGE, Rule, Statement
from bottleneck_doctor.render import words

PARTS = {
    "evaluation": "evaluating",
    "saving": "saving",
    "first_batch": "waiting for the first batch",
    "rest": "other work of the loop's",
}
ADVICE = {
    "evaluation": "Evaluate less often or on fewer samples, in larger batches, and under `torch.inference_mode()`.",
    "saving": "Save less often, only what is needed, or in another thread.",
    "first_batch": "Keep workers alive with `persistent_workers=True`, and make starting them cheap: a small dataset "
    "object that opens its files when it is first used.",
}


def judge(evidence: Evidence) -> Statement | None:
    epoch, pause = evidence.epoch_seconds, evidence.pause_seconds
    if not epoch or pause is None:
        return None
    share = pause / (epoch + pause)
    if share < LARGE:
        return None
    figures = {"pause_share": share, "pause_seconds": pause, "epoch_seconds": epoch}
    told, largest = "", "first_batch"
    if evidence.epoch_pause is not None:
        seconds = {name: max(0.0, getattr(evidence.epoch_pause, name)) for name in PARTS}
        figures |= {f"{name}_seconds": value for name, value in seconds.items()}
        ranked = sorted(seconds, key=lambda name: -seconds[name])
        largest = ranked[0]
        named = [
            f"{words.duration_text(seconds[name])} {PARTS[name]}" for name in ranked if seconds[name] > LARGE * pause
        ]
        told = f" ({', '.join(named)})" if named else ""
    most = f", most of it {PARTS[largest]}" if evidence.epoch_pause is not None else ""
    return Statement(
        sentence=(
            f"{words.duration_text(pause)} go by between two epochs{told}, while the steps of one take "
            f"{words.duration_text(epoch)}: {words.share_text(share)} of the time."
        ),
        figures=figures,
        weight=share,
        clause=f"spends {words.share_text(share)} of the time between epochs{most}",
        advice=ADVICE.get(largest, ""),
    )


RULE = Rule(
    id="slow-epoch-turn",
    title="Slow from one epoch to the next",
    topic="epoch",
    depth=CAUSE,
    needs=("epoch", "epoch-pause"),
    judge=judge,
    source="https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
    advice="Look at what the loop does when an epoch ends.",
    fixes=("persistent-workers", "no-workers"),
)
