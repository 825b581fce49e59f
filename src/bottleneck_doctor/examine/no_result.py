"""Why an examination, or a check, has no result: how its sessions ended goes in, the one error to show comes out."""

from __future__ import annotations

import math
import re

from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.runtime.wire.messages import Ended
from bottleneck_doctor.runtime.wire.seen import Counts
from bottleneck_doctor.session import interpreter
from bottleneck_doctor.session.ending import Hung, SessionOver
from bottleneck_doctor.session.failure import standing
from bottleneck_doctor.wording import words

_NO_TORCH = re.compile(r"(ModuleNotFound|Import)Error: No module named '?torch'?$")


def entrypoint_failed(over: SessionOver) -> DoctorError:
    """The error that the user's program failed or hung before it was measured as written."""
    if over.hung is not None:
        return _training_hung(over, over.hung)
    reason = over.reason or over.why
    if _NO_TORCH.match(reason):
        return interpreter.missing(over.tail)
    return DoctorError(
        "entrypoint-failed",
        f"The script failed by itself, before doctor changed anything: {reason}.".replace("..", "."),
        "Run the script without doctor and correct it. The end of its output is below.",
        Exit.ENTRYPOINT_FAILED,
        detail=over.tail,
    )


def _training_hung(over: SessionOver, hung: Hung) -> DoctorError:
    """The error that no step was made any more. It is not known whether the program would also hang without doctor."""
    before = "" if hung.changed else ", before doctor changed anything"
    told = f"The training made no step for {hung.seconds:.0f} s under doctor{before}. {standing(hung.stacks)}"
    return DoctorError(
        "training-hung",
        told.rstrip(),
        "Run the script without doctor. If it stops there too, it may be waiting for a lock, an input or another "
        "process: `py-spy dump --pid PID`, with the id of its process, shows where. If it trains on, please report "
        "this.",
        Exit.ENTRYPOINT_FAILED,
        detail=over.tail,
    )


def ranks_apart(over: SessionOver) -> DoctorError:
    """The error that several ranks train, but could not be brought to one step."""
    return DoctorError(
        "ranks-apart",
        f"Doctor can't measure all ranks at the same time: {over.why}.",
        "Give every rank the same number of batches, as DistributedSampler does and drop_last=True may do.",
        Exit.NO_TRAINING,
    )


def steps_unlike(side: str) -> DoctorError:
    """The error that a step of this side is none of what it is compared with."""
    return DoctorError(
        "steps-unlike",
        f"{words.capitalised(side)} makes few calls of the optimizer's closure in a step, and the other side many, so "
        "that their steps can't be compared.",
        "Compare how long a whole run of each takes.",
        Exit.NO_TRAINING,
    )


def guest_failed(over: SessionOver) -> DoctorError:
    """The error that the guest failed before anything was measured: a bug in doctor."""
    return DoctorError(
        "guest-failed",
        "Doctor's own code failed inside the script's process. This is a bug in doctor.",
        "Please report it with the text below.",
        Exit.BUG,
        detail=over.tail,
    )


def no_training(farewell: Ended | None, tail: str) -> DoctorError:
    """The error that the program ended before anything could be measured. It says what was seen."""
    if farewell is None:
        return DoctorError(
            "no-torch",
            "The script ended without ever importing torch, so there is nothing to examine.",
            "Give the script that trains." + (" The end of this script's output is below." if tail.strip() else ""),
            Exit.NO_TRAINING,
            detail=tail,
        )
    seen = Counts(farewell.batches, farewell.evaluated, farewell.backwards, farewell.optimizer_steps)
    if not farewell.served and _is_no_loop(seen):
        return _no_loop(f"No training loop was found in the script ({_counted(seen)}).", seen, tail)
    return DoctorError(
        "too-few-steps",
        f"The script ended after too few training steps to measure ({_counted(seen)}).",
        "Let it train for more steps or epochs, so that it runs for a minute or more.",
        Exit.NO_TRAINING,
    )


def not_found(spent: float, seen: Counts | None, where: str = "") -> DoctorError:
    """The error that the time ended before a training loop was found. `seen`: what was seen by then; None if torch was
    not imported. `where`: a sentence that says where the script stood."""
    after = f"after {spent:.0f} s"
    if seen is not None and seen.backwards and _is_no_loop(seen):
        return _no_loop(f"No training loop was found {after} ({_counted(seen)}).", seen, "")
    longer = f"give more time with --budget, such as --budget {max(10, math.ceil(LONGER * spent / 60))}m"
    other = "Otherwise give the script that trains, with the arguments that make it train."
    if seen is None:
        so_far, advice = (
            "the script had not imported torch",
            f"If it needs that long before it trains, {longer}.",
        )
    elif not any(seen):
        so_far = "the script had taken no batch from a DataLoader and made no backward pass"
        advice = f"If it needs that long before it trains, {longer}."
    elif seen.optimizer_steps >= MANY:
        so_far = f"doctor had seen {_counted(seen)}, and had recognised no loop in them"
        advice = f"If the loop's work repeats only after a longer time, {longer}."
        other = "Otherwise please report how the script trains: this is a loop that doctor should know."
    elif max(seen.backwards, seen.optimizer_steps):
        so_far, other = f"doctor had seen only {_counted(seen)}", ""
        advice = f"The script trains slowly, or begins late: {longer}."
    else:
        so_far = f"doctor had seen {_counted(seen)}, as in an evaluation"
        advice = f"If the script trains after that, {longer}."
    if where and (seen is None or not max(seen.backwards, seen.optimizer_steps)):
        before = "If what it does there comes before training, such as an evaluation, let it do less of it"
        advice = f"{before}, or {longer}."
    return DoctorError(
        "out-of-time",
        f"The time ran out {after}. By then, {so_far}. {where}".strip(),
        f"{advice} {other}".strip(),
        Exit.OUT_OF_TIME,
    )


LONGER = 3
"""How many times as long as what was too short a user is told to wait."""


MANY = 100
"""Number of backward passes or optimizer steps after which a training loop would have been found."""


def _is_no_loop(seen: Counts) -> bool:
    """Whether what was seen is no training, or a training whose loop would not be found with a little more time."""
    trained = max(seen.backwards, seen.optimizer_steps)
    return trained == 0 or (trained >= MANY and seen.optimizer_steps == 0)


def _no_loop(sentence: str, seen: Counts, tail: str) -> DoctorError:
    if seen.backwards:
        advice = (
            "No optimizer step ended. If the passes lie inside one, as with LBFGS and a large max_iter, doctor needs "
            "to see them for ten seconds: let the script train for longer."
        )
    elif seen.evaluated and not seen.batches:
        advice = (
            "The script takes its batches with gradients off, as an evaluation does. Give the script that trains, with "
            "the arguments that make it train."
        )
    else:
        advice = "Give the script that trains, with the arguments that make it train."
    return DoctorError("no-training-loop", sentence, advice, Exit.NO_TRAINING, detail=tail)


def _counted(seen: Counts) -> str:
    batches = _number(seen.batches + seen.evaluated, "loader batch", "loader batches")
    if seen.evaluated:
        batches += f", {'all' if not seen.batches else seen.evaluated} of them with gradients off"
    passes = _number(seen.backwards, "backward pass", "backward passes")
    return f"{batches}, {passes}, {_number(seen.optimizer_steps, 'optimizer step', 'optimizer steps')}"


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def out_of_time(seconds: float) -> DoctorError:
    """The error that the budget, or the time for set-up, was too short to measure a baseline."""
    return DoctorError(
        "out-of-time",
        f"The time was too short: the training as written could not be measured within {seconds:.0f} s.",
        "Give more time with --budget, such as --budget 5m.",
        Exit.OUT_OF_TIME,
    )
