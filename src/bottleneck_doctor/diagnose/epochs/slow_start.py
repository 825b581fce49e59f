"""`slow-start`: it takes long until the first step."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, Rule, Statement
from bottleneck_doctor.diagnose._run import whole_run
from bottleneck_doctor.wording import words

LONG = 10.0
"""Seconds. In a survey of 34 scripts, importing torch and its relatives took 2 to 5 s, and set-up took 2 to 25 s. Below
ten, nobody looks for something to save."""
RUN_EPOCHS = 10
"""A start is compared with at least this many epochs: people shorten a training to have it examined."""
RUN_SECONDS = 600.0
"""Or with this many seconds, if the length of an epoch is not known."""
SHORTEST_RUN = 60.0
"""And with this many seconds in any case: of a training whose epochs take a second, people make more than ten. Ours."""

MOSTLY = 0.5
"""If waiting for the first batch takes this part of a start or more, it is what to look at. Ours."""
LITTLE = 0.01
"""Of a run whose length the program says, a start that takes less than this is not worth a word. Ours: in a run of an
hour, half a minute."""


def judge(evidence: Evidence) -> Statement | None:
    seconds = evidence.first_step_seconds
    if seconds is None or seconds < LONG:
        return None
    epoch = evidence.epoch_seconds
    run = max(RUN_EPOCHS * (epoch + (evidence.pause_seconds or 0.0)), SHORTEST_RUN) if epoch else RUN_SECONDS
    known = whole_run(evidence)
    if known is not None:
        run = max(run, known.training + (known.between or 0.0))
        if seconds < LITTLE * (seconds + run):
            return None
    figures = {"setup_seconds": seconds}
    first_batch, against, advice = evidence.first_batch_seconds or 0.0, "", ""
    if first_batch >= MOSTLY * seconds:
        figures["first_batch_seconds"] = first_batch
        against = f" For {words.duration_text(first_batch)} of these it waits for its first batch."
        advice = WAITS
    if epoch:
        figures["epoch_seconds"] = epoch
        against += f" The steps of one epoch take {words.duration_text(epoch)}."
    return Statement(
        sentence=f"It takes {words.duration_text(seconds)} from the start of the process to its first step.{against}",
        figures=figures,
        weight=seconds / (seconds + run),
        measured=False,
        clause=f"takes {words.duration_text(seconds)} to start",
        advice=advice,
    )


WAITS = (
    "Let the first batch come sooner: fill a smaller buffer before it, if the dataset shuffles or sorts by length, and "
    "start fewer workers. Workers that are spawned import the whole script first."
)

RULE = Rule(
    id="slow-start",
    title="Slow start",
    topic="start",
    depth=CAUSE,
    needs=("start",),
    judge=judge,
    source="https://docs.python.org/3/using/cmdline.html#cmdoption-X",
    advice="Store what set-up computes in a file, and import only what is needed: `python -X importtime` shows what "
    "each import takes.",
)
