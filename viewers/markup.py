"""A small HTML builder that escapes by default: a string is text, only `Markup` is HTML.

Invariants: text and attribute values are escaped, quotes too, and hidden characters are made visible
(`viewers.visible`); there are no event handlers, style attributes or foreign addresses, and no script but our own,
because the builder refuses to make them. What HTML says as values (`viewers.table_data`) stays with it, wherever it is
put. Cost: linear in the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Final

from viewers.table_data import JSON_TYPE, MEDIA_TYPE, Datum
from viewers.visible import HIDDEN, code_points, plain

VOID: Final = frozenset({"br", "col", "hr", "input", "link", "meta"})
REFUSED: Final = frozenset({"base", "embed", "form", "iframe", "object", "script", "style"})
INSIDE: Final = re.compile(
    rf"#.*|data:,|{re.escape(MEDIA_TYPE)}[\w.~%,:;()/=+-]*|{re.escape(JSON_TYPE)}[\w/+=]*|"
    r"(?:\.\./)*(?:[\w.~%-]+/)*report\.html",
    re.ASCII | re.DOTALL,
)
"""Addresses that a page may hold: places in it, tables and plans that it holds itself, and report pages near it."""


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML made by this module; it stands in a page as it is. `data` are the tables and facts in it, in order."""

    html: str
    data: tuple[Datum, ...] = ()


Child = Markup | str | None
"""What an element may hold: HTML, a string (text, to be escaped), or nothing."""


def text(value: str) -> Markup:
    """Return `value` as text: escaped, hidden characters named in a span of class "hidden"."""
    parts: list[str] = []
    begin = 0
    for run in HIDDEN.finditer(value):
        parts.append(escape(value[begin : run.start()]))
        parts.append(f'<span class="hidden">{code_points(run[0])}</span>')
        begin = run.end()
    parts.append(escape(value[begin:]))
    return Markup("".join(parts))


def join(children: Iterable[Child], between: str = "") -> Markup:
    """Return `children` one after the other, the text `between` separating them."""
    parts = [child for child in children if child is not None]
    return Markup(escape(between).join(map(_html, parts)), _data(parts))


def element(tag: str, /, *children: Child, **attributes: str | int | None) -> Markup:
    """Return an element; "_" in a name of `attributes` stands for "-", a last one is dropped (`class_`).

    An attribute that is None is left out, one that is "" has no value.

    Raises:
        ValueError: an element or attribute that could run code, load something or lead out of the page.
    """
    if tag in REFUSED:
        raise ValueError(f"<{tag}> may not stand in a page")
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    inner = join(children)
    return Markup(f"<{tag}{written}>" if tag in VOID else f"<{tag}{written}>{inner.html}</{tag}>", inner.data)


def stylesheet(css: str) -> Markup:
    """Return a style element with our own `css`.

    Raises:
        ValueError: `css` could end the element or load something.
    """
    if "</" in css or "url(" in css or "@import" in css:
        raise ValueError("a style sheet may hold no markup and no address")
    return Markup(f"<style>{css}</style>")


def own_script(source: str) -> Markup:
    """Return a script element with our own `source`, which holds nothing from data.

    Raises:
        ValueError: `source` could end the element, or open a comment in which its end is not seen.
    """
    if "</" in source or "<!--" in source:
        raise ValueError("a script may hold no markup")
    return Markup(f"<script>{source}</script>")


def _html(child: Markup | str) -> str:
    return child.html if isinstance(child, Markup) else text(child).html


def _data(children: Iterable[Markup | str]) -> tuple[Datum, ...]:
    return tuple(datum for child in children if isinstance(child, Markup) for datum in child.data)


def _attribute(key: str, value: str | int) -> str:
    name = key.rstrip("_").replace("_", "-")
    shown = plain(str(value))
    if name.startswith("on") or name in ("style", "src", "srcdoc", "srcset", "action", "formaction"):
        raise ValueError(f"the attribute {name} may not stand in a page")
    if name == "href" and not INSIDE.fullmatch(shown):
        raise ValueError(f"href={shown!r} leads out of the page: show addresses as text")
    return f" {name}" if shown == "" else f' {name}="{escape(shown)}"'
