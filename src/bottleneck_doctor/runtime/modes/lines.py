"""`lines`: what each line of the user's own functions costs, by line_profiler, with no edit to the user's code.

It profiles the functions on the stack at a batch request (the training loop, at module level too), the user's own
functions that make batches, and the functions that the grant names. Options: `functions`, a list of `{"path", "line",
"name"}`; `output`, the path of the `.lprof` file; `import_path`, a folder that holds line_profiler, if the user's own
environment has none.

Detail: `steps`, and `functions`, each with `name`, `path`, `first_line`, `end_line`, `seconds` and `lines`, a list of
`[line, hits, seconds]`; `output`, the file written ("" if none was).
"""

from __future__ import annotations

import os
import pickle
import sys
from types import CodeType
from typing import Any, Dict, Optional, Tuple

from ..loop.own_dataset import own_dataset
from . import Mode, Refused, own_code

Key = Tuple[str, int, str]
"""File, first line and name: how line_profiler tells functions apart."""
Timings = Dict[Key, Dict[int, Tuple[int, int]]]
"""Hits and ticks of each line of each function."""


class Lines(Mode):
    name = "lines"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._profiler: Any = None
        self._on = False
        self._base: Optional[Timings] = None
        self._total: Timings = {}
        self._codes: Dict[Key, CodeType] = {}
        self._steps = 0

    def apply(self) -> None:
        _refuse_other_tracers()
        self._profiler = _import(self.options.get("import_path", "")).LineProfiler()
        codes = own_code.on_stack()
        loader = getattr(self.context.feed, "loader", None)
        if loader is not None:
            codes += own_code.behind(own_dataset(loader), loader.collate_fn)
        codes += own_code.at(self.options.get("functions", ()))
        for code in codes:
            _add(self._profiler, code)
            self._codes[(code.co_filename, code.co_firstlineno, code.co_name)] = code

    def revert(self) -> None:
        self._switch(False)

    def resume(self) -> None:
        self._switch(True)
        self._base = self._timings()

    def suspend(self) -> None:
        if self._base is not None:
            self._keep(self._base)
            self._base = None
        self._switch(False)

    def interrupted(self, at: float) -> None:
        self.suspend()

    def fetched(self, batch: Any) -> None:
        # Already on in the lead-in: a line counts when it ends, and steps begin to count in the middle of the line that
        # requests a batch. So the first counted step includes its wait, and the last one's wait is left out.
        if self._profiler is not None:
            self._switch(True)
        self._steps += self._base is not None

    def step_ended(self) -> None:
        if self.context.feed is None:  # A loop that no loader feeds: nothing is ever fetched.
            self.fetched(None)

    def detail(self) -> Dict[str, Any]:
        stats = self._profiler.get_stats()
        functions = [self._function(key, lines, stats.unit) for key, lines in self._total.items()]
        stats.timings = {
            (os.path.abspath(path), first, name): [(line, *cost) for line, cost in sorted(lines.items())]
            for (path, first, name), lines in self._total.items()
        }
        return {"steps": self._steps, "functions": functions, "output": _written(stats, self.options.get("output", ""))}

    def _function(self, key: Key, lines: Dict[int, Tuple[int, int]], unit: float) -> Dict[str, Any]:
        path, first_line, name = key
        # Older releases of line_profiler leave the class out of the name.
        code = self._codes[(path, first_line, name.rpartition(".")[2])]
        return {
            "name": getattr(code, "co_qualname", name),
            "path": os.path.abspath(path),
            "first_line": first_line,
            "end_line": own_code.last_line(code),
            "seconds": unit * sum(ticks for _, ticks in lines.values()),
            "lines": [[line, hits, unit * ticks] for line, (hits, ticks) in sorted(lines.items())],
        }

    def _switch(self, on: bool) -> None:
        if on == self._on:
            return
        self._on = on
        if on:
            self._profiler.enable()
        else:
            self._profiler.disable()

    def _timings(self) -> Timings:
        stats = self._profiler.get_stats()
        return {key: {line: (hits, ticks) for line, hits, ticks in lines} for key, lines in stats.timings.items()}

    def _keep(self, base: Timings) -> None:
        """Add what was measured since `base`."""
        for key, lines in self._timings().items():
            before = base.get(key, {})
            for line, (hits, ticks) in lines.items():
                old_hits, old_ticks = before.get(line, (0, 0))
                if hits > old_hits:
                    total = self._total.setdefault(key, {})
                    sum_hits, sum_ticks = total.get(line, (0, 0))
                    total[line] = (sum_hits + hits - old_hits, sum_ticks + ticks - old_ticks)


class _Held:
    """Stands in for a function: line_profiler only reads its code, and may replace it."""

    def __init__(self, code: CodeType) -> None:
        self.__code__ = code


def _add(profiler: Any, code: CodeType) -> None:
    """Profile this code object itself, without a copy.

    line_profiler knows lines by a hash of the bytecode, and marks a function by padding its bytecode with NOPs. A frame
    that is already running keeps its old code, so there must be no padding. Then the user's functions need no change
    either.
    """
    paddings: Optional[Dict[bytes, int]] = getattr(type(profiler), "_all_paddings", None)
    profiler.dupes_map.clear()  # Up to line_profiler 4, what makes it pad a twin.
    before = paddings.get(code.co_code) if paddings is not None else None
    if paddings is not None:
        paddings[code.co_code] = 0
    try:
        held = _Held(code)
        profiler.add_function(held)
        if held.__code__.co_code != code.co_code:
            raise Refused("this release of line_profiler can't profile a function that already runs")
    finally:
        if paddings is not None and before is not None:
            paddings[code.co_code] = before


def _refuse_other_tracers() -> None:
    """Raise `Refused` if line_profiler would switch off another tool that traces."""
    if sys.gettrace() is not None:
        raise Refused("a debugger, a coverage tool or another tracer is active in the process")
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        tool = monitoring.get_tool(monitoring.PROFILER_ID)
        if tool is not None:
            raise Refused(f"{tool} is profiling the process")


def _import(folder: str) -> Any:
    """line_profiler from the user's own path, or else from `folder`, which is on the path for this import only."""
    try:
        import line_profiler

        return line_profiler
    except ImportError as error:
        first = error
    if not folder:
        raise _not_importable(first, lent=False)
    before = set(sys.modules)
    sys.path.append(folder)
    try:
        import line_profiler

        return line_profiler
    except Exception as error:  # Built for another Python, most likely.
        for name in set(sys.modules) - before:
            if name.split(".")[0] == "line_profiler":
                del sys.modules[name]
        raise _not_importable(error, lent=True) from error
    finally:
        if folder in sys.path:
            sys.path.reverse()
            sys.path.remove(folder)
            sys.path.reverse()


def _not_importable(error: Exception, *, lent: bool) -> Refused:
    """`lent`: whether doctor's own line_profiler could not be imported; then the script's Python has none."""
    why = str(error)
    if isinstance(error, ModuleNotFoundError) and error.name == "line_profiler":
        why = "it is not installed there"
    elif lent and "_line_profiler" in why:  # The part of it that is built for one version of Python.
        why = "it is not installed there, and doctor's own is made for another Python"
    version = ".".join(map(str, sys.version_info[:2]))
    return Refused(
        f"line_profiler can't be imported by the Python {version} that runs the script: {why}; install it with "
        "`python -m pip install line_profiler`"
    )


def _written(stats: Any, path: str) -> str:
    if not path:
        return ""
    try:
        with open(path, "wb") as file:
            pickle.dump(stats, file, pickle.HIGHEST_PROTOCOL)
    except OSError:
        return ""
    return path
