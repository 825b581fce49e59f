"""Which tests run alone, which may be tried again (those that measure time, and no others), and which are slow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings
from tests import retries
from tests.retries import pytest_runtest_setup, pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_runtest_setup", "pytest_sessionfinish", "pytest_terminal_summary"]
"""Hooks of pytest's, which finds them here."""

# Without deadlines: that another program takes the machine for a while says nothing of what is tested.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
# The same examples each time, so that a change fails by what it changed; HYPOTHESIS_PROFILE=search looks for new ones.

HERE = Path(__file__).parent
MEASURING = (HERE / "process", HERE / "truth")
"""Real processes and clocks."""
SIMULATED = "test_stats_coverage.py"
"""Of these, what computes examinations from seeds and measures nothing."""
HARDLY_MEASURING = {
    "test_bare_loops.py",
    "test_baseline.py",
    "test_batch_size.py",
    "test_batched_fetch.py",
    "test_batched_transforms.py",
    "test_cached_inputs.py",
    "test_cached_samples.py",
    "test_check.py",
    "test_cleanup_calls.py",
    "test_clock.py",
    "test_compute_settings.py",
    "test_console_commands.py",
    "test_device_prefetch.py",
    "test_edited_files.py",
    "test_entry.py",
    "test_expected.py",
    "test_faults.py",
    "test_files.py",
    "test_flood.py",
    "test_forked_workers.py",
    "test_found.py",
    "test_grouped_lengths.py",
    "test_handles.py",
    "test_kills.py",
    "test_lines.py",
    "test_loggers.py",
    "test_notebooks.py",
    "test_optimizers.py",
    "test_out_of_order.py",
    "test_parent_death.py",
    "test_pictures.py",
    "test_process_tree.py",
    "test_programs.py",
    "test_pyspy.py",
    "test_randomness.py",
    "test_ranks.py",
    "test_real_programs.py",
    "test_reduced_decoding.py",
    "test_run.py",
    "test_save_hooks.py",
    "test_secrets.py",
    "test_sharing_strategy.py",
    "test_single_threaded.py",
    "test_started_again.py",
    "test_switches.py",
    "test_trace.py",
    "test_transforms.py",
    "test_tried.py",
    "test_trimmed_padding.py",
    "test_try.py",
    "test_turns.py",
    "test_verdicts.py",
    "test_windows.py",
}
"""Of these, what can run in company: it asks what happens, and not how fast. A slow test of any file is taken
to measure unless it is marked `slow(together=True)`, and others are marked `alone` or `sleeping` themselves. What has
company is `timed`: it measures coarsely enough for that."""
COMPUTING = {"test_monitor.py", "test_pyspy.py"}
"""Of the others, what keeps a core busy, or looks at who does, while it measures. The rest sleeps: two such tests at a
time leave each other a core."""


def pytest_configure(config: pytest.Config) -> None:
    said = "slow(together=False): near to a quicker test that always runs; runs where SLOW_TESTS is set"
    config.addinivalue_line("markers", said)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what measures time. What fails three times in a row is wrong; what passes at once is not asked again."""
    for item in items:
        here = any(folder in item.path.parents for folder in MEASURING) and item.path.name != SIMULATED
        slow = item.get_closest_marker("slow")
        if slow is not None and "SLOW_TESTS" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="slow: set SLOW_TESTS=1"))
        in_company = item.path.name in HARDLY_MEASURING if slow is None else slow.kwargs.get("together")
        if here and not in_company:
            sleeps = slow is None and HERE / "process" in item.path.parents and item.path.name not in COMPUTING
            item.add_marker(pytest.mark.sleeping if sleeps else pytest.mark.alone)
        elif here:
            # Real processes beside those of another test: if nothing else is measured, it is how long they wait.
            item.add_marker(pytest.mark.timed)
        retries.allow(item)
