"""The edit that cuts a DataLoader's batches to their longest row: source text and a line in, `ChangeText` or nothing
out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.edits.collate_function import Collating
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.tree import SourceTree

NAME = "to_longest"


def trimmed_batches_change(source: str, line: int, names: Sequence[str]) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a collate function that cuts the tensors of these names to
    the longest row of the batch. The function stands at the top of the module, where workers that are spawned find it.
    None where the call is not written so that this is certain."""
    found = Collating.at(source, line)
    if found is None or not names or found.tree.says(NAME):
        return None
    return found.change(NAME, _function(found.tree, found.collate, names))


def _function(tree: SourceTree, collate: str, names: Sequence[str]) -> list[str]:
    indent, quote = tree.module.default_indent, tree.quote
    listed = ", ".join(f"{quote}{name}{quote}" for name in names)
    mask = f"{quote}attention_mask{quote}"
    return [
        f"def {NAME}(rows):",
        f"{indent}batch = {collate}(rows)",
        f"{indent}longest = int(batch[{mask}].any(0).nonzero().max()) + 1",
        f"{indent}for name in ({listed}{',' if len(names) == 1 else ''}):",
        f"{indent}{indent}batch[name] = batch[name][:, :longest].contiguous()",
        f"{indent}return batch",
        "",
        "",
    ]
