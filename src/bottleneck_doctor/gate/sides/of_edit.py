"""A program as written and with an edit, as the sides of a check.

Both run where the user's files lie; the edited one sees its edits through its sandbox. Where there is none, and with
`--in-place`, it runs in a copy of the project instead, even if no file is edited: both train at once, and would find
one another's checkpoints.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from bottleneck_doctor.documents.check import Side
from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.sides import revision, steady
from bottleneck_doctor.gate.sides.compared import Compared, Protect, addresses, protectors
from bottleneck_doctor.gate.sides.copied import copied
from bottleneck_doctor.gate.sides.edit import Edit
from bottleneck_doctor.gate.sides.entrypoint import in_tree
from bottleneck_doctor.measure.starter import Side as Started
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.protection.sandbox import NotHere
from bottleneck_doctor.session.launch import slurm_address
from bottleneck_doctor.session.start import Start

AS_WRITTEN = "as written"


@dataclass(frozen=True)
class _Project:
    root: Path
    cwd: Path


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where and how the edited program is started."""

    entrypoint: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    protector: Protector
    roots: tuple[Path, ...]


@contextlib.contextmanager
def of_edit(start: Start, edit: Edit, called: str, *, steadied: bool) -> Iterator[Compared]:
    """What is started, as it is and under `edit`, which is `called` so. Raises `DoctorError`
    `edit-out-of-reach`, and those of `copied`."""
    cwd = Path.cwd().resolve()
    _, here = revision.here(edit.root)
    warnings: list[Warning] = []
    if edit.changes_nothing(start):
        told = "The edit changes nothing, so nothing can differ."
        warnings.append(Warning(slug="edit-changes-nothing", sentence=told))
    own, shared = start.environment, steady.variables(start.environment, steady=steadied)
    base_address, head_address = addresses(start)
    # A copy goes after what protects the files in it.
    with contextlib.ExitStack() as copies, protectors(start, warnings) as protect:
        place = _edited(start, edit, cwd, protect, copies, warnings)
        base = Started(
            name="base",
            said="the program as written",
            argv=start.argv(),
            cwd=cwd,
            environment={**own, **shared},
            protector=protect(cwd, start.entrypoint()),
            launched=bool(start.launcher),
            listen=base_address,
        )
        head = Started(
            name="head",
            said="the program under the setting" if edit.setting else "the edited program",
            argv=start.argv(place.entrypoint),
            cwd=place.cwd,
            environment={**own, **shared, **edit.variables, **place.environment},
            protector=place.protector,
            launched=bool(start.launcher),
            listen=head_address,
            setting=edit.setting,
        )
        yield Compared(
            base=Side(name=AS_WRITTEN, commit=here.commit, dirty=here.dirty),
            head=Side(name=called, commit=None),
            root=edit.root,
            cwd=cwd,
            sides=(base, head),
            roots={"base": (edit.root,), "head": place.roots},
            differences=edit.differences,
            texts=_texts(edit),
            warnings=warnings,
        )


def _edited(
    start: Start, edit: Edit, cwd: Path, protect: Protect, copies: contextlib.ExitStack, warnings: list[Warning]
) -> _Place:
    """The edited program where the user's files lie, or in a copy of them."""
    edited = edit.edited(start)
    entrypoint = edited.entrypoint()
    why = "--in-place was given"
    if _starts_elsewhere(start):
        _refuse_files(edit)
        # A copy would be out of their reach too.
        protector = protect(cwd, entrypoint)
        return _Place(entrypoint=entrypoint, cwd=cwd, environment={}, protector=protector, roots=(edit.root,))
    if not start.in_place:
        try:
            protector = protect(cwd, entrypoint, edit.whole())
            return _Place(entrypoint=entrypoint, cwd=cwd, environment={}, protector=protector, roots=(edit.root,))
        except NotHere as refused:
            why = f"there is no sandbox here ({refused})"
    project = _Project(edit.root, cwd)
    given = {**start.environment, **edit.variables}.get("PYTHONPATH")
    tree = copies.enter_context(copied(project, edit.files, python=start.interpreter, python_path=given, why=why))
    warnings += [*tree.warnings, _in_a_copy(why)]
    entrypoint = in_tree(edited, project, tree) or entrypoint
    return _Place(
        entrypoint=entrypoint,
        cwd=tree.cwd,
        environment=tree.environment,
        protector=protect(tree.cwd, entrypoint),
        roots=(tree.root, project.root),
    )


def _starts_elsewhere(start: Start) -> bool:
    """Whether processes run that are none of ours: on other hosts, or started by a daemon that knows no sandbox."""
    daemons = {"flux", "jsrun", "srun"}
    named = {PurePath(word).name for word in (*start.launcher[:1], *start.words[:1])}
    return start.listen is not None or slurm_address(os.environ) is not None or bool(daemons & named)


def _refuse_files(edit: Edit) -> None:
    if edit.files:
        raise DoctorError(
            "edit-out-of-reach",
            "Ranks that run on other hosts, or that a job scheduler starts, would train with the files as written.",
            "Try the edit on one host, with a launcher such as torchrun, or try arguments and variables only.",
        )


def _in_a_copy(why: str) -> Warning:
    return Warning(
        slug="edited-in-copy",
        sentence=f"The edited program ran in a copy of the project, because {why}. Large files and folders without "
        "code are links to yours there, and what it finds by a whole path is yours too, as written.",
    )


def _texts(edit: Edit) -> dict[str, str]:
    """The edited files as text, by path from the project's root; a removed one has none."""
    return {path: (content or b"").decode("utf-8", "replace") for path, content in edit.files.items()}
