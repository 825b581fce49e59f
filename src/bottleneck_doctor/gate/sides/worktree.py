"""The base's files on disk: a temporary git worktree, into which files are linked that git does not track.

A training may need files that no commit holds: datasets, downloaded models, generated files. Both sides use the same
ones. So all untracked files of the head that the base lacks are linked at the same place, except environments, caches
and build outputs. `--base-setup` runs before that, so that it can't write through a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.gate.sides.git import Git, GitFailed, placeless
from bottleneck_doctor.gate.sides.program import finished
from bottleneck_doctor.gate.sides.revision import Revisions
from bottleneck_doctor.gate.sides.tree import (
    NOT_LINKED,
    NOT_LINKED_ENDS,
    Tree,
    holds_code,
    is_environment,
    link_siblings,
    map_imports,
    named,
    note_unfound,
)
from bottleneck_doctor.protection import scratch

_POINTER = re.compile(rb"\Aversion https://git-lfs[^\n]*\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\nsize (\d+)\n")
_POINTER_BYTES = 1024
"""A longer file is not an LFS pointer (specification of git-lfs)."""
_FOLDER = "base"


@contextlib.contextmanager
def checked_out(
    revisions: Revisions, *, python: str, setup: str | None, python_path: str | None = None
) -> Iterator[Tree]:
    """The base's tree, for as long as the context lasts. Afterwards, nothing of it is left in the repository.

    `python_path`: the PYTHONPATH that the head will have; None means the one of this process.

    Raises `DoctorError` `base-checkout-failed` or `base-setup-failed`.
    """
    folder = scratch.new_folder(users=True)
    # It has the repository's own name, so that a path through its parent folder leads here too.
    root = Path(os.path.realpath(folder)) / _FOLDER / (revisions.root.name or _FOLDER)
    git = Git(revisions.root)
    _forget_killed(git)
    try:
        try:
            git("worktree", "add", "--detach", "--force", str(root), revisions.base_commit)
        except GitFailed as failed:
            raise DoctorError(
                "base-checkout-failed",
                f"The files of {revisions.base.name} can't be checked out.",
                "See what git said below. The temporary folder must have room for a second copy of the files.",
                detail=str(failed),
            ) from failed
        link_siblings(revisions.root, root)
        _lead_out(revisions.root, root)
        tree = Tree(root, root / revisions.inner)
        common, index = revisions.common, folder / "index"
        submodules = list(
            _submodules(revisions.root, common, revisions.base_commit, root, Path(), index, tree.warnings)
        )
        missing = _fetch_large(_large(Git(root)), revisions.root, root, common)
        _note_pointers(tree.warnings, missing, f"git lfs fetch origin {revisions.base_commit}")
        given = os.environ.get("PYTHONPATH", "") if python_path is None else python_path
        otherwise = "both revisions may import the head's code"
        expected = map_imports(revisions, tree, folder, python, given, otherwise=otherwise)
        if setup is not None:
            _set_up(setup, tree, python)
        for inner in (Path(), *submodules):
            if (revisions.root / inner).is_dir():
                _link_untracked(revisions.root / inner, root / inner, tree)
        note_unfound(tree, expected)
        yield tree
    finally:
        with contextlib.suppress(GitFailed):
            git("worktree", "remove", "--force", "--force", str(root))
        scratch.remove(folder)
        _forget_killed(git)


def _forget_killed(git: Git) -> None:
    """Remove the entry for the base's tree that a killed check left in the repository."""
    with contextlib.suppress(GitFailed):
        for line in git("worktree", "list", "--porcelain").splitlines():
            path = Path(line.removeprefix("worktree "))
            ours = path.parent.name == _FOLDER and path.parent.parent.name.startswith(scratch.PREFIX)
            if line.startswith("worktree ") and ours and _is_gone(path):
                with contextlib.suppress(GitFailed):
                    git("worktree", "remove", "--force", "--force", str(path))


def _is_gone(path: Path) -> bool:
    """Whether certainly nothing is there. The folder of another user's check can't be read, so it doesn't count as
    gone."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False


# -- what a checkout lacks ---------------------------------------------------------------------------------------------


def _submodules(
    head: Path, repository: Path, commit: str, tree: Path, inner: Path, index: Path, warnings: list[Warning]
) -> Iterator[Path]:
    """Check out submodules from the head's clone. Yields the paths, from the root, of those that were checked out.

    `repository`, `commit`: those of the folder `inner`, which may be a submodule itself. The repository of a submodule
    is only read. It gets no worktree, which would have to be removed again.
    """
    if not (tree / inner / ".gitmodules").is_file():
        return
    git = Git(tree / inner)
    try:
        entries = git.paths("config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    except GitFailed:  # The file names no submodule.
        return
    for entry in entries:
        key, _, path = entry.partition("\n")
        place = inner / path
        own = repository / "modules" / key.removeprefix("submodule.").removesuffix(".path")
        if not own.is_dir() and (head / place / ".git").is_dir():
            own = head / place / ".git"
        try:
            mode, _, rest = git(f"--git-dir={repository}", "ls-tree", commit, "--", path).partition(" ")
            if mode != "160000":
                continue
            recorded = rest.split()[1]
            index.unlink(missing_ok=True)
            (tree / place).mkdir(parents=True, exist_ok=True)
            told = (f"--git-dir={own}", f"--work-tree={tree / place}")
            Git(tree / place)(*told, "read-tree", "--reset", "-u", recorded, index=index)
            missing = _fetch_large(_large(Git(tree / place), told, index), head / place, tree / place, own)
            _note_pointers(warnings, missing, f"git -C {shlex.quote(str(place))} lfs fetch origin {recorded}")
        except GitFailed as failed:
            warnings.append(
                Warning(
                    slug="base-submodule-missing",
                    sentence=f"The base's submodule {place} is not in this clone ({_last(failed)}), so its folder is "
                    "empty on the base.",
                )
            )
            continue
        yield place
        yield from _submodules(head, own, recorded, tree, place, index, warnings)


def _large(git: Git, told: Sequence[str] = (), index: Path | None = None) -> list[str]:
    """The names of files that are stored with LFS. `told`, `index`: with these, git finds the checkout."""
    try:
        return [name for name in git(*told, "ls-files", "-z", ":(attr:filter=lfs)", index=index).split("\0") if name]
    except GitFailed:  # This git does not know attributes in paths.
        return []


def _fetch_large(names: Iterable[str], head: Path, base: Path, repository: Path) -> list[str]:
    """Replace LFS pointers in the base's checkout by real files that this clone holds. Returns the names that it
    lacks."""
    missing = []
    for name in names:
        pointer = base / name
        wanted = _pointer(pointer)
        if wanted is None:
            continue
        found = _object(wanted, repository, head / name)
        if found is None:
            missing.append(name)
            continue
        pointer.unlink()
        pointer.symlink_to(found)
    return missing


def _note_pointers(warnings: list[Warning], missing: list[str], fetch: str) -> None:
    if missing:
        warnings.append(
            Warning(
                slug="base-lfs-missing",
                sentence=f"{named(missing)}: large files that differ on the base and were not downloaded, so it has "
                f"only their pointers. Get them with: {fetch}.",
            )
        )


def _pointer(path: Path) -> tuple[str, int] | None:
    """The SHA-256 and size of the file that a pointer stands for."""
    try:
        if path.is_symlink() or path.stat().st_size > _POINTER_BYTES:
            return None
        found = _POINTER.match(path.read_bytes())
    except OSError:
        return None
    return (found[1].decode(), int(found[2])) if found else None


def _object(wanted: tuple[str, int], repository: Path, heads: Path) -> Path | None:
    digest, size = wanted
    stored = repository / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    if stored.is_file():
        return stored
    with contextlib.suppress(OSError):
        if heads.stat().st_size == size and _digest(heads) == digest:
            return heads
    return None


def _digest(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            made.update(block)
    return made.hexdigest()


def _link_untracked(head: Path, base: Path, tree: Tree) -> None:
    """Link files of the head that git does not track into the base's folder, unless something is in their place."""
    code: list[str] = []
    for name in Git(head).paths("ls-files", "-z", "--others", "--directory"):
        code += _link(Path(name), head, base, tree.cwd)
    if code:
        tree.warnings.append(
            Warning(
                slug="base-borrows-code",
                sentence=f"{named(code)}: code that git does not track. The base uses it as it is in your folder; "
                "if each revision needs its own build, give the build command with --base-setup.",
            )
        )


def _link(path: Path, head: Path, base: Path, cwd: Path) -> list[str]:
    """Link one file or folder. If the base has the folder, link what it lacks inside. Returns what holds code.

    `cwd`: the working folder on the base. It and the folders around it are made, not linked, because `..` in a linked
    folder leads to the head.
    """
    target, link = head / path, base / path
    if _left_out(path, target):
        return []
    try:
        is_folder = target.is_dir() and not target.is_symlink()
        if is_folder and not os.path.lexists(link) and (link == cwd or link in cwd.parents):
            link.mkdir(parents=True)
        if os.path.lexists(link):
            if not is_folder or link.is_symlink() or not link.is_dir():
                return []
            return [name for inner in sorted(os.listdir(target)) for name in _link(path / inner, head, base, cwd)]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    except OSError:  # Perhaps the base has a file where the head has a folder.
        return []
    return [str(path)] if holds_code(target) else []


def _lead_out(head: Path, base: Path) -> None:
    """Correct links of the base that lead out of the repository, so that they lead where the head's do."""
    for entry in Git(base).paths("ls-files", "--stage", "-z"):
        told, _, name = entry.partition("\t")
        link = base / name
        if not told.startswith("120000 ") or link.exists() or not link.is_symlink():
            continue
        target = Path(os.path.normpath((head / name).parent / os.readlink(link)))
        if target.exists() and not target.is_relative_to(head):
            link.unlink()
            link.symlink_to(target)


def _left_out(path: Path, target: Path) -> bool:
    if any(part in NOT_LINKED or part.endswith(NOT_LINKED_ENDS) for part in path.parts):
        return True
    return is_environment(target)


# -- where its code is found, and how it is built ----------------------------------------------------------------------


def _set_up(command: str, tree: Tree, python: str) -> None:
    """Run the user's own command in the base's folder, as a shell would. Raises `DoctorError` `base-setup-failed`."""
    cwd = tree.cwd if tree.cwd.is_dir() else tree.root
    # The interpreter that trains comes first in PATH, as it does in its environment.
    path = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", os.defpath)])
    # The check may run inside a hook. Git must be asked about the base, and not about the hook's repository.
    environment = {**placeless(os.environ), **tree.environment, "PATH": path}
    done = finished(command, cwd=cwd, environment=environment, together=True)
    said = done.stdout.decode(errors="replace")
    if done.returncode:
        raise DoctorError(
            "base-setup-failed",
            f"The command of --base-setup failed on the base with exit code {done.returncode}.",
            "Run it in a checkout of the base and correct it. The end of its output is below.",
            Exit.ENTRYPOINT_FAILED,
            detail=said[-4000:],
        )


def _last(failed: GitFailed) -> str:
    lines = str(failed).splitlines()
    return lines[-1].removeprefix("fatal: ") if lines else "git failed"
