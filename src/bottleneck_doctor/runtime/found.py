"""What the guest tells the supervisor about a loop that it found: its steps, its loader, and where in the user's code
they are."""

from __future__ import annotations

import gc
import multiprocessing
from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch

from .knobs import facts, obstacles, own_settings
from .loader import dataset_copies
from .loader.attributes import (
    batch_size,
    construction_site,
    dataset_takers_known,
    epoch_length,
    is_iterable,
    known_as,
    library,
    own_setting,
    takers_known,
    whole,
)
from .loop.extent import UNKNOWN, Extent, extent_of
from .loop.ladder import Loop
from .loop.model_methods import called_methods
from .loop.steps import Steps
from .loop.trainers import lightning_takers
from .process.originals import get_frame, now, process_started, wall_clock
from .process.rank_place import place, ranks_here
from .process.suitability import usable_cpus, workers_unsafe
from .wire.expected import likeness
from .wire.messages import Found, Taker


def device_of(steps: Steps) -> str:
    """The device that the model is on, if it was seen."""
    for root in steps.roots:
        for parameter in root.parameters():
            return str(parameter.device)
    for optimizer in steps.optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                return str(parameter.device)
    return steps.backward_device or "cpu"


def describe(steps: Steps, loop: Loop, loader: Any, device: str, tried: Optional[Mapping[str, Any]] = None) -> Found:
    """The message that describes the loop to the supervisor. `loader` is None in a loop without a loader. `tried`: what
    an earlier process told of the knobs that windows may have, by name; None for any knob."""
    record = loop.record
    here = place()
    asked = None if loader is None else dataset_copies.for_this_process(loader)
    rows = {"backward": steps.bare_backwards, "closure": steps.closures.row}
    row = rows.get(loop.rung, steps.bare_steps)
    # A step ends where ranks wait for one another: in an optimizer's, or in the backward pass.
    made = steps.made(loop.rung) if record is None else steps.optimizer_steps
    began = steps.started
    if began is None:
        began = row.since if record is None and row.count else now()
    taken = record.batches if record is not None else made
    methods, called_at = called_methods(steps)
    common: Dict[str, Any] = {
        "rung": loop.rung,
        "period": loop.period,
        "periodic": loop.periodic,
        "by_calls": loop.by_calls,
        "device": device,
        "usable_cpus": usable_cpus(ranks_here(here), here.world),
        "threads": torch.get_num_threads(),
        "has_root_module": bool(steps.roots),
        "autocast": steps.callers.autocast,
        "grad_scaler": steps.user_scaler,
        "forward_site": next(iter(steps.callers.forward_sites), None),
        "forward_path": steps.callers.forward_sites[1:],
        "methods": methods,
        "method_site": called_at,
        "backward_site": steps.backward_site,
        "position": taken,
        "optimizer_steps": made,
        "steps_before": steps.optimizer_steps if loop.rung == "backward" else 0,
        "own": own_settings() if steps.callers.own is None else steps.callers.own,
        "obstacles": obstacles(steps, asked),
        "facts": facts(steps, device, asked, tried),
        "first_batch": wall_clock() - (now() - began),
    }
    # A program says how many steps its optimizer makes, and not how often that calls a closure.
    extent = UNKNOWN if loop.rung == "closure" else _extent(taken)
    common.update(
        run_epochs=extent.epochs,
        run_steps=extent.steps,
        run_may_end_sooner=extent.may_end_sooner,
        trainer=extent.trainer,
        trainer_takers=_trainer_takers() if extent.trainer == "lightning" else [],
    )
    if record is None:
        return Found(
            step_seconds=row.gaps()[-max(512, 3 * loop.period) :],
            wait_seconds=[],
            samples_per_step=1.0,
            has_loader=False,
            setup_seconds=_set_up(steps, began),
            **common,
        )
    requests = list(record.requests)
    gaps = [later[0] - earlier[0] for earlier, later in zip(requests, requests[1:])]
    epoch_seen = record.epoch_seen()
    kind, dataset_kind = _kinds(loader)
    return Found(
        step_seconds=gaps,
        wait_seconds=[entry[1] for entry in requests],
        samples_per_step=sum(record.samples) / len(record.samples),
        has_loader=True,
        loader_type=kind,
        loader_library=library(loader),
        dataset_type=dataset_kind,
        iterable=is_iterable(loader),
        batch_size=whole(batch_size(loader)),
        drawn_by=_drawn_by(loader),
        epoch_batches=epoch_length(loader),
        epoch_batches_seen=epoch_seen,
        made_anew=record.made_anew,
        seen_alone=epoch_seen is None and steps.batches == record.batches,
        start_method=_start_method(loader),
        workers_unsafe=workers_unsafe(loader, _start_method(loader), dataset_copies.for_workers(loader)),
        open_handle=dataset_copies.opened_early(loader),
        loader_site=construction_site(loader),
        loader_takers=takers_known(loader),
        dataset_takers=dataset_takers_known(loader),
        setup_seconds=_set_up(steps, requests[0][0]),
        **own_setting(loader),
        **common,
    )


def _set_up(steps: Steps, began: float) -> float:
    """Seconds from the process's start until training began, but for those for which it was held before."""
    seconds, until = steps.held
    return began - process_started - (seconds if began >= until else 0.0)


def like_of(loader: Any) -> List[Any]:
    """By what a loader is known again in another process."""
    made_at, length, size = construction_site(loader), epoch_length(loader), whole(batch_size(loader))
    return likeness(made_at, *_kinds(loader), size, length)


def _kinds(loader: Any) -> Tuple[str, str]:
    """What the loader and its dataset are called."""
    known = known_as(loader)
    return type(known).__name__, type(known.dataset).__name__


def _drawn_by(loader: Any) -> str:
    """The classes of a loader's batch sampler, and of the sampler that it draws rows from."""
    batches = getattr(loader, "batch_sampler", None)
    rows = getattr(loader if batches is None else batches, "sampler", None)
    return " of ".join(type(each).__name__ for each in (batches, rows) if each is not None)


def _extent(taken: int) -> Extent:
    """How long the program says that it will train. No examination may fail for that."""
    collects = gc.isenabled()
    gc.disable()  # A source that is parsed is many objects and no garbage; a collection would cost the user's step.
    try:
        return extent_of(get_frame(1), taken)
    except Exception:
        return UNKNOWN
    finally:
        if collects:
            gc.enable()


def _trainer_takers() -> List[Taker]:
    try:
        return lightning_takers(get_frame(1))
    except Exception:  # Whatever the attributes of a library's classes make of the question.
        return []


def _start_method(loader: Any) -> str:
    context = loader.multiprocessing_context or multiprocessing
    # Asking for a method that is not set yet would set it, and the user's own choice would then be refused.
    method = context.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    return str(method)
