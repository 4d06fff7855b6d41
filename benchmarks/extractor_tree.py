"""Blocks and elements of a page by another route, as a reference: resiliparse's HTML5 tree, walked."""

from __future__ import annotations

import re
from typing import Any

from resiliparse.parse.html import HTMLTree

from transforms.pages.elements import BLOCK, CODES, FLAGS, SKIPPED

_ELEMENT, _TEXT = 1, 3
_BLANKS = re.compile("[ \t\r\n\f\u00a0\u3000\u2002-\u200a]+")
_NOTHING = re.compile("[\u200b\ufeff\u00ad\0]")


class _Blocks:
    def __init__(self) -> None:
        self.found: list[str] = []
        self._pieces: list[str] = []

    def flush(self) -> None:
        lines = "".join(self._pieces).split("\x01")
        while lines:
            text, breaks = [], 0
            while lines and breaks < 2:
                line = _BLANKS.sub(" ", _NOTHING.sub("", lines.pop(0))).strip(" ")
                breaks = 0 if line else breaks + 1
                text += [line] if line else []
            if text:
                self.found.append("\n".join(text))
        self._pieces = []

    def walk(self, node: Any) -> None:
        stack: list[tuple[Any, bool]] = [(node, False)]
        while stack:
            node, done = stack.pop()
            if node.type == _TEXT:
                self._pieces.append(node.text)
            elif node.type == _ELEMENT:
                flags = int(FLAGS[CODES.get(node.tag, 0)])
                if flags & SKIPPED and not done:
                    continue
                if flags & BLOCK:
                    self.flush()
                if node.tag == "br":
                    self._pieces.append("\x01")
                if not done:
                    stack.append((node, True))
                    stack += [(child, False) for child in reversed(node.child_nodes)]


def tree_blocks(html: str) -> list[str]:
    """Return the text of each block of `html`; `pre` is read as other text."""
    blocks = _Blocks()
    blocks.walk(HTMLTree.parse(html).body)
    blocks.flush()
    return blocks.found


def element_texts(html: str, names: frozenset[str]) -> list[tuple[str, str]]:
    """Return name and text of the elements of `html` that have these names and hold none of the same name.

    Text pieces of different blocks, and a line break, stand apart by a line end; `pre` keeps its own.
    """
    tree = HTMLTree.parse(html)
    return [
        (name, _text_of(element))
        for name in sorted(names)
        for element in (tree.body.get_elements_by_tag_name(name) if tree.body else ())
        if len(element.get_elements_by_tag_name(name)) == 0
    ]


def _text_of(node: Any) -> str:
    pieces: list[str] = []
    stack: list[tuple[Any, bool]] = [(node, False)]
    while stack:
        node, done = stack.pop()
        if node.type == _TEXT:
            pieces.append(node.text)
        elif node.type == _ELEMENT:
            flags = int(FLAGS[CODES.get(node.tag, 0)])
            if flags & SKIPPED:
                continue
            if flags & BLOCK or node.tag == "br":
                pieces.append("\n")
            if not done and node.tag != "br":
                stack.append((node, True))
                stack += [(child, False) for child in reversed(node.child_nodes)]
    return "".join(pieces)
