"""Which code is the user's own, where the program that runs is an installed package."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bottleneck_doctor.runtime.process import user_code


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages: `cells`, which trains, and `accelerate`, which runs other people's scripts."""
    folder = tmp_path / "lib" / "site-packages"
    for package in ("cells", "accelerate"):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(user_code, "_started", None)
    return folder


def runs(monkeypatch: pytest.MonkeyPatch, *, file: Path | None = None, module: str = "") -> None:
    main = ModuleType("__main__")
    if file is not None:
        main.__file__ = str(file)
    main.__spec__ = SimpleNamespace(name=module) if module else None  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "__main__", main)


def test_a_package_that_is_the_program_is_the_users_own(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, other = str(installed / "cells" / "trainer.py"), str(installed / "cells_more" / "loader.py")
    runs(monkeypatch, module="cells.run.training")
    assert user_code.is_users_file(trainer)
    assert not user_code.is_users_file(other), "a package whose name begins in the same way"
    assert user_code.is_users_file("/home/ada/train.py")


def test_a_command_that_a_package_installed_runs_that_package(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_folder = installed.parent / "bin"
    bin_folder.mkdir()
    monkeypatch.setattr(sys, "executable", str(bin_folder / "python"))
    command = bin_folder / "cells_train"
    command.write_text("import re\nimport sys\nfrom cells.run import main\nsys.exit(main())\n")
    runs(monkeypatch, file=command)
    assert user_code.is_users_file(str(installed / "cells" / "trainer.py"))


def test_so_does_a_script_that_lies_in_the_package(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(monkeypatch, file=installed / "cells" / "scripts" / "sft.py")
    assert user_code.is_users_file(str(installed / "cells" / "trainer.py"))


def test_what_runs_other_peoples_scripts_is_a_library(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(monkeypatch, module="accelerate.commands.launch")
    assert not user_code.is_users_file(str(installed / "accelerate" / "data_loader.py"))


def test_beside_a_script_of_the_users_all_that_is_installed_is_a_library(
    installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("from cells.run import main\nmain()\n")
    runs(monkeypatch, file=script)
    assert not user_code.is_users_file(str(installed / "cells" / "trainer.py"))


def test_while_python_starts_nothing_is_known_yet(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(monkeypatch)
    trainer = str(installed / "cells" / "trainer.py")
    assert not user_code.is_users_file(trainer)
    runs(monkeypatch, module="cells")
    assert user_code.is_users_file(trainer)
