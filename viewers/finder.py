"""What a page's script needs to be there: the search box, the keys, the line that is read aloud. Hidden without it."""

from __future__ import annotations

from viewers.markup import Markup, element


def finder() -> Markup:
    """Return the search box for the contents of a page."""
    keys = element(
        "label",
        element("input", type="checkbox", id="single-keys", checked=""),
        "Keys: ",
        element("kbd", "/"),
        " search, ",
        element("kbd", "j"),
        " ",
        element("kbd", "k"),
        " next and previous panel",
    )
    return element(
        "div",
        element("label", "Search this page", for_="search"),
        element("input", type="search", id="search", autocomplete="off", spellcheck="false", maxlength=200),
        element("p", id="found-count", role="status"),
        element("ol", id="found"),
        element("p", keys, class_="keys"),
        class_="search",
        role="search",
        hidden="",
    )


def said() -> Markup:
    """Return the line that tells a screen reader what changed."""
    return element("p", id="said", role="status", class_="unseen")
