"""The schemas of our documents are the same bytes with each release of msgspec and of Python."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from bottleneck_doctor.documents import codec


@dataclass
class Shelf:
    """What stands on a shelf.

    `default` and `description` are names of fields here.
    """

    default: list[int] = field(default_factory=list)
    description: str = ""
    labels: dict[str, int] = field(default_factory=dict)


def _told(made: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(msgspec.json, "schema", lambda _: made)
    return json.loads(codec.schema(Shelf, "shelf"))


def _made(docstring: str, list_default: dict[str, Any], dict_default: dict[str, Any]) -> dict[str, Any]:
    properties = {
        "default": {"type": "array", "items": {"type": "integer"}, **list_default},
        "description": {"type": "string", "default": ""},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}, **dict_default},
    }
    shelf = {"title": "Shelf", "description": docstring, "type": "object", "properties": properties, "required": []}
    return {"$ref": "#/$defs/Shelf", "$defs": {"Shelf": shelf}}


def test_releases_that_name_empty_defaults_and_dedent_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    indented = "What stands on a shelf.\n\n    `default` and `description` are names of fields here.\n    "
    earlier = _told(_made(indented, {}, {}), monkeypatch)
    later = _told(
        _made(
            "What stands on a shelf.\n\n`default` and `description` are names of fields here.",
            {"default": []},
            {"default": {}},
        ),
        monkeypatch,
    )
    assert earlier == later
    shelf = later["$defs"]["Shelf"]
    assert shelf["description"].splitlines()[-1] == "`default` and `description` are names of fields here."
    assert set(shelf["properties"]) == {"default", "description", "labels"}
    assert shelf["properties"]["description"]["default"] == ""


def test_the_installed_release_says_what_the_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = json.loads(codec.schema(Shelf, "shelf"))
    assert installed == _told(_made(Shelf.__doc__ or "", {}, {}), monkeypatch)
