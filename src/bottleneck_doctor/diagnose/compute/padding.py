"""`padding`: the model computes on places of its batches that hold nothing."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import loader_place
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.wording import words

MOSTLY = 0.4
"""Rows of a batch always differ in length. Ours: with fewer empty places than this, grouping them is hardly worth the
change in what comes together."""

SMALLER = 0.1
"""Part of a batch by which windows may well differ: what its places cost is said for so many."""


def judge(evidence: Evidence) -> Statement | None:
    loading, shares = evidence.as_written, evidence.shares
    padding = None if loading is None else loading.padding
    if padding is None or shares is None:
        return None
    # What computes takes at least as much longer as there are more places; attention takes longer by more than that.
    passes = (shares.forward + shares.backward) * evidence.in_steps
    behind, other = padding.behind_longest, padding.empty - padding.behind_longest
    figures = {"behind_longest": behind, "empty": padding.empty, "columns": padding.columns}
    if behind * passes >= MATTERS:
        longest = padding.columns * (1 - behind)
        return Statement(
            sentence=(
                f"Rows are padded to {words.number_text(round(padding.columns))} places, while the longest of a batch "
                f"fills {words.number_text(round(longest))}: {words.share_text(behind)} of what the model computes on "
                "is needless padding."
            ),
            figures=figures,
            weight=behind * passes,
            measured=False,
            clause=f"computes on padding in {words.share_text(behind)} of the places of a batch",
            site=loader_place(evidence),
        )
    if other * passes >= MATTERS and other >= MOSTLY:
        grows = pairing.growth_with_size(evidence.windows)
        saves = 1 - (1 - SMALLER) ** grows
        shown = f" Here, a batch that is {words.share_text(SMALLER)} smaller takes {words.share_text(saves)} less time."
        return Statement(
            sentence=(
                f"{words.share_text(padding.empty)} of the places of a batch are padding, because it holds short rows "
                f"beside long ones.{shown if grows else ''}"
            ),
            figures=figures,
            weight=other * passes,
            measured=False,
            clause=f"computes on padding in {words.share_text(padding.empty)} of the places of a batch",
            site=loader_place(evidence),
            # Version 5 of transformers took the older argument away.
            advice="Put rows of similar length into one batch; `--only grouped-lengths` measures it. In transformers, "
            'that is `train_sampling_strategy="group_by_length"`; before version 5, `group_by_length=True`. This '
            "changes which rows come together, so compare the loss.",
        )
    return None


RULE = Rule(
    id="padding",
    title="The model computes on padding",
    topic="rest",
    depth=CAUSE,
    needs=("loading", "phases"),
    judge=judge,
    source="https://huggingface.co/docs/transformers/pad_truncation",
    advice="Pad to the longest row of each batch, in the collate function: `DataCollatorWithPadding` in transformers, "
    'instead of `padding="max_length"` where the tokenizer is called.',
    fixes=("trimmed-padding", "grouped-lengths"),
)
