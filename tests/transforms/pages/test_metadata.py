"""What a page says of itself: the first place that says it, and nothing that is no date, name or address."""

from __future__ import annotations

import pytest

from transforms.pages.engine import parsed
from transforms.pages.metadata import MOST, Facts, facts_of


def facts(html: str) -> Facts:
    return facts_of(parsed(html.encode()))


FULL = """<html lang="en-GB"><head><title>The hill | News</title>
<meta property="og:title" content="The hill &amp; the  barn"><meta name="author" content="A. Smith">
<meta property="article:published_time" content="2021-03-04T05:06:07Z"><meta property=og:type content=article>
<link rel=canonical href="https://example.org/hill"></head><body><time datetime="2020-01-01">x</time>"""
JSON = """<script type="application/ld+json">{"@type": "Product", "author": [{"@type": "Person", "name": "B. Jones"}],
"datePublished": "2019-12-31"}</script>"""


def test_facts_of_a_page_come_from_the_first_place_that_says_them() -> None:
    expected = Facts("The hill & the barn", "A. Smith", "2021-03-04", "en-GB", "https://example.org/hill", "article")
    assert facts(FULL) == expected


def test_facts_of_a_page_without_head_are_none() -> None:
    assert facts("<p>x") == Facts(None, None, None, None, None, None)


def test_json_ld_and_elements_serve_where_the_head_is_silent() -> None:
    found = facts(f"<title> A\n b </title>{JSON}<p>x<time datetime='2018-01-02'>x</time>")
    assert found == Facts("A b", "B. Jones", "2019-12-31", None, None, "product")
    assert facts("<body><time datetime=20180102>x</time>").date == "2018-01-02"


@pytest.mark.parametrize(
    "html",
    [
        "<meta name=date content='yesterday'>",
        "<meta name=date content='2021-13-01'>",
        "<meta property=article:author content='https://facebook.com/x'>",
        "<link rel=canonical href='/here'>",
        "<html lang='zxx-<script>'>",
        "<title> </title><meta property=og:title content=''>",
        """<script type=application/ld+json>{"author": {"@id": "x"}}</script>""",
    ],
)
def test_what_is_no_date_name_or_address_is_left_out(html: str) -> None:
    assert facts(html) == Facts(None, None, None, None, None, None)


def test_long_values_are_cut() -> None:
    title = facts(f"<title>{'é' * 100_000}</title>").title
    assert title is not None
    assert len(title) == MOST
