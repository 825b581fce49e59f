"""Patches made, read and applied in memory; `git` and `patch` themselves say whether they agree."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.patches.applying import apply_patch
from bottleneck_doctor.patches.hunks import applied, reverse
from bottleneck_doctor.patches.lines import bytes_of, lines_of
from bottleneck_doctor.patches.names import outside, quoted, unquoted
from bottleneck_doctor.patches.parsing import parse_patch
from bottleneck_doctor.patches.unified import unified

Files = Mapping[str, bytes]

TRAIN = b"""import torch

for epoch in range(3):
    for batch in loader:
        loss = model(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(epoch)
"""
FASTER = TRAIN.replace(b"    for batch", b"    # Quick.\n    for batch").replace(b"zero_grad()", b"zero_grad(True)")


def apply_to(files: Files, patch: bytes) -> dict[str, bytes | None]:
    return apply_patch(patch, files.get)


def refusal(files: Files, patch: bytes) -> DoctorError:
    with pytest.raises(DoctorError) as refused:
        apply_to(files, patch)
    return refused.value


# -- there and back ----------------------------------------------------------------------------------------------------

LINE = st.sampled_from(
    [b"", b"a", b"b", b"  c", b"-- d", b"++ e", b"@@ -1 +1 @@", b"\\ f", b"\x0c", b"\xff\xfe", "ü".encode()]
)
LINES = st.lists(st.tuples(LINE, st.sampled_from([b"\n", b"\r\n"])), max_size=30)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    text = b"".join(line + end for line, end in draw(LINES))
    return text.removesuffix(b"\n") if draw(st.booleans()) else text


@given(texts(), texts(), st.integers(0, 4))
def test_a_patch_of_any_two_texts_makes_the_one_of_the_other_and_back(
    before: bytes, after: bytes, context: int
) -> None:
    patch = unified("train.py", before, after, context=context)
    if before == after:
        assert patch == b""
        return
    assert apply_to({"train.py": before}, patch) == {"train.py": after}
    hunks = parse_patch(patch, source="it")[0].hunks
    assert bytes_of(applied(lines_of(before), hunks)) == after
    assert bytes_of(applied(lines_of(after), reverse(hunks))) == before


@given(st.text(min_size=1).filter(lambda name: "\0" not in name))
def test_names_are_quoted_and_read_again(name: str) -> None:
    name = name.encode("utf-8", "replace").decode()
    if name[0] != '"':
        assert unquoted(quoted(name)) == name


# -- as git and patch have it ------------------------------------------------------------------------------------------

CASES = {
    "plain": ("train.py", TRAIN, FASTER),
    "crlf": ("train.py", TRAIN.replace(b"\n", b"\r\n"), FASTER.replace(b"\n", b"\r\n")),
    "bom": ("train.py", b"\xef\xbb\xbf" + TRAIN, b"\xef\xbb\xbf# First.\n" + TRAIN),
    "no end": ("train.py", TRAIN[:-1], FASTER[:-1] + b"  # last"),
    "end added": ("train.py", b"x = 1", b"x = 2\n"),
    "end lost": ("train.py", b"x = 1\ny = 2\n", b"x = 1\ny = 2"),
    "space": ("my code/train it.py", TRAIN, FASTER),
    "umlaut": ("größe/train.py", TRAIN, FASTER),
    "quotation": ('say "train".py', TRAIN, FASTER),
    "latin": ("train.py", TRAIN + b"# gr\xf6\xdfe\n", FASTER + b"# gr\xf6\xdfe\n"),
    "form feed": ("train.py", TRAIN + b"\x0c\ny = 1\n", FASTER + b"\x0c\ny = 2\n"),
}


def run(folder: Path, *command: str, stdin: bytes | None = None) -> bytes:
    environment = os.environ | {
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@b",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


TOOLS: dict[str, tuple[list[str], list[str]]] = {
    "git apply": (["git", "apply"], ["git", "apply", "-R"]),
    "patch": (["patch", "-p1", "--fuzz=0", "--binary"], ["patch", "-p1", "-R", "--fuzz=0", "--binary"]),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("case", CASES)
def test_other_tools_apply_our_patches_and_take_them_back(case: str, tool: str, tmp_path: Path) -> None:
    name, before, after = CASES[case]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before)
    patch = b"Some words before it,\n-- and more of them.\n\n" + unified(name, before, after)
    there, back = TOOLS[tool]
    run(tmp_path, *there, stdin=patch)
    assert file.read_bytes() == after
    run(tmp_path, *back, stdin=patch)
    assert file.read_bytes() == before
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [file]


OLD = {
    "train.py": TRAIN,
    "data/load er.py": b"x = 1\n" * 20,
    "moved.py": b"".join(b"line %d\n" % at for at in range(30)),
    "kept.py": b"".join(b"other %d\n" % at for at in range(30)),
    "gone.py": b"y = 1\n",
    "empty.py": b"",
    "größe.py": b"z = 1\n",
    "tool.sh": b"echo\n",
}
NEW = {
    "train.py": FASTER,
    "data/load er.py": b"x = 1\n" * 10 + b"x = 2\n" + b"x = 1\n" * 10,
    "away/moved here.py": b"".join(b"line %d\n" % at for at in range(30)),
    "kept.py": b"".join(b"other %d\n" % at for at in range(31)),
    "also.py": b"".join(b"other %d\n" % at for at in range(30) if at != 7),
    "größe.py": b"z = 2\n",
    "new.py": b"made = 1",
    "new empty.py": b"",
    "tool.sh": b"echo\n",
}


def spread(folder: Path, files: Files) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def after_all(files: Files, changed: Mapping[str, bytes | None]) -> dict[str, bytes]:
    return {name: content for name, content in {**files, **changed}.items() if content is not None}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    run(folder, "git", "init", "-q")
    spread(folder, OLD)
    run(folder, "git", "add", "-A")
    run(folder, "git", "commit", "-qm", "old")
    for name in OLD:
        (folder / name).unlink()
    spread(folder, NEW)
    (folder / "tool.sh").chmod(0o755)
    run(folder, "git", "add", "-A")
    run(folder, "git", "commit", "-qm", "new\n\nLonger words.\n--- old\n    @@ -1 +1 @@")
    return folder


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-M", "-C", "--find-copies-harder"],
        ["-U0"],
        ["-U1"],
        ["-U10"],
        ["-W"],
        ["--no-renames"],
        ["--src-prefix=i/", "--dst-prefix=w/"],
        ["--full-index"],
    ],
    ids=" ".join,
)
def test_patches_of_git_apply(options: list[str], repository: Path) -> None:
    patch = run(repository, "git", "diff", *options, "HEAD~", "HEAD")
    changed = apply_to(OLD, patch)
    assert after_all(OLD, changed) == NEW
    assert changed["gone.py"] is None


def test_a_patch_without_prefixes_applies(repository: Path) -> None:
    for options in ([], ["--no-renames"], ["-M", "-C", "--find-copies-harder"]):
        patch = run(repository, "git", "diff", "--no-prefix", *options, "HEAD~", "HEAD")
        assert after_all(OLD, apply_to(OLD, patch)) == NEW


def test_a_mail_of_git_applies(repository: Path) -> None:
    patch = run(repository, "git", "format-patch", "-1", "--stdout")
    assert after_all(OLD, apply_to(OLD, patch)) == NEW
    # As a mail program leaves it.
    carried = patch.replace(b"\n", b"\r\n")
    assert after_all(OLD, apply_to(OLD, carried)) == NEW | {"new.py": b"made = 1"}


def test_a_patch_of_diff_applies(tmp_path: Path) -> None:
    spread(tmp_path / "old", OLD)
    spread(tmp_path / "new", NEW)
    patch = subprocess.run(["diff", "-Naur", "old", "new"], cwd=tmp_path, capture_output=True, check=False).stdout
    # Files without a line can't be told from files that are not there.
    told = {name: content for name, content in NEW.items() if content}
    assert {name: text for name, text in after_all(OLD, apply_to(OLD, patch)).items() if text} == told


def test_a_patch_of_a_copy_beside_the_file_applies(tmp_path: Path) -> None:
    spread(tmp_path, {"train.py.orig": TRAIN, "train.py": FASTER})
    command = ["diff", "-u", "train.py.orig", "train.py"]
    patch = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout
    assert apply_to({"train.py": TRAIN}, patch) == {"train.py": FASTER}
    assert apply_to({"train.py": TRAIN, "train.py.orig": TRAIN}, patch) == {"train.py": FASTER}


@pytest.mark.parametrize("kind", ["binary", "link"])
def test_what_is_no_text_is_refused(kind: str, tmp_path: Path) -> None:
    run(tmp_path, "git", "init", "-q")
    if kind == "binary":
        (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    else:
        (tmp_path / "x.bin").symlink_to("/etc/passwd")
    run(tmp_path, "git", "add", "-A")
    for options in ([], ["--binary"]):
        error = refusal({}, run(tmp_path, "git", "diff", "--cached", *options))
        assert error.slug == "patch-unsupported"
        assert "x.bin" in error.sentence


# -- what has moved, and what does not fit -----------------------------------------------------------------------------


def test_lines_may_have_moved() -> None:
    patch = unified("train.py", TRAIN, FASTER)
    for above in (b"# Mine.\n", b"# Mine.\n" * 100):
        assert apply_to({"train.py": above + TRAIN}, patch) == {"train.py": above + FASTER}
    moved = TRAIN.replace(b"import torch\n", b"")
    assert refusal({"train.py": moved}, patch).slug == "patch-does-not-apply"


def test_the_nearest_of_several_places_is_taken() -> None:
    block = b"a\nb\nc\nold\nd\ne\nf\n"
    patch = unified("x", block * 5, block * 3 + block.replace(b"old", b"new") + block)
    assert apply_to({"x": b"0\n" * 3 + block * 5}, patch) == {
        "x": b"0\n" * 3 + block * 3 + block.replace(b"old", b"new") + block
    }


def test_without_context_only_the_line_itself_will_do() -> None:
    patch = unified("x", b"a\nold\nb\n", b"a\nnew\nb\n", context=0)
    assert apply_to({"x": b"a\nold\nb\n"}, patch) == {"x": b"a\nnew\nb\n"}
    assert refusal({"x": b"0\na\nold\nb\n"}, patch).slug == "patch-does-not-apply"


def test_what_stood_at_the_end_is_not_put_elsewhere() -> None:
    patch = unified("x", b"1\n2\n3\n", b"1\n2\n3\n4\n")
    assert refusal({"x": b"1\n2\n3\n0\n"}, patch).slug == "patch-does-not-apply"
    assert apply_to({"x": b"0\n1\n2\n3\n"}, patch) == {"x": b"0\n1\n2\n3\n4\n"}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.removesuffix(b"\n"),
        lambda text: text.replace(b"\n", b"\r\n").removesuffix(b"\r\n"),
    ],
    ids=["crlf", "no end", "crlf and no end"],
)
def test_the_files_own_line_ends_stay(change: Callable[[bytes], bytes]) -> None:
    for before, after in (
        (TRAIN, FASTER),
        (TRAIN, TRAIN + b"done = 1\n"),
        (TRAIN, TRAIN.replace(b"print(epoch)", b"0")),
    ):
        patch = unified("train.py", before, after)
        assert apply_to({"train.py": change(before)}, patch) == {"train.py": change(after)}


def test_what_does_not_fit_is_named_by_file_and_hunk() -> None:
    before = b"".join(b"%d\n" % at for at in range(100))
    patch = unified("data/x.py", before, before.replace(b"\n10\n", b"\nten\n").replace(b"\n80\n", b"\neighty\n"))
    error = refusal({"data/x.py": before.replace(b"\n79\n", b"\nmine\n")}, patch)
    assert error.slug == "patch-does-not-apply"
    assert error.sentence == (
        "The patch does not apply: the lines that hunk 2 of data/x.py (line 78) changes are not there."
    )
    assert "-80\n+eighty\n" in error.detail


def test_what_is_made_already_is_said() -> None:
    assert (
        "it is made in train.py already" in refusal({"train.py": FASTER}, unified("train.py", TRAIN, FASTER)).sentence
    )


def test_files_that_are_not_there_or_are_already() -> None:
    patch = unified("train.py", TRAIN, FASTER)
    assert refusal({}, patch).sentence == "The patch does not apply: train.py is not there."
    made = b"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    assert apply_to({}, made) == {"new.py": b"x = 1\n"}
    assert "which is there already" in refusal({"new.py": b"y\n"}, made).sentence
    gone = b"--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n"
    assert apply_to({"old.py": b"x = 1\n"}, gone) == {"old.py": None}
    assert refusal({"old.py": b"x = 1\ny = 2\n"}, gone).slug == "patch-does-not-apply"


def test_one_patch_may_change_a_file_twice() -> None:
    middle = TRAIN.replace(b"print(epoch)", b"print(loss)")
    patch = unified("train.py", TRAIN, FASTER) + unified(
        "train.py", FASTER, FASTER.replace(b"print(epoch)", b"print(loss)")
    )
    assert apply_to({"train.py": TRAIN}, patch) == {"train.py": FASTER.replace(b"print(epoch)", b"print(loss)")}
    there_and_back = unified("train.py", TRAIN, middle) + unified("train.py", middle, TRAIN)
    assert apply_to({"train.py": TRAIN}, there_and_back) == {}


@pytest.mark.parametrize(
    "name", ["../train.py", "a/../../train.py", "/etc/passwd", ".git/config", "b/.git/hooks/pre-commit"]
)
def test_nothing_outside_of_the_project_is_named(name: str) -> None:
    asked = []

    def read(path: str) -> bytes | None:
        asked.append(path)
        return None

    patch = f"--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n".encode()
    with pytest.raises(DoctorError) as refused:
        apply_patch(patch, read)
    assert refused.value.slug == "patch-outside"
    assert all(not path.startswith("/") and ".." not in path.split("/") for path in asked)


@pytest.mark.parametrize(
    "patch",
    [
        b"",
        b"hello\n",
        b"\0\1\2\xff",
        b"--- a/x\n+++ b/x\n",
        b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n",
        b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\nb\n",
        b"@@ -1 +1 @@\n-a\n+b\n",
        b"--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n",
        b"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n",
        b"diff --cc x\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n--a\n++b\n",
    ],
)
def test_what_is_no_patch_is_refused(patch: bytes) -> None:
    assert refusal({"x": b"a\n"}, patch).slug == "patch-unreadable"


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 400))
def test_damage_never_gets_further_than_a_sentence(noise: bytes, begin: int, end: int) -> None:
    patch = unified("train.py", TRAIN, FASTER)
    damaged = patch[:begin] + noise + patch[max(begin, end) :]
    with contextlib.suppress(DoctorError):
        assert all(not outside(path) for path in apply_to({"train.py": TRAIN}, damaged))


def test_a_mark_in_another_language_is_one() -> None:
    patch = unified("x", b"a\nb", b"a\nc").replace(b"No newline at end of file", b"Kein Zeilenumbruch")
    assert apply_to({"x": b"a\nb"}, patch) == {"x": b"a\nc"}


def test_blank_lines_may_have_lost_their_space() -> None:
    patch = unified("x", b"a\n\nb\n", b"a\n\nc\n").replace(b"\n \n", b"\n\n")
    assert apply_to({"x": b"a\n\nb\n"}, patch) == {"x": b"a\n\nc\n"}
