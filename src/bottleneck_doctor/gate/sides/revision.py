"""Which two revisions are compared: the working folder and the base's name in, two commits and those between them
out."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from bottleneck_doctor.documents.check import Side
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.sides.git import Git, GitFailed

MOST_COMMITS = 1000
"""At most this many of the newest commits between the revisions are kept. Outputs for people show fewer, and the
total."""

WORKING_TREE = "the working tree"


@dataclass(frozen=True)
class Revisions:
    """The repository at `root`, the working folder inside it, and both sides. `commits`: newest first, one line each.

    `common`: the folder in which git keeps what all working trees share.
    """

    root: Path
    cwd: Path
    common: Path
    base: Side
    head: Side
    commits: list[str]

    @property
    def base_commit(self) -> str:
        assert self.base.commit is not None
        return self.base.commit

    @property
    def inner(self) -> Path:
        """The working folder as seen from the root."""
        return self.cwd.relative_to(self.root)


def find(cwd: Path, ref: str, *, merge_base: bool) -> Revisions:
    """The revisions to compare: `ref`, or the commit at which the head branched off from it, with the working tree.

    Raises `DoctorError` `git-missing`, `not-a-repository`, `unknown-ref` or `no-merge-base`.
    """
    git = Git(cwd)
    try:
        root = Path(git("rev-parse", "--show-toplevel")).resolve()
        common = cwd / git("rev-parse", "--git-common-dir")
    except GitFailed as failed:
        raise DoctorError(
            "not-a-repository",
            f"{cwd} is not in the working tree of a git repository, so there is no revision to compare with.",
            "Run the check inside a clone of the repository that holds the script.",
            detail=str(failed),
        ) from failed
    base = _commit(git, ref)
    if base is None:
        raise _unknown(git, ref)
    head = _commit(git, "HEAD")
    name = ref
    if merge_base:
        try:
            if head is None:
                raise GitFailed("there is no commit here yet")
            base = git("merge-base", ref, "HEAD").splitlines()[0]
        except GitFailed as failed:
            raise DoctorError(
                "no-merge-base",
                f"{ref} and the head have no common commit in this clone.",
                "In a shallow clone, fetch more of the history (git fetch --deepen 1000), or leave out --merge-base.",
                detail=str(failed),
            ) from failed
        name = f"the merge base with {ref}"
    return Revisions(
        root=root,
        cwd=cwd.resolve(),
        common=common.resolve(),
        base=Side(name=name, commit=base),
        head=_head(git),
        commits=_between(git, base),
    )


def here(cwd: Path) -> tuple[Path, Side]:
    """The root of the repository around the working folder, and its state; the folder itself if there is no repository
    or no git."""
    root = root_of(cwd)
    try:
        if root is not None:
            return root, _head(Git(cwd))
    except GitFailed:
        pass
    return cwd.resolve(), Side(name=WORKING_TREE, commit=None)


def root_of(folder: Path) -> Path | None:
    """The root of the repository that a folder lies in; None where there is none, or no git."""
    try:
        return Path(Git(folder)("rev-parse", "--show-toplevel")).resolve()
    except (GitFailed, DoctorError):
        return None


def since(root: Path, commit: str) -> list[str]:
    """Commits after `commit` (its full name) up to the head, newest first, one line each; none if git does not know
    it."""
    try:
        return _between(Git(root), commit)
    except DoctorError:
        return []


def changes(revisions: Revisions) -> str | None:
    """What the head changed since the base, uncommitted changes included, as `git diff` prints it without context; None
    if git fails."""
    options = ("-c", "diff.mnemonicPrefix=false", "diff", "-U0", "-M", "--no-color", "--no-ext-diff", "--no-prefix")
    try:
        return Git(revisions.root)(*options, revisions.base_commit, "--")
    except GitFailed:
        return None


def _head(git: Git) -> Side:
    return Side(name=_branch(git) or WORKING_TREE, commit=_commit(git, "HEAD"), dirty=_is_dirty(git))


def _is_dirty(git: Git) -> bool:
    status = ("status", "--porcelain", "--untracked-files=no")
    try:
        return bool(git(*status, "--ignore-submodules=untracked"))
    except GitFailed:
        # A submodule may be broken, or have another owner.
        return bool(git(*status, "--ignore-submodules=all"))


def _commit(git: Git, ref: str) -> str | None:
    # An option is not the name of a revision. Git before 2.30 has no way to say this on its command line.
    if ref.startswith("-"):
        return None
    try:
        return git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") or None
    except GitFailed:
        return None


def _branch(git: Git) -> str:
    try:
        return git("symbolic-ref", "--quiet", "--short", "HEAD")
    except GitFailed:
        return ""


def _between(git: Git, base: str) -> list[str]:
    try:
        lines = git("log", "--oneline", "--no-decorate", "--no-color", f"-n{MOST_COMMITS}", f"{base}..HEAD")
        return lines.splitlines()
    except GitFailed:
        return []


def _unknown(git: Git, ref: str) -> DoctorError:
    try:
        known = git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags").splitlines()
    except GitFailed:
        known = []
    near = difflib.get_close_matches(ref, known, n=2)
    # What a shallow clone in CI lacks is mostly a remote's branch that was never fetched.
    remote, slash, branch = ref.partition("/")
    fetch = f"git fetch {remote} {branch}:refs/remotes/{ref}" if slash else "git fetch --all --tags"
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    return DoctorError(
        "unknown-ref",
        f"There is no revision {ref!r} in this clone.",
        f"{hint}Fetch it first, for example with: {fetch}.",
    )
