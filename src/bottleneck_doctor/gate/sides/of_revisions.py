"""Two revisions as the sides of a check: the base from a git worktree, the head from the working folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from bottleneck_doctor.documents.check import Side
from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.gate.cause import hunks
from bottleneck_doctor.gate.sides import revision, steady, worktree
from bottleneck_doctor.gate.sides.compared import Compared, addresses, protectors
from bottleneck_doctor.gate.sides.entrypoint import in_tree
from bottleneck_doctor.gate.sides.revision import Revisions
from bottleneck_doctor.measure.starter import Side as Started
from bottleneck_doctor.runtime.wire.notebooks import is_notebook, program_of
from bottleneck_doctor.session.start import Start


@contextlib.contextmanager
def of_revisions(
    start: Start,
    base_ref: str,
    *,
    merge_base: bool,
    setup: str | None,
    steadied: bool,
    tell: Callable[[str], None],
) -> Iterator[Compared]:
    """The working folder against `base_ref`. `setup`: the command of `--base-setup`. `tell`: what is done meanwhile.

    Raises `GitFailed`, and the `DoctorError`s of `revision.find` and `worktree.checked_out`.
    """
    revisions = revision.find(Path.cwd(), base_ref, merge_base=merge_base)
    warnings = _of_both(revisions.base, revisions.head)
    tell(f"Checking out {revisions.base.name}")
    given = start.environment.get("PYTHONPATH")
    with (
        worktree.checked_out(revisions, python=start.interpreter, setup=setup, python_path=given) as tree,
        protectors(start, warnings) as protector,
    ):
        warnings += tree.warnings
        entrypoint = in_tree(start, revisions, tree)
        sides = None
        if entrypoint is not None:
            shared = steady.variables(start.environment, steady=steadied)
            base_address, head_address = addresses(start)
            base = Started(
                name="base",
                said=f"the base ({revisions.base.name})",
                argv=start.argv(entrypoint),
                cwd=tree.cwd,
                environment={**start.environment, **tree.environment, **shared},
                protector=protector(tree.cwd, entrypoint),
                launched=bool(start.launcher),
                listen=base_address,
            )
            head = Started(
                name="head",
                said=f"the head ({revisions.head.name})",
                argv=start.argv(),
                cwd=revisions.cwd,
                environment={**start.environment, **shared},
                protector=protector(revisions.cwd, start.entrypoint()),
                launched=bool(start.launcher),
                listen=head_address,
            )
            sides = (base, head)
        yield Compared(
            base=revisions.base,
            head=revisions.head,
            root=revisions.root,
            cwd=revisions.cwd,
            sides=sides,
            roots={"base": (tree.root, revisions.root), "head": (revisions.root,)},
            differences=lambda: _differences(revisions, tree.root),
            commits=revisions.commits,
            warnings=warnings,
        )


def _differences(revisions: Revisions, base: Path) -> hunks.Differences:
    """`base`: where the base's files lie."""
    text = revision.changes(revisions)
    if text is None:
        return hunks.Differences(known=False)
    found = hunks.read(text)
    before = {new: old for old, new in found.renamed.items()}
    # git compares the lines of a notebook's JSON, and nobody numbers these.
    programs = {
        path: hunks.between(path, _notebook(base / before.get(path, path)), _notebook(revisions.root / path))
        for path in found.hunks
        if is_notebook(path)
    }
    return replace(found, hunks={**found.hunks, **programs})


def _notebook(file: Path) -> bytes:
    """The content of a notebook; nothing where it is gone, or is no program, but any amount of data."""
    try:
        content = file.read_bytes()
    except OSError:
        return b""
    return b"" if program_of(file.name, content) == content else content


def _of_both(base: Side, head: Side) -> list[Warning]:
    """What has to be known of what is compared."""
    if head.dirty:
        told = "The head has uncommitted changes. They were measured too."
        return [Warning(slug="head-dirty", sentence=told)]
    if head.commit == base.commit:
        told = f"{base.name} and the head are the same commit, so nothing can differ."
        return [Warning(slug="same-commit", sentence=told)]
    return []
