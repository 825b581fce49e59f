"""What `phases` windows found, and what was seen between epochs, as parts of the result.

`WindowDone.detail` of one or more windows of the same setting in, result types out. Seconds are summed over windows
before anything is divided. `runtime/modes/phases.py` describes the shape of a detail. Pure.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from bottleneck_doctor.documents.report import (
    EpochPause,
    EvaluationLoader,
    Event,
    Exchanges,
    FileUse,
    FrozenPart,
    GarbageCollection,
    Interruption,
    Loading,
    PaddingUse,
    Phases,
    PictureUse,
    SettingValue,
    Site,
    StepTimes,
    SynchronisingCall,
    Timeline,
    TransformCost,
    WorkerActivity,
)

Detail = Mapping[str, Any]

OUTLIER_SIGMAS = 3.0
SMALLEST_DRAWN = 1 / 4000
"""Stretches shorter than this part of a timeline can't be seen in it and are left out."""
NOTHING_OF_ITS_OWN = 0.01
"""A transform that only calls other transforms is left out if it takes less than this part of fetching by itself."""
NOWHERE: Mapping[str, Any] = {"file": "", "line": 0}


def phases(details: Sequence[Detail]) -> Phases | None:
    """Shares of wall time over all windows. None if nothing was timed."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for detail in details:
        for phase, spent in detail.get("phases", {}).items():
            seconds[phase] += spent
    total = sum(seconds.values())
    if total <= 0:
        return None
    return Phases(**{phase: spent / total for phase, spent in seconds.items()})


def step_times(
    details: Sequence[Detail], first_step_seconds: float | None, first_batch_seconds: float | None = None
) -> StepTimes | None:
    """How regular steps are. What the start of their process took is handed on."""
    steps = [seconds for detail in details for seconds in detail.get("step_seconds", ())]
    if not steps:
        return None
    waits = [seconds for detail in details for seconds in detail["wait_seconds"]]
    ready = sum(detail["ready"] for detail in details)
    mean = math.fsum(steps) / len(steps)
    deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in steps) / len(steps))
    p50, p95 = quantile(steps, 0.5), quantile(steps, 0.95)
    evaluating = math.fsum(detail["evaluations"]["seconds"] for detail in details)
    total = math.fsum(detail["seconds"] for detail in details)
    return StepTimes(
        steps=len(steps),
        mean_ms=1000 * mean,
        p50_ms=1000 * p50,
        p95_ms=1000 * p95,
        jitter=p95 / p50 if p50 > 0 else 1.0,
        outliers=sum(each > mean + OUTLIER_SIGMAS * deviation for each in steps),
        wait_mean_ms=1000 * math.fsum(waits) / len(waits) if waits else 0.0,
        wait_p95_ms=1000 * quantile(waits, 0.95) if waits else 0.0,
        ready_share=ready / len(waits) if waits else 1.0,
        first_step_seconds=first_step_seconds,
        evaluations=sum(detail["evaluations"]["times"] for detail in details),
        evaluation_share=min(1.0, evaluating / total) if total > 0 else 0.0,
        passes=sum(detail["evaluations"]["passes"] for detail in details),
        with_graph=sum(detail["evaluations"]["with_graph"] for detail in details),
        first_batch_seconds=first_batch_seconds,
    )


def epoch_pause(told: Sequence[Detail], epoch_overhead: float | None = None) -> EpochPause | None:
    """What lies between epochs, on average over all processes. None if no epoch ended.

    `told`: `WindowDone.pauses`, only the last of each session, since its totals cover the process's whole life.
    `epoch_overhead`: what an epoch's start and end cost in a window; it is used if no first batch was timed.
    """
    totals: defaultdict[str, float] = defaultdict(float)
    waited: defaultdict[tuple[int, str, int], float] = defaultdict(float)
    collected: defaultdict[tuple[str, int], float] = defaultdict(float)
    for session in told:
        pauses = session.get("epoch_pause", {})
        for name, value in pauses.items():
            if name not in ("waiting", "collecting"):
                totals[name] += value
        for each in pauses.get("collecting", ()):
            collected[each["file"], each["line"]] += each["seconds"]
        for each in pauses.get("waiting", ()):
            waited[each["workers"], each["file"], each["line"]] += each["seconds"]
    seen = int(totals["seen"])
    if not seen:
        return None
    evaluation, saving, rest = (totals[name] / seen for name in ("evaluation", "saving", "rest"))
    first = (
        totals["first_batch"] / totals["first_batches"] if totals["first_batches"] else max(0.0, epoch_overhead or 0)
    )
    return EpochPause(
        seen=seen,
        seconds=evaluation + saving + first + rest,
        evaluation=evaluation,
        saving=saving,
        first_batch=first,
        rest=rest,
        first_batches_seen=int(totals["first_batches"]),
        in_mode=totals["in_mode"] / seen,
        of_training=totals["of_training"] / seen,
        waiting=math.fsum(waited.values()) / seen,
        waited_for=_longest(waited),
        collecting=math.fsum(collected.values()) / seen,
        collected_at=_most_collected(collected),
        passes=int(totals["passes"]),
        with_graph=int(totals["with_graph"]),
    )


def interruption(told: Sequence[Detail]) -> Interruption | None:
    """Evaluations in the midst of epochs. None if no process saw two of them. `told`: as for `epoch_pause`."""
    several = [each["interruptions"] for each in told if each.get("interruptions", {}).get("seen", 0) > 1]
    between = sum(each["seen"] - 1 for each in several)
    batches = sum(each["batches"] for each in several)
    seconds = [length for each in several for length in each["seconds"]]
    if batches < 1 or not seconds:
        return None
    return Interruption(
        seen=sum(each["seen"] for each in several),
        seconds=median(seconds),
        every=batches / between,
        passes=sum(each["passes"] for each in several),
        with_graph=sum(each["with_graph"] for each in several),
        by_mode=all(each["by_mode"] == each["seen"] for each in several),
    )


def _most_collected(collected: Mapping[tuple[str, int], float]) -> Site | None:
    file, line = max(collected, key=lambda each: collected[each], default=("", 0))
    return Site(file=file, line=line) if file else None


def _longest(waited: Mapping[tuple[int, str, int], float]) -> EvaluationLoader | None:
    if not waited:
        return None
    workers, file, line = max(waited, key=lambda each: waited[each])
    return EvaluationLoader(workers=workers, site=Site(file=file, line=line) if file else None)


def synchronising(details: Sequence[Detail]) -> list[SynchronisingCall]:
    """Places that take values out of tensors, the slowest first."""
    steps = _steps(details)
    if not steps:
        return []
    calls: defaultdict[tuple[str, str, int, str], list[float]] = defaultdict(lambda: [0, 0.0])
    for detail in details:
        for call in detail.get("synchronising", ()):
            found = calls[call["name"], call["file"], call["line"], call["library"]]
            found[0] += call["count"]
            found[1] += call["seconds"]
    made = [
        SynchronisingCall(
            name=name,
            path=path,
            line=line,
            library=library,
            per_step=count / steps,
            ms_per_step=1000 * seconds / steps,
        )
        for (name, path, line, library), (count, seconds) in calls.items()
    ]
    return sorted(made, key=lambda call: (-call.ms_per_step, -call.per_step, call.path, call.line))


def exchanges(details: Sequence[Detail]) -> Exchanges | None:
    """How often gradients were exchanged with other processes. None where there are none."""
    told = [each for detail in details if (each := detail.get("exchanges"))]
    if not told:
        return None
    return Exchanges(**{name: sum(each[name] for each in told) for name in ("passes", "exchanged", "updates")})


def frozen(details: Sequence[Detail]) -> list[FrozenPart]:
    """Frozen parts by the line that leads to them, the slowest first. Windows in which one was not seen count too."""
    wall = math.fsum(detail.get("seconds", 0.0) for detail in details)
    by_line: defaultdict[tuple[str, int], list[Detail]] = defaultdict(list)
    for detail in details:
        for each in detail.get("frozen", ()):
            by_line[each["file"], each["line"]].append(each)
    parts = []
    for (file, line), seen in by_line.items():
        seconds: Counter[str] = Counter()
        for part in (part for each in seen for part in each["parts"]):
            seconds[part["name"]] += part["seconds"]
        parts.append(
            FrozenPart(
                site=Site(file=file, line=line),
                names=[name for name, _ in seconds.most_common()],
                share=math.fsum(each["seconds"] for each in seen) / wall if wall > 0 else 0.0,
                batch=any(each["batch"] for each in seen),
                random=any(each["random"] for each in seen),
            )
        )
    return sorted(parts, key=lambda part: -part.share)


def garbage(details: Sequence[Detail]) -> GarbageCollection | None:
    """What Python's garbage collector took during the steps. None if nothing was timed."""
    steps, wall = _steps(details), sum(detail.get("seconds", 0.0) for detail in details)
    if not steps or wall <= 0:
        return None
    seconds = sum(detail["garbage"]["seconds"] for detail in details)
    return GarbageCollection(
        collections=sum(detail["garbage"]["collections"] for detail in details),
        ms_per_step=1000 * seconds / steps,
        share=seconds / wall,
    )


def loading(details: Sequence[Detail], setting: Mapping[str, SettingValue]) -> Loading | None:
    """How batches are made under `setting`. None if no window could see it; `loading_missing` then says why."""
    parts = [detail["loading"] for detail in details if detail.get("loading")]
    fetches = [seconds for part in parts for seconds in part["fetch_seconds"]]
    if not fetches:
        return None
    batches = len(fetches)
    fetched = math.fsum(fetches)
    samples = sum(part["samples"] for part in parts)
    handed = [seconds for part in parts for seconds in part["hand_over_seconds"]]
    delivered = sum(part["delivered"] for part in parts)
    return Loading(
        setting=dict(setting),
        num_workers=parts[-1]["num_workers"],
        batches=batches,
        samples_per_batch=samples / batches,
        bytes_per_batch=sum(part["bytes"] for part in parts) / batches,
        fetch_ms=1000 * fetched / batches,
        fetch_p95_ms=1000 * quantile(fetches, 0.95),
        collate_ms=1000 * sum(part["collate_seconds"] for part in parts) / batches,
        hand_over_ms=1000 * math.fsum(handed) / len(handed) if handed else None,
        out_of_order_share=sum(part["out_of_order"] for part in parts) / delivered if delivered else 0.0,
        transforms=_transforms(parts, fetched, samples),
        workers=_workers(parts),
        computing=_part_of_making(parts, fetched, "computed_seconds"),
        delayed=_part_of_making(parts, fetched, "delayed_seconds"),
        files=_files(parts, batches),
        fetch_site=_site(parts[-1]["fetch_site"]),
        collate_site=_site(parts[-1]["collate_site"]),
        collate_name=parts[-1].get("collate_name", ""),
        collate_module=parts[-1].get("collate_module", ""),
        padding=_padding(parts, samples),
        decoding=_decoding(parts, fetched),
        pictures=_pictures(parts),
    )


def _padding(parts: Sequence[Mapping[str, Any]], samples: float) -> PaddingUse | None:
    seen = [part["padding"] for part in parts if part.get("padding")]
    places, filled, needed = (sum(each[name] for each in seen) for name in ("places", "filled", "needed"))
    if not places or samples <= 0:
        return None
    return PaddingUse(columns=places / samples, empty=1 - filled / places, behind_longest=1 - needed / places)


def _decoding(parts: Sequence[Mapping[str, Any]], fetched: float) -> float | None:
    """The part of fetching in which pictures were seen to be decoded; None where none were."""
    seconds = math.fsum(part.get("decoded_seconds", 0.0) for part in parts)
    return min(1.0, seconds / fetched) if seconds > 0 and fetched > 0 else None


def _pictures(parts: Sequence[Mapping[str, Any]]) -> PictureUse | None:
    seen = [part["pictures"] for part in parts if part.get("pictures")]
    # What is decoded whole in one window only is needed whole.
    if not seen or len(seen) < len(parts):
        return None
    last = seen[-1]
    return PictureUse(
        factor=min(each["factor"] for each in seen),
        whole_ms=1000 * median(each["whole_seconds"] for each in seen),
        reduced_ms=1000 * median(each["reduced_seconds"] for each in seen),
        tried=sum(each["tried"] for each in seen),
        **{name: last[name] for name in ("library", "mode", "width", "height", "used_width", "used_height")},
    )


def loading_missing(details: Sequence[Detail]) -> str:
    """Why `loading` is None, in words; "" if it is not."""
    if any(detail.get("loading") for detail in details):
        return ""
    return next((detail["loading_missing"] for detail in details if detail.get("loading_missing")), "no window ran")


def timeline(details: Sequence[Detail], setting: Mapping[str, SettingValue]) -> Timeline | None:
    """The steps drawn in the window that has the most events. None if there is none."""
    drawn = [detail["timeline"] for detail in details if detail.get("timeline")]
    if not drawn:
        return None
    best = max(drawn, key=lambda each: len(each["events"]))
    seconds = best["seconds"]
    events = [
        Event(lane=lane, kind=kind, start=start, seconds=lasts, batch=batch)
        for lane, kind, start, lasts, batch in _joined(best["events"])
        if lasts >= SMALLEST_DRAWN * seconds
    ]
    return Timeline(setting=dict(setting), seconds=seconds, events=events)


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile by linear interpolation between closest ranks (type 7 of Hyndman and Fan, as in NumPy)."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _steps(details: Sequence[Detail]) -> int:
    return sum(len(detail.get("step_seconds", ())) for detail in details)


def _joined(events: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """The events, with neighbouring ones merged that belong to the same lane, kind and batch."""
    joined: list[list[Any]] = []
    for lane, kind, start, seconds, batch in events:
        last = joined[-1] if joined else None
        if last is not None and last[:2] == [lane, kind] and last[4] == batch and start - last[2] - last[3] < 1e-6:
            last[3] = start + seconds - last[2]
        else:
            joined.append([lane, kind, start, seconds, batch])
    return joined


def _transforms(parts: Sequence[Mapping[str, Any]], fetched: float, samples: float) -> list[TransformCost]:
    # Transforms are found in the same order in every window, so the place identifies one.
    seconds: defaultdict[int, float] = defaultdict(float)
    named: dict[int, Mapping[str, Any]] = {}
    for part in parts:
        for place, element in enumerate(part["transforms"]):
            named[place] = element
            seconds[place] += element["seconds"]
    costs = []
    for place, element in named.items():
        share = seconds[place] / fetched if fetched > 0 else 0.0
        # It was never called, such as one of an evaluation, or it only calls other transforms.
        if seconds[place] <= 0 or (element.get("holds") and share < NOTHING_OF_ITS_OWN):
            continue
        site, made = element["site"] or NOWHERE, element.get("made") or NOWHERE
        costs.append(
            TransformCost(
                name=element["name"],
                ms_per_sample=1000 * seconds[place] / samples if samples else 0.0,
                share_of_fetch=share,
                file=site["file"],
                line=site["line"],
                made_file=made["file"],
                made_line=made["line"],
            )
        )
    return costs


def _part_of_making(parts: Sequence[Mapping[str, Any]], fetched: float, name: str) -> float | None:
    """The part of the time spent making batches that `name` took, from 0 to 1; None if some window did not see it."""
    seconds = fetched + sum(part["collate_seconds"] for part in parts)
    known = all(part.get(name) is not None for part in parts)
    return sum(part[name] for part in parts) / seconds if known and seconds > 0 else None


def _workers(parts: Sequence[Mapping[str, Any]]) -> list[WorkerActivity]:
    span = sum(part["span"] for part in parts)
    sums: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for part in parts:
        for worker in part["workers"]:
            for name in ("batches", "fetch_seconds", "collate_seconds", "busy_seconds"):
                sums[worker["worker"]][name] += worker[name]
    return [
        WorkerActivity(
            worker=number,
            batches=int(found["batches"]),
            fetch_seconds=found["fetch_seconds"] / max(1.0, found["batches"]),
            collate_seconds=found["collate_seconds"] / max(1.0, found["batches"]),
            idle_share=min(1.0, max(0.0, 1 - found["busy_seconds"] / span)) if span > 0 else 0.0,
        )
        for number, found in sorted(sums.items())
    ]


def _files(parts: Sequence[Mapping[str, Any]], batches: int) -> FileUse | None:
    used = [part["files"] for part in parts if part["files"]]
    if not used:
        return None
    sized = sum(each["sized"] for each in used)
    return FileUse(
        per_batch=sum(each["opened"] for each in used) / batches,
        mean_bytes=sum(each["bytes"] for each in used) / sized if sized else 0.0,
        file_system=used[-1]["file_system"],
        remote=used[-1]["remote"],
    )


def _site(found: Mapping[str, Any] | None) -> Site | None:
    return None if found is None else Site(file=found["file"], line=found["line"])
