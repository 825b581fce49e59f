"""The names under which windows are kept in a report: `baseline`, `num_workers=4`, `loader_only:` …

They are promises, as fields of the report are.
"""

from __future__ import annotations

from bottleneck_doctor.documents.report import Setting

BASELINE = "baseline"
"""The training as written."""
CONTROL = "aa"
"""A baseline window between two others, judged as if it were a fix."""
REPLAY = "replay=True"
"""A ceiling: the same batches again and again."""
BESIDE = "beside:baseline"
"""The training as written, in a process that trained in turn with one that was started with a setting."""
LOADER_ONLY = "loader_only:"
"""A ceiling: loading alone. What follows is the setting."""


def key_of(setting: Setting, mode: str = "timed") -> str:
    """The name under which a setting's windows are kept."""
    text = ",".join(f"{name}={value}" for name, value in sorted(setting.items()))
    return LOADER_ONLY + text if mode == "loader_only" else text or BASELINE
