"""The limits of the house: what is over one is said, and the list of exceptions only shrinks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import house


def package(folder: Path, *, file_lines: int = 10, class_lines: int = 5, flat: int = 2) -> house.House:
    """The figures of a package with one long file, one long class and some modules at its top."""
    (folder / "room").mkdir()
    (folder / "__init__.py").touch()
    (folder / "room" / "long.py").write_text("x = 1\n" * file_lines)
    body = "    x = 1\n" * (class_lines - 2)
    (folder / "room" / "wide.py").write_text(f"@decorated\nclass Wide:\n{body}")
    for number in range(flat):
        (folder / f"flat{number}.py").write_text("x = 1\n")
    return house.measured(folder)


def test_what_is_measured(tmp_path: Path) -> None:
    found = package(tmp_path)
    assert found.files["room/long.py"] == 10
    assert found.classes == {"room/wide.py:Wide": 5}
    assert found.flat == ["flat0.py", "flat1.py"]


def test_nothing_is_said_at_the_limits(tmp_path: Path) -> None:
    found = package(tmp_path, file_lines=house.FILE_LINES, class_lines=house.CLASS_LINES, flat=house.FLAT_MODULES)
    assert house.complaints(found, {}) == []


def test_each_limit_holds(tmp_path: Path) -> None:
    found = package(
        tmp_path, file_lines=house.FILE_LINES + 1, class_lines=house.CLASS_LINES + 1, flat=house.FLAT_MODULES + 1
    )
    assert [each.split()[0] for each in house.complaints(found, {})] == ["room/long.py", "room/wide.py:Wide", "9"]


@pytest.mark.parametrize(
    ("lines", "listed", "said"),
    [
        (600, {"room/long.py": 600}, ""),
        (599, {"room/long.py": 600}, ""),
        (601, {"room/long.py": 600}, "601 lines; at most 600"),
        (500, {"room/long.py": 600}, "take it out"),
        (10, {"room/gone.py": 600}, "is no more"),
    ],
)
def test_the_list_of_exceptions_only_shrinks(tmp_path: Path, lines: int, listed: dict[str, int], said: str) -> None:
    found = " ".join(house.complaints(package(tmp_path, file_lines=lines), listed))
    assert bool(found) == bool(said)
    assert said in found
