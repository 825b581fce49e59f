"""Lines of the user's as a repository names them: a `Check` in, the same with paths from the repository's root out.

Services show a finding beside its line only where they know the path; a line outside the repository keeps its own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bottleneck_doctor.documents.check import Check
from bottleneck_doctor.documents.report import Site
from bottleneck_doctor.wording.check_words import inside


def from_root(check: Check, root: Path) -> Check:
    """The check with every line's file as a path from `root` (absolute); relative ones are from there already."""

    def placed(site: Site | None) -> Site | None:
        if site is None:
            return None
        path = inside(site.file, str(root), root)
        return site if path is None else replace(site, file=path)

    return replace(
        check,
        metrics=[replace(each, site=placed(each.site)) for each in check.metrics],
        culprits=[replace(each, site=placed(each.site)) for each in check.culprits],
    )


def script_path(check: Check, root: Path, script: str) -> str:
    """The script's path from `root`; as it was given where it lies elsewhere."""
    return inside(script, check.entrypoint.cwd, root) or script
