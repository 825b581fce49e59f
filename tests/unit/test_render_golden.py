"""What the golden results look like, byte by byte.

After a change that is meant, `UPDATE_GOLDEN=1 python -m pytest tests/unit/test_render_golden.py` rewrites the files;
their difference then belongs to the review.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest
from tests.reports import DRAWN, GOLDEN, INVENTED, drawn

from bottleneck_doctor.documents.report import from_json, to_json
from bottleneck_doctor.render import html, terminal

OLD_FORMATS = sorted(path.name for path in GOLDEN.glob("report-format-*.json"))


def compare(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_bytes().decode() == text, f"{path.name} differs; UPDATE_GOLDEN=1 rewrites it"


def test_every_made_up_result_is_what_its_builder_makes() -> None:
    built = runpy.run_path(str(GOLDEN / "build.py"))["results"]()
    assert sorted(built) == sorted(path.stem for path in INVENTED.glob("*.json"))
    for name, result in built.items():
        assert (INVENTED / f"{name}.json").read_bytes() == to_json(result), "run tests/golden/build.py"


@pytest.mark.parametrize("name", DRAWN)
def test_html(name: str) -> None:
    compare(DRAWN[name] / f"{name}.html", html.render(drawn(name)))


@pytest.mark.parametrize("name", DRAWN)
def test_terminal(name: str) -> None:
    text = terminal.render(drawn(name), report_path="demo-report/report.html", width=None, color=False)
    compare(DRAWN[name] / f"{name}.txt", text)


@pytest.mark.parametrize("name", OLD_FORMATS)
def test_every_format_ever_written_still_renders(name: str) -> None:
    result = from_json((GOLDEN / name).read_bytes(), source=name)
    sentence = "makes it 3.4× faster"
    assert sentence in html.render(result).replace("\u00a0", " ")
    plain = terminal.render(result, report_path=None, width=200, color=False)
    assert sentence in plain


def test_there_is_a_report_of_the_first_format() -> None:
    assert "report-format-1.json" in OLD_FORMATS
