"""Write docs/fixes.md, the catalogue of fixes as a page: `python docs/make_fixes.py [--check]`.

With `--check`, nothing is written, and the exit code is 1 if the page is not as it would be written.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from bottleneck_doctor.fixes import Fix, catalogue
from bottleneck_doctor.wording import words

PAGE = Path(__file__).resolve().parent / "fixes.md"
WIDTH = 120
TARGETS = {"data": "Loading", "transfer": "Copying to the device", "compute": "Computing"}
INTRODUCTION = """\
This page is made of the catalogue, by `python docs/make_fixes.py`.

`doctor run` tries each of these where it applies, one change at a time inside of your own training, and the best ones
together. The report says of every other one why it was not tried. `doctor fixes ID` shows one of them in the terminal,
`--only ID` tries no other, and `--skip ID` leaves it out. A fix that is tried *on request* needs `--only`. A fix that
*undoes* others applies where these are on: what it costs is what they are worth."""


def page() -> str:
    """The text of the page."""
    parts = ["# Fixes", INTRODUCTION, "Each of them has a risk:", _risks()]
    for target, title in TARGETS.items():
        parts.append(f"## {title}")
        for fix in catalogue():
            if fix.target == target:
                parts += _fix(fix)
    return "\n\n".join(parts) + "\n"


def _risks() -> str:
    return "\n".join(_wrapped(f"- *{risk}*: {said}", indent="  ") for risk, said in words.RISK_WORDS.items())


def _fix(fix: Fix) -> list[str]:
    facts = [f"Risk: {fix.risk}."]
    if fix.on_request:
        facts.append(f"On request: {fix.on_request}.")
    if fix.undoes:
        facts.append(f"Undoes {words.listed([f'`{each}`' for each in fix.undoes])}.")
    if fix.acts_on:
        facts.append(f"It is not tried where {words.parts_text(fix.acts_on)} too little of the time.")
    return [
        f"### {fix.id}",
        _wrapped(f"**{fix.title}.** {fix.why}"),
        _wrapped(fix.how),
        "\n".join([_wrapped(f"- {' '.join(facts)}", indent="  "), f"- Source: <{fix.source}>"]),
    ]


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    made = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made:
        sys.exit("docs/fixes.md is out of date: run .venv/bin/python docs/make_fixes.py")


if __name__ == "__main__":
    main()
