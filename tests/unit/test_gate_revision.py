"""The base's tree beside the head's: what is found by git, what is linked, and that nothing stays behind."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.sides import imports, revision, worktree
from bottleneck_doctor.gate.sides.imports import ImportPath
from bottleneck_doctor.gate.sides.tree import Tree


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, message: str = "a commit", **files: str) -> str:
    """Write files (dots in names as `__`) and commit them; the commit's id."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of two commits, in which git does not read the user's own configuration."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root, train_py="1\n", src__pet__code_py="old\n")
    (root / ".gitignore").write_text("data/\n*.so\n__pycache__/\n.venv/\n")
    commit(root, "Second", train_py="1\n2\n", src__pet__code_py="new\n")
    return root


def test_what_lies_here(repository: Path, tmp_path: Path) -> None:
    root, head = revision.here(repository / "src")
    assert root == repository.resolve()
    assert (head.name, head.commit, head.dirty) == ("main", git(repository, "rev-parse", "HEAD"), False)
    (repository / "train.py").write_text("3\n")
    assert revision.here(repository)[1].dirty
    (said,) = revision.since(root, git(repository, "rev-parse", "HEAD~1"))
    assert said.endswith("Second")
    assert revision.since(root, "0" * 40) == []


def test_a_folder_in_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    root, head = revision.here(tmp_path)
    assert root == tmp_path.resolve()
    assert (head.name, head.commit, head.dirty) == ("the working tree", None, False)
    assert revision.since(root, "0" * 40) == []
    monkeypatch.setenv("PATH", "")
    assert revision.here(tmp_path)[1].commit is None
    assert revision.since(root, "0" * 40) == []


@contextmanager
def tree_of(root: Path, ref: str = "HEAD~1", *, cwd: Path | None = None, setup: str | None = None) -> Iterator[Tree]:
    revisions = revision.find(cwd or root, ref, merge_base=False)
    with worktree.checked_out(revisions, python=sys.executable, setup=setup) as tree:
        yield tree


def slugs(tree: Tree) -> list[str]:
    return [warning.slug for warning in tree.warnings]


# -- revisions ---------------------------------------------------------------------------------------------------------


def test_both_sides_and_what_lies_between(repository: Path) -> None:
    found = revision.find(repository / "src", "HEAD~1", merge_base=False)
    assert found.root == repository
    assert found.inner == Path("src")
    assert found.base.commit == git(repository, "rev-parse", "HEAD~1")
    assert (found.head.name, found.head.commit, found.head.dirty) == (
        "main",
        git(repository, "rev-parse", "HEAD"),
        False,
    )
    assert [line.split(maxsplit=1)[1] for line in found.commits] == ["Second"]
    (repository / "untracked.txt").write_text("")
    assert not revision.find(repository, "main", merge_base=False).head.dirty
    (repository / "train.py").write_text("3\n")
    assert revision.find(repository, "main", merge_base=False).head.dirty


def test_where_the_head_left_the_base(repository: Path) -> None:
    git(repository, "switch", "--quiet", "--create", "work")
    commit(repository, work_py="")
    git(repository, "switch", "--quiet", "main")
    ahead = commit(repository, main_py="")
    git(repository, "switch", "--quiet", "work")
    assert revision.find(repository, "main", merge_base=False).base.commit == ahead
    left = revision.find(repository, "main", merge_base=True)
    assert left.base.commit == git(repository, "rev-parse", "main~1")
    assert "main" in left.base.name


@pytest.mark.parametrize(
    ("ref", "hint"), [("mian", "Did you mean main"), ("origin/main", "git fetch origin main"), ("--help", "Fetch it")]
)
def test_an_unknown_revision(repository: Path, ref: str, hint: str) -> None:
    with pytest.raises(DoctorError) as refused:
        revision.find(repository, ref, merge_base=False)
    assert refused.value.slug == "unknown-ref"
    assert hint in refused.value.next_step


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(DoctorError) as refused:
        revision.find(tmp_path, "main", merge_base=False)
    assert refused.value.slug == "not-a-repository"


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DoctorError) as refused:
        revision.find(tmp_path, "main", merge_base=False)
    assert refused.value.slug == "git-missing"


def test_unrelated_histories_have_no_merge_base(repository: Path) -> None:
    git(repository, "switch", "--quiet", "--orphan", "other")
    commit(repository, other_py="")
    with pytest.raises(DoctorError) as refused:
        revision.find(repository, "main", merge_base=True)
    assert refused.value.slug == "no-merge-base"


# -- the tree ----------------------------------------------------------------------------------------------------------


def test_the_base_is_checked_out_and_gone_afterwards(repository: Path, tmp_path: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    with tree_of(repository, cwd=repository / "src") as tree:
        assert (tree.root / "train.py").read_text() == "1\n"
        assert tree.cwd == tree.root / "src"
        assert git(tree.cwd, "rev-parse", "HEAD") == git(repository, "rev-parse", "HEAD~1")
    assert not tree.root.exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not git(repository, "status", "--porcelain")
    assert not (tmp_path / "hooked").exists()
    assert not list((tmp_path / "tmp").iterdir())


def test_nothing_stays_after_an_interruption(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), tree_of(repository):
        raise KeyboardInterrupt
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not list((tmp_path / "tmp").iterdir())


def test_what_a_killed_check_left_is_forgotten(repository: Path, tmp_path: Path) -> None:
    killed = tmp_path / "tmp" / "bottleneck-doctor-dead" / "base" / "repository"
    git(repository, "worktree", "add", "--quiet", "--detach", str(killed))
    theirs = tmp_path / "unplugged"
    git(repository, "worktree", "add", "--quiet", "--detach", str(theirs))
    for folder in (killed.parent.parent, theirs):
        subprocess.run(["rm", "-r", str(folder)], check=True)
    with tree_of(repository):
        pass
    listed = git(repository, "worktree", "list")
    assert "bottleneck-doctor-dead" not in listed
    assert "unplugged" in listed


def test_what_lies_beside_the_repository_is_beside_the_base(repository: Path) -> None:
    """By a path of the script's, or by a link that git tracks."""
    sets = repository.parent / "sets"
    (repository.parent / "further").mkdir()
    sets.mkdir()
    (sets / "one.txt").write_text("one")
    (repository / "out").symlink_to(Path("..") / "sets")
    (repository / "src" / "deep").symlink_to(Path("..") / ".." / ".." / repository.parent.name / "further")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "Links")
    with tree_of(repository, "HEAD") as tree:
        assert (tree.root / ".." / "sets" / "one.txt").read_text() == "one"
        assert (tree.root / "out" / "one.txt").read_text() == "one"
        assert (tree.root / "src" / "deep").resolve() == repository.parent / "further"
        # The way round by the repository's own name leads to the base.
        assert (tree.root / ".." / repository.name / "train.py").resolve() == tree.root / "train.py"
        assert not git(tree.root, "status", "--porcelain", "out")
    assert (sets / "one.txt").read_text() == "one"
    assert (repository.parent / "further").is_dir()


def test_untracked_files_are_linked(repository: Path) -> None:
    for name in (
        "data/big.bin",
        "src/pet/local.txt",
        "src/pet/__pycache__/x.pyc",
        ".venv/pyvenv.cfg",
        "mine/pyvenv.cfg",
    ):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(name)
    with tree_of(repository) as tree:
        assert (tree.root / "data").is_symlink()
        assert (tree.root / "data" / "big.bin").read_text() == "data/big.bin"
        assert (tree.root / "src" / "pet" / "local.txt").is_symlink()
        assert not (tree.root / "src" / "pet" / "__pycache__").exists()
        assert not (tree.root / ".venv").exists()
        assert not (tree.root / "mine").exists()
        assert slugs(tree) == []
    assert (repository / "data" / "big.bin").exists()


def test_the_working_folder_is_the_base_s_own_where_git_tracks_nothing_in_it(repository: Path) -> None:
    """`..` leads from a folder to where that is, whatever link was followed: to the head's script, through a link."""
    runs = repository / "data" / "runs"
    for name in ("data/big.bin", "data/runs/notes.txt", "data/runs/first/log.txt"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(name)
    with tree_of(repository, cwd=runs) as tree:
        assert os.path.realpath(tree.cwd / "../../train.py") == str(tree.root / "train.py")
        assert (tree.cwd / "notes.txt").read_text() == "data/runs/notes.txt"
        assert (tree.cwd / "first").is_symlink()
        assert (tree.root / "data" / "big.bin").is_symlink()
    empty = repository / "empty"
    empty.mkdir()
    with tree_of(repository, cwd=empty) as tree:
        assert os.path.realpath(tree.cwd / "../train.py") == str(tree.root / "train.py")


def test_a_folder_of_which_the_base_has_a_part_gets_the_rest(repository: Path) -> None:
    (repository / "data").mkdir()
    (repository / "data" / ".gitkeep").write_text("")
    git(repository, "add", "--force", "data/.gitkeep")
    git(repository, "commit", "--quiet", "--message", "a folder for data")
    git(repository, "rm", "--quiet", "data/.gitkeep")
    git(repository, "commit", "--quiet", "--message", "which is there anyway")
    (repository / "data" / "deep").mkdir(parents=True)
    (repository / "data" / "deep" / "big.bin").write_text("big")
    with tree_of(repository) as tree:
        assert not (tree.root / "data").is_symlink()
        assert (tree.root / "data" / ".gitkeep").exists()
        assert (tree.root / "data" / "deep" / "big.bin").read_text() == "big"


def test_code_that_git_does_not_track_is_said(repository: Path) -> None:
    (repository / "fast.so").write_text("")
    (repository / "generated").mkdir()
    (repository / "generated" / "parser.py").write_text("")
    with tree_of(repository) as tree:
        (warning,) = tree.warnings
    assert warning.slug == "base-borrows-code"
    assert "fast.so" in warning.sentence
    assert "generated" in warning.sentence


def test_setup_builds_in_the_base_and_before_anything_is_linked(repository: Path) -> None:
    (repository / "fast.so").write_text("of the head")
    with tree_of(repository, setup="echo of the base > fast.so") as tree:
        assert (tree.root / "fast.so").read_text() == "of the base\n"
        assert slugs(tree) == []
    assert (repository / "fast.so").read_text() == "of the head"


def test_a_setup_that_fails(repository: Path) -> None:
    with pytest.raises(DoctorError) as refused, tree_of(repository, setup="echo no compiler; exit 3"):
        pass
    assert refused.value.slug == "base-setup-failed"
    assert "no compiler" in refused.value.detail
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_submodules_come_from_the_local_clone(repository: Path, tmp_path: Path) -> None:
    inner, library = tmp_path / "inner", tmp_path / "library"
    for folder in (inner, library):
        folder.mkdir()
        git(folder, "init", "--quiet")
    commit(inner, deep_py="deep")
    commit(library, lib_py="1")
    git(library, "submodule", "--quiet", "add", str(inner), "inner")
    git(library, "commit", "--quiet", "--message", "with inner")
    git(repository, "submodule", "--quiet", "add", str(library), "vendor/library")
    git(repository, "submodule", "--quiet", "update", "--init", "--recursive")
    commit(repository, "with a submodule")
    commit(repository, after_py="")
    configured = (repository / ".git" / "config").read_text()
    (repository / "vendor" / "library" / "weights.bin").write_text("w")
    with tree_of(repository) as tree:
        assert (tree.root / "vendor" / "library" / "lib.py").read_text() == "1"
        assert (tree.root / "vendor" / "library" / "inner" / "deep.py").read_text() == "deep"
        assert (tree.root / "vendor" / "library" / "weights.bin").is_symlink()
        assert slugs(tree) == []
    assert (repository / ".git" / "config").read_text() == configured
    git(repository, "submodule", "--quiet", "deinit", "--force", "--all")
    subprocess.run(["rm", "-r", str(repository / ".git" / "modules")], check=True)
    with tree_of(repository) as tree:
        assert slugs(tree) == ["base-submodule-missing"]


def with_library(repository: Path, tmp_path: Path, place: str, *, lost: bytes = b"") -> None:
    """Give the repository a submodule at `place`, and commits before and after it is gone again."""
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "--quiet")
    (library / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    commit(library, lib_py="1")
    if lost:
        (library / "weights.bin").write_text(pointer(lost))
        commit(library)
    git(repository, "submodule", "--quiet", "add", str(library), place)
    commit(repository, "with a submodule")


def test_submodules_that_the_head_has_no_more(repository: Path, tmp_path: Path) -> None:
    place = "vendor of all/the library"
    with_library(repository, tmp_path, place)
    git(repository, "rm", "--quiet", place)
    commit(repository, "without it")
    with tree_of(repository) as tree:
        assert (tree.root / place / "lib.py").read_text() == "1"
        assert slugs(tree) == []
    # What is left of it may be an empty file.
    assert (repository / ".gitmodules").read_text() == ""
    commit(repository, after_py="")
    with tree_of(repository) as tree:
        assert slugs(tree) == []


def test_large_files_of_submodules(repository: Path, tmp_path: Path) -> None:
    stored = b"stored" * 500
    with_library(repository, tmp_path, "library", lost=stored)
    commit(repository, after_py="")
    with tree_of(repository) as tree:
        (warning,) = tree.warnings
    assert warning.slug == "base-lfs-missing"
    assert "git -C library lfs fetch origin" in warning.sentence
    digest = hashlib.sha256(stored).hexdigest()
    store = repository / ".git" / "modules" / "library" / "lfs" / "objects" / digest[:2] / digest[2:4]
    store.mkdir(parents=True)
    (store / digest).write_bytes(stored)
    with tree_of(repository) as tree:
        assert (tree.root / "library" / "weights.bin").read_bytes() == stored
        assert slugs(tree) == []


def test_a_submodule_that_git_cannot_look_into(repository: Path, tmp_path: Path) -> None:
    with_library(repository, tmp_path, "library")
    (repository / "library" / ".git").write_text("gitdir: /nowhere\n")
    assert not revision.here(repository)[1].dirty
    (repository / "train.py").write_text("3\n")
    assert revision.here(repository)[1].dirty


def pointer(content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"


def test_large_files_come_from_the_head_and_the_store(repository: Path) -> None:
    same, stored, lost = b"same" * 500, b"stored" * 500, b"lost" * 500
    (repository / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    commit(repository, same__bin=pointer(same), stored__bin=pointer(stored), lost__bin=pointer(lost))
    for name in ("same", "stored", "lost"):
        os.rename(repository / name / "bin", repository / f"{name}.bin")
    commit(repository, "under their names")
    commit(repository, after_py="")
    (repository / "same.bin").write_bytes(same)
    (repository / "stored.bin").write_bytes(b"another revision of it")
    digest = hashlib.sha256(stored).hexdigest()
    store = repository / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4]
    store.mkdir(parents=True)
    (store / digest).write_bytes(stored)
    with tree_of(repository) as tree:
        assert (tree.root / "same.bin").read_bytes() == same
        assert (tree.root / "stored.bin").read_bytes() == stored
        assert (tree.root / "lost.bin").read_text() == pointer(lost)
        (warning,) = tree.warnings
    assert warning.slug == "base-lfs-missing"
    assert "lost.bin" in warning.sentence


# -- imports -----------------------------------------------------------------------------------------------------------


def test_entries_of_the_head_are_mapped_into_the_tree(tmp_path: Path) -> None:
    root, tree = tmp_path / "head", tmp_path / "base"
    (root / "src").mkdir(parents=True)
    seen = ImportPath(
        path=["/usr/lib/python3", str(root / "src"), str(root / ".venv/lib/python3/site-packages"), str(root / "lib")],
        prefix=[str(root / ".venv")],
        mapping={"pet": str(root / "src" / "pet"), "other": "/elsewhere/other"},
        editable={"pet": root.as_uri()},
    )
    found = imports.mapped(seen, os.pathsep.join(["/given", "lib", ""]), root, tree, root, otherwise="")
    assert found.entries == ["/given", str(tree / "lib"), str(tree / "src")]
    assert found.packages == {"pet": str(tree / "src" / "pet")}
    assert found.warnings == []


def test_what_the_base_lacks_is_imported_from_the_head_and_said(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, lib__more_py="")
    path, mapping = [str(repository / "lib"), str(repository / "src")], {"tools": str(repository / "lib" / "tools")}
    monkeypatch.setattr(imports, "ask", lambda python, cwd: ImportPath(path=path, mapping=mapping))
    with tree_of(repository) as tree:
        (warning,) = tree.warnings
    assert warning.slug == "editable-unmapped"
    assert warning.sentence.startswith("The base does not have lib, lib/tools, from which")
    (repository / "lib" / "tools").mkdir()
    with tree_of(repository, "HEAD") as tree:
        assert slugs(tree) == []


def test_a_repository_below_the_system_s_prefix_is_no_environment(tmp_path: Path) -> None:
    root, tree = tmp_path / "src" / "app", tmp_path / "base"
    seen = ImportPath(path=[str(root / "src")], prefix=[str(tmp_path), str(tmp_path)])
    assert imports.mapped(seen, "", root, tree, root, otherwise="").entries == [str(tree / "src")]


def test_an_editable_install_that_tells_no_folder_is_said(tmp_path: Path) -> None:
    seen = ImportPath(path=["/usr/lib"], editable={"odd": (tmp_path / "head").as_uri(), "far": "file:///far"})
    otherwise = "both may import it"
    found = imports.mapped(seen, "", tmp_path / "head", tmp_path / "base", tmp_path / "head", otherwise=otherwise)
    assert [warning.slug for warning in found.warnings] == ["editable-unmapped"]
    assert found.warnings[0].sentence.endswith("so both may import it.")
    assert "odd" in found.warnings[0].sentence


def origin_of(module: str, tree: Tree) -> Path:
    """The file from which a process of the base imports a module."""
    done = subprocess.run(
        [sys.executable, "-c", f"import importlib.util as u; print(u.find_spec({module!r}).origin)"],
        cwd=tree.cwd,
        env={**os.environ, **tree.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(done.stdout.strip()).resolve()


def test_the_base_imports_its_own_package_by_pythonpath(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(repository / "src"))
    with tree_of(repository) as tree:
        assert origin_of("pet.code", tree) == tree.root / "src" / "pet" / "code.py"


def test_the_base_imports_its_own_package_by_an_editable_install(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapping = {"pet": str(repository / "src" / "pet"), "train": str(repository / "train")}
    monkeypatch.setattr(imports, "ask", lambda python, cwd: ImportPath(mapping=mapping))
    with tree_of(repository) as tree:
        assert origin_of("pet.code", tree) == tree.root / "src" / "pet" / "code.py"
        assert origin_of("train", tree) == tree.root / "train.py"


def test_an_interpreter_tells_its_import_path(tmp_path: Path) -> None:
    found = imports.ask(sys.executable, tmp_path)
    assert found is not None
    assert any("site-packages" in entry or "dist-packages" in entry for entry in found.path)
    assert imports.ask("/nowhere/python", tmp_path) is None


def test_modules_are_found_by_their_files(tmp_path: Path) -> None:
    (tmp_path / "pet").mkdir()
    (tmp_path / "pet" / "train.py").write_text("")
    assert imports.exists("pet.train", [tmp_path])
    assert not imports.exists("pet", [tmp_path]), "a package that can't be run"
    (tmp_path / "pet" / "__main__.py").write_text("")
    assert imports.exists("pet", [tmp_path])
    assert not imports.exists("pet.test", [tmp_path])
