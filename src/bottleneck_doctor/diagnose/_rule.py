"""What a rule is, and what it returns: a statement, the reason why it could not judge, or nothing.

A rule only weighs its own evidence. Rules also declare here how they relate to each other. From that, `_order` decides
which statement comes first, which ones say the same, and which contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.documents.report import Site
from bottleneck_doctor.wording import words

Topic = Literal["data", "host", "device", "epoch", "start", "memory", "machine", "rest"]
"""What a statement is about. Statements on one topic explain one another; those on different topics add up."""

GENERAL, SYMPTOM, PLACE, NUMBER, CAUSE, ORIGIN, ROOT = range(7)
"""How deep a statement goes: from the wait as such, through what can be seen of it, to what causes it."""

TB_PLUGIN = "https://github.com/pytorch/kineto/blob/main/tb_plugin/torch_tb_profiler/profiler/run_generator.py"
DATA_GUIDE = "https://pytorch.org/docs/stable/data.html"
TUNING_GUIDE = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
CUDA_GUIDE = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/"

MATTERS = 0.05
"""At this share of a step or more, something is worth a statement. PyTorch's own profiler (`tb_plugin`,
RunData.analyze) mentions the DataLoader if it takes 5 % of a step."""

LARGE = 0.1
"""At this share of a step or more, work that every loop has some of (callbacks, copies, evaluation) is called heavy.
`tb_plugin` takes the same tenth for communication."""

PART = 0.3
"""A part of making a batch is named at this share or more. Ours: without a part of less than a third, loading would be
less than 1.5 times as fast."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a rule found. `weight`, from 0 to 1, is what it is ranked by.

    `measured`: whether the weight is a measured share of the training's time. If it was worked out from other figures,
    it is not shown as a share. `clause` completes the sentence "Training …" if this is the verdict's cause. `topic`,
    `depth` and `advice` replace the rule's own if they are given.
    """

    sentence: str
    figures: dict[str, float]
    weight: float
    measured: bool = True
    clause: str = ""
    site: Site | None = None
    advice: str = ""
    topic: Topic | None = None
    depth: int | None = None


@dataclass(frozen=True)
class Unjudged:
    """Why a rule can't tell, though all evidence that it always needs is there."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One finding that can be made.

    `needs`: names of `_evidence.NEEDS`. `source`: where the threshold comes from. `fixes`: those that may help. A
    deeper finding comes before a shallower one on its topic that it explains. `general`: it is dropped if a deeper one
    explains it. `residual`: it is about the rest of the time, so it is dropped if anything else weighs enough.
    `removable`: its advice, if taken, may spare all of the time that it names. `yields_to`: it is dropped if one of
    these is found. `contradicts`: of two, the lighter one is dropped. `told`: it may be the verdict's cause.
    """

    id: str
    title: str
    topic: Topic
    needs: tuple[str, ...]
    judge: Callable[[Evidence], Statement | Unjudged | None] = field(repr=False)
    source: str
    advice: str
    fixes: tuple[str, ...] = ()
    depth: int = CAUSE
    general: bool = False
    residual: bool = False
    told: bool = True
    removable: bool = False
    yields_to: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


def place(site: Site | None) -> str:
    """`train.py, line 31`; "" where the place isn't known."""
    return words.place_text(PurePath(site.file).name, site.line) if site is not None else ""


def at(site: Site | None) -> str:
    """` (train.py, line 31)`, to go behind a name; "" where the place isn't known."""
    return f" ({place(site)})" if site is not None else ""


def milliseconds(value: float) -> str:
    """Milliseconds in the unit that suits them."""
    return words.duration_text(value / 1000)


def times(value: float) -> str:
    """A mean count: `64`, `2.5`."""
    return f"{value:.0f}" if value >= 10 or value == round(value) else words.amount_text(value)


def several(value: float, noun: str) -> str:
    """A mean count of something: `64 files`, `1 file`, `2.5 files`."""
    return f"{times(value)} {words.plural(noun, value)}"


def often(value: float) -> str:
    """How many times on average: `64 times`, `once`."""
    return "once" if value == 1 else f"{times(value)} times"


def waits(evidence: Evidence) -> str:
    """The beginning of every clause about data."""
    return f"waits for data {words.share_text(evidence.wait or 0.0)} of the time"


def training_waits(evidence: Evidence) -> str:
    """The same as a sentence, to go behind one about making batches."""
    return f"Training {waits(evidence)}."


def made_here(evidence: Evidence) -> bool:
    """Whether the training process makes its batches itself.

    Then a part of making them is that part of the wait. Workers make several at once, so there it is not.
    """
    return evidence.as_written is not None and evidence.as_written.num_workers == 0


def of_workers(count: int, one: str, many: str) -> str:
    """Workers and what they do: `1 worker keeps`, `3 workers keep`."""
    return f"{words.count_text(count, 'worker')} {one if count == 1 else many}"


def portion(share: float) -> str:
    """A part of the whole in words."""
    if share >= 0.9:
        return "nearly all of it"
    return "most of it" if share > 0.5 else "a large part of it" if share >= PART else "part of it"


def clamp(share: float) -> float:
    return min(1.0, max(0.0, share))
