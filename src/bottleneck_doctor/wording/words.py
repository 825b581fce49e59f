"""Plain-language words for what a `Result` holds: settings, speedups, shares, durations, amounts.

Values go in, short texts come out; every output uses these, so that a figure reads the same everywhere. A value that
is not finite reads as a dash, never as `nan` or `inf`.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.redaction import MASK
from bottleneck_doctor.documents.report import (
    FixOutcome,
    Protection,
    Rank,
    Risk,
    SessionRecord,
    Setting,
    Speedup,
    Status,
    Window,
)
from bottleneck_doctor.patches.names import quoted
from bottleneck_doctor.runtime.wire.notebooks import cell_of, is_notebook

DASH = "–"
TIMES = "×"
NARROW_SPACE = "\u202f"

OTHER_LOAD = 0.3
"""Cores kept busy by other programs from which on they are worth a word."""

RISK_WORDS: dict[Risk, str] = {
    "identical": "Same samples, same computation: training learns what it learns now. Random transforms may draw other "
    "numbers, as with another seed.",
    "order": "Every epoch has the same samples, but their order depends on how long each batch takes: quick ones come "
    "a little earlier, and runs with the same seed are no longer alike.",
    "numerics": "Rounding changes: the loss follows the same course, but not digit for digit. Compare a short run.",
    "semantics": "Training itself changes: you may have to tune hyperparameters again.",
}

STATUS_WORDS: dict[Status, str] = {
    "faster": "Faster",
    "slower": "Slower",
    "no_difference": "No difference",
    "cannot_tell": "Cannot tell",
    "not_applicable": "Not applicable",
    "failed": "Failed",
}

AT_ONCE = "if every batch were ready at once"
"""What the ceiling of faster loading supposes."""
CEILING_WORDS = {
    "synthetic": AT_ONCE,
    "loader_only": "loading alone, as written",
    "loader_only_best_workers": "loading alone, best number of workers",
}

PHASE_WORDS = {
    "data_wait": "Waiting for data",
    "host_to_device": "Copying to the device",
    "forward": "Forward",
    "backward": "Backward",
    "optimizer": "Optimizer",
    "zero_grad": "Clearing gradients",
    "between": "Rest of the loop",
    "communication": "Communication between processes",
}

PART_WORDS = {
    "data_wait": "waiting for data",
    "host_to_device": "copying to the device",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "optimizer": "the optimizer",
    "zero_grad": "clearing gradients",
    "between": "the rest of the loop",
    "communication": "communication",
}
"""The same inside of a sentence."""

LOADING_WORDS = {
    "fetch": "Fetching samples",
    "collate": "Collating them",
    "hand_over": "Handing the batch over",
}

# strftime's month names follow the locale; a report reads the same everywhere.
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_UNSAFE_TO_SHOW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Replace characters that hide or reorder what a reader sees: control codes, direction overrides, lone surrogates.

    A file name may carry terminal escapes, and a source line direction overrides (CVE-2021-42574).
    """
    return _UNSAFE_TO_SHOW.sub("\ufffd", text.replace("\r\n", "\n"))


def clipped(text: str, limit: int) -> str:
    """`text`, or its beginning and an ellipsis where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def capitalised(text: str) -> str:
    """`text` as it stands at the beginning of a sentence. The rest stays as it is, other than with `str.capitalize`."""
    return f"{text[:1].upper()}{text[1:]}"


def code_parts(sentence: str) -> list[tuple[bool, str]]:
    """Split a sentence at its backticks into `(is code, text)` parts; an unpaired backtick stays text."""
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = [parts[-2] + "`" + parts[-1]]
    return [(index % 2 == 1, part) for index, part in enumerate(parts) if part]


def sentences(text: str) -> list[str]:
    """The sentences of a text. A sentence ends with a full stop and a space outside of code."""
    made = [""]
    for is_code, part in code_parts(text):
        if is_code:
            made[-1] += f"`{part}`"
            continue
        first, *others = part.split(". ")
        made[-1] += first
        for other in others:
            made[-1] += "."
            made.append(other)
    return [each for each in made if each]


def setting_parts(setting: Setting, device: str = "", *, whole: bool = False) -> list[str]:
    """What a user writes for a setting, one text for each place: arguments of the DataLoader, then calls of torch's.

    `device` as in a `Baseline` (`cuda:0`); without one a call that needs it names it `device`. `whole`: with each
    variable and its value, where a sentence has a short name for several of them.
    """
    arguments: list[str] = []
    calls: list[str] = []
    for name, value in setting.items():
        code = (knobs.code if whole else knobs.called)(name, value, device)
        if code is None:
            arguments.append(f"{name}={_value_text(value)}")
        else:
            calls.append(code)
    return ([", ".join(arguments)] if arguments else []) + calls


def setting_text(setting: Setting, device: str = "", *, whole: bool = False) -> str:
    """A setting as a user would write it, without marks; `as written` for the baseline. `whole` as in
    `setting_parts`."""
    return listed(setting_parts(setting, device, whole=whole)) or "as written"


def setting_code(setting: Setting, device: str = "", *, whole: bool = False) -> str:
    """The same for a sentence: each part of it in backticks."""
    return listed([f"`{part}`" for part in setting_parts(setting, device, whole=whole)]) or "as written"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def window_code(window: Window, device: str = "") -> str:
    """Under what a window ran, for a sentence. A key of ours is nothing that a user ever wrote."""
    if knobs.is_ceiling(window.setting):
        return "the same batches again"
    return "as written, warming up" if window.label == "burn-in" else setting_code(window.setting, device)


def _value_text(value: bool | int | float | str) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


MASKED_NOTE = "*** hides a secret: fill it in before you run this."


def has_masked(command: Iterable[str]) -> bool:
    """Whether something was masked in a command, so that it can't be run as it stands."""
    return any(MASK in word for word in command)


def command_text(command: Iterable[str]) -> str:
    """A command as one would type it into a POSIX shell."""
    return shlex.join(command)


WIDEST = 20.0
"""If the upper end of an interval from one or two sessions is this many times the lower one, it says nothing, unless it
lies above 1."""


def has_interval(speedup: Speedup) -> bool:
    """Whether the interval says anything: finite, ordered, and not the endless one that one or two sessions give."""
    values = (speedup.estimate, speedup.low, speedup.high)
    if not all(math.isfinite(value) and value >= 0 for value in values) or speedup.low > speedup.high:
        return False
    return speedup.sessions >= 3 or speedup.low > 1 or 0 < speedup.high < WIDEST * speedup.low


def lower_end(speedup: Speedup | None) -> float:
    """What a ranking sorts by: the lower end of the interval, 0 where there is none."""
    return speedup.low if speedup is not None and has_interval(speedup) else 0.0


def ratio_digits(speedup: Speedup) -> int:
    """Decimals that suit this speedup: two below 2, or where one would make both ends look alike."""
    if not math.isfinite(speedup.estimate) or speedup.estimate >= 9.95:
        return 0 if not has_interval(speedup) or speedup.high - speedup.low >= 1 else 1
    if speedup.estimate < 1.995 or (has_interval(speedup) and speedup.high - speedup.low < 0.1):
        return 2
    return 1


def ratio_text(ratio: float, digits: int = 2) -> str:
    """A ratio to the baseline: `3.4×`."""
    return f"{ratio:.{digits}f}{TIMES}" if math.isfinite(ratio) else DASH


def bound_text(ratio: float) -> str:
    """A ratio that is reached at least, so rounded down: `1.4×`, and near to 1 `1.04×`."""
    digits = 1 if ratio >= 1.2 else 2
    return ratio_text(math.floor(ratio * 10**digits + 1e-9) / 10**digits, digits)


def estimate_text(speedup: Speedup) -> str:
    """The estimate alone: `3.4×`."""
    return ratio_text(speedup.estimate, ratio_digits(speedup))


def interval_text(speedup: Speedup) -> str:
    """The interval alone: `3.2–3.6`, or `no interval yet`."""
    if not has_interval(speedup):
        return "no interval yet"
    digits = ratio_digits(speedup)
    return f"{speedup.low:.{digits}f}{DASH}{speedup.high:.{digits}f}"


def speedup_text(speedup: Speedup | None, confidence: float = 0.95) -> str:
    """Estimate, interval and evidence: `3.4× (95 % 3.2–3.6, 8 pairs)`."""
    if speedup is None:
        return DASH
    interval = interval_text(speedup)
    level = f"{share_text(confidence)} " if has_interval(speedup) else ""
    return f"{estimate_text(speedup)} ({level}{interval}, {count_text(speedup.pairs, 'pair')})"


def worth_text(fix: FixOutcome) -> str:
    """What a fix that is on already is worth, as a sentence; "" where that was not measured."""
    if fix.worth is None:
        return ""
    return f"It is worth {estimate_text(fix.worth)} ({interval_text(fix.worth)}), measured by taking it back."


def evidence_text(speedup: Speedup) -> str:
    """What a speedup rests on: `8 pairs in 3 sessions`."""
    return f"{count_text(speedup.pairs, 'pair')} in {count_text(speedup.sessions, 'session')}"


def differs(one: Speedup | None, other: Speedup | None) -> bool:
    """Whether two figures read differently once written down."""
    return one is not None and other is not None and estimate_text(one) != estimate_text(other)


def busy_cores(load: float) -> str:
    """How many cores other programs keep busy: `1.4 cores`."""
    return f"{load:.1f} cores"


def other_loads(sessions: Iterable[SessionRecord]) -> list[float]:
    """Cores that other programs kept busy, in each session in which that was seen."""
    return [each.other_load for each in sessions if each.other_load is not None]


def least_other_load(sessions: Iterable[SessionRecord]) -> float | None:
    """Cores that other programs kept busy in the session in which they were least busy; None if that was never seen."""
    return min(other_loads(sessions), default=None)


def share_text(share: float) -> str:
    """A share from 0 to 1 as a percentage: `73 %`; one decimal below 10 % where it says something."""
    if not math.isfinite(share):
        return DASH
    percent = share * 100
    if 0 < abs(percent) < 9.95 and abs(percent - round(percent)) >= 0.05:
        return f"{percent:.1f} %"
    return f"{percent:.0f} %"


def at_most_text(at_most: float | None) -> str:
    """How many times as fast training would be without the time that a finding names; "" where that is not known."""
    return "" if at_most is None else ratio_text(at_most, 2 if at_most < 1.95 else 1)


def spared_text(at_most: float | None) -> str:
    """The same as a sentence."""
    return "" if at_most is None else f"If this took no time, training would be {at_most_text(at_most)} as fast."


def below_text(floor: float) -> str:
    """What a noise floor leaves out, to go behind a noun: ` below 12 %`, or ` below 3.2×` where it is that high."""
    return f" below {share_text(floor) if floor < 1.0 else ratio_text(1.0 + floor, 1)}"


def parts_text(parts: Sequence[str]) -> str:
    """Parts of a step and what they do with its time: `the optimizer takes`, `the forward pass and the optimizer
    take`."""
    return f"{listed([PART_WORDS.get(part, part) for part in parts])} {'takes' if len(parts) == 1 else 'take'}"


def amount_text(value: float) -> str:
    """A number to three figures, grouped by thousands: `12.4`, `980`, `12 400`."""
    if not math.isfinite(value):
        return DASH
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}".replace(",", NARROW_SPACE if size >= 9999.5 else "")
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.0995 or size == 0 else f"{value:.2g}"


def number_text(value: float) -> str:
    """A number that is often whole: `32`, `1.5`."""
    return (
        f"{value:.0f}" if math.isfinite(value) and value == round(value) and abs(value) < 9999.5 else amount_text(value)
    )


def count_text(count: int, noun: str) -> str:
    """`1 pair`, `8 pairs`, `3 batches`."""
    return f"{count} {plural(noun, count)}"


def plural(noun: str, count: float) -> str:
    """The noun as it stands after this number: `pair`, `pairs`, `processes`."""
    hissing = noun.endswith(("s", "x", "ch", "sh")) and noun != "epoch"
    return noun if count == 1 else noun + ("es" if hissing else "s")


def duration_text(seconds: float) -> str:
    """`12 µs`, `4.2 ms`, `3.1 s`, `3 min 20 s`, `1 h 05 min`."""
    if not math.isfinite(seconds):
        return DASH
    size = abs(seconds)
    if size == 0:
        return "0 s"
    if size < 0.9995e-3:
        return f"{seconds * 1e6:.0f} µs"
    if size < 0.9995:
        return f"{seconds * 1e3:.{1 if size < 0.00995 else 0}f} ms"
    if size < 59.95:
        return f"{seconds:.1f} s" if size < 9.95 else f"{seconds:.0f} s"
    if size < 3599.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"


def milliseconds_text(milliseconds: float) -> str:
    """A duration given in milliseconds."""
    return duration_text(milliseconds / 1000)


def bytes_text(count: float) -> str:
    """`512 B`, `3.2 GiB`."""
    if not math.isfinite(count):
        return DASH
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            whole = unit == "B" or abs(value) >= 99.95 or value == round(value)
            return f"{value:.0f} {unit}" if whole else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable: the last unit always returns")


def date_text(created: str) -> str:
    """An ISO date and time as `20 November 2026, 10:31 UTC`; what can't be read stays as it is."""
    try:
        moment = datetime.fromisoformat(created.replace("Z", "+00:00"))
    except ValueError:
        return created
    zone = f" {moment.tzname()}" if moment.tzinfo else ""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}, {moment.hour:02d}:{moment.minute:02d}{zone}"


def ranks_text(ranks: Sequence[Rank]) -> str:
    """`2 ranks on node1`, `4 ranks: 0, 1 on node1; 2, 3 on node2`."""
    hosts: dict[str, list[int]] = {}
    for each in ranks:
        hosts.setdefault(each.host, []).append(each.rank)
    if len(hosts) == 1:
        return f"{count_text(len(ranks), 'rank')} on {visible(next(iter(hosts)))}"
    places = "; ".join(f"{', '.join(map(str, there))} on {visible(host)}" for host, there in hosts.items())
    return f"{count_text(len(ranks), 'rank')}: {places}"


def protection_text(protection: Protection | None) -> str:
    """What became of the files that the program wrote to, in a sentence; "" where an old report does not say."""
    if protection is None:
        return ""
    if protection.kind == "none":
        return "changed by the script, as they are without doctor (`--in-place`)."
    if protection.kind == "sandbox":
        return "unchanged; the script wrote into a sandbox, which was thrown away."
    reason = f" (no sandbox: {protection.reason})" if protection.reason else ""
    return f"restored; new files were removed{reason}."


def ceiling_text(name: str) -> str:
    """What a ceiling supposes: `if every batch were ready at once`."""
    return CEILING_WORDS.get(name, name.replace("_", " "))


def added_lines(diff: str) -> str:
    """The new lines of a unified diff, without their marks: what to paste."""
    return "\n".join(line[1:] for line in diff.split("\n") if line.startswith("+"))


def patch_text(path: str, diff: str) -> str:
    """The diff with file headers, as `patch` and `git apply` read it where `path` is relative to."""
    name = path.lstrip("/")
    end = "\t" if " " in name else ""
    # Not stripped: a line that is kept and blank ends in a space.
    return f"--- {quoted(f'a/{name}')}{end}\n+++ {quoted(f'b/{name}')}{end}\n{diff.removesuffix(chr(10))}\n"


def place_text(file: str, line: int) -> str:
    """`train.py, line 42`, `train.ipynb, cell 5, line 3`; the file alone where the line isn't known."""
    if line <= 0:
        return file
    if not is_notebook(file):
        return f"{file}, line {line}"
    cell, inner = cell_of(line)
    return f"{file}, cell {cell}, line {inner}"


def line_text(file: str, line: int) -> str:
    """`line 42`, of a notebook `line 3 of cell 5`."""
    cell, inner = cell_of(line)
    return f"line {inner} of cell {cell}" if is_notebook(file) else f"line {line}"


def site_text(file: str, line: int) -> str:
    """`train.py:42`, as editors and terminals read it. No editor finds a line of a notebook like that."""
    return place_text(file, line) if is_notebook(file) or line <= 0 else f"{file}:{line}"
