"""What an examination costs, against starting the script afresh for every fix and repetition to the same certainty.

    python benchmarks/cost.py --json cost.json
    python benchmarks/cost.py --pictures 4 --json more.json      # the same with four times as many pictures

Measured: the wall time of a default examination of examples/pets and the median half width (of logarithms) of the
intervals of its fixes, over those seen in three processes or more; and starts of the script as written and with its
best fix made by hand, in turn: how long a start lasts and how far starts of one kind differ. Extrapolated: how many
starts a side would bring the interval of a ratio to that half width, times that many for each fix and the baseline, and
for each setting: who looks for the best number of workers by hand starts the script once for every number.

The examination measures speedups only (`--no-explain`), as the starts would; what explains them takes a minute more at
most. The start that is counted is the least that a careful person could do: set-up, one epoch to warm up, one epoch
that is timed. One epoch counts because it is the unit of the promise, and the first is no guide: it reads files, grows
the allocator and picks kernels. The bundled example has epochs of 18 batches, so that a start of it is cheap as hardly
any real one is; with `--pictures 4` they have 72.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import msgspec
from _common import Start, machine, machine_line, save, say, setting_text, shuffled
from _common import start as start_script
from edited import SCRIPTS, NoEdit, Script, edit, examine, promises

from bottleneck_doctor.documents.report import Result, from_json
from bottleneck_doctor.statistics.distributions import student_t_quantile

TARGET = 1 / 3
EPOCHS = 2
MOST_STARTS = 10_000


def repetitions(spread: float, half_width: float) -> int:
    """Starts a side after which a ratio's 95 % interval is expected to be so narrow.

    `spread` is the standard deviation of the logarithm of one start's time; the smallest n with
    t(0.975, 2n - 2) · spread · √(2/n) ≤ half_width, two at least.
    """
    for n in range(2, MOST_STARTS):
        if student_t_quantile(0.975, 2 * n - 2) * spread * math.sqrt(2 / n) <= half_width:
            return n
    return MOST_STARTS


def pooled_spread(sides: list[list[float]]) -> tuple[float, int]:
    """Standard deviation within sides of the logarithms, and its degrees of freedom."""
    logs = [[math.log(value) for value in side] for side in sides if len(side) >= 2]
    df = sum(len(side) - 1 for side in logs)
    return math.sqrt(sum(stdev(side) ** 2 * (len(side) - 1) for side in logs) / df), df


def least_spread(spread: float, df: int) -> float:
    """The lower end of the 95 % interval of a standard deviation (chi-square by Wilson and Hilferty, 1931)."""
    part = 2 / (9 * df)
    chi_square = df * (1 - part + 1.96 * math.sqrt(part)) ** 3
    return spread * math.sqrt(df / chi_square)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--starts", type=int, default=4, help="starts a side")
    parser.add_argument("--budget", help="of the examination, as for `doctor run`; the default one")
    parser.add_argument("--pictures", type=int, default=1, metavar="TIMES", help="this many times as many pictures")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured here")
    parser.add_argument("--quick", action="store_true", help="2 starts a side, a 40 s examination")
    options = parser.parse_args()
    if options.quick:
        options.starts, options.budget = 2, options.budget or "40s"
    with tempfile.TemporaryDirectory(prefix="cost-script-") as folder:
        run(with_more_pictures(Path(folder), options.pictures), options)


def with_more_pictures(folder: Path, times: int) -> Script:
    """The bundled example in `folder`, with a data set so many times as large."""
    bundled = next(each for each in SCRIPTS if each.name == "pets")
    top = folder / "pets"
    shutil.copytree(bundled.file.parent, top, ignore=shutil.ignore_patterns("data", "runs", "__pycache__"))
    photos = top / "photos.py"
    text = photos.read_text(encoding="utf-8")
    more, changed = re.subn(r"(?m)^PER_CLASS = (\d+)$", lambda found: f"PER_CLASS = {times * int(found[1])}", text)
    assert changed == 1, "the number of pictures stands elsewhere now"
    photos.write_text(more, encoding="utf-8")
    return replace(bundled, file=top / bundled.file.name, arguments=(str(top / "config.json"),))


def run(script: Script, options: argparse.Namespace) -> None:
    document: dict[str, Any] = {
        "machine": machine(),
        "seed": options.seed,
        "budget": options.budget,
        "pictures": options.pictures,
        "rounds": [],
    }
    more = f" with {options.pictures} times as many pictures" if options.pictures > 1 else ""
    print(f"The cost of an examination of {script.name}{more}\non {machine_line(document['machine'])}\n", flush=True)

    # Pictures are drawn on the first start ever: nobody's cost.
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        first = start_script(script.copied(Path(folder), 1, script.file.read_text(encoding="utf-8")), Path(folder), 1)
    if first.failure:
        sys.exit(f"the script fails by itself: {first.failure}")

    document["examination"] = examination = examine(script, 1, options.seed, options.budget)
    save(options.json, document)
    if examination["report"] is None:
        sys.exit(f"the examination failed with exit code {examination['exit']}: {examination['failure']}")
    result = from_json(msgspec.json.encode(examination["report"]), source=script.name)
    fixes = [fix for fix in result.fixes if fix.speedup is not None]
    solid = [fix for fix in fixes if fix.speedup is not None and fix.speedup.sessions >= 3]
    pairs = [(fix.speedup.low, fix.speedup.high) for fix in solid if fix.speedup and fix.speedup.low > 0]
    widths = [(math.log(high) - math.log(low)) / 2 for low, high in pairs]
    settings = len(list(promises(result, 1)))
    print("measured: the examination")
    print(f"  wall time {examination['wall']:.0f} s (budget {options.budget or 'default'}, seed {options.seed})")
    print(f"  {len(fixes)} fixes measured, {len(solid)} of them in three processes or more; {settings} settings in all")
    for fix in fixes:
        assert fix.speedup is not None
        low, high = fix.speedup.low, fix.speedup.high
        print(
            f"    {fix.id}: {setting_text(fix.setting)}: {fix.speedup.estimate:.3f} ({low:.3f}–{high:.3f}), "
            f"{fix.speedup.sessions} processes, {fix.status}"
        )
    if not widths:
        print("  no fix was seen in three processes, so there is no certainty to compare with")
        sys.exit(1)
    half_width = median(widths)
    print(f"  median half width of the intervals (log) {half_width:.4f}\n", flush=True)

    sides = run_starts(script, result, options, document)
    times = {key: [each.epoch_mean for each in starts if not each.failure] for key, starts in sides.items()}
    for key, starts in sides.items():
        for each in starts:
            if each.failure:
                print(f"  a start of {key} failed: {each.failure}")
    if any(len(values) < 2 for values in times.values()):
        print("fewer than two starts on a side: nothing to compare with")
        sys.exit(1)
    spread, df = pooled_spread(list(times.values()))
    seconds = fmean(each.seconds for starts in sides.values() for each in starts if not each.failure)
    print(f"measured: starts afresh ({EPOCHS} epochs, the second timed), in turn")
    for key, starts in sides.items():
        epochs = " ".join(f"{each.epoch_mean:.2f}" for each in starts if not each.failure)
        lasted = fmean(each.seconds for each in starts if not each.failure)
        print(f"  {key}: a start lasts {lasted:.1f} s; seconds of the timed epoch {epochs}")
    print(f"  spread of one start's epoch (standard deviation of the log) {spread:.4f}, {df} degrees of freedom\n")

    n, fewest = repetitions(spread, half_width), repetitions(least_spread(spread, df), half_width)
    print("extrapolated: the script once for each repetition")
    print(f"  {n} starts a side for a half width of {half_width:.4f}{' or more' if n == MOST_STARTS else ''}")
    print(f"  (if starts differ as little as {len(sides)} x {options.starts} of them allow: {fewest})\n")
    wall = examination["wall"]
    ratios = {}
    for what, count in (("fixes", len(fixes)), ("settings", settings)):
        naive = n * (count + 1) * seconds
        ratios[what] = ratio = wall / naive
        print(f"by {what}: {n} x ({count} {what} + 1 baseline) x {seconds:.1f} s a start = {naive:.0f} s")
        verdict = "reached" if ratio <= TARGET else "MISSED"
        print(f"  examination / starts afresh: {wall:.0f} s / {naive:.0f} s = {ratio:.3f}")
        print(f"  (with {fewest} starts a side: {wall / (fewest * (count + 1) * seconds):.3f})")
        print(f"  target at most {TARGET:.2f}: {verdict}")
    document["outcome"] = {
        "half_width": half_width,
        "spread": spread,
        "n": n,
        "fewest": fewest,
        "seconds_a_start": seconds,
        "ratio": ratios["fixes"],
        "ratio_by_settings": ratios["settings"],
    }
    save(options.json, document)


def run_starts(
    script: Script, result: Result, options: argparse.Namespace, document: dict[str, Any]
) -> dict[str, list[Start]]:
    """Starts as written and with the best fix, in turn and in random order, by what was started."""
    assert result.baseline is not None
    device = result.baseline.device.split(":")[0]
    sources = {"as written": script.file.read_text(encoding="utf-8")}
    for promise in sorted(promises(result, 1), key=lambda each: -each.speedup.low):
        try:
            sources[setting_text(promise.setting)] = edit(script, promise.setting, device)
            break
        except NoEdit as error:
            print(f"  {setting_text(promise.setting)} can't be made by hand: {error}")
    sides: dict[str, list[Start]] = {key: [] for key in sources}
    with tempfile.TemporaryDirectory(prefix="cost-") as top:
        ready = {}
        for index, (key, source) in enumerate(sources.items()):
            folder = Path(top) / f"{index}"
            folder.mkdir()
            ready[key] = (script.copied(folder, EPOCHS, source), folder)
        for number in range(options.starts):
            for key in shuffled(list(sources), options.seed + number):
                done = start_script(*ready[key], EPOCHS)
                say(f"round {number + 1}/{options.starts}, {key}: {done.failure or f'{done.seconds:.1f} s'}")
                sides[key].append(done)
                document["rounds"].append({"round": number, "variant": key, **done.to_json()})
                save(options.json, document)
    return sides


if __name__ == "__main__":
    main()
