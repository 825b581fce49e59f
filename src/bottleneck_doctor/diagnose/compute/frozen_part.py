"""`frozen-part`: a part of the model does not learn, and makes the same of the same samples in each epoch."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, LARGE, Rule, Statement, at
from bottleneck_doctor.documents.report import FrozenPart
from bottleneck_doctor.knobs import cached_samples
from bottleneck_doctor.wording import words

MOST_NAMES = 3


def judge(evidence: Evidence) -> Statement | None:
    found = evidence.found
    # Without a loader, or with samples that only stream by, nobody knows that the same ones come again.
    if not evidence.frozen or not found.has_loader or found.iterable:
        return None
    part = evidence.frozen[0]
    if part.share < LARGE:
        return None
    takes = "takes" if len(part.names) == 1 else "take"
    return Statement(
        sentence=(
            f"{_names(part)}{at(part.site)} {takes} {words.share_text(part.share)} of a step, but nothing in there "
            f"learns, nor anything before it. {_what_follows(part, repeats=cached_samples.repeats(found))}"
        ),
        figures={"frozen_share": part.share},
        weight=part.share * evidence.in_steps,
        clause=f"spends {words.share_text(part.share)} of a step in a part that does not learn{at(part.site)}",
        site=part.site,
    )


def _names(part: FrozenPart) -> str:
    named = [f"`{name}`" for name in part.names[:MOST_NAMES]]
    more = len(part.names) - len(named)
    return words.listed([*named, f"{more} more"] if more else named)


def _what_follows(part: FrozenPart, *, repeats: bool | None) -> str:
    """Whether its outputs are the same in each epoch, or what is in the way of that."""
    changing = []
    if repeats is False:
        changing.append("samples that change from epoch to epoch")
    if part.batch:
        changing.append("BatchNorm in training mode")
    if part.random:
        changing.append("what is drawn at random, as by dropout")
    if changing:
        return f"Its outputs would be the same in each epoch, but for {words.listed(changing)}."
    if repeats:
        return "Samples are the same in each epoch, and so are its outputs."
    return "The same samples give the same outputs in each epoch."


RULE = Rule(
    id="frozen-part",
    title="A part that does not learn is computed again in each epoch",
    topic="rest",
    depth=CAUSE,
    needs=("phases",),
    judge=judge,
    removable=True,
    source="https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html"
    "#convnet-as-fixed-feature-extractor",
    advice="If samples are the same in each epoch, compute the outputs of this part once, before training. Call "
    "`.eval()` on it and run all samples through it under `torch.no_grad()`. Keep what comes out in a "
    "`TensorDataset`, and train the rest on that. If samples are changed at random, keep the outputs of a few versions "
    "of each.",
)
