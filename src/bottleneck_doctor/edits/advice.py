"""Turns a setting into edits of the user's own lines: sites found by the guest and a setting in, `Change`s out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Change, Setting
from bottleneck_doctor.edits.autocast_block import autocast_change
from bottleneck_doctor.edits.before_loop import before_loop_change
from bottleneck_doctor.edits.call import call_change
from bottleneck_doctor.edits.diff import as_change
from bottleneck_doctor.edits.loader_call import loader_change
from bottleneck_doctor.edits.memory_format import memory_format_change
from bottleneck_doctor.edits.named_call import named_change
from bottleneck_doctor.edits.removal import removal_change
from bottleneck_doctor.edits.switch import switches_change
from bottleneck_doctor.edits.whole_batches import whole_batches_change
from bottleneck_doctor.knobs import (
    Argument,
    AutocastBlock,
    BeforeLoop,
    Call,
    LoaderArgument,
    MemoryFormat,
    Removal,
    Switch,
    Variables,
    WholeBatches,
)
from bottleneck_doctor.runtime.wire.messages import Found, Site
from bottleneck_doctor.wording import words


def changes_for(setting: Setting, found: Found) -> list[Change]:
    """The edits that make `setting` the user's own, one for each place; empty where no line of theirs was seen.

    Every diff is of the files as they are. What has no line of its own stands in the note of the first edit.
    """
    if setting and knobs.of_layer(setting, "session") == setting:
        return _started(setting, found)
    changes: list[Change] = []
    notes: list[str] = []
    sentences: list[str] = []
    """What has no line that is known, without its end."""
    calls: list[str] = []
    keywords, without = loader_arguments(setting)
    whole = next((each.edit for each in knobs.knobs_of(setting) if isinstance(each.edit, WholeBatches)), None)
    if whole is not None and found.loader_site is not None:
        changes.append(_whole_batches(whole, keywords, without, found.loader_site))
    elif whole is not None:
        notes.append(f"And pass `{whole.text}` to the DataLoader, without its `shuffle` and `drop_last`.")
    if keywords and (whole is None or found.loader_site is None):
        if found.loader_site is not None:
            changes.append(_loader(keywords, without, found.loader_site))
        else:
            notes.append(f"And pass {words.setting_code(keywords)} to the DataLoader.")
    for each in knobs.knobs_of(setting):
        edit, value = each.edit, setting[each.name]
        if isinstance(edit, AutocastBlock) and isinstance(value, str):
            if found.forward_site is not None:
                changes.append(_autocast(value, found, found.forward_site))
            else:
                notes.append(f"And put {_context(value, found)}.")
        elif isinstance(edit, MemoryFormat):
            if found.forward_site is not None:
                changes.append(_in_format(edit.name, found.forward_site))
            else:
                notes.append(f"And {_formatted(edit.name)}")
        elif isinstance(edit, Removal):
            changes += _taken_out(edit.calls(found))
        elif isinstance(edit, BeforeLoop):
            changes += _before_loop(edit, edit.of(value), found)
        elif isinstance(edit, Variables):
            notes.append(f"And put `{edit.code(value, found.device)}` before the command that starts the training.")
        elif isinstance(edit, Argument):
            change = _named(edit, found)
            if change is not None:
                changes.append(change)
            else:
                sentences.append(edit.otherwise)
        elif isinstance(edit, Call):
            calls.append(edit.text.format(value=value))
    switched, left, unwritten = _switched(setting, found)
    changes += switched
    sentences += unwritten
    if sentences and not changes:
        changes += _beside(f"{sentences[0][:1].upper()}{sentences.pop(0)[1:]}.", found)
    notes += [f"And {sentence}." for sentence in sentences]
    if left and changes:
        notes += [f"And write `{code}` before training begins." for code in left]
    elif left:
        changes += _nowhere(left, found)
    if changes:
        notes += [f"And call `{code}` before training begins." for code in calls]
    else:
        changes += [change for code in calls for change in _called(code, found)]
    if changes and notes:
        changes[0] = replace(changes[0], note=" ".join([changes[0].note, *notes]).strip())
    return changes


def loader_arguments(setting: Setting) -> tuple[Setting, list[str]]:
    """Which arguments the DataLoader is to get for `setting`, in the order in which they are added, and the names of
    those that it can't have beside them."""
    edits = [(each.edit, each.name) for each in knobs.knobs_of(setting) if isinstance(each.edit, LoaderArgument)]
    edits.sort(key=lambda each: each[0].place)
    without = [other for edit, name in edits for other in edit.without(setting[name])]
    return {name: setting[name] for _, name in edits}, without


def _loader(keywords: Setting, without: Sequence[str], site: Site) -> Change:
    source = _source(site)
    edit = None if source is None else loader_change(source, site.line, keywords, without)
    if edit is None:
        return Change(file=site.file, line=site.line, diff="", note="Make the change where the DataLoader is built.")
    return Change(file=site.file, line=edit.line, diff=edit.diff, note=edit.note)


def _whole_batches(whole: WholeBatches, keywords: Setting, without: Sequence[str], site: Site) -> Change:
    """The edit of a call that gets a sampler of batches, and with it the arguments that a setting holds besides."""
    source = _source(site)
    first = loader_change(source, site.line, keywords, without) if source is not None and keywords else None
    text = first.edited or source if first is not None else source
    edit = None if text is None else whole_batches_change(text, site.line)
    note = first.note if first is not None else ""
    if source is not None and edit is not None:
        both = as_change(source, edit.edited, edit.line, note)
        return Change(file=site.file, line=both.line, diff=both.diff, note=both.note)
    told = f"Pass `{whole.text}` to the DataLoader, without its `shuffle` and `drop_last`."
    if keywords and (first is None or not first.diff):
        told += f" And pass {words.setting_code(keywords)}."
    line, diff = (first.line, first.diff) if first is not None else (site.line, "")
    return Change(file=site.file, line=line, diff=diff, note=f"{note} {told}".strip())


def _autocast(dtype: str, found: Found, forward: Site) -> Change:
    backward = found.backward_site
    device = found.device.split(":")[0]
    source = _source(forward)
    if source is not None and backward is not None and backward.file == forward.file:
        edit = autocast_change(source, forward.line, backward.line, device, dtype)
        if edit is not None:
            return Change(file=forward.file, line=edit.line, diff=edit.diff, note=edit.note)
    return Change(file=forward.file, line=forward.line, diff="", note=f"Put {_context(dtype, found)}.")


def _called(code: str, found: Found) -> list[Change]:
    """A call before training begins, in the first of the user's files that are known."""
    site = next(iter(_sites(found)), None)
    if site is None:
        return []
    source = _source(site)
    edit = None if source is None else call_change(source, code)
    if edit is None:
        return [Change(file=site.file, line=site.line, diff="", note=f"Call `{code}` before training begins.")]
    return [Change(file=site.file, line=edit.line, diff=edit.diff, note=edit.note)]


def _in_format(name: str, forward: Site) -> Change:
    source = _source(forward)
    edit = None if source is None else memory_format_change(source, forward.line, name)
    if edit is not None:
        return Change(file=forward.file, line=edit.line, diff=edit.diff, note=edit.note)
    text = _formatted(name)
    return Change(file=forward.file, line=forward.line, diff="", note=f"{text[0].upper()}{text[1:]}")


def _formatted(name: str) -> str:
    return (
        f"write `model = model.to(memory_format=torch.{name})` where the model is made, and "
        f"`images = images.to(memory_format=torch.{name})` before it is called."
    )


def _context(dtype: str, found: Found) -> str:
    device = found.device.split(":")[0]
    return f'the forward pass and the loss under `with torch.autocast("{device}", dtype=torch.{dtype}):`'


def _named(edit: Argument, found: Found) -> Change | None:
    """The edit of the first call of that name in the files that are known, and of those beside it."""
    for file in dict.fromkeys(site.file for site in _sites(found)):
        source = _source(Site(file=file, line=1))
        change = None if source is None else named_change(source, edit)
        if change is not None:
            return Change(file=file, line=change.line, diff=change.diff, note=change.note)
    return None


def _switched(setting: Setting, found: Found) -> tuple[list[Change], list[str], list[str]]:
    """The edits of what is switched, a file each; of what is switched on in none of the files that are known, the code,
    or the sentence of those that have one. The files are those in which the loader is made, and the model and the
    backward pass are called."""
    left = {each.edit: setting[each.name] for each in knobs.knobs_of(setting) if isinstance(each.edit, Switch)}
    changes = []
    for file in dict.fromkeys(site.file for site in _sites(found)):
        source = _source(Site(file=file, line=1)) if left else None
        edit = None if source is None else switches_change(source, left)
        if edit is not None:
            changes.append(Change(file=file, line=edit.text.line, diff=edit.text.diff, note=edit.text.note))
            left = {switch: value for switch, value in left.items() if switch not in edit.found}
    codes = [switch.text.format(value=value) for switch, value in left.items() if not switch.otherwise]
    return changes, codes, [switch.otherwise for switch in left if switch.otherwise]


def _before_loop(edit: BeforeLoop, lines: Sequence[str], found: Found) -> list[Change]:
    site = found.forward_site or next(iter(_sites(found)), None)
    if site is None:
        return []
    source = _source(site)
    change = None if source is None else before_loop_change(source, site.line, lines, edit.imports)
    if change is not None:
        return [Change(file=site.file, line=change.line, diff=change.diff, note=change.note)]
    code = words.listed([f"`{each}`" for each in lines])
    note = f"Call {code} once before the training loop, after the model and the data set are made."
    return [Change(file=site.file, line=site.line, diff="", note=note)]


def _taken_out(calls: Sequence[tuple[str, Site]]) -> list[Change]:
    """The edits that take calls out, a file each."""
    changes = []
    for file in dict.fromkeys(site.file for _, site in calls):
        here = [(name, site.line) for name, site in calls if site.file == file]
        source = _source(Site(file=file, line=1))
        edit = None if source is None else removal_change(source, here)
        if edit is None:
            note = f"Remove {words.listed([f'`{name}()` in line {line}' for name, line in here])}."
            changes.append(Change(file=file, line=here[0][1], diff="", note=note))
        else:
            changes.append(Change(file=file, line=edit.line, diff=edit.diff, note=edit.note))
    return changes


def _started(setting: Setting, found: Found) -> list[Change]:
    """No line of the user's says how it is started: what to write before the command, beside the file that trains."""
    site = next(iter(_sites(found)), None)
    note = f"Put {words.setting_code(setting, found.device)} before the command that starts the training."
    return [Change(file=site.file, line=0, diff="", note=note)] if site is not None else []


def _nowhere(codes: Sequence[str], found: Found) -> list[Change]:
    """Where nothing that is to be switched was found: what to write, beside the first line that is known."""
    code = " and ".join(f"`{each}`" for each in codes)
    return _beside(f"Write {code} before training begins, or remove what switches it on.", found)


def _beside(note: str, found: Found) -> list[Change]:
    """A note at the first line that is known, if there is one."""
    site = next(iter(_sites(found)), None)
    return [] if site is None else [Change(file=site.file, line=site.line, diff="", note=note)]


def _sites(found: Found) -> list[Site]:
    return [site for site in (found.forward_site, found.backward_site, found.loader_site) if site is not None]


def _source(site: Site) -> str | None:
    try:
        return Path(site.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
