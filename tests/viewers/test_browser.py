"""The page in a real browser, from file://: silent, without requests, readable at any width and in both themes."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import pytest

from tests.viewers.browser import Browser
from tests.viewers.parsed import parse
from tests.viewers.stores import hostile_stage, report
from viewers.report import render

pytestmark = pytest.mark.browser

NOISE = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening")
CONTRAST = """
(() => {
  const parse = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const node of document.querySelectorAll('main *, header *, nav *')) {
    if (node.closest('svg') || ![...node.childNodes].some(c => c.nodeType === 3 && c.textContent.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) low.add(node.tagName + '.' + node.className);
  }
  return [...low];
})()
"""


def requests(events: list[dict[str, Any]]) -> list[str]:
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_opened_from_a_file_is_silent_and_asks_for_nothing(browser: Browser, page: Path, theme: str) -> None:
    events = browser.open(page, 1400, theme)
    assert [event for event in events if event["method"] in NOISE] == []
    assert [url for url in requests(events) if not url.startswith("data:")] == [page.as_uri()]


@pytest.mark.parametrize("width", [320, 360, 768, 1400])
def test_page_any_width_does_not_scroll_sideways(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_text_has_enough_contrast_in_both_themes(browser: Browser, page: Path, theme: str) -> None:
    browser.open(page, 1000, theme)
    assert browser.evaluate(CONTRAST) == []


@pytest.mark.parametrize("width", [320, 1400])
@pytest.mark.parametrize("name", ["x" * 5000, "\u0301" * 5000, "\u05d0\u05d1 " * 900, "\n" * 3000])
def test_page_names_without_end_do_not_scroll_sideways(browser: Browser, tmp_path: Path, name: str, width: int) -> None:
    path = tmp_path / "long.html"
    path.write_text(render(report(hostile_stage(name, 1), hostile_stage(name, 2), name=name)), "utf-8")
    browser.open(path, width)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "theme"), [(360, "light"), (1400, "dark")])
def test_page_with_tokens_is_silent_readable_and_fits(
    browser: Browser, token_page: Path, width: int, theme: str
) -> None:
    events = browser.open(token_page, width, theme)
    assert [event for event in events if event["method"] in NOISE] == []
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(CONTRAST) == []
    heights = "[...document.querySelectorAll('.plot svg, .strips svg')].map(s => s.getBoundingClientRect().height)"
    assert min(browser.evaluate(heights)) > 20


def test_page_shows_every_word_of_the_file(browser: Browser, page: Path) -> None:
    browser.open(page, 1000)
    seen = browser.evaluate("document.body.textContent")
    assert seen.strip() == parse(page.read_text("utf-8")).one("body").text.strip()
    assert browser.evaluate("document.scripts.length + document.images.length") == 0
    assert browser.evaluate("document.compatMode") == "CSS1Compat"


def test_table_is_downloaded_by_its_link_from_a_file(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.open(page, 1000)
    browser.call("Browser.setDownloadBehavior", session=None, behavior="allow", downloadPath=str(tmp_path))
    rows = browser.evaluate(
        "[...document.querySelector('#rights table').rows].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    browser.evaluate("document.querySelector('#rights .download a').click()")
    path = tmp_path / "licences-of-docs.csv"
    for _ in range(100):
        if path.exists() and path.stat().st_size:
            break
        time.sleep(0.05)
    found = list(csv.reader(path.read_text("utf-8").splitlines()))
    assert found == [[cell.replace("\u202f", "") for cell in row] for row in rows] and len(found) == 4


def test_page_that_breaks_its_policy_would_be_noticed(browser: Browser, page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    tampered = page.read_text("utf-8").replace("</body>", '<img src="http://127.0.0.1:9/x"><script>1</script></body>')
    broken.write_text(tampered, "utf-8")
    events = browser.open(broken, 1000)
    assert [event for event in events if event["method"] in NOISE]
