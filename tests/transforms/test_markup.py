"""Measures of markup equal those of a plain reference, and stay near what real parsers make of a page."""

from __future__ import annotations

import re

import lxml.html
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.markup import Markup, measure_markup

WORDS = {
    "void": "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
    "raw": "script style textarea title xmp iframe noembed noframes",
    "scope": "div ul ol dl blockquote section article main aside nav form select body header footer figure fieldset "
    "details button object center caption template",
    "table": "table",
    "p": "p",
    "item": "li",
    "term": "dt dd",
    "section": "thead tbody tfoot",
    "row": "tr",
    "cell": "td th",
    "option": "option optgroup",
    "foreign": "svg math",
}
GROUPS = {name[:8]: group for group, names in WORDS.items() for name in names.split()}
IN_TABLE = {"section", "row", "cell"}
CLOSED_BY = {"section": IN_TABLE, "row": {"row", "cell"}}
TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>\x00-\x20]*)(?P<rest>(?:=[\x00-\x20]*\"[^\"]*(?:\"|\Z)|=[\x00-\x20]*'[^']*(?:'|\Z)|[^>])*?)(?:>|\Z)"
    r"|<[/!?].*?(?:>|\Z)",
    re.DOTALL,
)


def reference(page: str, max_depth: int) -> Markup:
    """What the kernel does, as plainly as it can be said."""
    elements = depth = nesting = visible = at = 0
    opened: list[str] = []
    while at < len(page):
        token = TOKEN.match(page, at)
        if token is None:
            visible += page[at] > " "
            at += 1
            continue
        at = token.end()
        if token["name"] is None:
            continue
        name = token["name"].lower()[:8]
        if token["end"]:
            if name in opened:
                del opened[len(opened) - 1 - opened[::-1].index(name) :]
            continue
        group = GROUPS.get(name, "")
        put = len(opened)
        if group in CLOSED_BY or group in ("p", "item", "term", "cell", "option"):
            for below in range(len(opened) - 1, -1, -1):
                old = GROUPS.get(opened[below], "")
                if old in CLOSED_BY.get(group, {group}):
                    put = below
                elif old == "table" or (old in ("scope", "cell") and group not in IN_TABLE):
                    break
        del opened[put:]
        elements += 1
        nesting += put + 1
        depth = max(depth, put + 1)
        if depth > max_depth:
            break
        if group == "raw":
            found = next(
                (
                    m.start()
                    for m in re.finditer(r"</([a-zA-Z][^\x00-\x20/>]*)", page)
                    if m.start() >= at and m[1].lower()[:8] == name
                ),
                len(page),
            )
            at = found
        closed = token[0].endswith("/>") and any(GROUPS.get(o) == "foreign" for o in opened)
        if group not in ("void", "raw") and not closed:
            opened.append(name)
    return Markup(elements, depth, nesting, visible)


NAMES = ["div", "p", "li", "ul", "table", "tr", "td", "th", "tbody", "b", "BR", "script", "dt", "dd", "svg", "option"]
PIECES = st.one_of(
    st.sampled_from(NAMES).map("<{}>".format),
    st.sampled_from(NAMES).map("</{}>".format),
    st.sampled_from(NAMES).map("<{}/>".format),
    st.sampled_from(
        [
            "text",
            " ",
            "<!-- <div> -->",
            "<!---->",
            "<!--",
            "<!doctype html>",
            "<?xml x?>",
            "</ x>",
            "< div",
            "<",
            ">",
            "é",
            "<a href='<b>'>",
            '<a title=">">',
            "<a x=y'>",
            '<a ="\'">',
            "<a b",
            "<1>",
            "</>",
            "-->",
            "'",
            '"',
            "<custom-element>",
        ]
    ),
)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from([3, 200]))
def test_measures_equal_the_reference(page: str, max_depth: int) -> None:
    assert measure_markup(page.encode(), max_depth) == reference(page, max_depth)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_are_measured(page: bytes) -> None:
    assert measure_markup(page, 5).depth <= 6


@pytest.mark.parametrize(
    "page",
    [
        "<html><body><div><p>a<p>b<p>c<ul><li>x<li>y<li><ul><li>z</ul></ul></div>",
        "<html><body><table><tr><td>a<td>b<tr><td><table><tr><td>c</table></table>",
        "<html><body><dl><dt>a<dd>b<dt>c<dd>d</dl><select><option>1<option>2</select>",
        "<html><head><title>a</title><script>'<div>'</script></head><body><div><b>x</b></div></body></html>",
        "<html><body>" + "<p>words" * 500,
        "<html><body>" + "<div><i>words</div>" * 300,
    ],
)
def test_depth_is_near_that_of_libxml2(page: str) -> None:
    tree = lxml.html.document_fromstring(page)
    deepest = max(sum(1 for _ in element.iterancestors()) + 1 for element in tree.iter())
    assert abs(measure_markup(page.encode(), 200).depth - deepest) <= 1


def test_too_deep_page_is_left_early() -> None:
    page = b"<div>" * 1_000_000
    assert measure_markup(page, 200) == Markup(201, 201, 201 * 202 // 2, 0)
