"""Chosen blocks as plain text and as Markdown."""

from __future__ import annotations

import numpy as np
import pytest

from transforms.pages.engine import parsed
from transforms.pages.layout import fill_groups
from transforms.pages.page import Page
from transforms.pages.writing import MARKS, markdown, plain


def groups(html: str) -> tuple[Page, np.ndarray, np.ndarray, np.ndarray]:
    """Return a page with all of its blocks chosen, and their rows and `pre`s."""
    page = parsed(html.encode())
    count = int(page.state[0]["blocks"])
    rows, pres = np.empty(count, np.int32), np.empty(count, np.int32)
    fill_groups(page, rows, pres)
    return page, np.ones(count, np.bool_), rows, pres


def as_text(html: str) -> str:
    page, chosen, rows, _ = groups(html)
    return plain(page, chosen, rows)


def as_markdown(html: str, *marks: str) -> str:
    page, chosen, rows, pres = groups(html)
    return markdown(page, chosen, rows, pres, marks or MARKS)


TABLE = "<table><tr><th>a<th>b<tr><td>1|2<td>3</table>"
CODE = "<pre>def f():\n    return 1\n</pre>"


def test_plain_text_has_a_line_a_block_and_a_line_a_row() -> None:
    assert as_text(f"<h2>T</h2><p>x<br>y<ul><li>i<li>j</ul>{TABLE}{CODE}") == (
        "T\nx\ny\ni\nj\na\tb\n1|2\t3\ndef f():\n    return 1"
    )


def test_cells_with_more_than_a_line_stand_apart() -> None:
    assert as_text("<table><tr><td><p>a<p>b<td>c<tr><td>d<br>e<td>f</table>") == "a\nb\nc\nd\ne\nf"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h2>A <b>b</b><br>c</h2><p>d", "## A b c\n\nd"),
        ("<p>a<p>b", "a\n\nb"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul><p>d", "- a\n- b\n  - c\n\nd"),
        ("<ol><li>a<p>b</p><li>c</ol>", "1. a\n   b\n2. c"),
        (TABLE, "| a | b |\n|---|---|\n| 1\\|2 | 3 |"),
        (CODE, "```\ndef f():\n    return 1\n```"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        (
            "<p>see <code>f(x)</code>, <a href='/a?b=1&amp;c'>the <b>page</b></a> now",
            "see `f(x)`, [the page](/a?b=1&c) now",
        ),
        ("<p><a href='a b'>x</a><a href=y></a> <code></code>z", "x z"),
        ("<p><a href=u>a<p>b</a>c", "[a](u)\n\nbc"),
    ],
)
def test_markdown_marks_headings_lists_tables_code_and_links(html: str, expected: str) -> None:
    assert as_markdown(html) == expected


def test_markdown_marks_only_what_it_is_asked_to() -> None:
    html = f"<h1>T</h1><ul><li><a href=x>i</a></ul>{TABLE}{CODE}<p><code>c</code>"
    assert as_markdown(html, "headings") == ("# T\n\ni\n\na\n\nb\n\n1|2\n\n3\n\ndef f():\n    return 1\n\nc")


MATHS = (
    "<p>let <math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x</annotation></semantics></math> be"
    "<script type='math/tex; mode=display'>y &lt; 2</script>or <math alttext='\\alpha'><mi>α</mi></math>."
)


def test_mathematics_is_kept_as_latex_in_both() -> None:
    expected = "let $x$ be$$y &lt; 2$$or $\\alpha$."
    assert as_text(MATHS.replace("'application/x-tex'", '"application/x-tex"')) == expected
    assert as_markdown(MATHS.replace("'application/x-tex'", '"application/x-tex"')) == expected


def test_visible_twin_of_mathematics_is_left_out() -> None:
    html = (
        '<p>a <span class=katex><math alttext="x^2"><mi>x</mi></math><span class="katex-html"><b>x2</b></span></span> b'
    )
    assert as_text(html) == "a $x^2$ b"


def test_preformatted_text_of_several_blocks_stays_together() -> None:
    html = "<pre><div>a</div><div>  b</div></pre>"
    assert as_text(html) == "a\n  b"
    assert as_markdown(html) == "```\na\n  b\n```"
