"""What a setting asks for of the loader, as steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import libcst as cst

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Setting, SettingValue
from bottleneck_doctor.edits.advice import loader_arguments
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.fastai_loaders import LIBRARY, fastai_step
from bottleneck_doctor.edits.grouped_rows import grouped_rows_change
from bottleneck_doctor.edits.kept_inputs import kept_inputs_change
from bottleneck_doctor.edits.listed_samples import given_samples_change, listed_samples_change
from bottleneck_doctor.edits.loader_call import set_arguments
from bottleneck_doctor.edits.loader_dataset import dataset_argument, trainer_calls
from bottleneck_doctor.edits.loader_target import Target, makes_loader, target_on, trainer_made
from bottleneck_doctor.edits.origin.definition import Expression
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.step import Outcome, Step, Steps, at
from bottleneck_doctor.edits.transformed_batches import transformed_batches_change
from bottleneck_doctor.edits.tree import SourceTree, last_name
from bottleneck_doctor.edits.trimmed_batches import trimmed_batches_change
from bottleneck_doctor.edits.ultralytics_callback import set_callback
from bottleneck_doctor.edits.whole_batches import whole_batches_change
from bottleneck_doctor.knobs import (
    KeptInputs,
    ListedSamples,
    LoaderArgument,
    TransformedBatches,
    TrimmedBatches,
    WholeBatches,
)
from bottleneck_doctor.runtime.wire.messages import Found, Site
from bottleneck_doctor.wording import words

A = TypeVar("A")


def _of_kind(setting: Setting, kind: type[A]) -> A | None:
    """The edit of this kind that a setting asks for."""
    return next((each.edit for each in knobs.knobs_of(setting) if isinstance(each.edit, kind)), None)


def of_the_loader(made: Steps, setting: Setting, found: Found, running: Running) -> None:
    site = found.loader_site
    keywords, without = loader_arguments(setting)
    whole = _of_kind(setting, WholeBatches)
    told = "" if whole is None else f"ass `{whole.text}` to the DataLoader, without its `shuffle` and `drop_last`."
    listed = _of_kind(setting, ListedSamples)
    cut = _of_kind(setting, TrimmedBatches)
    asked = [(each.edit, setting[each.name]) for each in knobs.knobs_of(setting)]
    late = next(((edit, value) for edit, value in asked if isinstance(edit, TransformedBatches)), None)
    kept = _of_kind(setting, KeptInputs)
    if site is None:
        made.notes += [f"And {_KEPT_INPUTS}"] if kept is not None else []
        made.notes += [] if late is None else [f"And {_done_to_batches(*late, found)}"]
        made.notes += [f"And p{told}"] if told else []
        made.notes += [] if listed is None else [f"And {_given_a_list(listed)}"]
        made.notes += [] if cut is None else [f"And {_TO_LONGEST}"]
        if keywords and found.loader_library == LIBRARY:
            made.steps.append(fastai_step(keywords, without, found.device, running))
        elif keywords:
            made.notes.append(f"And pass {words.setting_code(keywords)} to the DataLoader.")
        return
    if keywords:

        def step(drafts: Drafts) -> Outcome:
            otherwise = Told(site.file, site.line, "Make the change where the DataLoader is built.")
            called = _called_back(drafts, site, setting, found, running)
            wanted = {name: value for name, value in keywords.items() if name not in called}
            before = drafts.changed()
            done = set_arguments(drafts, site.file, site.line, wanted, without, running) if wanted else []
            if called and drafts.changed() == before:
                done = [replace(each, unfinished=bool(each.note)) for each in done]
            return Outcome([*called.values(), *done] or [otherwise])

        made.steps.append(step)
    if whole is not None:
        made.steps.append(_where_made(site, whole_batches_change, f"P{told}", running))
    if listed is not None:
        sentence = _given_a_list(listed)
        otherwise = words.capitalised(sentence)
        made.steps.append(_listed(site, otherwise, found, running))
    if cut is not None:
        names = cut.names(found)
        otherwise = words.capitalised(_TO_LONGEST)

        def trimmed(text: str, line: int) -> ChangeText | None:
            return trimmed_batches_change(text, line, names)

        made.steps.append(_where_made(site, trimmed, otherwise, running))
    if late is not None:
        sentence = _done_to_batches(*late, found)
        otherwise = words.capitalised(sentence)
        edit, value = late

        def moved(text: str, line: int) -> ChangeText | None:
            # In the training loop, nobody knows which line moves the batch.
            return None if value == edit.on_device[0] else transformed_batches_change(text, line, edit.of(found))

        made.steps.append(_where_made(site, moved, otherwise, running))
    if kept is not None:
        # After the transforms were changed: then the dataset's name is not looked for any more.
        held = kept.of(found)
        otherwise = words.capitalised(_KEPT_INPUTS)

        def keeping(text: str, line: int) -> ChangeText | None:
            return kept_inputs_change(text, line, held)

        made.steps.append(_where_made(site, keeping, otherwise, running))


def _called_back(drafts: Drafts, site: Site, setting: Setting, found: Found, running: Running) -> dict[str, Told]:
    """What callbacks of Ultralytics' trainer do, where that makes the loader, by the names of the arguments that they
    set."""
    told: dict[str, Told] = {}
    for each in knobs.knobs_of(setting):
        callback = each.of_ultralytics(setting[each.name], found) if isinstance(each.edit, LoaderArgument) else None
        done = None if callback is None else set_callback(drafts, site, callback, running)
        told |= {} if done is None else {each.name: done}
    return told


def _where_made(site: Site, change: Callable[[str, int], ChangeText | None], otherwise: str, running: Running) -> Step:
    """The step that edits the call of a loader: on `site`, or where the loader is made that the call there is handed,
    as `accelerator.prepare(model, loader)` has it, or where the trainer is made whose `train()` is called there."""

    def step(drafts: Drafts) -> Outcome:
        follower = Follower(drafts.as_they_are, running)
        tree = follower.tree(site.file)
        here = None if tree is None else _leads_to(site, tree, follower)
        return at(site if here is None else Site(here.path, here.line), change, otherwise)(drafts)

    return step


def _listed(site: Site, otherwise: str, found: Found, running: Running) -> Step:
    """The step that gives a list of samples to the call that makes the loader, or to the library that makes it."""
    plain = _where_made(site, listed_samples_change, otherwise, running)

    def step(drafts: Drafts) -> Outcome:
        follower = Follower(drafts.as_they_are, running)
        given = dataset_argument(site.file, site.line, found.dataset_takers, follower)
        if given is None or _takes_lists(*given[:2], follower):
            return plain(drafts)
        at_call, call, taker = given

        def wrapped(text: str, line: int) -> ChangeText | None:
            return given_samples_change(text, line, last_name(call.func), taker)

        return at(Site(at_call.path, at_call.line), wrapped, otherwise)(drafts)

    return step


def _takes_lists(there: Expression, call: cst.Call, follower: Follower) -> bool:
    """Whether a call makes a loader, or a trainer of transformers': what these are given may be a list."""
    return makes_loader(there.tree, call) or call in trainer_calls(there.tree, there.line)


def _leads_to(site: Site, tree: SourceTree, follower: Follower) -> Expression | None:
    target = target_on(site.file, tree, site.line, follower)
    if isinstance(target, Target) and target.own is None and target.members is None:
        return target.at
    return trainer_made(site.file, tree, site.line, follower)


GROUPED = (
    "put rows of similar length into one batch, by a `batch_sampler` of the DataLoader. In transformers, that is an "
    'argument of the trainer: `train_sampling_strategy="group_by_length"`, and before version 5 `group_by_length=True`'
)


def grouped_step(part: str | None, found: Found, running: Running) -> Step | None:
    """The step that has a sampler put rows of similar length together. `part`: as in `grouped_rows_change`."""
    if found.loader_site is None or part is None:
        return None

    def grouped(text: str, line: int) -> ChangeText | None:
        return grouped_rows_change(text, line, part)

    return _where_made(found.loader_site, grouped, f"{words.capitalised(GROUPED)}.", running)


_TO_LONGEST = (
    "cut each batch to its longest row, in the loader's `collate_fn`. In transformers, call the tokenizer without "
    '`padding="max_length"`, and give the `Trainer` `data_collator=DataCollatorWithPadding(tokenizer)`.'
)


_KEPT_INPUTS = (
    "keep in memory what the transforms get: make the data set without its transforms, put "
    "`[dataset[index] for index in range(len(dataset))]` into a data set of your own before training, and let its "
    "`__getitem__` do the transforms to what the list holds."
)


def _done_to_batches(edit: TransformedBatches, value: SettingValue, found: Found) -> str:
    late, on_device = edit.of(found), value == edit.on_device[0]
    instead = f"put `{late.instead}` in place of" if late.instead else "leave out"
    ends = words.listed([f"`{each}`" for each in late.transforms])
    pictures = words.listed([f"`batch{place}`" for place in late.places]) if late.places else "the pictures of a batch"
    where = "after it was moved to the device" if on_device else "in the loader's `collate_fn`"
    others = "Other loops over" if on_device else "Other loaders of"
    return (
        f"{instead} {ends} at the end of the samples' transforms, and do `Compose([{', '.join(late.on_batch)}])` to "
        f"{pictures} {where}. {others} the same transforms need that, too."
    )


def _given_a_list(edit: ListedSamples) -> str:
    return f"give the loader a list of its samples, made once before training: `{edit.text}`."
