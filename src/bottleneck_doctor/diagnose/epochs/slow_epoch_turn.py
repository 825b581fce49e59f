"""`slow-epoch-turn`: what happens between two epochs takes a good part of the time."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, LARGE, Rule, Statement, place
from bottleneck_doctor.diagnose.epochs._gradients import gradients_kept
from bottleneck_doctor.wording import words

PARTS = {
    "evaluation": "evaluating",
    "saving": "saving",
    "first_batch": "waiting for the first batch",
    "collecting": "collecting garbage",
    "rest": "other work of the loop",
}
ADVICE = {
    "evaluation": "Evaluate less often or on fewer samples, or in larger batches.",
    "saving": "Save less often, only what is needed, or in another thread.",
    "first_batch": "Make the loader once, and keep its workers alive with `persistent_workers=True`. Make starting "
    "them cheap: a small dataset object that opens its files when it is first used.",
    "collecting": "Call `gc.collect()` and `gc.freeze()` once before training: the collector then leaves out all "
    "objects that exist by then, such as those of imported libraries (`gc-freeze`). Or leave out calls of "
    "`gc.collect()`.",
    "in_mode": "If it generates samples there, let it make fewer, or less often.",
}
IN_MODE = "computing with the model in evaluation mode"


def judge(evidence: Evidence) -> Statement | None:
    epoch, whole, seen = evidence.epoch_seconds, evidence.whole_epoch_seconds, evidence.pause
    if not epoch or not whole or seen is None:
        return None
    pause = seen.seconds
    share = pause / whole
    if share < LARGE:
        return None
    figures = {"pause_share": share, "pause_seconds": pause, "epoch_seconds": epoch}
    seconds = seen.parts
    figures |= {f"{name}_seconds": value for name, value in seconds.items()}
    parts = dict(PARTS)
    if seen.collected_at is not None:
        parts["collecting"] = f"{PARTS['collecting']} at {place(seen.collected_at)}"
    if seen.in_mode > 0.5 * seen.rest:
        parts["rest"] = IN_MODE
    ranked = sorted(seconds, key=lambda name: -seconds[name])
    largest = ranked[0]
    named = [f"{words.duration_text(seconds[name])} {parts[name]}" for name in ranked if seconds[name] > LARGE * pause]
    most = f", most of it {parts[largest]}" if seconds[largest] > 0.5 * pause else ""
    advice = ADVICE.get("in_mode" if parts[largest] == IN_MODE else largest, "")
    graphs, without = gradients_kept(seen) if largest == "evaluation" else ("", "")
    if graphs:
        figures["passes_with_graph"] = float(seen.with_graph)
    return Statement(
        sentence=(
            f"The pause between two epochs takes {words.duration_text(pause)} ({', '.join(named)}). The steps of one "
            f"epoch take {words.duration_text(epoch)}, so pauses are {words.share_text(share)} of the time.{graphs}"
        ),
        figures=figures,
        weight=share,
        clause=f"spends {words.share_text(share)} of the time between epochs{most}",
        site=seen.collected_at if largest == "collecting" else None,
        advice=f"{without}{advice}",
    )


RULE = Rule(
    id="slow-epoch-turn",
    title="Slow between epochs",
    topic="epoch",
    depth=CAUSE,
    needs=("epoch", "epoch-pause"),
    judge=judge,
    removable=True,
    source="https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
    advice="Look at what the loop does when an epoch ends.",
    fixes=("persistent-workers", "forked-workers", "no-workers", "gc-freeze"),
)
