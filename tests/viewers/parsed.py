"""A page as a browser's parser sees it: elements with attributes, tables with cells, the text that is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from viewers.scripts import script

VOID = {"br", "col", "hr", "input", "link", "meta"}


@dataclass
class Node:
    """An element; `parts` are its text and elements in order."""

    tag: str
    attributes: dict[str, str | None]
    parts: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def all(self, tag: str = "", class_: str = "") -> list[Node]:
        found = []
        for part in self.parts:
            if isinstance(part, Node):
                if tag in ("", part.tag) and (not class_ or class_ in (part.attributes.get("class") or "").split()):
                    found.append(part)
                found.extend(part.all(tag, class_))
        return found

    def one(self, tag: str = "", **attributes: str) -> Node:
        found = [n for n in self.all(tag) if all(n.attributes.get(name) == value for name, value in attributes.items())]
        assert len(found) == 1, f"{len(found)} elements {tag} {attributes}"
        return found[0]


class Page(HTMLParser):
    """Parses a page and insists on properly nested elements."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]
        self.comments: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == [self.root], [node.tag for node in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        node = Node(tag, dict(attrs))
        self.open[-1].parts.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, (tag, self.open[-1].tag)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def parse(html: str, source: str | None = None) -> Node:
    """Return the root of a page without its script, which must be ours, letter by letter, and the only one."""
    page = Page(html)
    assert not page.comments
    for body in page.root.all("body"):
        own = [part for part in body.parts if isinstance(part, Node) and part.tag == "script"]
        assert [node.text for node in own] in ([], [source or script()]) and not any(node.attributes for node in own)
        body.parts = [part for part in body.parts if part not in own]
    return page.root


def number(text: str) -> int:
    """Return the integer that a cell shows."""
    return int(text.replace("\u202f", "").replace("−", "-"))


def tables(root: Node) -> dict[str, list[list[str]]]:
    """Return the cells of each table by its caption, header row first, rows that head groups left out."""
    result = {}
    for table in root.all("table"):
        caption = table.one("caption").text.rsplit(" ", 1)[0]
        rows = [[cell.text for cell in row.parts if isinstance(cell, Node)] for row in table.all("tr")]
        assert caption not in result, caption
        result[caption] = [row for row in rows if len(row) > 1]
    return result
