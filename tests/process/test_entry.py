"""How a program is started: a console command as it is, variables before it, and a terminal where the user has one."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest
from tests.process.driver import LOOP, PRELUDE, Guest, write

from bottleneck_doctor.cli._entrypoint import check_command
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session import process_tree
from bottleneck_doctor.session.session import Command, Exited

pytestmark = pytest.mark.process


def test_console_command_with_its_own_path(
    guests: list[Guest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip installs it, in a folder of PATH; its package is found by a PYTHONPATH that the command sets by itself."""
    write(tmp_path, f"def main():\n    exec({LOOP!r}, {{'__name__': 'loop'}})\n", "lib/rows/__init__.py")
    console = write(
        tmp_path,
        f"#!{sys.executable}\nimport sys\nfrom rows import main\nprint(sys.argv[1:], flush=True)\nsys.exit(main())\n",
        "bin/train-rows",
    )
    console.chmod(0o755)
    monkeypatch.setenv("PATH", str(console.parent), prepend=os.pathsep)
    variables, words = check_command("PYTHONPATH=lib train-rows sft lr=0.1 --note 'two words'")
    assert (variables, words[0]) == ({"PYTHONPATH": "lib"}, str(console))
    guest = Guest(Command(words, tmp_path, variables))
    guests.append(guest)
    assert guest.found().rung == "optimizer step"
    assert guest.window({}).status == "ok"
    assert "['sft', 'lr=0.1', '--note', 'two words']" in guest.session.tail()


TERMINAL = (
    """
import os, sys
print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size().columns > 0)
for _ in range(2):
    try:
        input("continue? ")
    except EOFError:
        print("nobody answers")
print("\\x1b[32mgreen\\x1b[0m")
"""
    + PRELUDE
    + """
for batch in DataLoader(Rows(200), batch_size=4):
    train_on(batch)
print("last words")
sys.exit(3)
"""
)


def test_terminal_where_the_user_has_one(guests: list[Guest], tmp_path: Path) -> None:
    script = write(tmp_path, TERMINAL)
    guest = Guest(Command((sys.executable, str(script)), tmp_path, terminal=True))
    guests.append(guest)
    guest.found()
    assert guest.window({}).status == "ok"
    ended = guest.run_out()
    assert ended.code == 3
    lines = ended.tail.splitlines()
    assert lines[0] == "True True True True"
    assert [line.rpartition(" ? ")[2] for line in lines[1:]][-2:] == ["green", "last words"]
    assert ended.tail.count("nobody answers") == 2


STARTING = """
import os, subprocess, sys
how, here = sys.argv[1], {**os.environ, "PYTHONPATH": "lib"}
before = dict(here)
command = [sys.executable, "loop.py"]
if how == "env":
    done = subprocess.run(command, env=here)
elif how == "environ":
    os.environ["PYTHONPATH"] = "lib"
    done = subprocess.run(command)
elif how == "shell":
    done = subprocess.run(f"exec {sys.executable} loop.py", env=here, shell=True)
elif how == "empty":
    here = {"PYTHONPATH": "lib", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", "import os; print(sorted(os.environ))"], env=here)
assert how == "empty" or here == before
sys.exit(done.returncode)
"""


@pytest.mark.parametrize(
    "how",
    [
        "env",
        pytest.param("environ", marks=pytest.mark.slow(together=True)),
        pytest.param("shell", marks=pytest.mark.slow(together=True)),
    ],
)
def test_child_that_is_given_a_path_of_its_own(guests: list[Guest], tmp_path: Path, how: str) -> None:
    """A command that starts its training with PYTHONPATH set: what it sets is there, and so is the guest."""
    write(tmp_path, "rows = 'the library of the command'\n", "lib/rows.py")
    path = "import os, sys, rows\nprint(rows.rows, sys.path[1].endswith('lib'), flush=True)\n"
    write(tmp_path, path + LOOP, "loop.py")
    guest = Guest(Command((sys.executable, str(write(tmp_path, STARTING)), how), tmp_path))
    guests.append(guest)
    assert guest.found().rung == "optimizer step"
    assert guest.window({}).status == "ok"
    assert guest.session.tail() == "the library of the command True\n"


def test_child_that_is_started_from_an_empty_environment_keeps_it(guests: list[Guest], tmp_path: Path) -> None:
    guest = Guest(Command((sys.executable, str(write(tmp_path, STARTING)), "empty"), tmp_path))
    guests.append(guest)
    ended = guest.exited()
    assert ended.code == 0
    assert set(ast.literal_eval(ended.tail)) - {"LC_CTYPE"} == {"PATH", "PYTHONPATH"}


# -- a guest that can't begin ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "lasting"),
    [
        pytest.param("import time, torch\ntime.sleep(100)\n", True, id="the-program"),
        pytest.param(
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import torch'], check=True)\n",
            False,
            id="what-it-starts",
        ),
    ],
)
def test_a_guest_that_cannot_begin_says_so(guests: list[Guest], tmp_path: Path, program: str, lasting: bool) -> None:
    """Here by a file of the user's that is called torch. The program goes on, and nobody waits for its end."""
    write(tmp_path, "nothing = 0\n", "torch.py")
    guests.append(Guest(Command((sys.executable, str(write(tmp_path, program, "train.py"))), tmp_path, {})))
    event = guests[-1].event(20.0)
    assert isinstance(event, messages.Trouble), event
    assert "Traceback" in event.text
    assert "ImportError" in event.text or "ModuleNotFoundError" in event.text or "AttributeError" in event.text
    assert (guests[-1].session.pid is not None and process_tree.lives(guests[-1].session.pid)) is lasting


def test_a_program_that_fails_by_itself_is_not_ours(guests: list[Guest], tmp_path: Path) -> None:
    write(tmp_path, "nothing = 0\n", "torch.py")
    program = (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import torch'], check=True)\nsys.exit(3)\n"
    )
    guests.append(Guest(Command((sys.executable, str(write(tmp_path, program, "train.py"))), tmp_path, {})))
    event = guests[-1].event(20.0)
    assert isinstance(event, Exited)
    assert event.code == 3
