"""Settings that a project keeps: `[tool.bottleneck-doctor]` of a pyproject.toml, or a doctor.toml, in; a `Config` out.

The file is looked for from the script's folder upward to the repository's root. What stands there is checked as
strictly as the command line: a key that does not exist is named with the nearest that does, and a value that can't be
used with what was expected. Options on the command line win over all of it.
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from bottleneck_doctor.documents.check import Level, Unit
from bottleneck_doctor.errors import DoctorError, reason_of
from bottleneck_doctor.system.project import repository_of
from bottleneck_doctor.wording.durations import parse_duration

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OWN_FILE = "doctor.toml"
SHARED_FILE = "pyproject.toml"
TABLE = "bottleneck-doctor"
"""The table's name under `[tool]`, which is the package's."""

Inconclusive = Literal["pass", "fail"]

_LEVELS: tuple[Level, ...] = ("off", "warn", "error")
_INCONCLUSIVE: tuple[Inconclusive, ...] = ("pass", "fail")
_PERCENT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%")
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]i?B|B)?", re.IGNORECASE)
_SIZES = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip

LARGEST_THRESHOLD = 100.0
"""A hundred times slower. Beyond that nobody meant what they wrote."""


@dataclass(frozen=True, kw_only=True)
class MetricConfig:
    """What a project says of one metric; None where it says nothing.

    `threshold`: relative, or in points of a share. `most`: an absolute budget, in bytes or as a share.
    """

    threshold: float | None = None
    level: Level | None = None
    most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a project says; None where it says nothing. `budget`: seconds. `source`: the file that says it."""

    source: Path | None = None
    base_ref: str | None = None
    base_setup: str | None = None
    budget: float | None = None
    launch: str | None = None
    steady: bool | None = None
    inconclusive: Inconclusive | None = None
    metrics: Mapping[str, MetricConfig] = field(default_factory=dict)


def load(starts: Iterable[Path], units: Mapping[str, Unit]) -> Config:
    """The settings nearest to the first of `starts` (folders) that has some above it. `units`: of the known metrics.

    Raises `DoctorError` `config-unreadable`, `config-unknown-key` or `config-wrong-value`.
    """
    for start in starts:
        for folder in upward(start):
            # As other tools have it: a file of one's own comes before the shared one beside it.
            for path in (folder / OWN_FILE, folder / SHARED_FILE):
                table = _table(path)
                if table is not None:
                    return parse(table, units, path)
    return Config()


def parse(table: Mapping[str, Any], units: Mapping[str, Unit], source: Path) -> Config:
    """A table of settings as a `Config`. `source` names the file in messages. Raises as `load` does."""
    reader = _Reader(source, "" if source.name == OWN_FILE else f"tool.{TABLE}")
    reader.only(table, ("base-ref", "base-setup", "budget", "inconclusive", "launch", "metrics", "steady"))
    metrics = reader.table(table, "metrics")
    reader.inside("metrics").only(metrics, units, "metric")
    return Config(
        source=source,
        base_ref=reader.text(table, "base-ref"),
        base_setup=reader.text(table, "base-setup"),
        budget=reader.seconds(table, "budget"),
        launch=reader.text(table, "launch"),
        steady=reader.boolean(table, "steady"),
        inconclusive=reader.one_of(table, "inconclusive", _INCONCLUSIVE),
        metrics={name: _metric(reader.inside("metrics"), metrics, name, units[name]) for name in metrics},
    )


def read_toml(text: str) -> dict[str, Any]:
    """A document of TOML. Raises `ValueError`."""
    return tomllib.loads(text)


def _metric(reader: _Reader, metrics: Mapping[str, Any], name: str, unit: Unit) -> MetricConfig:
    table = reader.table(metrics, name)
    inner = reader.inside(name)
    inner.only(table, ("level", "most", "threshold"))
    return MetricConfig(
        threshold=inner.threshold(table, "threshold", unit),
        level=inner.one_of(table, "level", _LEVELS),
        most=inner.most(table, "most", unit),
    )


def upward(start: Path) -> Iterator[Path]:
    """The folder and those above it, up to the repository's root; itself alone where there is no repository."""
    folder = start.resolve()
    root = repository_of(folder)
    yield folder
    for each in folder.parents if root is not None and folder != root else ():
        yield each
        if each == root:
            return


def _table(path: Path) -> Mapping[str, Any] | None:
    """The settings in one file, None where it has none. A file that has nothing to say of us may be as it likes."""
    try:
        document = read_toml(path.read_bytes().decode())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, reason_of(error), "Check its permissions.") from error
    except (ValueError, RecursionError) as error:
        if path.name == SHARED_FILE and isinstance(error, UnicodeDecodeError):
            return None
        raise _unreadable(path, f"it is not TOML: {error}", "Correct the file.") from error
    if path.name == OWN_FILE:
        return document
    tools = document.get("tool")
    if not isinstance(tools, dict):
        return None
    table = tools.get(TABLE)
    if table is None and (near := difflib.get_close_matches(TABLE, tools, n=1, cutoff=0.85)):
        raise DoctorError(
            "config-unknown-key",
            f"{path} has a table [tool.{near[0]}], which doctor does not read.",
            f"Did you mean [tool.{TABLE}]?",
        )
    if table is None:
        return None
    if not isinstance(table, dict):
        _Reader(path, "tool").wrong(TABLE, table, "a table")
    return table


@dataclass(frozen=True)
class _Reader:
    """Reads values of a table of `file` that stands at `place`, and says what is wrong with them."""

    file: Path
    place: str

    def inside(self, name: str) -> _Reader:
        return _Reader(self.file, self._key(name))

    def only(self, table: Mapping[str, Any], known: Iterable[str], noun: str = "setting") -> None:
        """Raise `config-unknown-key` for the first key that is not known."""
        names = sorted(known)
        for key in table:
            if key not in names:
                word = key.replace("_", "-") if noun == "setting" else key.replace("-", "_")
                near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(names)}."
                raise DoctorError(
                    "config-unknown-key", f"{self.file}: there is no {noun} {_shown(self._key(key))}.", hint
                )

    def table(self, table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = table.get(key, {})
        if not isinstance(value, dict):
            self.wrong(key, value, f"a table, [{self._key(key)}]")
        return value

    def text(self, table: Mapping[str, Any], key: str) -> str | None:
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip() or "\0" in value):
            self.wrong(key, value, "a text")
        return value

    def boolean(self, table: Mapping[str, Any], key: str) -> bool | None:
        value = table.get(key)
        if value is not None and not isinstance(value, bool):
            self.wrong(key, value, "true or false")
        return value

    def one_of(self, table: Mapping[str, Any], key: str, choices: tuple[Any, ...]) -> Any:
        value = table.get(key)
        if value is not None and not (isinstance(value, str) and value in choices):
            near = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
            hint = f"; did you mean {near[0]!r}?" if near else ""
            self.wrong(key, value, " or ".join(f'"{each}"' for each in choices) + hint)
        return value

    def seconds(self, table: Mapping[str, Any], key: str) -> float | None:
        value = table.get(key)
        if value is None:
            return None
        try:
            if isinstance(value, str):
                return parse_duration(value)
        except ValueError:
            pass
        number = _number(value)
        if number is None or number <= 0:
            self.wrong(key, value, 'a length of time such as "5m", or seconds')
        return number

    def threshold(self, table: Mapping[str, Any], key: str, unit: Unit) -> float | None:
        value = table.get(key)
        if value is None:
            return None
        expected = '"5%" or 0.05' + (", in points of the share" if unit == "share" else "")
        share = _share(value)
        largest = 1.0 if unit == "share" else LARGEST_THRESHOLD
        # A bare 5 is more likely five percent than five times.
        if share is None or not 0 < share <= largest or (share > 1 and not isinstance(value, str)):
            self.wrong(key, value, expected)
        return share

    def most(self, table: Mapping[str, Any], key: str, unit: Unit) -> float | None:
        value = table.get(key)
        if value is None:
            return None
        if unit == "seconds":
            raise DoctorError(
                "config-wrong-value",
                f"{self.file}: {_shown(self._key(key))} sets a limit in seconds, which holds on one machine only.",
                "Use `most` for memory and shares only. For a time, give a `threshold` against the base.",
            )
        amount = _share(value) if unit == "share" else _size(value)
        if amount is None or amount <= 0 or (unit == "share" and amount > 1):
            self.wrong(key, value, '"30%" or 0.3' if unit == "share" else '"2 GiB" or a number of bytes')
        return amount

    def wrong(self, key: str, value: object, expected: str) -> NoReturn:
        raise DoctorError(
            "config-wrong-value",
            f"{self.file}: {_shown(self._key(key))} is {_shown(repr(value))}.",
            f"Expected: {expected}.",
        )

    def _key(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name


def _number(value: object) -> float | None:
    """A finite number, None for anything else; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _share(value: object) -> float | None:
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value.strip())
        return None if match is None else _number(float(match[1]) / 100)
    return _number(value)


def _size(value: object) -> float | None:
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        return None if match is None else _number(float(match[1]) * _SIZES[(match[2] or "B").lower()])
    return _number(value)


def _shown(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"


def _unreadable(path: Path, reason: str, next_step: str) -> DoctorError:
    return DoctorError("config-unreadable", f"{path} can't be read: {reason}.", next_step)
