"""What a panel is: a section with an anchor, a title, one sentence on what to look at, and its body."""

from __future__ import annotations

from dataclasses import dataclass

from viewers.markup import Child, Markup, element


@dataclass(frozen=True, slots=True)
class Panel:
    """A section of the report; `entries` are further anchors below it for the table of contents."""

    anchor: str
    title: str
    lede: Child
    body: Markup
    entries: tuple[tuple[str, str], ...] = ()

    def markup(self) -> Markup:
        """Return the section."""
        return element(
            "section",
            element("h2", self.title, id=f"{self.anchor}-title"),
            element("p", self.lede, class_="look"),
            self.body,
            id=self.anchor,
            aria_labelledby=f"{self.anchor}-title",
        )
