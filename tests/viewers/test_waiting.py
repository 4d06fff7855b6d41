"""A long page keeps what is far down as text: without script it is all there, with it all is made, and found before."""

from __future__ import annotations

from pathlib import Path

import pypdfium2
import pytest

from curate.store import Store
from tests.viewers.browser import Browser
from tests.viewers.parsed import parse, tables
from tests.viewers.stores import Made
from viewers.loading import load_report
from viewers.report import compose

TEXT = "document.querySelector('main').textContent"
WAITS = "document.querySelectorAll('main noscript').length"


@pytest.fixture(scope="module")
def pages(trained: Made, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same page, one of which waits with nearly everything."""
    report = load_report(Store(trained.root), trained.folder, [])
    folder = tmp_path_factory.mktemp("waiting")
    whole, late = folder / "whole.html", folder / "late.html"
    whole.write_bytes(compose(report).page)
    late.write_bytes(compose(report, 2_000).page)
    return whole, late


def test_waiting_page_has_the_same_words_and_tables_with_and_without_script(pages: tuple[Path, Path]) -> None:
    whole, late = (parse(path.read_text("utf-8")) for path in pages)
    assert len(list(late.all("noscript"))) > 10 and not list(whole.all("noscript"))
    assert late.one("main").text == whole.one("main").text
    assert tables(late) == tables(whole)


@pytest.mark.browser
def test_waiting_page_makes_all_of_itself_the_same(browser: Browser, pages: tuple[Path, Path]) -> None:
    whole, late = pages
    plain = browser.open(late, scripts=False)
    assert plain.page.locator("#lineage table").first.is_visible()
    assert plain.page.locator("main table").count() == len(tables(parse(late.read_text("utf-8"))))
    wanted = browser.open(whole).evaluate(TEXT)
    opened = browser.open(late)
    opened.page.locator("main noscript").first.wait_for(state="detached")
    assert opened.evaluate(TEXT) == wanted
    buttons = "document.querySelectorAll('main .sort, main .copy').length"
    assert opened.noise == [] and opened.requests[:1] == [late.as_uri()]
    assert opened.evaluate(buttons) == browser.open(whole).evaluate(buttons) > 50


@pytest.mark.browser
def test_waiting_place_is_made_when_an_address_a_search_or_a_print_asks_for_it(
    browser: Browser, pages: tuple[Path, Path]
) -> None:
    late = pages[1]
    stopped = "globalThis.requestIdleCallback = () => 0"  # nothing is made until it is asked for
    browser.prepare = stopped
    try:
        opened = browser.open(late, at="#table-tokens-token-caches")
        left = opened.evaluate(WAITS)
        assert left > 10 and opened.page.locator(":target caption", has_text="Token caches").count() == 1
        assert 0 <= opened.evaluate("document.querySelector(':target').getBoundingClientRect().top") < 300
        opened = browser.open(late, at="#step-3")
        assert opened.evaluate(WAITS) == left and opened.page.locator("#inspected caption", has_text="Step 3").count()
        opened.page.keyboard.press("Escape")
        opened.page.evaluate("document.querySelector('nav a[href=\"#lineage\"]').click()")
        opened.page.locator("#lineage table").first.wait_for()
        opened.page.fill("#search", "seed")
        assert opened.evaluate(WAITS) == 0 and opened.page.locator("#found li").count() > 0
        opened = browser.open(late)
        assert opened.evaluate(WAITS) == left + 1
        printed = pypdfium2.PdfDocument(opened.page.pdf(format="A4"))
        text = " ".join(page.get_textpage().get_text_range() for page in printed)
        assert "Token caches" in text and opened.noise == []
    finally:
        browser.prepare = ""
