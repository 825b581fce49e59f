"""What earlier checks are worth to a check: kept checks, judged again with what others of the same program lend.

    python benchmarks/lent.py benchmarks/gate/*.json

Nothing is run. The files are those of `gate.py`, which hold what each pair of each check showed. A check is judged look
after look, once alone and once with the spreads of six others of its case, drawn by chance. Both judge without the
weights of pairs, which the files don't hold. A check that would go on longer than it did ends undecided.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from _common import table

from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.lent import of_spreads
from bottleneck_doctor.statistics.spread import Spread, own_spread

LENDERS = 6
LEAST_CHECKS = 5
"""Cases with fewer checks are left out."""


def judged(logs: Sequence[float], threshold: float, lent: Spread | None) -> tuple[str, int]:
    """The answer, and the number of pairs after which it came."""
    for pairs in range(decide.LEAST_PAIRS, len(logs) + 1):
        look = decide.interim_look_after(pairs, last=False)
        if look is None:
            continue
        answer = decide.decide(decide.estimate(logs[:pairs], lent=lent), threshold, look)
        if answer != "cannot_tell":
            return answer, pairs
    return "cannot_tell", len(logs)


def row(case: str, checks: Sequence[Sequence[float]]) -> list[str]:
    """One case of `gate.py`, with so many checks: the pairs of each, as logs of ratios."""
    limit = re.search(r"limit ([\d.]+)%", case)
    assert limit is not None
    threshold = math.log1p(float(limit[1]) / 100)
    generator = random.Random(case)
    alone, helped = [], []
    for number, logs in enumerate(checks):
        others = [each for at, each in enumerate(checks) if at != number]
        lenders = generator.sample(others, min(LENDERS, len(others)))
        alone.append(judged(logs, threshold, None))
        helped.append(judged(logs, threshold, of_spreads([own_spread(each) for each in lenders])))
    cells = [case, str(len(checks))]
    for found in (alone, helped):
        cells += [
            str(sum(answer == "regression" for answer, _ in found)),
            str(sum(answer in ("unchanged", "improvement") for answer, _ in found)),
            f"{fmean(pairs for _, pairs in found):.1f}",
        ]
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what `gate.py --json` keeps")
    rows = []
    for path in parser.parse_args().files:
        for case, kept in json.loads(path.read_text(encoding="utf-8"))["cases"].items():
            checks = [each["logs"] for each in kept["checks"] if len(each.get("logs", ())) >= decide.LEAST_PAIRS]
            if len(checks) >= LEAST_CHECKS:
                rows.append(row(case, checks))
    if not rows:
        parser.error(f"no case has {LEAST_CHECKS} checks")
    head = ["case", "checks", "worse", "not worse", "pairs", "worse, lent", "not worse, lent", "pairs, lent"]
    print(table(head, rows, left=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
