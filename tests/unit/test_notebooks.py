"""Notebooks as programs: lines and their numbers, IPython's own syntax, and edits that are put back into cells."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.notebooks import notebook, sources

from bottleneck_doctor.cli._entrypoint import notebook_note
from bottleneck_doctor.documents.report import Change, SourceFile, Sources
from bottleneck_doctor.edits.call import call_change
from bottleneck_doctor.edits.diff import as_change
from bottleneck_doctor.edits.project import FilesOnDisk
from bottleneck_doctor.gate.cause.hunks import Hunk, between
from bottleneck_doctor.patches.kept import changed_lines, is_as_kept, kept
from bottleneck_doctor.patches.plan import after, before, plan
from bottleneck_doctor.profiling.lines import source_lines
from bottleneck_doctor.runtime.process.source_trees import SourceTrees
from bottleneck_doctor.runtime.wire import notebooks
from bottleneck_doctor.runtime.wire.notebooks import NotAProgram, program, program_of, put_back
from bottleneck_doctor.wording import words

SETUP = "%matplotlib inline\n!pip install torchvision\nimport torch\n"
LOADER = "loader = DataLoader(\n    rows,\n    batch_size=8,\n)"
TRAINING = "%%time\nfor batch in loader:\n    !nvidia-smi\n    train(batch)\nloader?"


def lines_of(content: bytes) -> list[str]:
    return program(content).text.split("\n")


def test_a_line_is_numbered_by_its_cell() -> None:
    lines = lines_of(notebook(SETUP, LOADER, TRAINING))
    assert lines[1003 - 1] == "import torch"
    assert lines[2003 - 1] == "    batch_size=8,"
    assert lines[3004 - 1] == "    train(batch)"
    assert notebooks.cell_of(3004) == (3, 4)
    assert words.place_text("a/train.ipynb", 3004) == "a/train.ipynb, cell 3, line 4"
    assert words.site_text("train.ipynb", 3004) == "train.ipynb, cell 3, line 4"
    assert words.line_text("train.ipynb", 3004) == "line 4 of cell 3"
    assert (words.site_text("train.py", 3004), words.line_text("train.py", 3004)) == ("train.py:3004", "line 3004")
    assert words.place_text("train.ipynb", 0) == "train.ipynb"


def test_python_finds_the_code_at_these_lines() -> None:
    tree = ast.parse(program(notebook(SETUP, LOADER, TRAINING)).text)
    found = {node.lineno: type(node).__name__ for node in tree.body if not isinstance(node, (ast.Expr, ast.Pass))}
    assert found == {1003: "Import", 2001: "Assign", 3002: "For"}
    # Between two cells there are strings, which do nothing.
    strings = [node for node in tree.body if isinstance(node, ast.Expr)]
    assert all(isinstance(node.value, ast.Constant) for node in strings)
    assert len(strings) == 3


def test_cells_without_code_are_not_counted() -> None:
    content = notebook("import os", "", "  \n", "x = 1")
    assert lines_of(content)[2001 - 1] == "x = 1"
    assert program(content).cells == {1: 1, 4: 2}


def test_lines_of_ipython_are_left_out_and_told() -> None:
    made = program(notebook(SETUP, LOADER, TRAINING))
    assert [(each.cell, each.line, each.text) for each in made.left_out] == [
        (1, 1, "%matplotlib inline"),
        (1, 2, "!pip install torchvision"),
        (3, 1, "%%time"),
        (3, 3, "!nvidia-smi"),
        (3, 5, "loader?"),
    ]
    assert made.text.split("\n")[3003 - 1] == "    pass  # !nvidia-smi"


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("%cd data", '__import__("os").chdir(__import__("os").path.expanduser(\'data\'))'),
        ("%cd '~/my data'", '__import__("os").chdir(__import__("os").path.expanduser(\'~/my data\'))'),
        ("%env OMP_NUM_THREADS=2", "__import__(\"os\").environ['OMP_NUM_THREADS'] = '2'"),
        ("%set_env A b c", "__import__(\"os\").environ['A'] = 'b c'"),
        ("files = !ls *.jpg", "files = __import__(\"subprocess\").getoutput('ls *.jpg').splitlines()"),
        ("%cd {folder}", "pass  # %cd {folder}"),
        ("%load_ext autoreload", "pass  # %load_ext autoreload"),
        ("??torch.nn", "pass  # ??torch.nn"),
    ],
)
def test_what_a_magic_does_to_the_process_is_done(line: str, instead: str) -> None:
    assert lines_of(notebook(f"x = 1\n{line}\n"))[1002 - 1] == instead


@pytest.mark.parametrize(
    "cell",
    [
        "x = (a\n     % b)",
        "x = '''\n%matplotlib inline\n!ls\n'''",
        "x = a \\\n% b",
        "y = {\n  'a': 1,\n}\nprint('%d' % 3)",
        "x = '''\n%not\n'''\nz = (4\n% 3)\nprint(x)",
    ],
)
def test_python_that_looks_like_a_magic_stays(cell: str) -> None:
    assert lines_of(notebook(f"%pip list\n{cell}"))[1001 : 1001 + cell.count("\n") + 1] == cell.split("\n")
    assert program(notebook(cell)).left_out == []


def test_a_command_of_several_lines_is_left_out_whole() -> None:
    cell = "#!/usr/bin/env bash\n!accelerate launch a.py \\\n  --lr=1 \\\n  --x 'y'\nx = 1"
    made = program(notebook(cell))
    assert made.text.split("\n")[1001 - 1 : 1005] == [
        "#!/usr/bin/env bash",
        "pass  # !accelerate launch a.py \\",
        "#   --lr=1 \\",
        "#   --x 'y'",
        "x = 1",
    ]
    assert len(made.left_out) == 1


def test_a_magic_is_known_without_its_percent_sign() -> None:
    lines = lines_of(notebook("pip install torch\ncd data\nls = [1]\nprint(ls)"))
    assert lines[1001 - 1 : 1004] == [
        "pass  # pip install torch",
        '__import__("os").chdir(__import__("os").path.expanduser(\'data\'))',
        "ls = [1]",
        "print(ls)",
    ]


def test_a_cell_of_another_language_is_left_out_whole() -> None:
    made = program(notebook("%%bash\nwget data.zip\nunzip data.zip", "%%writefile net.py\nclass Net:\n  pass"))
    assert [each.text for each in made.left_out] == ["%%bash", "%%writefile net.py"]
    assert made.text.split("\n")[1002 - 1] == "# wget data.zip"
    assert [type(node) for node in ast.parse(made.text).body] == [ast.Expr, ast.Expr]


def test_what_is_left_out_is_told_without_what_may_be_secret(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_bytes(notebook("!wandb login 0a1b2c\n%pylab\nx = 1", "%%bash\nexport KEY=0a1b2c", "loader?", "y?"))
    assert notebook_note(path) == (
        f"{path} runs without `!wandb …` (cell 1), `%pylab` (cell 1), `%%bash` (cell 2) and 2 more, which only "
        "notebooks understand"
    )
    path.write_bytes(notebook("x = 1"))
    assert notebook_note(path) == notebook_note(tmp_path / "train.py") == ""


@pytest.mark.parametrize(
    ("content", "said", "cell", "line"),
    [
        (b"{", "no JSON", 0, 0),
        (b"[]", "no list of cells", 0, 0),
        (b'{"worksheets": []}', "no list of cells", 0, 0),
        (notebook("x <- 1", language="R"), "its language is R", 0, 0),
        (notebook(""), "it has no code", 0, 0),
        (notebook("x = 1", "y = = 2"), "syntax error", 2, 1),
        (notebook("x = 1", "\n%run train.py"), "runs code that is not in it", 2, 2),
        (notebook("files = !ls {folder}"), "into which values of the program are put", 1, 1),
        (notebook("x = 1\n" * 999), "more than 998 lines", 1, 0),
    ],
)
def test_what_is_no_program_says_why(content: bytes, said: str, cell: int, line: int) -> None:
    with pytest.raises(NotAProgram, match=said) as caught:
        program(content)
    assert (caught.value.cell, caught.value.line) == (cell, line)
    assert program_of("a.ipynb", content) == content


def test_the_longest_cell_still_fits() -> None:
    lines = lines_of(notebook("x = 1\n" * 997 + "y = 2", "z = 3"))
    assert (lines[1998 - 1], lines[2001 - 1]) == ("y = 2", "z = 3")


# -- put back ----------------------------------------------------------------------------------------------------------


def test_a_notebook_in_one_line_stays_in_one_line() -> None:
    content = json.dumps(json.loads(notebook(SETUP, LOADER)), separators=(",", ":")).encode()
    made = put_back("a.ipynb", content, program_of("a.ipynb", content).replace(b"batch_size=8", b"batch_size=9"))
    assert made == content.replace(b"batch_size=8", b"batch_size=9")


@pytest.mark.parametrize("indent", [None, 1, 2, 4])
@pytest.mark.parametrize("as_text", [True, False])
def test_only_the_cell_that_differs_is_written(indent: int | None, as_text: bool) -> None:
    content = notebook(SETUP, LOADER, TRAINING, indent=indent, as_text=as_text)
    text = program_of("a.ipynb", content).decode()
    made = put_back("a.ipynb", content, text.replace("batch_size=8,", "batch_size=8,\n    num_workers=2,").encode())
    wanted = LOADER.replace("batch_size=8,", "batch_size=8,\n    num_workers=2,")
    assert made == notebook(SETUP, wanted, TRAINING, indent=indent, as_text=as_text)


def test_lines_of_ipython_come_back_into_an_edited_cell() -> None:
    content = notebook(SETUP, TRAINING)
    text = program_of("a.ipynb", content).decode().replace("    train(batch)", "    train(batch.to(memory_format=f))")
    edited = text.replace("import torch\n", "import torch\ntorch.set_num_threads(2)\n")
    made = put_back("a.ipynb", content, edited.encode())
    assert sources(made) == [
        SETUP.replace("import torch\n", "import torch\ntorch.set_num_threads(2)\n"),
        TRAINING.replace("train(batch)", "train(batch.to(memory_format=f))"),
    ]


def test_a_layout_of_nobody_we_know_keeps_all_that_it_holds() -> None:
    document = json.loads(notebook(SETUP, LOADER))
    content = json.dumps(document, indent=3).encode()
    edited = program_of("a.ipynb", content).replace(b"batch_size=8", b"batch_size=16")
    document["cells"][2]["source"][2] = "    batch_size=16,\n"
    assert json.loads(put_back("a.ipynb", content, edited)) == document


CELLS = st.lists(st.sampled_from([SETUP, LOADER, TRAINING, "x = 1", "def f():\n    return 'é'\n\n"]), min_size=1)


@given(CELLS, st.data())
def test_what_is_put_back_is_what_was_edited(cells: list[str], data: st.DataObject) -> None:
    content = notebook(*cells)
    text = program_of("a.ipynb", content)
    assert put_back("a.ipynb", content, text) == content
    lines = text.decode().split("\n")
    cell = data.draw(st.integers(1, len(cells)))
    at = cell * 1000 + data.draw(st.integers(0, len(cells[cell - 1].split("\n"))))
    made = put_back("a.ipynb", content, "\n".join([*lines[:at], "y = 2", *lines[at:]]).encode())
    inner = at - cell * 1000
    wanted = cells[cell - 1].split("\n")
    wanted[inner:inner] = ["y = 2"]
    assert sources(made) == [*cells[: cell - 1], "\n".join(wanted), *cells[cell:]]


@pytest.mark.parametrize(
    ("cells", "cell", "wanted"),
    [
        ([SETUP, LOADER], 1, SETUP.replace("import torch\n", "import torch\ntorch.set_num_threads(2)\n")),
        (["# Imports", "import os\n\nimport torch\n", "import numpy", "x = 1"], 3, "import numpy\nCALL"),
        (["x = 1", "def f():\n    import torch"], 1, "CALL\nx = 1"),
        (
            ["import torch\nfor x in y:\n    pass", "import numpy", "x = 1"],
            1,
            "import torch\nCALL\nfor x in y:\n    pass",
        ),
    ],
)
def test_what_belongs_below_the_imports_is_put_into_their_cell(cells: list[str], cell: int, wanted: str) -> None:
    content = notebook(*cells)
    made = call_change(program_of("a.ipynb", content).decode(), "torch.set_num_threads(2)")
    assert made is not None
    edited = sources(put_back("a.ipynb", content, made.edited.encode()))
    call = "import torch\ntorch.set_num_threads(2)" if "f()" in cells[1] else "torch.set_num_threads(2)"
    assert edited == [*cells[: cell - 1], wanted.replace("CALL", call), *cells[cell:]]
    assert made.line // 1000 == cell


# -- patches -----------------------------------------------------------------------------------------------------------


def planned(content: bytes, *edited: tuple[str, str]) -> tuple[SourceFile, list[Change]]:
    text = program_of("a.ipynb", content).decode()
    made = [as_change(text, text.replace(*each), 1, "") for each in edited]
    return kept("a.ipynb", "a.ipynb", content), [Change(file="a.ipynb", line=m.line, diff=m.diff) for m in made]


def test_changes_of_several_cells_are_made_and_recognised() -> None:
    content = notebook(SETUP, LOADER, TRAINING)
    source, changes = planned(
        content,
        ("import torch\n", "import torch\ntorch.backends.x = 1\ntorch.backends.y = 2\n"),
        ("batch_size=8,", "batch_size=8, num_workers=2,"),
        ("    train(batch)", "    with autocast():\n        train(batch)"),
    )
    assert [change.line for change in changes] == [1004, 2003, 3004]
    (file,) = plan(changes, Sources(project="/p", files=[source])).files
    made = after(file, content)
    assert made is not None
    assert sources(made) == [
        SETUP + "torch.backends.x = 1\ntorch.backends.y = 2\n",
        LOADER.replace("batch_size=8,", "batch_size=8, num_workers=2,"),
        TRAINING.replace("    train(batch)", "    with autocast():\n        train(batch)"),
    ]
    assert before(file, made) == content
    assert before(file, content) is None


def test_a_notebook_that_ran_again_is_still_the_same() -> None:
    content = notebook(SETUP, LOADER)
    source, changes = planned(content, ("batch_size=8,", "batch_size=16,"))
    ran = json.loads(content)
    ran["cells"][1].update(execution_count=12, outputs=[])
    again = json.dumps(ran, indent=1).encode()
    assert is_as_kept(source, again)
    (file,) = plan(changes, Sources(project="/p", files=[source])).files
    made = after(file, again)
    assert made is not None
    assert json.loads(made)["cells"][1]["execution_count"] == 12
    edited = notebook(SETUP, LOADER.replace("8", "32"))
    assert not is_as_kept(source, edited)
    assert changed_lines(source, edited) == [(2003, 2003)]


def test_an_edit_that_breaks_a_cell_is_not_made() -> None:
    content = notebook(SETUP, LOADER)
    source, changes = planned(content, ("    rows,\n", "    rows = = 3,\n"))
    (file,) = plan(changes, Sources(project="/p", files=[source])).files
    assert after(file, content) is None


def test_what_differs_between_two_notebooks_is_said_of_their_cells() -> None:
    old, new = notebook(SETUP, LOADER), notebook(SETUP, LOADER.replace("batch_size=8", "batch_size=9"))
    assert between("a.ipynb", old, new) == [Hunk(2003, 1, 2003, 1)]
    assert between("train.py", b"a\nb\n", b"a\nc\n") == [Hunk(2, 1, 2, 1)]


def test_everybody_who_reads_sources_reads_the_program(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_bytes(notebook(SETUP, LOADER))
    text = program(path.read_bytes()).text
    assert FilesOnDisk(str(tmp_path)).text(str(path)) == text
    assert source_lines(str(path)) == text.split("\n")
    tree = SourceTrees().tree(str(path))
    assert tree is not None
    assert ast.dump(tree) == ast.dump(ast.parse(text))
