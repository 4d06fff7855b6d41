"""The page in a real browser, from file://: silent, without requests, readable at any width, in both themes, whole."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import axe_core_python  # type: ignore[import-untyped]
import pypdfium2
import pytest

from tests.viewers.browser import Browser, Opened, Theme
from tests.viewers.parsed import parse, tables
from tests.viewers.stores import HOSTILE, hostile_stage, report, stage
from viewers.report import render
from viewers.visible import HIDDEN

pytestmark = pytest.mark.browser

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text("utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OPEN_ALL = """document.querySelectorAll('details').forEach(d => d.open = true);
document.querySelectorAll('main > section').forEach(s => s.style.contentVisibility = 'visible')"""
CELLS = "table => [...table.rows].map(row => [...row.cells].map(cell => cell.textContent))"
LONG = ["x" * 1_000_000, "\ud800 lone", "\u0301" * 10_000, "\u05d0\u05d1 " * 900, "\n" * 3000]


def violations(opened: Opened) -> list[str]:
    """Return what axe-core objects to: rule and element."""
    opened.evaluate(AXE)
    found = opened.evaluate(f"axe.run({{runOnly: {RULES}, resultTypes: ['violations']}}).then(r => r.violations)")
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"][:5]]


def focused(opened: Opened) -> str:
    return str(opened.evaluate("document.activeElement.id || document.activeElement.tagName"))


@pytest.fixture
def opened(browser: Browser, token_page: Path) -> Opened:
    return browser.open(token_page)


@pytest.mark.parametrize(
    ("name", "theme", "width"), [("page", "light", 320), ("token_page", "dark", 1400), ("token_page", "light", 768)]
)
def test_page_is_silent_asks_for_nothing_fits_and_is_accessible(
    browser: Browser, name: str, theme: Theme, width: int, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(name)
    opened = browser.open(path, width, theme, at="#step-3" if name == "token_page" else "")
    assert opened.noise == []
    assert [url for url in opened.requests if not url.startswith("data:")] == [path.as_uri()]
    opened.page.fill("#search", "documents")
    opened.evaluate(OPEN_ALL)
    assert opened.overflow <= 0
    if name == "token_page":  # what axe-core once did not see, for no page had it
        counts = [opened.page.locator(f"main {what}").count() for what in (".recipe pre", "mark", "#loss .plot")]
        assert min(counts) > 0, counts
    heights = "[...document.querySelectorAll('.plot svg, .strips svg')].map(s => s.getBoundingClientRect().height)"
    assert min([*opened.evaluate(heights), 99]) > 20
    assert violations(opened) == []
    assert opened.noise == []


GROW = """still => new Promise(done => {
  document.documentElement.style.overflowAnchor = 'none';
  addEventListener('hashchange', () => requestAnimationFrame(() => {
    if (!still) dispatchEvent(new Event('wheel'));
    document.querySelector('#rights').style.paddingBottom = '4000px';
    requestAnimationFrame(() => requestAnimationFrame(() => done(
      document.querySelector('#hold-out').getBoundingClientRect().top)));
  }), { once: true });
  location.hash = '#hold-out';
})"""


def test_place_that_was_asked_for_stays_while_what_is_above_grows_unless_the_reader_moves(opened: Opened) -> None:
    assert abs(opened.page.evaluate(GROW, True)) < 100
    opened.page.evaluate("document.querySelector('#rights').style.paddingBottom = 0; location.hash = '#verdicts'")
    opened.page.wait_for_timeout(100)
    assert opened.page.evaluate(GROW, False) > 1000


@pytest.mark.parametrize("names", [HOSTILE, LONG], ids=["hostile", "long"])
def test_page_hostile_names_everywhere_are_text_fit_and_are_found(
    browser: Browser, tmp_path: Path, names: Sequence[str]
) -> None:
    path = tmp_path / "long.html"
    stages = [hostile_stage(name, number) for number, name in enumerate(names)]
    path.write_text(render(report(*stages, name=names[0])), "utf-8")
    opened = browser.open(path, 320)
    opened.evaluate(OPEN_ALL)
    for name in names:
        opened.page.fill("#search", " ".join(name.split())[:12])
        found = opened.page.text_content("#found") or ""
        assert len(found) <= 40 * 600 and (found or not flat(name)), name
    assert opened.noise == [] and opened.overflow <= 0
    assert opened.evaluate("document.scripts.length + document.images.length") == 1


def flat(name: str) -> str:
    """Return what is sought of the beginning of a name: nothing of marks, spaces and what the page names instead."""
    return "" if HIDDEN.search(name[:12]) else name[:12].strip(" \n\u0301")


def test_page_without_script_has_every_word_and_table(browser: Browser, token_page: Path) -> None:
    told = parse(token_page.read_text("utf-8"))
    opened = browser.open(token_page, scripts=False)
    assert opened.noise == [] and opened.page.locator("main table").count() == len(tables(told)) > 20
    assert opened.page.locator("main").text_content() == told.one("main").text
    assert not opened.page.locator("#search").is_visible() and not opened.page.locator("#inspector").is_visible()
    seen = browser.open(token_page).page.locator("main table").count()
    assert seen == len(tables(told))


def test_page_printed_holds_every_panel_title(opened: Opened) -> None:
    printed = pypdfium2.PdfDocument(opened.page.pdf(format="A4"))
    text = " ".join(" ".join(page.get_textpage().get_text_range() for page in printed).split())
    titles = opened.page.locator("main h2").all_text_contents()
    assert len(titles) > 9 and [title for title in titles if title not in text] == []
    assert "Search this page" not in text


def test_panels_are_reached_by_keyboard_and_single_keys_can_be_switched_off(opened: Opened) -> None:
    keyboard = opened.page.keyboard
    titles = [
        f"{name}-title" for name in opened.evaluate("[...document.querySelectorAll('main > section')].map(s => s.id)")
    ]
    for title in titles[:3]:
        keyboard.press("j")
        assert focused(opened) == title and opened.evaluate("location.hash") == f"#{title.removesuffix('-title')}"
    keyboard.press("k")
    assert focused(opened) == titles[1]
    assert 0 <= opened.evaluate("document.activeElement.getBoundingClientRect().top") < 100
    opened.page.uncheck("#single-keys")
    keyboard.press("j")
    assert focused(opened) == "single-keys"


def test_links_lead_to_panels_tables_and_into_what_is_folded(browser: Browser, token_page: Path) -> None:
    opened = browser.open(token_page, at="#duplicates")
    assert 0 <= opened.evaluate("document.querySelector('#duplicates').getBoundingClientRect().top") < 100
    opened.page.locator("#mixture .download a", has_text="Link").first.click()
    place = opened.evaluate("location.hash")
    assert place == "#table-mixture-components-by-phase"
    assert opened.evaluate(f"document.querySelector('{place} caption').textContent") == "Components by phase exact"
    folded = opened.evaluate("document.querySelector('details [id^=table-]').id")
    opened = browser.open(token_page, at=f"#{folded}")
    assert opened.evaluate(f"document.getElementById('{folded}').closest('details').open")
    assert 0 <= opened.evaluate(f"document.getElementById('{folded}').getBoundingClientRect().top") < 900


def test_search_finds_rows_tables_and_panels_by_keyboard(opened: Opened) -> None:
    keyboard = opened.page.keyboard
    keyboard.press("/")
    assert focused(opened) == "search"
    keyboard.type("ferry benchmark")
    assert re.match(r"\d+ found", opened.page.inner_text("#found-count"))
    keyboard.press("ArrowDown")
    keyboard.press("ArrowDown")
    keyboard.press("ArrowUp")
    assert focused(opened) == "BUTTON"
    keyboard.press("Enter")
    assert "ferry" in opened.evaluate("document.activeElement.textContent")
    assert opened.evaluate("document.activeElement.matches('main .found-here')")
    keyboard.press("/")
    opened.page.fill("#search", "nobody wrote this")
    assert opened.page.inner_text("#found-count") == "Nothing found"
    keyboard.press("Escape")
    assert opened.page.input_value("#search") == "" and opened.page.locator("#found li").count() == 0


def test_tables_are_sorted_within_their_groups_and_stay_stable(opened: Opened) -> None:
    table = opened.page.locator("#table-mixture-components-by-phase table")
    written = table.evaluate(CELLS)
    head = table.locator("th", has_text="Tokens read")
    orders = []
    for way in ("descending", "ascending", None):
        head.locator("button").focus()
        opened.page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == way
        orders.append(table.evaluate(CELLS))
    assert orders[2] == written != orders[1]
    groups: list[list[int]] = []
    for row in orders[1][1:]:
        if len(row) == 1:
            groups.append([])
        else:
            groups[-1].append(int(re.sub(r"\D", "", row[4])))
    assert groups == [sorted(group) for group in groups] and len(groups) == 3
    assert [row for row in orders[0] if len(row) == 1] == [row for row in written if len(row) == 1]
    opened.page.locator("#verdicts th button", has_text="Verdict").click()
    checks = opened.page.locator("#verdicts table").last.evaluate(CELLS)
    ways = [row[0].split()[-1] for row in checks[1:]]
    assert ways == sorted(ways, key=ways.index)


def test_identities_are_copied_or_selected(opened: Opened) -> None:
    digest = opened.page.inner_text("header code")
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.page.locator("header .copy").click()
    opened.page.locator("header .copy", has_text="copied").wait_for()
    assert opened.evaluate("navigator.clipboard.readText()") == digest
    opened.evaluate("void (navigator.clipboard.writeText = () => Promise.reject())")
    opened.page.locator("header .copy").click()
    opened.page.locator("header .copy", has_text="selected").wait_for()
    assert opened.evaluate("getSelection().toString()") == digest


def test_table_is_downloaded_by_its_link_from_a_file(browser: Browser, page: Path, tmp_path: Path) -> None:
    opened = browser.open(page)
    rows = opened.page.locator("#rights table").first.evaluate(CELLS)
    with opened.page.expect_download() as waiting:
        opened.page.locator("#rights .download a").first.click()
    assert waiting.value.suggested_filename == "licences-of-docs.csv"
    found = list(csv.reader(Path(waiting.value.path()).read_text("utf-8").splitlines()))
    assert found == [[cell.replace("\u202f", "") for cell in row] for row in rows] and len(found) == 4


def test_page_that_breaks_its_policy_or_is_hard_to_read_would_be_noticed(browser: Browser, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    tampered = render(report(stage())).replace("</body>", '<img src="http://127.0.0.1:9/x"><script>1</script></body>')
    broken.write_text(tampered, "utf-8")
    opened = browser.open(broken)
    assert len(opened.noise) >= 2
    opened.evaluate("document.querySelector('main p').style.color = '#bbb'")
    assert [found.split(":")[0] for found in violations(opened)] == ["color-contrast", "image-alt"]


def test_panel_that_the_address_names_is_drawn_at_once_and_lookups_lead_on(browser: Browser, token_page: Path) -> None:
    opened = browser.open(token_page, at="#lineage")
    drawn = "getComputedStyle(document.querySelector('#{}')).contentVisibility"
    assert opened.evaluate(drawn.format("lineage")) == "visible" and opened.evaluate(drawn.format("tokens")) == "auto"
    link = opened.page.locator("#steps .ids a").first
    identity = link.text_content()
    assert link.get_attribute("href") == f"#document-{identity}" and link.locator("button").count() == 0
    opened = browser.open(token_page, at=f"#document-{identity}")
    found = [int(re.sub(r"\D", "", step)) for step in opened.page.locator("#inspected th a").all_inner_texts()]
    assert found == sorted(found) and found
    opened.page.locator("#inspected th a").first.click()
    opened.page.locator("#inspected caption", has_text=f"Step {found[0]}").wait_for()
