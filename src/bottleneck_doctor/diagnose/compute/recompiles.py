"""`recompiles`: torch compiles a function again and again, and gives it up in the end."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import LIBRARY
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement, at
from bottleneck_doctor.documents.report import Site
from bottleneck_doctor.knobs import uncompiled

AGAIN = 3
"""Times that a function was compiled again by the time the loop was found, which takes about ten steps. Ours: a smaller
last batch costs one such time, and shapes that torch then takes for changing ones another."""
SAVES = 0.29
"""Part of the passes' time that counts as lost. Compiled programs train 1.41 times as fast (Ansel et al., PyTorch 2,
ASPLOS 2024: the geometric mean over models on an A100), and a function that was given up is not compiled."""
SIZE = re.compile(r"tensor '(?:L\['(\w+)'\]|(\w+))' size mismatch at index (\d+)\. expected (\d+), actual (\d+)")
"""How torch writes that an argument has another shape. Other reasons can hold any text of the program's, and are not
shown."""


def judge(evidence: Evidence) -> Statement | None:
    facts, shares = evidence.found.facts.get(uncompiled.NAME), evidence.shares
    known = facts if isinstance(facts, dict) else {}
    told: list[Any] = known.get("recompiled", [])
    if not told or shares is None or told[0]["times"] < AGAIN:
        return None
    first, limit = told[0], int(known.get("most_versions", 8))
    passes = (shares.forward + shares.backward) * evidence.in_steps
    if passes * SAVES < MATTERS:
        return None
    own = not LIBRARY.search(PurePath(first["file"]).as_posix())
    site = Site(file=first["file"], line=first["line"]) if own else None
    what = f"`{first['name']}`{at(site)}" if own else "a function of torch's that the model uses"
    given_up = first["times"] >= limit
    often = limit if given_up else first["times"] + 1
    after = f"After {limit} versions, it gives a function up and runs it uncompiled."
    if given_up:
        after = "It has given the function up: what none of these versions fits runs uncompiled."
    return Statement(
        sentence=f"torch compiled {what} {often} times in the first few steps{_because(first['reason'])}. {after}",
        figures={"versions": float(often), "most_versions": float(limit), "passes_share": passes},
        weight=passes * SAVES,
        measured=False,
        clause=f"compiles {what} again and again",
        site=site,
    )


def _because(reason: str) -> str:
    match = SIZE.search(reason)
    if match is None:
        return ""
    scoped, plain, index, expected, actual = match.groups()
    return f", the last time because dimension {index} of `{scoped or plain}` was {actual} and not {expected}"


RULE = Rule(
    id="recompiles",
    title="torch compiles a function again and again",
    topic="rest",
    depth=CAUSE,
    needs=("phases",),
    judge=judge,
    source="https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html",
    advice="Let the shapes vary: `torch.compile(model, dynamic=True)`, or `torch._dynamo.mark_dynamic(tensor, 0)` for "
    "the dimension that changes. Or let them vary less: `drop_last=True`, and rows padded to one of a few lengths. A "
    "number that the model changes at every step belongs into a tensor. `TORCH_LOGS=recompiles` prints every reason.",
    fixes=("no-compile",),
)
