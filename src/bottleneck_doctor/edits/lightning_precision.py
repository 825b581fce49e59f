"""The edit that has Lightning's trainer put the training under autocast: `Trainer(precision="bf16-mixed")`. A step of
its `LightningModule` may lie in several methods, around which no block can stand. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.elsewhere import Elsewhere, reaches, write_elsewhere
from bottleneck_doctor.edits.loader_call import set_taken
from bottleneck_doctor.edits.named_call import set_named
from bottleneck_doctor.edits.origin import class_options
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.options import Option
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.knobs import Argument
from bottleneck_doctor.runtime.wire.messages import Site, Taker

PRECISIONS = {"bfloat16": "bf16-mixed", "float16": "16-mixed"}
_IMPORTED = re.compile(r"^\s*(?:import|from)\s+(?:lightning|pytorch_lightning)\b", re.MULTILINE)
_FITS = re.compile(r"\.fit\(")


def set_precision(drafts: Drafts, files: Sequence[str], dtype: str, running: Running) -> list[Told]:
    """Write the precision into `drafts`, in the first of `files` that trains with Lightning's trainer; nothing is told
    where none does. `dtype`: `bfloat16` or `float16`."""
    precision = PRECISIONS.get(dtype.removeprefix("torch."), "")
    for file in files if precision else ():
        text = drafts.text(file) or ""
        if _IMPORTED.search(text) and _FITS.search(text):
            told = set_named(drafts, file, _precision(precision), running)
            if told:
                return told
    return []


def set_through(
    drafts: Drafts, lines: Sequence[Site], dtype: str, running: Running, takers: Sequence[Taker]
) -> list[Told]:
    """The same where a library makes the trainer, in the call that was seen to take its arguments. `lines`: of the
    user's, that lead to the model."""
    precision = PRECISIONS.get(dtype.removeprefix("torch."), "")
    for site in lines if precision else ():
        told = set_taken(drafts, site, takers, running, {"precision": precision})
        if told:
            return told
    return []


def set_option(drafts: Drafts, dtype: str, running: Running) -> list[Told]:
    """The same where a `LightningCLI` makes the trainer: in the configuration file that has the option, else by a word
    of the command line."""
    follower = Follower(drafts, running)
    at = next(class_options.clis(follower), None)
    if at is None:
        return []
    option = Option(at.path, at.line, ("--trainer.precision",), None, lambda value: None)
    origin = class_options.entry(("trainer", "precision"), option, follower).origin(follower)
    precision = PRECISIONS.get(dtype.removeprefix("torch."), "")
    if origin is None or not precision or not reaches(origin, precision):
        return []
    there = Elsewhere("precision", precision, at, "LightningCLI(...)", origin)
    return [] if there.is_there else write_elsewhere(drafts, there, follower, at.path, at.line)


def by_hand(dtype: str) -> str:
    """What to do where no call of the user's makes the trainer."""
    precision = PRECISIONS[dtype.removeprefix("torch.")]
    return (
        f'Lightning\'s `Trainer` runs this training: it needs `precision="{precision}"`. A library that makes the '
        "trainer takes such arguments itself, or as `trainer_kwargs`."
    )


def _precision(value: str) -> Argument:
    said = f'precision="{value}"'
    return Argument(
        said=said,
        otherwise=f"give Lightning's `Trainer` `{said}`",
        calls=("Trainer",),
        given=(("precision", value),),
        of=("L", "lightning", "pl", "pytorch", "pytorch_lightning"),
    )
