"""The published schema is the one that the code generates, and real reports are valid by it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from bottleneck_doctor.documents.report import json_schema

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "docs" / "report.schema.json"
REPORTS = sorted((ROOT / "tests" / "golden").glob("*.json")) + sorted(
    (ROOT / "tests" / "golden" / "invented").glob("*.json")
)


def test_committed_schema_is_generated() -> None:
    assert SCHEMA.read_bytes() == json_schema(), "run python -m bottleneck_doctor.documents.report"


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_golden_reports_are_valid(path: Path) -> None:
    schema = json.loads(SCHEMA.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(path.read_bytes()), schema, cls=jsonschema.Draft202012Validator)
