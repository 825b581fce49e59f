"""A second and third try, in a quieter moment, for tests that measure time on a machine that others use as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings
from tests.quiet import wait_until_quiet

settings.register_profile("same", derandomize=True)
settings.register_profile("search", max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
# The same examples each time, so that a change fails by what it changed; HYPOTHESIS_PROFILE=search looks for new ones.

HERE = Path(__file__).parent
MEASURING = (HERE / "process", HERE / "truth")
"""Real processes and clocks: a neighbour's burst of a second can fail any of them once."""
HARDLY_MEASURING = {
    "test_bare_loops.py",
    "test_baseline.py",
    "test_check.py",
    "test_clock.py",
    "test_console_commands.py",
    "test_entry.py",
    "test_faults.py",
    "test_files.py",
    "test_flood.py",
    "test_handles.py",
    "test_kills.py",
    "test_lines.py",
    "test_loggers.py",
    "test_manners.py",
    "test_orphans.py",
    "test_process_tree.py",
    "test_programs.py",
    "test_randomness.py",
    "test_ranks.py",
    "test_run.py",
    "test_secrets.py",
    "test_trace.py",
    "test_transforms.py",
    "test_windows.py",
}
"""Of these, what can run two at a time: it asks what happens, and not how fast. Dear ones in them do measure, and
others that are marked `alone` themselves."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What fails three times in a row is wrong; what passes at once is not asked again. The summary names reruns."""
    for item in items:
        if any(folder in item.path.parents for folder in MEASURING):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))
            if item.path.name not in HARDLY_MEASURING or item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.alone)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if getattr(item, "execution_count", 1) > 1:
        wait_until_quiet(20.0)
