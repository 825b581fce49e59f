"""`training-data-evaluated`: between epochs, the program evaluates the data that it has just trained on."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import MATTERS, ORIGIN, Rule, Statement
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    epoch, whole, pause = evidence.epoch_seconds, evidence.whole_epoch_seconds, evidence.pause
    if not epoch or not whole or pause is None:
        return None
    again = pause.of_training
    share = again / whole
    if share < MATTERS:
        return None
    return Statement(
        sentence=(
            f"After an epoch, {words.duration_text(again)} go into evaluating the training data, which is "
            f"{words.share_text(share)} of the time. Its steps, which take {words.duration_text(epoch)}, have just "
            "computed outputs for the same samples."
        ),
        figures={"training_data_share": share, "training_data_seconds": again, "epoch_seconds": epoch},
        weight=share,
        clause=f"spends {words.share_text(share)} of the time evaluating its training data between epochs",
    )


RULE = Rule(
    id="training-data-evaluated",
    title="The training data is evaluated",
    topic="epoch",
    depth=ORIGIN,
    needs=("epoch", "epoch-pause"),
    judge=judge,
    removable=True,
    source="https://docs.pytorch.org/tutorials/beginner/introyt/trainingyt.html",
    advice="Add up loss and accuracy of the batches while you train on them: the figures of an epoch cost nothing "
    "then. If you need those of the finished weights, evaluate the training data every few epochs, or a part of it.",
)
