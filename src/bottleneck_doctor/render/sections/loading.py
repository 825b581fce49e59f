"""Loading: how a batch is made under a setting, what each transform costs, what each worker does, from which files."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from bottleneck_doctor.documents.report import Loading, Result, Site, TransformCost, WorkerActivity
from bottleneck_doctor.render import bars
from bottleneck_doctor.wording import ranking, words

MOST_SETTINGS = 4
MOST_TRANSFORMS = 20
MOST_WORKERS = 64
TORCHS, NONE_OF_YOURS = "PyTorch’s own", "none of yours"


@dataclass(frozen=True)
class Part:
    """One part of making a batch: milliseconds, and where the user's own code for it begins; else `whose` it is."""

    key: str
    name: str
    ms: float
    site: Site | None
    whose: str


@dataclass(frozen=True)
class Way:
    """Loading under one setting. `name` has its code in backticks; `busy_words`: how many workers, and how busy."""

    name: str
    loading: Loading
    bar: Markup
    parts: list[Part]
    transforms: list[tuple[TransformCost, Markup]]
    workers: list[tuple[WorkerActivity, Markup]]
    busy_words: str


def loading(result: Result) -> list[Way]:
    """As written first."""
    found = sorted(result.loading, key=lambda each: bool(each.setting))[:MOST_SETTINGS]
    longest = max((_whole(each) for each in found), default=0.0)
    return [_way(each, longest, ranking.device(result)) for each in found]


def _whole(each: Loading) -> float:
    return sum(part.ms for part in _parts(each) if math.isfinite(part.ms))


def _parts(each: Loading) -> list[Part]:
    parts = [
        Part("fetch", words.LOADING_WORDS["fetch"], each.fetch_ms, each.fetch_site, NONE_OF_YOURS),
        Part("collate", words.LOADING_WORDS["collate"], each.collate_ms, each.collate_site, _whose_collate(each)),
    ]
    if each.hand_over_ms is not None:
        parts.append(Part("hand-over", words.LOADING_WORDS["hand_over"], each.hand_over_ms, None, TORCHS))
    return parts


def _whose_collate(each: Loading) -> str:
    if each.collate_module.startswith("torch.utils.data."):
        return TORCHS
    library = each.collate_module.partition(".")[0]
    return f"{each.collate_name} of {library}" if each.collate_name and library else NONE_OF_YOURS


def _way(each: Loading, longest: float, device: str) -> Way:
    parts = _parts(each)
    said = ", ".join(f"{part.name} {words.milliseconds_text(part.ms)}" for part in parts)
    shown = "As written" if not each.setting else words.setting_text(each.setting, device)
    return Way(
        name=words.setting_code(each.setting, device) if each.setting else shown,
        loading=each,
        # One scale for all settings, so that their bars can be compared.
        bar=bars.stacked_bar({f"load-{part.key}": part.ms for part in parts}, f"{shown}: {said}", longest),
        parts=parts,
        transforms=[(cost, bars.share_bar(cost.share_of_fetch)) for cost in each.transforms[:MOST_TRANSFORMS]],
        workers=[(worker, bars.share_bar(1 - worker.idle_share)) for worker in each.workers[:MOST_WORKERS]],
        busy_words=_busy_words(each),
    )


def _busy_words(each: Loading) -> str:
    if not each.num_workers:
        return "Batches are made in the main process, and training stands still meanwhile."
    idle = [worker.idle_share for worker in each.workers if math.isfinite(worker.idle_share)]
    said = f"Batches are made by {words.count_text(each.num_workers, 'worker')}"
    if idle:
        are = "is" if each.num_workers == 1 else "are"
        said += f", which {are} busy {words.share_text(1 - sum(idle) / len(idle))} of the time on average"
    if each.out_of_order_share > 0:
        said += f"; {words.share_text(each.out_of_order_share)} of the batches were finished before an earlier one"
    return said + "."
