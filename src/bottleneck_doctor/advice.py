"""Turns a setting into the edit of the user's own lines: sites found by the guest and a setting in, a `Change` out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bottleneck_doctor.change import autocast_change, loader_change
from bottleneck_doctor.result import Change, Setting
from bottleneck_doctor.runtime.messages import Found, Site

LOADER_KEYWORDS = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")


def change_for(setting: Setting, found: Found) -> Change | None:
    """The edit that makes `setting` the user's own; None where no line of theirs was seen to change."""
    change = _change_for(setting, found)
    threads = setting.get("intra_op_threads")
    if change is not None and threads is not None:
        note = f"And call `torch.set_num_threads({threads})` before training begins."
        return replace(change, note=f"{change.note} {note}".strip())
    return change


def _change_for(setting: Setting, found: Found) -> Change | None:
    keywords = {name: setting[name] for name in LOADER_KEYWORDS if name in setting}
    if keywords and found.loader_site is not None:
        return _loader(keywords, found.loader_site)
    dtype = setting.get("autocast")
    if isinstance(dtype, str) and found.forward_site is not None:
        return _autocast(dtype, found, found.forward_site)
    return None


def _loader(keywords: Setting, site: Site) -> Change | None:
    source = _source(site)
    if source is None:
        return None
    edit = loader_change(source, site.file, site.line, keywords)
    if edit is None:
        return Change(file=site.file, line=site.line, diff="", note="Make the change where the DataLoader is built.")
    return Change(file=site.file, line=edit.line, diff=edit.diff, note=edit.note)


def _autocast(dtype: str, found: Found, forward: Site) -> Change | None:
    backward = found.backward_site
    device = found.device.split(":")[0]
    source = _source(forward)
    if source is not None and backward is not None and backward.file == forward.file:
        edit = autocast_change(source, forward.file, forward.line, backward.line, device, dtype)
        if edit is not None:
            return Change(file=forward.file, line=edit.line, diff=edit.diff, note=edit.note)
    note = f'Put the forward pass and the loss under `with torch.autocast("{device}", dtype=torch.{dtype}):`.'
    return Change(file=forward.file, line=forward.line, diff="", note=note)


def _source(site: Site) -> str | None:
    try:
        return Path(site.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
