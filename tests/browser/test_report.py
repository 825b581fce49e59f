"""The report in a real Chromium, opened from disk as a reader opens it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.reports import DRAWN, drawn, invented

from bottleneck_doctor.render import html

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

STICKING_OUT = """
return [...document.querySelectorAll("body *")]
  .filter((element) => element.getBoundingClientRect().right > arguments[0] && !element.closest(".scroll, svg"))
  .map((element) => `${element.tagName}.${element.className}`);
"""

CONTRAST = """
const parse = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
const luminance = (rgb) => {
  const [r, g, b] = rgb.slice(0, 3).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const solid = (rgb) => rgb.length === 3 || rgb[3] === 1;
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = parse(getComputedStyle(at).backgroundColor);
    if (color.length && solid(color)) return color;
  }
  return parse(getComputedStyle(document.documentElement).backgroundColor);
};
const weak = [];
for (const details of document.querySelectorAll("details")) details.open = true;
for (const element of document.querySelectorAll("body *")) {
  const own = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || !element.getClientRects().length || element.closest("script, style, title, .skip")) continue;
  const look = getComputedStyle(element);
  const paint = element.closest("svg") ? look.fill : look.color;
  // Text of a drawing stands on the shape drawn just before it, else on the page.
  const shape = element.closest("svg") && element.previousElementSibling;
  const ground = shape?.matches("rect") && getComputedStyle(shape).fill !== "none"
    ? parse(getComputedStyle(shape).fill)
    : behind(element.closest("svg")?.parentElement || element);
  const [one, other] = [luminance(parse(paint)), luminance(ground)];
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) weak.push(`${element.tagName}.${element.className}: ${ratio.toFixed(2)}`);
}
return weak;
"""


FIGURES = "figures"
"""The page of the made-up result, whose figures these tests know."""
Driver = Any
"""A Selenium driver, which `conftest.py` starts."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    folder = tmp_path_factory.mktemp("reports")
    for name in DRAWN:
        (folder / f"{name}.html").write_text(html.render(drawn(name)), encoding="utf-8")
    (folder / f"{FIGURES}.html").write_text(html.render(invented("pets")), encoding="utf-8")
    return lambda name: (folder / f"{name}.html").as_uri()


def resize(driver: Driver, width: int, scheme: str = "light") -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )


@pytest.mark.parametrize("name", DRAWN)
def test_page_opens_without_a_complaint(browser: Driver, address: Callable[[str], str], name: str) -> None:
    browser.get_log("browser")
    resize(browser, 1280)
    browser.get(address(name))
    assert browser.get_log("browser") == []
    assert browser.find_element(By.ID, "verdict").is_displayed()
    fetched = browser.execute_script("return performance.getEntriesByType('resource').length")
    assert fetched == 0


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("width", [1280, 400, 320])
def test_nothing_sticks_out_sideways(browser: Driver, address: Callable[[str], str], name: str, width: int) -> None:
    resize(browser, width)
    browser.get(address(name))
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true;")
    if browser.execute_script("return document.documentElement.scrollWidth") > width:
        pytest.fail(f"wider than {width}: {browser.execute_script(STICKING_OUT, width)}")


@pytest.mark.parametrize("name", ["pets", "gpu"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_light_and_dark(
    browser: Driver, address: Callable[[str], str], scheme: str, name: str
) -> None:
    resize(browser, 1280, scheme)
    browser.get(address(name))
    assert browser.execute_script(CONTRAST) == []
    red = browser.execute_script("return parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
    assert (red < 60) == (scheme == "dark")


def test_answer_is_in_the_first_screen(browser: Driver, address: Callable[[str], str]) -> None:
    resize(browser, 1280)
    browser.get(address(FIGURES))
    change = browser.find_element(By.CSS_SELECTOR, ".answer ins")
    assert "num_workers=4, persistent_workers=True" in change.text
    because = browser.find_element(By.CSS_SELECTOR, ".because")
    assert "train.py:58" in because.text
    assert because.rect["y"] + because.rect["height"] < 900


def test_drawings_have_titles_and_headings_are_in_order(browser: Driver, address: Callable[[str], str]) -> None:
    browser.get(address(FIGURES))
    assert browser.execute_script(
        "return [...document.querySelectorAll('svg[role=img]')]"
        ".every((s) => s.querySelector('title').textContent.length > 3)"
    )
    levels = browser.execute_script("return [...document.querySelectorAll('h1,h2,h3,h4')].map((h) => +h.tagName[1])")
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_copying_gives_the_new_line(browser: Driver, address: Callable[[str], str]) -> None:
    browser.get(address(FIGURES))
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    button = browser.find_element(By.XPATH, "//button[text()='Copy new line']")
    button.click()
    browser.execute_async_script("setTimeout(arguments[0], 100)")
    assert button.text == "Copied"
    copied = browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == (
        "    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4, persistent_workers=True)"
    )


def test_raw_windows_can_be_sorted(browser: Driver, address: Callable[[str], str]) -> None:
    resize(browser, 1280)
    browser.get(address(FIGURES))
    browser.execute_script("document.querySelector('.windows').closest('details').open = true;")
    browser.find_element(By.XPATH, "//button[text()='Timed, s']").click()
    seconds = browser.execute_script(
        "return [...document.querySelectorAll('.windows tbody tr')].map((r) => parseFloat(r.cells[7].textContent))"
        ".filter((s) => !isNaN(s))"
    )
    assert len(seconds) == 48
    assert seconds == sorted(seconds)


def test_a_link_opens_what_it_leads_into(browser: Driver, address: Callable[[str], str]) -> None:
    browser.get(address(FIGURES) + "#fix-compile")
    assert browser.find_element(By.ID, "fix-compile").is_displayed()


def test_a_fix_leads_to_a_finding_that_is_folded(browser: Driver, address: Callable[[str], str]) -> None:
    browser.get(address(FIGURES))
    folded = browser.find_element(By.ID, "finding-slow-epoch-turn")
    assert not folded.is_displayed()
    link = browser.find_element(By.CSS_SELECTOR, "#fix-persistent-workers a[href='#finding-slow-epoch-turn']")
    link.send_keys(Keys.ENTER)
    assert folded.is_displayed()


@pytest.mark.parametrize(("width", "shown"), [(1280, "wide"), (390, "narrow")])
def test_machine_is_drawn_for_the_width_of_the_screen(
    browser: Driver, address: Callable[[str], str], width: int, shown: str
) -> None:
    resize(browser, width)
    browser.get(address("gpu"))
    drawn = [each for each in browser.find_elements(By.CSS_SELECTOR, "#machine .machine-chart") if each.is_displayed()]
    assert len(drawn) == 1
    assert shown in drawn[0].get_attribute("class").split()
    assert drawn[0].rect["width"] <= width


def test_flame_graphs_open_by_keyboard(browser: Driver, address: Callable[[str], str]) -> None:
    resize(browser, 1280)
    browser.get(address("gpu"))
    details = browser.find_element(By.CSS_SELECTOR, "#code details")
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert details.find_element(By.CSS_SELECTOR, ".flame").is_displayed()


def test_keyboard_reaches_the_folded_parts(browser: Driver, address: Callable[[str], str]) -> None:
    resize(browser, 1280)
    browser.get(address(FIGURES))
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the verdict"
    summary = browser.find_element(By.CSS_SELECTOR, "details.group summary")
    summary.send_keys(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, "details.group").get_attribute("open") is not None


def test_page_is_complete_without_scripts(without_scripts: Driver, address: Callable[[str], str]) -> None:
    without_scripts.get_log("browser")
    without_scripts.get(address(FIGURES))
    assert without_scripts.find_elements(By.TAG_NAME, "button") == []
    assert without_scripts.find_element(By.ID, "verdict").is_displayed()
    assert without_scripts.find_element(By.CSS_SELECTOR, ".answer ins").is_displayed()
    assert without_scripts.find_element(By.CSS_SELECTOR, "#workers svg").is_displayed()
    for part in ("#why .finding", "#step .timeline", "#loading .bar", "#machine svg", "#code .heat-4", "#device table"):
        assert without_scripts.find_element(By.CSS_SELECTOR, part).is_displayed()
    without_scripts.find_element(By.CSS_SELECTOR, "details.group summary").click()
    assert without_scripts.find_element(By.ID, "fix-amp-bf16").is_displayed()
