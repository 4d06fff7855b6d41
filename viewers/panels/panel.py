"""What a panel is: a section with an anchor, a title, one sentence on what to look at, and its body."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from viewers.markup import Child, Markup, element

_ANCHOR: Final = re.compile(r'(id="|href="#)table-([a-z0-9-]+)"')


@dataclass(frozen=True, slots=True)
class Panel:
    """A section of the report; `entries` are further anchors below it for the table of contents."""

    anchor: str
    title: str
    lede: Child
    body: Markup
    entries: tuple[tuple[str, str], ...] = ()

    def anchored(self) -> Markup:
        """Return the body with anchors of its tables that hold the panel's."""
        return _anchored(self.body, self.anchor)

    def markup(self, pieces: Sequence[Markup] | None = None) -> Markup:
        """Return the section; `pieces` are its body, where parts of it wait (`viewers.waiting`)."""
        return element(
            "section",
            element("h2", self.title, id=f"{self.anchor}-title"),
            element("p", self.lede, class_="look"),
            *([self.anchored()] if pieces is None else pieces),
            id=self.anchor,
            aria_labelledby=f"{self.anchor}-title",
        )


def _anchored(body: Markup, anchor: str) -> Markup:
    """Return `body` with anchors of tables that hold the panel's: "table-rights-licences"; those met again numbered.

    Text holds no quotes in HTML, so nothing but attributes of `viewers.tables` matches. A table's link follows it.
    """
    names: dict[str, int] = {}

    def renamed(found: re.Match[str]) -> str:
        attribute, name = found[1], found[2]
        names[name] = names.get(name, 0) + (attribute == 'id="')
        number = "" if names[name] == 1 else f"-{names[name]}"
        return f'{attribute}table-{anchor}-{name}{number}"'

    return Markup(_ANCHOR.sub(renamed, body.html), body.data)
