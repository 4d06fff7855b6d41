"""One pass over a page gives the blocks that HTML's own tree gives, whatever the page."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.extractor_tree import tree_blocks
from transforms.pages.engine import parsed
from transforms.pages.page import MAX_DEPTH

PAGES = Path(__file__).parents[4] / "shared" / "data" / "extraction" / "wcxb_dev.parquet"


def blocks_of(html: str) -> list[str]:
    page = parsed(html.encode())
    blocks = page.blocks[: page.state[0]["blocks"]]
    return [page.text[block["start"] : block["end"]].tobytes().decode() for block in blocks]


SAME = {
    "paragraphs": "<p>One <b>two</b><p>three<div>four</div>five",
    "unclosed items": "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e",
    "terms": "<dl><dt>a<dd>b<dd>c<dt>d</dl>",
    "table": "<table><caption>t</caption><tr><th>a<th>b<tr><td>1<td><p>2<p>3<tfoot><tr><td>z</table>end",
    "table without rows": "<table><td>a<td>b</table>",
    "breaks": "<p>a<br>b<br/>c<br><br>d</br>e",
    "headings": "<h1>a<h2>b</h3>c",
    "formatting across blocks": "<b>a<p>b</b>c</p>d<i>e<div>f</i>g</div>",
    "nested links": "<a href=x>a<a href=y>b</a>c</a>d",
    "comments": "a<!-- <p>x --><!-->b<!--->c<!-- x --!>d<!doctype x><?php x ?>e",
    "raw text": "<script>'<p>x</p>'</script><style>p</style><textarea><p>x</textarea>a<iframe><p>x</iframe>b",
    "select": "<select><option>x<option>y</select>a<button>b</button>c",
    "svg": "<svg><text>x</text><title>y</title></svg>a<svg/>b",
    "references": "&lt;p&gt; &amp;amp &eacute;&eacutex &notit; &nGt; &#65;&#x42;&#128;&#0; &unknown; &",
    "attributes": "<p title='a>b' x=\"</p>\" y=a>b z>c</p><p/>d<img alt='>'>e",
    "not tags": "a < b <3 </ > </3> <> d<p",
    "end tags without start": "</div></p></li>a</p>b</td>c",
    "blanks": " <p> a \n\t b \u00a0c </p>\u3000<p>\u00a0</p> d",
    "invisible": "a\u200bb\ufeff c&shy;d",
    "body twice": "<body>a<body class=x>b</html>c",
    "head only": "<head><title>x</title></head>",
    "other scripts": "<p>汉字、かな。<p>été naïve<p>Ελλάδα",
    "object": "<object>x<p>y</object>a<noscript>z</noscript>b",
    "form in form": "<form>a<form>b</form>c</form>d",
    "upper case": "<DIV>a<P>b</DIV>c",
}


@pytest.mark.parametrize("html", SAME.values(), ids=SAME)
def test_blocks_of_a_page_equal_those_of_its_tree(html: str) -> None:
    assert blocks_of(html) == tree_blocks(html)


@pytest.mark.skipif(not PAGES.exists(), reason="../shared/data/extraction is not there")
def test_blocks_of_real_pages_equal_those_of_their_trees() -> None:
    """The rest differs by what the pass leaves out on purpose: foster parenting, formatting rebuilt, `pre`, math."""
    same = total = 0
    for value in pq.read_table(PAGES, columns=["html"]).slice(0, 12)["html"].to_pylist():
        html = (value if isinstance(value, bytes) else value.encode()).decode("utf-8", "replace")
        if len(html) < 300_000:
            expected = [" ".join(block.split()) for block in tree_blocks(html)]
            found = [" ".join(block.split()) for block in blocks_of(html)]
            total += len(expected)
            same += len(set(expected) & set(found)) + len(expected) - len(set(expected))
    assert same >= 0.97 * total


def test_preformatted_text_keeps_line_ends_and_indents() -> None:
    assert blocks_of("<pre>\n  if a:\n\n\tb <b>c</b>  d\n</pre>") == ["  if a:\n\n\tb c  d"]
    assert blocks_of("<pre>a<br>b\r\nc</pre>") == ["a\nb\nc"]


def test_noscript_is_read_only_where_a_page_has_little_else() -> None:
    hidden = f"<script>{'x' * 4000}</script><noscript><p>inside</noscript>"
    assert blocks_of(hidden + "<p>a") == ["inside", "a"]
    assert blocks_of(hidden + f"<p>{'a' * 600}") == ["a" * 600]


def test_words_and_marks_of_a_block_are_counted() -> None:
    page = parsed(b"<p>It's 20 a.m., <a href=x>see Page</a>: <b>done</b>!")
    block = page.blocks[0]
    assert [int(block[name]) for name in ("words", "characters", "linked", "bold", "links")] == [7, 24, 7, 4, 1]
    assert [int(block[name]) for name in ("digits", "capitals", "commas", "stops", "marks")] == [2, 2, 1, 3, 6]


NASTY = {
    "deep": "<div>" * 100_000 + "x",
    "deep inline": "<b>" * 30_000 + "x" + "</b>" * 30_000,
    "deep lists": "<ul><li>" * 20_000 + "x",
    "end tags": "<div>" * 600 + "</p></span>" * 5_000,
    "long attribute": "<p class='" + "a b" * 300_000 + "'>x",
    "colspan": "<table><td colspan=9007199254740991 rowspan=9007199254740991>x</table>",
    "entities": "&nGt;" * 50_000 + "&amp" * 50_000,
    "math without end": "<math>" * 20_000,
    "comments without end": "<!--" * 50_000,
    "quotes without end": "<p a='" * 20_000,
    "many tables": "<table>" * 20_000 + "x",
    "nothing": "",
    "one byte": "<",
    "zeros": "\0" * 1000 + "<p\0>x\0y",
    "svg in svg": "<svg><foreignObject><p>" * 5_000 + "x</svg>",
}


@pytest.mark.parametrize("html", NASTY.values(), ids=NASTY)
def test_pass_over_a_hostile_page_stays_within_its_bounds(html: str) -> None:
    page = parsed(html.encode())
    state = page.state[0]
    assert state["end"] <= page.text.size
    assert state["depth"] == 0
    assert (page.elements["depth"][: state["elements"]] <= MAX_DEPTH).all()
    blocks = page.blocks[: state["blocks"]]
    assert (blocks["start"] < blocks["end"]).all()
    assert (blocks["end"][:-1] <= blocks["start"][1:]).all()
    page.text[: state["end"]].tobytes().decode()


PIECES = (
    "<p>|</p>|<div>|</div>|<li>|<ul>|</ul>|<b>|</b>|<td>|<tr>|<table>|</table>|<br>|<h1>|</h2>|<a href=x>|</a>|"
    "<select>|<svg>|<math>|</math>|<pre>|<!--|-->|<script>|</script>|&amp;|&|<|>|'| |\n|x|é|\0"
)


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES.split("|")), max_size=40))
def test_pass_over_any_sequence_of_tags_ends_in_ordered_blocks(parts: list[str]) -> None:
    page = parsed("".join(parts).encode())
    blocks = page.blocks[: page.state[0]["blocks"]]
    assert (blocks["start"] < blocks["end"]).all()
    assert (blocks["end"][:-1] <= blocks["start"][1:]).all()
    assert page.state[0]["skipping"] == page.state[0]["foreign"] == page.state[0]["depth"] == 0
