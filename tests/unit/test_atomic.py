"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bottleneck_doctor.system.atomic import check_replaceable, replacing, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_made_and_replaced_and_as_readable_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    for content in (b"first", b"second"):
        write_whole({tmp_path / "a": content, tmp_path / "b": content})
    assert names(tmp_path) == ["a", "b", "other"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == b"second"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


@pytest.mark.parametrize("failing", ["first", "second"])
def test_none_is_written_where_one_cannot_be(tmp_path: Path, failing: str) -> None:
    old = tmp_path / "old"
    old.write_text("old")
    gone = tmp_path / "gone" / "file"
    with pytest.raises(FileNotFoundError):
        write_whole({gone: b"", old: b"new"} if failing == "first" else {old: b"new", gone: b""})
    assert names(tmp_path) == ["old"]
    assert old.read_text() == "old"


def test_what_raises_leaves_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("old")

    def interrupted() -> None:
        with replacing(old) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == ["old"]
    assert old.read_text() == "old"


def test_the_file_behind_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "file"
    link.symlink_to(target)
    check_replaceable(link)
    write_whole({link: b"new"})
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(target.parent) == ["file"]


def test_the_folder_behind_a_link_is_the_one_that_is_checked(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere" / "file")
    with pytest.raises(FileNotFoundError):
        check_replaceable(link)
    assert names(tmp_path) == ["link"]


def test_the_longest_name_that_there_may_be(tmp_path: Path) -> None:
    longest = tmp_path / ("名" * (os.pathconf(tmp_path, "PC_NAME_MAX") // len("名".encode())))
    check_replaceable(longest)
    write_whole({longest: b"new"})
    assert names(tmp_path) == [longest.name]
