"""Starts Chromium for the tests of this folder, and skips them where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
]

Driver = Any
"""A Selenium driver: its Chrome class carries no types for the DevTools calls used here."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = BROWSER is None or DRIVER is None
    reason = "needs Chromium and its driver on the PATH (Debian: chromium, chromium-driver)"
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.skipif(missing, reason=reason))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Driver]]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    started: list[Driver] = []

    def start_browser(**preferences: int) -> Driver:
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for argument in [*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"]:
            options.add_argument(argument)
        options.add_experimental_option("prefs", {name.replace("__", "."): v for name, v in preferences.items()})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(executable_path=DRIVER)
        started.append(webdriver.Chrome(options=options, service=service))
        return started[-1]

    yield start_browser
    for driver in started:
        driver.quit()


@pytest.fixture(scope="module")
def browser(start: Callable[..., Driver]) -> Driver:
    return start()


@pytest.fixture(scope="module")
def without_scripts(start: Callable[..., Driver]) -> Driver:
    return start(profile__managed_default_content_settings__javascript=2)
