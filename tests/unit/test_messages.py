"""Every slug in the source has a section in docs/messages.md, and every section a slug."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def slugs(tree: ast.AST) -> Iterator[str]:
    """Slugs that are written out: the first argument of an error or a warning, or any argument called `slug`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        given = [keyword.value for keyword in node.keywords if keyword.arg == "slug"]
        if name in ("DoctorError", "Warning", "_warn") and node.args:
            given.append(node.args[0])
        for expression in given:
            # Either branch of `"a" if … else "b"`.
            branches = [expression.body, expression.orelse] if isinstance(expression, ast.IfExp) else [expression]
            for branch in branches:
                if isinstance(branch, ast.Constant) and isinstance(branch.value, str):
                    yield branch.value


def test_slugs_and_sections_agree() -> None:
    used: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for slug in slugs(ast.parse(path.read_text("utf-8"))):
            used.setdefault(slug, str(path.relative_to(ROOT)))
    sections = re.findall(r"^## (.+)$", (ROOT / "docs" / "messages.md").read_text("utf-8"), re.MULTILINE)
    assert len(sections) == len(set(sections))
    missing = {slug: path for slug, path in used.items() if slug not in sections}
    assert not missing, "these need a section in docs/messages.md"
    assert not set(sections) - set(used), "these sections speak of slugs that are gone"


def test_slugs_are_words_joined_by_dashes() -> None:
    for path in sorted((ROOT / "src").rglob("*.py")):
        for slug in slugs(ast.parse(path.read_text("utf-8"))):
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug), path


def test_reading_slugs() -> None:
    source = """
raise DoctorError("one", "…", "…")
Warning(slug="two", sentence="…")
result.Warning("three" if x else "four", "…")
note(slug="five")
self._warn("seven", "…")
Other("six")
DoctorError(error.slug, "…", "…")
"""
    assert set(slugs(ast.parse(source))) == {"one", "two", "three", "four", "five", "seven"}
