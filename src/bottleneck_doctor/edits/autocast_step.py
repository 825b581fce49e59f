"""The step that puts forward pass and loss under autocast, wherever the user's code, or a trainer, calls the model."""

from __future__ import annotations

import re
from functools import partial

from bottleneck_doctor.edits.autocast_block import autocast_change
from bottleneck_doctor.edits.autocast_region import moved_region, set_region
from bottleneck_doctor.edits.backward_functions import of_step
from bottleneck_doctor.edits.backward_passes import are_elsewhere
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.fastai_loaders import LIBRARY
from bottleneck_doctor.edits.lightning_precision import by_hand, set_option, set_precision, set_through
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.step import Change, Outcome, Step, files, first_of
from bottleneck_doctor.edits.tree import SourceTree
from bottleneck_doctor.runtime.wire.messages import Found, Site


def autocast_step(dtype: str, found: Found, running: Running) -> Step | None:
    forward, backward = found.forward_site, found.backward_site
    device = found.device.split(":")[0]
    if forward is None:
        return None
    lines = [forward, *found.forward_path]
    if found.method_site in lines:  # What leads to the modules inside the model is the model's own.
        lines = lines[lines.index(found.method_site) :]
    otherwise = f"Put {under_autocast(dtype, found)}."
    if found.trainer == "lightning":
        otherwise = by_hand(dtype)
    elif found.loader_library == LIBRARY:
        otherwise = f"{otherwise} In fastai, a callback does that in `before_batch` and `after_loss`."
        if device == "cuda":
            otherwise = (
                f"Call `learn.to_{'bf16' if dtype.endswith('bfloat16') else 'fp16'}()` before the Learner is fitted."
            )

    def step(drafts: Drafts) -> Outcome:
        for site in lines:
            own = set_region(drafts, site.file, site.line, device, dtype, running)
            if own is not None:
                return Outcome(own)
        keras = _KERAS.search(drafts.text(forward.file) or "") is not None
        said = f"{otherwise} {_keras_policy(dtype)}" if keras else otherwise

        def by_trainer(drafts: Drafts) -> Outcome:
            told = set_precision(drafts, files(found), dtype, running)
            told = told or set_through(drafts, lines, dtype, running, found.trainer_takers)
            if found.trainer == "lightning":
                told = told or set_option(drafts, dtype, running)
            return Outcome(told or [Told(forward.file, forward.line, said)])

        alone = backward is None or not _is_one_of_several(drafts, backward)

        def change(site: Site) -> Change:
            beside = backward is not None and backward.file == site.file
            last = drafts.line(backward.file, backward.line) if backward is not None and beside else None
            return partial(autocast_change, backward_line=last, device=device, dtype=dtype, alone=alone)

        def moved(site: Site) -> Change:
            return partial(moved_region, dtype=dtype.removeprefix("torch."))

        # Where the model is called in another function than the backward pass, the line that leads there will do.
        at_last = first_of(lines, moved, by_trainer) if device == "cpu" else by_trainer
        return first_of(lines, change, at_last)(drafts)

    return step


def _is_one_of_several(drafts: Drafts, backward: Site) -> bool:
    """Whether the step that makes this backward pass makes another one beside it, as that of a GAN does."""
    tree, line = SourceTree.parse(drafts.text(backward.file) or ""), drafts.line(backward.file, backward.line)
    statement = None if tree is None or line is None else tree.innermost(line)
    if tree is None or line is None or statement is None:
        return False
    return are_elsewhere(tree, [statement]) or of_step(tree, line) is not None


_KERAS = re.compile(r"^\s*(?:import|from) keras\b", re.MULTILINE)


def _keras_policy(dtype: str) -> str:
    """The same in the words of Keras, which calls the model itself."""
    return f'In Keras, `keras.mixed_precision.set_global_policy("mixed_{dtype}")` before the model is made does that.'


def under_autocast(dtype: str, found: Found) -> str:
    device = found.device.split(":")[0]
    return f'the forward pass and the loss under `with torch.autocast("{device}", dtype=torch.{dtype}):`'
