"""Sums that must hold, as lines of a page: a sign, where, the unit, and both sides with their numbers."""

from __future__ import annotations

from viewers.flows import Identity
from viewers.markup import Markup, element
from viewers.numbers import grouped


def identity_line(where: str, identity: Identity) -> Markup:
    """Return the line of one sum, an item of a list of class "identities"."""
    sides = [
        " + ".join(f"{name} {grouped(number)}" for name, number in side) for side in (identity.left, identity.right)
    ]
    sign, verdict = ("✓", "pass") if identity.holds else ("✕", "fail")
    return element(
        "li",
        element("span", sign, class_=f"verdict {verdict}"),
        element("span", where, " · ", identity.unit, class_="where"),
        element("span", f" {'=' if identity.holds else '≠'} ".join(sides), class_="sum"),
    )
