"""What outputs say of each edit of a race: a `Check` in, a row for each out, best first."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck_doctor.documents.check import Check, RacedEdit, Verdict
from bottleneck_doctor.wording import words

VERDICTS: dict[Verdict, str] = {
    "improvement": "faster",
    "regression": "slower",
    "unchanged": "no difference",
    "cannot_tell": "can't tell",
    "not_measured": "not measured",
}
LOSSES = {"moved": "another loss", "not_finite": "the loss breaks"}
TITLE = "All edits"
HEAD = ("Edit", "As fast as written", "Interval (95 %)", "Pairs", "Result")
NOTE = "Where intervals overlap, the order may be chance."


@dataclass(frozen=True)
class Row:
    """Its cells, in the order of `HEAD`. `sentence`: what is said of it by itself. `bad`: whether it is slower, fails,
    or trains to another loss."""

    cells: tuple[str, ...]
    sentence: str
    bad: bool


def rows(check: Check) -> list[Row]:
    """None where there was but one edit."""
    return [_row(each) for each in check.race]


def _row(raced: RacedEdit) -> Row:
    speedup = raced.edit.speedup
    loss = LOSSES.get(raced.losses or "")
    said = "fails" if raced.failed else ", ".join(filter(None, (VERDICTS.get(raced.verdict, ""), loss)))
    return Row(
        cells=(
            words.clipped(words.visible(raced.name), 60),
            words.DASH if speedup is None else words.estimate_text(speedup),
            words.DASH if speedup is None else words.interval_text(speedup),
            str(raced.pairs),
            said,
        ),
        sentence=raced.sentence,
        bad=raced.failed or raced.verdict == "regression" or loss is not None,
    )
