"""`slow-decode`: the wait is spent on decoding pictures, sound or video."""

from __future__ import annotations

import re

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import text_at
from bottleneck_doctor.diagnose._rule import (
    PART,
    Rule,
    Statement,
    Unjudged,
    at,
    made_here,
    milliseconds,
    portion,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._loading import decode_site, waited_making
from bottleneck_doctor.wording import words

_IN_PART = "If only a part of a recording is used, pass {arguments} to `{function}`: the rest is not decoded then."
_BY_CALL = (
    (
        re.compile(r"\blibrosa\.load\("),
        "`librosa.load` converts the sample rate each time, unless it is given `sr=None`: store the files at the rate "
        f"that training uses. {_IN_PART.format(arguments='`offset` and `duration`', function='librosa.load')}",
    ),
    (
        re.compile(r"\btorchaudio\.load\("),
        _IN_PART.format(arguments="`frame_offset` and `num_frames`", function="torchaudio.load"),
    ),
    (
        re.compile(r"\b(soundfile|sf)\.read\("),
        _IN_PART.format(arguments="`start` and `frames`", function="soundfile.read"),
    ),
    (
        re.compile(r"\bVideoReader\("),
        "Decode only the frames that are used (`get_batch`), at the size that training uses (`width` and `height`).",
    ),
)
"""What helps where a line of the user's decodes with these."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    if loading is None or parts is None:
        return None
    if parts.decode is None:
        return Unjudged("no profile shows what is called while samples are fetched")
    if parts.decode < PART:
        return None
    site = decode_site(evidence)
    wait = evidence.wait or 0.0
    of_fetch = parts.decode / parts.fetch if parts.fetch > 0 else 0.0
    decode_ms = loading.fetch_ms * of_fetch
    sample = decode_ms / loading.samples_per_batch if loading.samples_per_batch > 0 else decode_ms
    return Statement(
        sentence=(
            f"Decoding files{at(site)} takes {words.share_text(parts.decode)} of making a batch, about "
            f"{milliseconds(sample)} a sample. {training_waits(evidence)}"
        ),
        figures={"share_of_making": parts.decode, "ms_per_sample": sample, "data_wait_share": wait},
        weight=wait * parts.decode * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(parts.decode)} in decoding files{at(site)}",
        site=site,
        advice=_advice(text_at(evidence, site)),
    )


def _advice(line: str) -> str:
    """What helps a line of the user's that decodes; "" for what helps any."""
    return " ".join(advice for pattern, advice in _BY_CALL if pattern.search(line))


RULE = Rule(
    id="slow-decode",
    title="Decoding is slow",
    topic="data",
    needs=("loader", "wait", "loading", "profile"),
    judge=judge,
    removable=True,
    source="https://docs.pytorch.org/vision/stable/io.html",
    advice="Store the files at the size that training uses, decode with a faster library, or keep decoded samples.",
    fixes=("reduced-decoding", "workers", "prefetch-factor", "intra-op-threads", "cached-samples", "cached-inputs"),
    yields_to=("memory-data-needs-no-workers", "oversized-pictures"),
    contradicts=("compute-bound",),
)
