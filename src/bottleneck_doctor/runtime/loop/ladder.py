"""Recognises the training loop once enough was seen, by the first of these that applies: optimizer step,
`GradScaler.step`, backward, batches. Where an optimizer's step takes long because its closure is called often, each
backward pass that the closure makes is a step."""

from __future__ import annotations

import gc
import math
from typing import Iterable, List, Optional, Tuple

import torch
from torch.utils.data import DataLoader

from ..process.originals import now
from ..wire.expected import BARE_STEPS, CLOSURE_PASSES, Expected
from .period import (
    MINIMUM_STEPS,
    Signature,
    batches_needed,
    find_period,
    find_rhythm,
    goes_by_calls,
    long_gaps,
    repeats_within_epochs,
)
from .records import Alone, LoaderRecord
from .steps import Steps

PATIENCE_BATCHES = 40
PATIENCE_SECONDS = 15.0
"""After so long without an optimizer step, the loop is recognised by a lower rung of the ladder."""
PATIENCE_WITHOUT_MODEL = 60.0
"""The same seconds where nothing but batches is seen, and there is no model yet that could be trained, or an optimizer
that has made no step: programs go through their data before they train, as for its mean."""
PATIENCE_ALONE = 20, 3.0
PATIENCE_WITH_LOADER = 40, PATIENCE_SECONDS
PATIENCE_WITH_OPTIMIZER = 200, 30.0
"""Backward passes in a row, and seconds, after which they are taken for the steps of a loop without loader or
optimizer: where there is neither; where a loader is there, whose batches may come later; and where an optimizer is,
which may step once gradients of many passes have been added up."""
PATIENCE_BETWEEN_STEPS = 200, 180.0
"""The same where an optimizer has stepped, after fewer passes or sooner: an evaluation that computes gradients, as of
meta-learning, may come before its next steps."""

ON_ONE_BATCH = (40, PATIENCE_SECONDS), (12, 60.0)
"""Optimizer steps since the last batch, and seconds, after which no loader is taken to feed them: a program took one
batch when it began, such as all of its data, and trains on that."""

CLOSURE_SECONDS = 10.0
PASSES_A_STEP = 4
LONG_OPTIMIZER_STEP = 3.0
"""After so many seconds, backward passes within the optimizer's steps are the steps, where each of the optimizer's has
so many of them and takes so many seconds."""
CLOSURE_SECONDS_WITH_LOADER = 60.0
"""The same seconds where a batch came before them, and the next one may come once the optimizer has made its first
step, or where another process had another loop."""

RHYTHM_SECONDS = 20.0
RHYTHM_GAPS = 8
"""How long, and for how many long gaps between steps, a rhythm of rollouts is waited for."""
ROLLOUT_SECONDS = 5.0
ROLLOUTS = 5.0
"""What the model did with gradients off before the first step may have been a rollout, where it took no longer than
this; the steps on what it brought then take at most so many times as long."""
LOOKS_EVERY = 16
"""Steps between two looks at a loop that keeps us waiting: each look takes longer than the last."""


class Loop:
    """The training loop as found: the rung, the period in batches (or steps where no loader feeds it), the loader.
    `by_calls`: no loader feeds it, and steps take as long as they have calls of the model."""

    def __init__(
        self, rung: str, period: int, periodic: bool, record: Optional[LoaderRecord], by_calls: bool = False
    ) -> None:
        self.rung = rung
        self.period = period
        self.periodic = periodic
        self.record = record
        self.by_calls = by_calls


def look(steps: Steps, expected: Optional[Expected] = None) -> Optional[Loop]:
    """The loop, as soon as enough was seen; None until then.

    `expected`: the loop that the loader in use had in another process, or that one without a loader had there; None
    where that is not known.
    """
    if steps.started is None:
        return None
    record = _training_record(steps)
    if record is not None and record.credited and not _on_one_batch(steps.bare_steps, expected):
        if expected is not None and expected.is_seen("optimizer step", _signatures(record)):
            return Loop("optimizer step", expected.period, True, record)
        return _loader_loop(record, "optimizer step", "optimizer")
    if expected is not None and expected.rung == "closure" and steps.bare_steps.lasted() < CLOSURE_SECONDS_WITH_LOADER:
        return None
    slow = steps.bare_steps.lasted() > RHYTHM_SECONDS
    if steps.bare_steps.count >= (MINIMUM_STEPS if slow else BARE_STEPS):
        return _bare_loop(steps, "optimizer step", steps.bare_steps, expected)
    patient = now() - steps.started > PATIENCE_SECONDS
    if record is not None and (record.batches >= PATIENCE_BATCHES or (patient and record.batches >= 12)):
        for rung, event in (("gradient scaler", "scaler"), ("backward", "backward"), ("batches", "")):
            loop = _loader_loop(record, rung, event)
            if loop is not None and (event or _may_train_on(record, now() - steps.started)):
                if not steps.optimizers:
                    steps.callers.find_without_optimizer()
                return loop
    return None


def _on_one_batch(row: Alone, expected: Optional[Expected]) -> bool:
    """Whether so many steps followed the last batch that none will come before the loop should be found."""
    if expected is not None and not expected.loader:
        return row.count >= BARE_STEPS
    return any(row.count >= count and row.lasted() > seconds for count, seconds in ON_ONE_BATCH)


def _training_record(steps: Steps) -> Optional[LoaderRecord]:
    live = [record for record in steps.records.values() if record.loader() is not None]
    if not live:
        return None
    return max(live, key=lambda record: (record.credited, record.batches, record.wait_total))


def _loader_loop(record: LoaderRecord, rung: str, event: str) -> Optional[Loop]:
    signatures = _signatures(record)
    slow = bool(signatures) and record.requests[-1][0] - record.requests[0][0] > RHYTHM_SECONDS
    at_least = batches_needed(signatures, event) if slow else MINIMUM_STEPS
    if len(signatures) < at_least:
        return None
    period = find_period(signatures, at_least=at_least)
    if period is None and repeats_within_epochs(record.epochs()):
        period = 1
    if period is None and len(signatures) < 3 * 64:
        return None
    tail = signatures[-(period or 1) :]
    if event and not any(kind == event for entry in tail for kind, _ in entry) and period is not None:
        return None
    return Loop(rung, period or 1, period is not None, record)


def _may_train_on(record: LoaderRecord, seconds: float) -> bool:
    """Whether a loop of which nothing but batches is seen, for so many seconds, may be one that trains."""
    if seconds > PATIENCE_WITHOUT_MODEL:
        return True
    if record.batches % LOOKS_EVERY:
        return False
    objects = gc.get_objects()
    kinds = {type(each) for each in objects}
    if _any_is(kinds, torch.optim.Optimizer):
        return False
    models = {kind for kind in kinds if issubclass(kind, torch.nn.Module)}
    return any(type(each) in models and _is_trainable(each) for each in objects)


def _is_trainable(module: torch.nn.Module) -> bool:
    parameters = vars(module).get("_parameters") or {}
    return any(parameter is not None and parameter.requires_grad for parameter in parameters.values())


def _signatures(record: LoaderRecord) -> List[Signature]:
    """What happened in each step so far. The first entry's belongs to what came before the first batch."""
    return [entry[2] for entry in record.requests][1:]


def _bare_loop(steps: Steps, rung: str, row: Alone, expected: Optional[Expected] = None) -> Optional[Loop]:
    if row.count > 4 * LOOKS_EVERY and row.count % LOOKS_EVERY:
        return None
    signatures = [entry[1] for entry in row.steps]
    period = find_period(signatures)
    if period is None and len(signatures) < 3 * 64:
        return None
    if expected is not None and period is not None and expected.is_seen_bare(rung, period):
        return Loop(rung, expected.period, True, None, expected.by_calls)
    gaps, calls = row.gaps(), row.calls()
    if period == 1 and goes_by_calls(gaps, calls):
        # A step that is long because it has many calls holds no other work.
        gaps = [gap / count if count else gap for gap, count in zip(gaps, calls)]
        if long_gaps(gaps) < 3:
            return Loop(rung, 1, True, None, by_calls=True)
    rhythm = find_rhythm(gaps)
    if rhythm is not None and period is not None:
        return Loop(rung, math.lcm(period, rhythm), True, None)
    long = long_gaps(gaps)
    if _may_show_a_rhythm(steps, row, long):
        return None
    return Loop(rung, period or 1, period is not None and long < 3, None)


def _may_show_a_rhythm(steps: Steps, row: Alone, long: int) -> bool:
    """Whether to wait for more steps, since rollouts may lie between some of them: long gaps were seen, or the
    model was at work with gradients off before the first step, for a time after which that would come again."""
    if row.lasted() > RHYTHM_SECONDS:
        return False
    if long:
        return long < RHYTHM_GAPS
    first = steps.callers.first_without_gradients()
    before = row.since - first if first is not None else 0.0
    return before <= ROLLOUT_SECONDS and row.lasted() < ROLLOUTS * before


def look_at_backwards(steps: Steps) -> Optional[Loop]:
    """A loop of which nothing but backward passes is seen, as where parameters are updated by hand: once there were
    enough of them in a row, for long enough, that they can't be the beginning of anything else."""
    row = steps.bare_backwards
    count, seconds = steps.patience or PATIENCE_ALONE
    if row.count < count or row.lasted() < seconds:
        return None
    if steps.patience is None:
        steps.patience = PATIENCE_BETWEEN_STEPS if steps.optimizer_steps else _patience_with_backwards()
        return look_at_backwards(steps)
    if not steps.looks_from:
        steps.looks_from = row.count
        steps.callers.clear()
    if row.count < steps.looks_from + 2:
        return None
    steps.callers.find_without_optimizer()
    return _bare_loop(steps, "backward", row)


def look_at_closures(steps: Steps, expected: Optional[Expected] = None) -> Optional[Loop]:
    """A loop whose optimizer takes long for a step, since its closure is called often."""
    closures = steps.closures
    row = closures.row
    told = expected is not None and expected.rung == "closure"
    may_load = bool(steps.records) and closures.steps_in_row == 1
    # A batch may still come, or the loop that another process had.
    other = may_load or (expected is not None and not told)
    waited = closures.lasted() > (CLOSURE_SECONDS_WITH_LOADER if other else CLOSURE_SECONDS)
    waited = waited and closures.lasted() > LONG_OPTIMIZER_STEP * closures.steps_in_row
    slow = closures.lasted() > RHYTHM_SECONDS and not may_load
    if row.count < max(CLOSURE_PASSES if slow or told else BARE_STEPS, PASSES_A_STEP * closures.steps_in_row):
        return None
    if not (waited or told):
        return None
    if closures.optimizer not in steps.optimizers:
        steps.optimizers.append(closures.optimizer)
    steps.callers.find(steps.optimizers)
    return _bare_loop(steps, "closure", row, expected)


def _patience_with_backwards() -> Tuple[int, float]:
    """By what there is in this process. Looking through all objects takes some 10 ms, so it is done when it matters."""
    kinds = {type(each) for each in gc.get_objects()}
    if _any_is(kinds, torch.optim.Optimizer):
        return PATIENCE_WITH_OPTIMIZER
    if _any_is(kinds, DataLoader):
        return PATIENCE_WITH_LOADER
    return PATIENCE_ALONE


def _any_is(kinds: Iterable[type], wanted: type) -> bool:
    return any(issubclass(kind, wanted) for kind in kinds)
