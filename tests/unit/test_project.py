"""Which folder a project is, and what belongs to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bottleneck_doctor.system.project import path_in, project_of


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a script, and with its environment in it."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "train.py").touch()
    installed = root / ".venv" / "lib" / "python3.11" / "site-packages" / "cells"
    installed.mkdir(parents=True)
    (installed / "trainer.py").touch()
    return root


def installed(repository: Path) -> Path:
    return repository / ".venv" / "lib" / "python3.11" / "site-packages" / "cells" / "trainer.py"


def test_what_was_installed_is_no_file_of_the_project_that_holds_its_environment(repository: Path) -> None:
    project = project_of([installed(repository), repository / "train.py"], repository)
    assert project == repository.resolve()
    assert path_in(project, repository / "train.py") == "train.py"
    assert path_in(project, installed(repository)) == ""


def test_a_program_that_was_installed_belongs_to_no_project(repository: Path, tmp_path: Path) -> None:
    """Not even to the folder that its file lies in, which `doctor apply` would edit."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    project = project_of([installed(repository)], elsewhere)
    assert project == elsewhere.resolve()
    assert path_in(project, installed(repository)) == ""
