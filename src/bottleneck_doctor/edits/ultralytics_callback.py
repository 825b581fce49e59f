"""The edit that has a callback of Ultralytics' trainer do something: `model.add_callback(...)` above the user's call
that trains. All that its `train()` calls is in the library's own files, so nothing else could be edited. Pure."""

from __future__ import annotations

import re

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.loader_target import ULTRALYTICS, Target, target_on
from bottleneck_doctor.edits.module_level import with_import
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.tree import SourceTree, Statement, code
from bottleneck_doctor.knobs import Callback
from bottleneck_doctor.runtime.wire.messages import Site

_TORCH = re.compile(r"\btorch\.")


def set_callback(drafts: Drafts, site: Site, callback: Callback, running: Running) -> Told | None:
    """Write the callback into `drafts`, and say what there is to say. `site`: of the call that trains, in the file as
    it is. None where Ultralytics does not train there."""
    follower = Follower(drafts, running)
    tree = follower.tree(site.file)
    line = drafts.line(site.file, site.line)
    target = None if tree is None else target_on(site.file, tree, line, follower)
    if tree is None or not isinstance(target, Target) or target.own is not ULTRALYTICS:
        return None
    made = _above(tree, target.call, callback)
    if made is None:
        how = f"Give the model a name of its own, and write `{added('model', callback)}` before it trains."
        return Told(site.file, site.line, how)
    drafts.write(site.file, made.edited)
    return Told(site.file, made.line, made.note)


def _above(tree: SourceTree, call: cst.Call, callback: Callback) -> ChangeText | None:
    """The callback above the line that trains; None where what is trained has no name, or that is no line of its
    own."""
    assert isinstance(call.func, cst.Attribute)
    model, statement = call.func.value, tree.statement(call)
    if not isinstance(model, (cst.Name, cst.Attribute)) or not isinstance(statement, cst.SimpleStatementLine):
        return None
    said = added(code(model), callback).replace('"', tree.quote)
    above: dict[Statement, list[str]] = {statement: [said]}
    if _TORCH.search(said):
        name = tree.torch_name
        above[statement] = [_TORCH.sub(f"{name or 'torch'}.", said)]
        above = above if name else with_import(tree, "torch", above)
    edited = tree.edited({}, above)
    return None if edited is None else as_change(tree.source, edited, tree.lines(statement)[0], "")


def added(model: str, callback: Callback) -> str:
    """The statement that adds a callback to what `model` says."""
    return f'{model}.add_callback("{callback.event}", lambda trainer: {callback.code})'
