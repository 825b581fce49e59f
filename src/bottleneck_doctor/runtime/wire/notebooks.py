"""Jupyter notebooks as the program that their code cells are: the text of a notebook in, that of a program out, and an
edited program put back into its cells. Both sides read a notebook in this way. Pure.

Line 3 of cell 5 is line 5003 of the program, wherever it is named. What fills the lines between two cells is a string,
which does nothing. Cells are counted as Jupyter does when all are run in order: those with code, from 1.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

ENDING = ".ipynb"
SOURCES = (".py", ENDING)
"""Endings of the files that people write programs in."""
LINES = 1000
"""From the first line of a cell to that of the next one."""
MOST_LINES = LINES - 2
"""A cell has no more: the string between two cells takes two lines."""

_BEGIN = re.compile(r'^begin of cell \[(\d+)\]"""$')
_END = re.compile(r'^"""end of cell \[(\d+)\]$')
_PYTHON_CELLS = frozenset({"%%capture", "%%prun", "%%time", "%%timeit"})
"""Magics of a whole cell under which the cell is Python all the same."""
_MAGIC = re.compile(r"^[ \t]*(%%?[A-Za-z_]|!|\?{1,2}[A-Za-z_]|[A-Za-z_][\w.]*\?{1,2}\s*$)")
_AUTOMAGIC = re.compile(r"^[ \t]*(pip3?|conda|mamba|cat|cd|cp|ls|mkdir|mv|pwd|rm)\s+\S")
"""What IPython takes for a magic without its `%`."""
_FOLDER = re.compile(r"^%?cd\s+(?:-q\s+)?(.+?)\s*$")
_VARIABLE = re.compile(r"^%(?:set_)?env\s+(\w+)(?:\s*=\s*|\s+)(.*?)\s*$")
_VALUES = re.compile(r"[{$]")
"""Where IPython puts values of the program into a line of its own."""
_NOTHING = "pass  # "
_ASSIGNED = re.compile(r"^([ \t]*[A-Za-z_]\w*\s*=\s*)!(.+?)\s*$")
_LAYOUTS: List[Dict[str, Any]] = [
    {"indent": indent, "separators": (comma, colon), "ensure_ascii": ascii_only}
    for indent, comma, colon in ((1, ",", ": "), (2, ",", ": "), (4, ",", ": "), (None, ",", ":"), (None, ", ", ": "))
    for ascii_only in (False, True)
]
"""How Jupyter, Colab and editors write JSON."""
_RUNS_CODE = re.compile(r"^[ \t]*%(run|load|loadpy|macro|rerun|recall)\b")


class NotAProgram(ValueError):
    """A notebook that can't be read as a program. `cell`: the one that is to blame; `line`: which of its lines."""

    def __init__(self, said: str, cell: int = 0, line: int = 0) -> None:
        super().__init__(said)
        self.cell, self.line = cell, line


class LeftOut(NamedTuple):
    """A line of IPython's that no other Python understands, and that is left out of the program."""

    cell: int
    line: int
    text: str


class Program(NamedTuple):
    """`cells`: numbers of code cells, by their place among all cells. `kernel`: the name of the one that the notebook
    was last run with; "" where it has none."""

    text: str
    left_out: List[LeftOut]
    cells: Dict[int, int]
    kernel: str


def is_notebook(path: str) -> bool:
    return path.endswith(ENDING)


def cell_of(line: int) -> Tuple[int, int]:
    """The cell of a line of the program, and its line there."""
    return line // LINES, line % LINES


def program_of(path: str, content: bytes) -> bytes:
    """The program in the file `path`: its content, or that of a notebook's cells. A notebook that is none stays as it
    is."""
    if not is_notebook(path):
        return content
    try:
        return program(content).text.encode("utf-8")
    except NotAProgram:
        return content


def put_back(path: str, content: bytes, edited: bytes) -> bytes:
    """What the file `path` becomes when the program in it becomes `edited`. In a notebook, only cells that differ are
    written; lines that were left out stay in them."""
    if not is_notebook(path) or program_of(path, content) == content:
        return edited
    text = content.decode("utf-8")
    document = json.loads(text)
    layout = _layout_of(document, text)
    was, cells = _split(program(content).text), program(content).cells
    for number, made in _split(edited.decode("utf-8")).items():
        cell = document["cells"][next(at for at, each in cells.items() if each == number)]
        if made == was.get(number):
            continue
        lines = _with_magics(_lines(_source(cell)), was[number], made)
        cell["source"] = "\n".join(lines) if isinstance(cell["source"], str) else _as_list(lines)
    return _written(document, layout).encode("utf-8")


@functools.lru_cache(maxsize=2)
def program(content: bytes) -> Program:
    """The program of a notebook. Raises `NotAProgram`. A notebook with its pictures may have many megabytes, and edits
    ask for its text again and again."""
    document = _document(content)
    lines: List[str] = []
    left_out: List[LeftOut] = []
    numbers: Dict[int, int] = {}
    for number, (place, source) in enumerate(_code_cells(document), 1):
        if len(source) > MOST_LINES:
            raise NotAProgram(f"cell {number} has more than {MOST_LINES} lines", number)
        opened = '"""'
        if number > 1:
            opened += f"end of cell [{number - 1}]"
        lines.append(opened)
        lines += [f"{at}" for at in range(len(lines) + 1, number * LINES)]
        lines.append(f'begin of cell [{number}]"""')
        made, gone = _as_python(number, source)
        lines += made
        left_out += gone
        numbers[place] = number
    return Program("".join(f"{line}\n" for line in lines), left_out, numbers, _of_kernel(document, "name"))


def _document(content: bytes) -> Dict[str, Any]:
    """The notebook, which has a list of cells, in Python."""
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise NotAProgram("it is no JSON") from None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise NotAProgram("it has no list of cells, as notebooks have since 2015")
    language = _of_kernel(document, "language")
    if language and language.lower() not in ("python", "python3", "ipython"):
        raise NotAProgram(f"its language is {language}")
    return dict(document)


def _code_cells(document: Dict[str, Any]) -> List[Tuple[int, List[str]]]:
    """The lines of each code cell that has any, and its place among all cells."""
    cells = document["cells"]
    code = [(at, _lines(_source(cell))) for at, cell in enumerate(cells) if cell.get("cell_type") == "code"]
    found = [(at, lines) for at, lines in code if any(line.strip() for line in lines)]
    if not found:
        raise NotAProgram("it has no code")
    return found


def _of_kernel(document: Dict[str, Any], what: str) -> str:
    metadata = document.get("metadata")
    specification = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    told = specification.get(what) if isinstance(specification, dict) else None
    return told if isinstance(told, str) else ""


def _source(cell: Dict[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _lines(source: str) -> List[str]:
    return source.replace("\r\n", "\n").split("\n")


def _as_list(lines: List[str]) -> List[str]:
    """A cell's lines as the format has them: each with its end, but for the last."""
    made = [f"{line}\n" for line in lines[:-1]]
    return [*made, lines[-1]] if lines[-1] else made


# -- IPython's own syntax ----------------------------------------------------------------------------------------------


def _as_python(number: int, lines: List[str]) -> Tuple[List[str], List[LeftOut]]:
    """The cell in plain Python, line by line, and the lines that were left out. Raises `NotAProgram`."""
    first = next(at for at, line in enumerate(lines) if line.strip())
    magic = lines[first].split()[0] if lines[first].startswith("%%") else ""
    if magic and magic not in _PYTHON_CELLS:
        # Another language, or a file that is written.
        gone = [LeftOut(number, at, line) for at, line in enumerate(lines, 1) if line.strip()]
        return [f"# {line}".rstrip() for line in lines], gone[:1]
    if _parses("\n".join(lines)):
        return list(lines), []
    made: List[str] = []
    left_out: List[LeftOut] = []
    goes_on = False
    for at, line in enumerate(lines, 1):
        instead = f"# {line}".rstrip() if goes_on else _instead(made, line, number, at)
        if instead is not None and instead.lstrip().startswith(_NOTHING):
            left_out.append(LeftOut(number, at, line.strip()))
            goes_on = True
        made.append(line if instead is None else instead)
        goes_on = goes_on and line.endswith("\\")
    wrong = _syntax_error("\n".join(made))
    if wrong is not None:
        raise NotAProgram(f"it has a syntax error: {wrong.msg}", number, wrong.lineno or 0)
    return made, left_out


def _instead(before: List[str], line: str, number: int, at: int) -> Optional[str]:
    """What stands for a line of IPython's: what it does to the process, else nothing. None where a line is none of
    IPython's. `before`: the lines before it. Raises `NotAProgram`."""
    assigned = _ASSIGNED.match(line)
    found = assigned or _MAGIC.match(line) or (None if _parses(line.strip()) else _AUTOMAGIC.match(line))
    if found is None or not _begins_statement(before, line):
        return None
    runs = _RUNS_CODE.match(line)
    if runs is not None:
        raise NotAProgram(f"`%{runs[1]}` runs code that is not in it; import that instead", number, at)
    if assigned is not None:
        if _VALUES.search(assigned[2]):
            raise NotAProgram("it has a command (`!`) into which values of the program are put", number, at)
        return f'{assigned[1]}__import__("subprocess").getoutput({assigned[2]!r}).splitlines()'
    indent, told = line[: len(line) - len(line.lstrip())], line.strip()
    folder, variable = _FOLDER.match(told), _VARIABLE.match(told)
    if folder is not None and not folder[1].startswith("-") and not _VALUES.search(folder[1]):
        path = folder[1].strip("'\"")
        return f'{indent}__import__("os").chdir(__import__("os").path.expanduser({path!r}))'
    if variable is not None and not _VALUES.search(variable[2]):
        return f'{indent}__import__("os").environ[{variable[1]!r}] = {variable[2]!r}'
    return f"{indent}{_NOTHING}{told}"


def _begins_statement(before: List[str], line: str) -> bool:
    """Whether a line begins a statement, and is not the rest of one, or of a string."""
    indent = line[: len(line) - len(line.lstrip())]
    return _parses("\n".join([*before, f"{indent}pass"]))


def _parses(source: str) -> bool:
    return _syntax_error(source) is None


def _syntax_error(source: str) -> Optional[SyntaxError]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None  # Python says so itself when it runs the program.
    return None


# -- the way back ------------------------------------------------------------------------------------------------------


def _split(text: str) -> Dict[int, List[str]]:
    """The lines of each cell of a program, as it is or edited."""
    cells: Dict[int, List[str]] = {}
    now: Optional[List[str]] = None
    for line in text.removesuffix("\n").split("\n"):
        begun = _BEGIN.match(line)
        if begun is not None:
            now = cells.setdefault(int(begun[1]), [])
        elif _END.match(line) is not None:
            now = None
        elif now is not None:
            now.append(line)
    return cells


def _with_magics(source: List[str], was: List[str], made: List[str]) -> List[str]:
    """The lines of an edited cell, with those lines of the cell that were left out of the program. `was`: the lines of
    the program that stood for `source`."""
    from difflib import SequenceMatcher

    lines = list(made)
    for block in SequenceMatcher(None, was, made, autojunk=False).get_matching_blocks():
        lines[block.b : block.b + block.size] = source[block.a : block.a + block.size]
    return lines


def _layout_of(document: Any, text: str) -> Tuple[Dict[str, Any], str]:
    """How the document is laid out in `text`, and what is behind it; Jupyter's own layout where we don't know that."""
    end = text[len(text.rstrip()) :]
    for layout in _LAYOUTS:
        if json.dumps(document, **layout) + end == text:
            return layout, end
    return _LAYOUTS[0], "\n"


def _written(document: Any, layout: Tuple[Dict[str, Any], str]) -> str:
    how, end = layout
    return json.dumps(document, **how) + end
