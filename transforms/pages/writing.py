"""The chosen blocks as text: plain, a block a line, or Markdown (CommonMark, tables as in GitHub's).

Plain text has no marks: cells of a row stand behind tabs, `pre` keeps its line breaks and indents. Markdown marks what
it is asked to: headings, lists with their depth and numbers, tables, code, links. In both, mathematics is LaTeX between
dollar signs. Characters that Markdown would read as marks are not escaped: the text is read, not rendered.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transforms.pages import elements as el
from transforms.pages.layout import Int32s, fill_items, join
from transforms.pages.mathml import delimited, latex
from transforms.pages.page import (
    CODE_END,
    CODE_START,
    LINK_END,
    LINK_START,
    MATH_BYTE,
    MATHML,
    TEX,
    TEX_DISPLAY,
    Page,
)

MARKS: Final = ("headings", "lists", "tables", "code", "links")
"""What Markdown can mark."""

_MATH: Final = bytes([MATH_BYTE])
_HEADINGS: Final = {el.CODES[f"h{level}"]: level for level in range(1, 7)}
_FENCE: Final = re.compile(r"`{3,}")
_LONGEST_ADDRESS: Final = 2000
_SPACE: Final = " \t\r\n"
_NO_ADDRESS: Final = re.compile(r"[ \t\r\n()<>]")

Chosen = npt.NDArray[np.bool_]


def plain(page: Page, chosen: Chosen, rows: Int32s) -> str:
    """Return the chosen blocks as plain text."""
    text = np.empty(page.state[0]["end"] + 8, np.uint8)
    content = text[: join(page, chosen, rows, text)].tobytes()
    if _MATH not in content:
        return content.decode("utf-8", "replace")
    places = [place for start, end in _spans(page, chosen) for place in _math_places(page, start, end)]
    math = _math(page)
    sources = iter([math.get(place, "") for place in places])
    pieces = content.split(_MATH)
    return "".join(
        piece.decode("utf-8", "replace") + (next(sources, "") if number < len(pieces) - 1 else "")
        for number, piece in enumerate(pieces)
    )


def _spans(page: Page, chosen: Chosen) -> Iterator[tuple[int, int]]:
    blocks = page.blocks[: len(chosen)][chosen]
    return zip(blocks["start"].tolist(), blocks["end"].tolist(), strict=True)


def _math_places(page: Page, start: int, end: int) -> list[int]:
    return (np.flatnonzero(page.text[start:end] == MATH_BYTE) + start).tolist()


def _math(page: Page) -> dict[int, str]:
    """Return place in the text → LaTeX."""
    found = {}
    for kind, place, start, end in page.marks[: page.state[0]["marks"]].tolist():
        if kind in (MATHML, TEX, TEX_DISPLAY):
            source = page.data[start:end].tobytes().decode("utf-8", "replace")
            found[place] = (
                latex(source) if kind == MATHML else delimited(source.strip(_SPACE), displayed=kind == TEX_DISPLAY)
            )
    return found


def markdown(page: Page, chosen: Chosen, rows: Int32s, pres: Int32s, marks: tuple[str, ...]) -> str:
    """Return the chosen blocks as Markdown with the `marks` that are asked for."""
    inline = _Inline(page, marks)
    lines: list[str] = []
    before: tuple[str, int] = ("", -1)
    items, depths = np.empty(len(chosen), np.int32), np.empty(len(chosen), np.int32)
    fill_items(page, items, depths)
    for at in np.flatnonzero(chosen).tolist():
        row, pre = int(rows[at]), int(pres[at])
        text = inline.text(at, is_code=pre >= 0)
        if row >= 0 and "tables" in marks:
            _add_cell(lines, text, is_new_row=before != ("row", row), is_new_table=before[0] != "row")
            before = ("row", row)
        elif pre >= 0 and "code" in marks:
            _add_code(lines, text, is_new=before != ("pre", pre))
            before = ("pre", pre)
        else:
            item = int(items[at]) if "lists" in marks else -1
            if not (item >= 0 and before[0] == "item"):
                lines.append("")
            if "headings" in marks and (heading := _heading(page, at)):
                text = heading + text.replace("\n", " ")
            mark = _bullet(page, item, int(depths[at])) if item >= 0 else ("", "")
            lines.append(_indented(text, *mark, is_first=before != ("item", item)))
            before = ("item" if item >= 0 else "line", item)
    return "\n".join(lines).strip("\n")


def _heading(page: Page, at: int) -> str:
    """Return the mark of a heading, empty for other blocks."""
    level = _HEADINGS.get(int(page.elements[page.blocks[at]["element"]]["tag"]), 0)
    return "#" * level + " " if level else ""


def _indented(text: str, indent: str, mark: str, *, is_first: bool) -> str:
    """Return a block of a list item, behind its mark where it is the first."""
    start = indent + (mark if is_first else " " * len(mark))
    return start + text.replace("\n", "\n" + indent + " " * len(mark))


def _add_cell(lines: list[str], text: str, *, is_new_row: bool, is_new_table: bool) -> None:
    cell = text.replace("|", "\\|").replace("\n", " ")
    if is_new_table:
        lines += ["", f"| {cell} |", "|---|"]
    elif is_new_row:
        lines.append(f"| {cell} |")
    elif lines[-1].startswith("|---"):
        lines[-2] += f" {cell} |"
        lines[-1] += "---|"
    else:
        lines[-1] += f" {cell} |"


def _add_code(lines: list[str], text: str, *, is_new: bool) -> None:
    if is_new:
        longest = max((len(found) for found in _FENCE.findall(text)), default=2)
        lines += ["", "`" * (longest + 1), text, "`" * (longest + 1)]
    else:
        lines.insert(-1, text)


def _bullet(page: Page, item: int, depth: int) -> tuple[str, str]:
    """Return the indent of a list item and its mark."""
    parent = int(page.elements[item]["parent"])
    ordered = parent >= 0 and int(page.elements[parent]["tag"]) == el.OL
    return "  " * min(depth, 8), f"{int(page.elements[item]['number'])}. " if ordered else "- "


class _Inline:
    """The text of blocks with what is marked inside them."""

    def __init__(self, page: Page, marks: tuple[str, ...]) -> None:
        self._page = page
        self._math = _math(page) if page.state[0]["maths"] else {}
        kinds = {MATHML, TEX, TEX_DISPLAY}
        kinds |= {LINK_START, LINK_END} if "links" in marks else set()
        kinds |= {CODE_START, CODE_END} if "code" in marks else set()
        found = page.marks[: page.state[0]["marks"]]
        self._marks = found[np.isin(found["kind"], [int(kind) for kind in kinds])]

    def text(self, at: int, *, is_code: bool) -> str:
        block = self._page.blocks[at]
        start, end = int(block["start"]), int(block["end"])
        first, last = np.searchsorted(self._marks["place"], [start, end + 1])
        pieces: list[str] = []
        opened: list[tuple[Any, int, str]] = []
        for kind, place, source, source_end in self._marks[first:last].tolist():
            pieces.append(self._decoded(start, place))
            start = max(start, place)
            if kind in (MATHML, TEX, TEX_DISPLAY):
                pieces.append(self._math.get(place, ""))
                start = place + 1
            elif not is_code:
                _mark(pieces, opened, kind, self._page.data[source:source_end].tobytes())
        pieces.append(self._decoded(start, end))
        return "".join(pieces)

    def _decoded(self, start: int, end: int) -> str:
        return self._page.text[start:end].tobytes().decode("utf-8", "replace") if end > start else ""


def _mark(pieces: list[str], opened: list[tuple[Any, int, str]], kind: int, source: bytes) -> None:
    """Open or close a link or inline code; a pair around nothing, or over the block's end, leaves no mark."""
    if kind in (LINK_START, CODE_START):
        opened.append((kind, len(pieces), source.decode("utf-8", "replace")))
        pieces.append("")
        return
    start = LINK_START if kind == LINK_END else CODE_START
    if not opened or opened[-1][0] != start:
        return
    _, place, address = opened.pop()
    inside = "".join(pieces[place:])
    text = inside.strip(_SPACE)
    if not text or "\n" in text:
        return
    address = html.unescape(address).strip(_SPACE)
    marked = f"`{text}`" if start == CODE_START else f"[{text}]({address})"
    if start == LINK_START and (not address or len(address) > _LONGEST_ADDRESS or _NO_ADDRESS.search(address)):
        marked = text
    before, after = inside[: len(inside) - len(inside.lstrip(_SPACE))], inside[len(inside.rstrip(_SPACE)) :]
    pieces[place:] = [before + marked + after]
