"""The page of a check in a real Chromium: from disk, and as Jenkins serves an archived file."""

from __future__ import annotations

import runpy
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bottleneck_doctor.render.check import page

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By

PAGES = {
    name: page.render(check)
    for name, check in runpy.run_path(str(Path(__file__).parents[1] / "golden" / "checks.py"))["results"]().items()
}

JENKINS = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self';"
"""What hudson.model.DirectoryBrowserSupport sends with every archived file."""

Driver = Any


class Archive(BaseHTTPRequestHandler):
    """Serves the pages as Jenkins would."""

    def do_GET(self) -> None:
        page = PAGES.get(self.path.strip("/"), "").encode()
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Security-Policy", JENKINS)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def jenkins() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    folder = tmp_path_factory.mktemp("checks")
    for name, text in PAGES.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return lambda name: (folder / f"{name}.html").as_uri()


@pytest.mark.parametrize("name", PAGES)
def test_it_opens_without_a_complaint(browser: Driver, address: Callable[[str], str], name: str) -> None:
    browser.get_log("browser")
    browser.get(address(name))
    assert browser.get_log("browser") == []
    assert browser.find_element(By.TAG_NAME, "h1").is_displayed()
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("name", PAGES)
def test_nothing_sticks_out_of_a_narrow_screen(browser: Driver, address: Callable[[str], str], name: str) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 320, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get(address(name))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 320


def test_it_reads_as_jenkins_serves_it(browser: Driver, jenkins: str) -> None:
    browser.get_log("browser")
    browser.get(f"{jenkins}/regressed")
    complaints = [each["message"] for each in browser.get_log("browser") if "favicon" not in each["message"]]
    assert complaints, "the stylesheet was refused, or this test shows nothing"
    assert all("style" in each for each in complaints), complaints
    text = browser.find_element(By.TAG_NAME, "body").text
    order = [
        "A step takes 31 % longer", "What to know about these figures", "Base and head", "Step time",
        "training/data.py:42", "function sharpened", "Commits from base to head", "How this was measured",
    ]  # fmt: skip
    places = [text.find(part) for part in order]
    assert -1 not in places, text
    assert places == sorted(places)
    rows = [row.text for row in browser.find_elements(By.TAG_NAME, "tr")]
    assert "Step time 100 ms 131 ms +31 % (+28 to +34) 5 % 2.8 % worse" in rows
