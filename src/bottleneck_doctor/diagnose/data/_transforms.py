"""Which line of the user's stands for a transform."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site, loader_place, own_path, refined_in_loading
from bottleneck_doctor.diagnose._rule import at, place
from bottleneck_doctor.documents.report import Loading, Site, TransformCost


def transform_place(evidence: Evidence, loading: Loading, transform: TransformCost) -> tuple[Site | None, str]:
    """The line that the user would change, and the words that name it.

    That is where the user's own transform spends its time, or where a library's transform is made. If that isn't known,
    it is the user's line that calls the transform, or the line that makes the loader.
    """
    if transform.line > 0 and own_path(transform.file):
        site = refined_in_loading(evidence, Site(file=transform.file, line=transform.line))
        return site, at(site)
    if transform.made_line > 0:
        site = Site(file=transform.made_file, line=transform.made_line)
        return site, at(site)
    if loading.fetch_site is not None:
        site = fetch_site(evidence)
        return site, f" (called from {place(site)})"
    loader = loader_place(evidence)
    return loader, f" (used by the loader made at {place(loader)})" if loader is not None else ""
