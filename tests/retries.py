"""Second and third tries for tests that measure time, on a machine that others use as well; never for any other test.

Real processes and clocks: a neighbour's burst of a second can fail such a test once. A test that asks what happens, and
not how fast, gives one answer on every machine, so a failure of it is a failure at once. The summary names every test
that needed another try. A run in which many did has failed: then the machine is no place to measure time, or something
that was sure has become a matter of luck, and either must be seen.
"""

from __future__ import annotations

import pytest
from tests import quiet

TRIES = 3
MEASURING = ("alone", "sleeping", "timed")
"""Markers of the tests that measure time."""
MOST_RETRIED = 5
"""How many tests of one run may need another try. `make test` has about 200 that start real processes. On a machine
that others use one or two of them need it in a run, on a quiet one none; more than 5 are no neighbour's burst."""
WAIT_UNTIL_QUIET = 20.0
"""Seconds that a further try waits at most for a quieter moment."""


def allow(item: pytest.Item) -> None:
    """Let pytest-rerunfailures try this test again where a marker says that it measures time."""
    if any(item.get_closest_marker(name) for name in MEASURING):
        item.add_marker(pytest.mark.flaky(reruns=TRIES - 1))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if getattr(item, "execution_count", 1) > 1:
        quiet.wait_until_quiet(WAIT_UNTIL_QUIET)


def retried(config: pytest.Config) -> list[str]:
    """The tests of this run that needed another try, each once, in the order in which they ran."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("rerun", []) if reporter is not None else []
    return list(dict.fromkeys(report.nodeid for report in reports))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that passed in the end, but with too many second tries."""
    if session.exitstatus == pytest.ExitCode.OK and len(retried(session.config)) > MOST_RETRIED:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    names = retried(config)
    if not names:
        return
    terminalreporter.section("tests that needed another try")
    for name in names:
        terminalreporter.line(name)
    if len(names) > MOST_RETRIED:
        terminalreporter.line(
            f"FAILED: {len(names)} tests needed another try, and at most {MOST_RETRIED} may (tests/retries.py)."
        )
