"""The lookup in C names the classes that lxml.html's own names, and trafilatura's texts do not change by it."""

from __future__ import annotations

import pytest
import trafilatura.utils
from lxml import html

from transforms.element_classes import element_classes
from transforms.extraction import ExtractText

TAGS = sorted(html.HtmlElementClassLookup()._element_classes)
PAGE = (
    "<!doctype html><html><head><title>Rivers</title></head><body><!-- a comment --><?php echo 1 ?>"
    + "".join(f"<{tag.upper()} id=a-{tag}>{tag}</{tag}>" for tag in TAGS)
    + "<svg:g>g</svg:g><made-up>m</made-up><article><h1>Rivers</h1>"
    + "".join(f"<p>River number {number} has rather a lot of water in it, as rivers do.</p>" for number in range(20))
    + "<ul><li>One<li>Two</ul><form><label>Name <input name=n></label></form></article></body></html>"
)


def test_element_classes_of_a_page_are_those_of_lxml_html() -> None:
    fast = html.HTMLParser()
    fast.set_element_class_lookup(element_classes())
    found = [[(node.tag, type(node)) for node in html.fromstring(PAGE, parser=it).iter()] for it in (None, fast)]
    assert found[0] == found[1]
    assert len({kind for _, kind in found[0]}) >= 7  # those of forms and of what is no element, too


def test_element_classes_leave_the_texts_of_trafilatura_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ExtractText("trafilatura")._by_extractor(PAGE)
    parser = html.HTMLParser(
        collect_ids=False, default_doctype=False, encoding="utf-8", remove_comments=True, remove_pis=True
    )
    monkeypatch.setattr(trafilatura.utils, "HTML_PARSER", parser)
    assert ours == trafilatura.extract(PAGE, include_comments=False)
    assert "River number 19" in ours
